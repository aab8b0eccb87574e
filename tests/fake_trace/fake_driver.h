/* fake_driver.h - what the files of the emulated driver share (fake_trace.h). */
#ifndef GRETA_TESTS_FAKE_DRIVER_H
#define GRETA_TESTS_FAKE_DRIVER_H

#include "fake_trace.h"

#define EXPORT __attribute__((visibility("default")))

/* ---- Launches (fake_kernels.c, fake_dump.c) -------------------------------------------------- */

enum { FAKE_ARGUMENT_BYTES = 64 };
struct fake_launch {
    const struct fake_kernel *kernel;
    const char *name;
    unsigned int grid[3], block[3];
    unsigned char arguments[FAKE_ARGUMENT_BYTES]; /* as the kernel gets them */
    size_t argument_bytes;
    uint64_t number, context; /* of the grid; context: as dumps number them */
};
struct fake_graph {
    struct fake_launch *nodes;
    size_t count;
};

struct fake_stream {
    int capturing, destroyed;
    int asked; /* how often it was asked whether it is done */
    struct fake_graph captured;
};

/* Once a kernel was out of bounds. */
extern int fake_lost;

/* The next number of the current context. */
uint64_t fake_next_grid(void);
void fake_note_launch(const struct fake_launch *launch);
/* The kernel made an illegal access: the context is lost, and a dump is written if one is wanted.
 */
void fake_fail(const struct fake_launch *launch);
/* Runs the kernel with its number. */
void fake_run(const struct fake_launch *launch);
void *fake_context(void);

void fake_lock(void);
void fake_unlock(void);

/* As CUPTI does, if it is asked for that call. */
void fake_tell(int site, uint32_t id, const char *name, const void *parameters, result *code,
               const char *symbol);

/* CALL(id, name, struct of the arguments, kernel's name, what it does): tells, does, tells. */
#define CALL(id, name, arguments, symbol, does)                                                    \
    result code = OK;                                                                              \
    fake_tell(0, (id), name, &(arguments), &code, (symbol));                                       \
    fake_lock();                                                                                   \
    code = fake_lost ? ILLEGAL_ADDRESS : (does);                                                   \
    fake_unlock();                                                                                 \
    fake_tell(1, (id), name, &(arguments), &code, (symbol));                                       \
    return code

/* ---- Device memory -------------------------------------------------------------------------- */

/* Addresses are never given twice, so that freed ones stay freed. */
result fake_make(address *pointer, size_t bytes);
result fake_drop(address pointer);
int fake_is_device(address pointer, size_t bytes);
/* It was given out by fake_make in parts: mapped and unmapped. */
result fake_set_alive(address pointer, size_t bytes, int alive);

/* ---- Work that is done late ------------------------------------------------------------------ */

/* With FAKE_TRACE_LATE asynchronous copies from and to pinned memory are done when something waits
 * for them, through a second mapping of the memory: as by a device, whatever the program's own
 * mapping allows. False: the copy is to be done at once. */
int fake_late(address target, address source, size_t bytes, stream on);
/* The same for a kernel that writes 42 to so many bytes of pinned or managed memory. */
void fake_late_fill(address target, size_t bytes, stream on);
/* Does what was left of the stream's copies; NULL: of all. */
result fake_late_run(stream on);
/* Pinned memory, mapped twice. NULL: there is none. */
void *fake_pinned(size_t bytes);

/* ---- A context's end ------------------------------------------------------------------------ */

/* Frees all device memory and all pinned memory, and begins a new context. */
result fake_reset(void);
/* Callbacks carry another context number from now on. */
void fake_new_context(void);

#endif
