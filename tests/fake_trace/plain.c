/* plain.c - a program that has nothing to do with GPUs prints what a preloaded library could have
 * changed: what dlsym finds and where, its errors, the dispositions of signals. Traced and untraced
 * it must print the same. */
#define _GNU_SOURCE /* RTLD_NEXT, RTLD_DEFAULT */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *early;

/* Before the program's own constructors, as an allocator would. */
__attribute__((constructor(101))) static void ask_early(void)
{
    early = dlsym(RTLD_NEXT, "malloc");
}

/* The C library's is the next one. */
pid_t getppid(void)
{
    pid_t (*real)(void);
    *(void **)&real = dlsym(RTLD_NEXT, "getppid");
    return real && real != getppid ? real() : -1;
}

static void print_found(const char *where, void *library, const char *name)
{
    void *found = dlsym(library, name);
    const char *error = dlerror();
    Dl_info info = { .dli_fname = "" };
    if (found)
        dladdr(found, &info);
    const char *slash = strrchr(info.dli_fname, '/');
    printf("%s %s: %s%s\n", where, name, found ? (slash ? slash + 1 : info.dli_fname) : "none",
           error ? ", an error" : "");
}

static void print_signals(void)
{
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
            printf("signal %d is %s\n", number,
                   action.sa_handler == SIG_IGN ? "ignored" : "handled");
    }
}

int main(void)
{
    static const char *const names[] = { "cuInit",          "cuMemAlloc_v2", "cuGetProcAddress_v2",
                                         "cuLaunchKernel",  "cudaMalloc",    "hipMalloc",
                                         "cuNothingAtAll",  "dlsym",         "printf",
                                         "no_such_function" };
    void *self = dlopen(NULL, RTLD_NOW);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if (strcmp(names[i], "dlsym") != 0) /* whose it is differs */
            print_found("default", RTLD_DEFAULT, names[i]);
        print_found("next", RTLD_NEXT, names[i][0] == 'c' ? "getpid" : "puts");
        if (strcmp(names[i], "dlsym") != 0)
            print_found("program", self, names[i]);
    }
    printf("early: %s\n", early && early == dlsym(RTLD_NEXT, "malloc") ? "found" : "not found");
    printf("parent: %s\n", getppid() > 0 ? "known" : "not known");
    print_signals();
    return 3;
}
