/* preload.h - what the files of the preloaded library over libcuda share.
 *
 * Every call of calls.def is exported under its own name, and handed out where a program asks dlsym
 * or cuGetProcAddress for it. A wrapper passes the call's arguments to the same functions as
 * CUPTI's callback does, calls the driver and returns just what that returned. */
#ifndef GRETA_INTERPOSE_CUDA_PRELOAD_H
#define GRETA_INTERPOSE_CUDA_PRELOAD_H

#include "interpose/cuda/cuda.h"
#include "interpose/cuda/types.h"

#define EXPORT __attribute__((visibility("default")))

enum cuda_code {
    CUDA_NO_DEVICE = 100,
    CUDA_NOT_FOUND = 500, /* a call that this driver does not have */
};

/* ---- The driver's own functions (preload.c) ------------------------------------------------- */

typedef void (*cuda_function)(void); /* any function, to be cast */

enum cuda_index {
#define CUDA_ROW(entry, ...) CUDA_INDEX_##entry,
#define CUDA_BY_HAND(entry, ...) CUDA_INDEX_##entry,
#include "interpose/cuda/signatures.def"
#undef CUDA_BY_HAND
#undef CUDA_ROW
    CUDA_INDEX_COUNT
};

/* What the program would have called without this library; NULL: nothing has that name. `nested`:
 * the driver's own function. A library between the program and the driver that looks the driver's
 * functions up itself finds our wrapper there, and its call must not come back to it. */
cuda_function cuda_real(enum cuda_index index, bool nested);

/* ---- A wrapped call (wrappers.c) ------------------------------------------------------------ */

/* A wrapper begins in this thread; false: within another one, so that it is not called by the
 * program. */
bool cuda_depth_enter(void);
void cuda_depth_leave(void);

/* The same for a call that is recorded. id: CUPTI's number of the call. arguments: laid out as a
 * struct. */
bool cuda_enter(struct cuda_call *call, uint32_t id, const void *arguments);
void cuda_leave(struct cuda_call *call, CUresult code);

/* ---- GPU core dumps ------------------------------------------------------------------------- */

/* coredump.c: the driver is initialised. True if it will write a dump of the first fault, and let
 * the program go on. */
bool cuda_arm_coredump(const struct interpose *trace);
/* exit_guard.c: the first fault was seen by a process with dumps armed. */
void cuda_guard_exit(void);

#define CUDA_ROW(entry, name, version, suffix, ...) EXPORT CUresult entry(__VA_ARGS__);
#define CUDA_BY_HAND(entry, name, version, ...) EXPORT CUresult entry(__VA_ARGS__);
#include "interpose/cuda/signatures.def"
#undef CUDA_BY_HAND
#undef CUDA_ROW

#endif
