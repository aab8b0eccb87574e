/* hip_header.h - for tests that compare our declarations of HIP with the vendor's header, where
 * that is installed. */
#ifndef GRETA_TESTS_HIP_HEADER_H
#define GRETA_TESTS_HIP_HEADER_H

#include "test.h"

/* A type of the vendor's, and ours under the name our_TYPE. */
#define SAME_SIZE(type) _Static_assert(sizeof(type) == sizeof(our_##type), #type " has its size")
#define SAME_PLACE(type, member)                                                                   \
    _Static_assert(offsetof(type, member) == offsetof(our_##type, member), #member " is in place")

/* The compiler holds it all; without the header nothing was compared. */
static inline void test_header(void **state)
{
    (void)state;
#if !defined(GRETA_HAS_HIP_H)
    print_message("skipped: hip/hip_runtime_api.h (libamdhip64-dev) is not installed\n");
    skip();
#endif
}

#endif
