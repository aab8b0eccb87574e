/* fake.h - what the files of the fake driver share. */
#ifndef GRETA_TESTS_FAKE_GPU_FAKE_H
#define GRETA_TESTS_FAKE_GPU_FAKE_H

#include "emulator.h"

struct fake_kernel {
    const char *name;
    emulated_kernel run;
    uint32_t thread_limit; /* of a block, as its code says; 0: not known yet */
    uint64_t captured;     /* how often it was given to a graph */
};
struct fake_kernel *fake_kernel_find(const char *name); /* or NULL */

#endif
