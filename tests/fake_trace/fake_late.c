/* fake_late.c - copies of the emulated driver that are done late; see fake_driver.h. */
#define _GNU_SOURCE /* memfd_create */
#include "fake_driver.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RANGE_LIMIT = 256, QUEUE_LIMIT = 16384 };

static struct {
    unsigned char *memory, *device; /* the program's mapping and the device's */
    size_t bytes;
} ranges[RANGE_LIMIT];
static size_t range_count;

static struct {
    unsigned char *target;
    const unsigned char *source; /* NULL: a kernel's work */
    size_t bytes;
    stream on;
} queue[QUEUE_LIMIT];
static size_t queue_count;

void *fake_pinned(size_t bytes)
{
    int file = memfd_create("pinned", MFD_CLOEXEC);
    if (file < 0 || range_count == RANGE_LIMIT || ftruncate(file, (off_t)bytes) != 0)
        return NULL;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    void *device = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED || device == MAP_FAILED)
        return NULL;
    ranges[range_count].memory = memory;
    ranges[range_count].device = device;
    ranges[range_count++].bytes = bytes;
    return memory;
}

/* As the device sees it; NULL: it is no pinned memory. */
static unsigned char *device_side(address pointer)
{
    for (size_t i = 0; i < range_count; i++) {
        size_t offset = (size_t)(pointer - (address)(uintptr_t)ranges[i].memory);
        if (offset < ranges[i].bytes)
            return ranges[i].device + offset;
    }
    return NULL;
}

int fake_late(address target, address source, size_t bytes, stream on)
{
    unsigned char *to = device_side(target), *from = device_side(source);
    if (!getenv("FAKE_TRACE_LATE") || (!to && !from) || queue_count == QUEUE_LIMIT)
        return 0;
    queue[queue_count].target = to ? to : (unsigned char *)(uintptr_t)target;
    queue[queue_count].source = from ? from : (const unsigned char *)(uintptr_t)source;
    queue[queue_count].bytes = bytes;
    queue[queue_count++].on = on;
    return 1;
}

void fake_late_fill(address target, size_t bytes, stream on)
{
    unsigned char *to = device_side(target);
    if (!to || queue_count == QUEUE_LIMIT)
        return;
    if (!getenv("FAKE_TRACE_LATE")) {
        memset(to, 42, bytes);
        return;
    }
    queue[queue_count].target = to;
    queue[queue_count].source = NULL;
    queue[queue_count].bytes = bytes;
    queue[queue_count++].on = on;
}

result fake_late_run(stream on)
{
    size_t kept = 0;
    for (size_t i = 0; i < queue_count; i++) {
        if ((!on || queue[i].on == on) && !queue[i].source)
            memset(queue[i].target, 42, queue[i].bytes);
        else if (!on || queue[i].on == on)
            memmove(queue[i].target, queue[i].source, queue[i].bytes);
        else
            queue[kept++] = queue[i];
    }
    queue_count = kept;
    return OK;
}
