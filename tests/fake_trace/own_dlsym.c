/* own_dlsym.c - makes a program wrap dlsym, as some tools do that are linked into one: it finds the
 * C library's by version, and counts what is asked of it. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned count;

static void print_count(void)
{
    printf("asked %u times\n", count);
}

void *dlsym(void *restrict library, const char *restrict name)
{
    void *(*real)(void *, const char *);
    *(void **)&real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    if (!real)
        *(void **)&real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    if (!real)
        *(void **)&real = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
    if (!count++)
        atexit(print_count);
    return real ? real(library, name) : NULL;
}
