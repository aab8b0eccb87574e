/* cuda_signatures_test.c - the driver's functions as signatures.def has them are those of the CUDA
 * toolkit, and their arguments lie as in CUPTI's structs. Compiled only if there is a toolkit; a
 * difference does not compile. (The other half, cuda_types.c, has our own types.)
 *
 * cudaTypedefs.h names the type of each function by what cuGetProcAddress needs to find it: so it
 * also knows the versions. */
#define __CUDA_API_VERSION_INTERNAL /* earlier functions too, and none under a later one's name */
#include <cuda.h>
#define CUDAAPI /* cuda.h has undefined it */
#include <cudaTypedefs.h>
#include <generated_cuda_meta.h>

#include "cuda_types.h"
#include "interpose/cuda/arguments.h"

#define CUDA_BY_HAND(entry, name, version, ...)                                                    \
    _Static_assert(                                                                                \
        __builtin_types_compatible_p(PFN_##name##_v##version, CUresult(*)(__VA_ARGS__)),           \
        #entry " is as in cudaTypedefs.h");
#define CUDA_ROW(entry, name, version, suffix, ...)                                                \
    CUDA_BY_HAND(entry, name, version##suffix, __VA_ARGS__)                                        \
    struct arguments_of_##entry {                                                                  \
        ARGUMENTS_FIELDS(__VA_ARGS__)                                                              \
    };                                                                                             \
    _Static_assert(sizeof(struct arguments_of_##entry) == sizeof(entry##_params),                  \
                   #entry " has CUPTI's arguments");
#include "interpose/cuda/signatures.def"
#undef CUDA_BY_HAND
#undef CUDA_ROW

const struct type_shape toolkit_types[TYPE_COUNT] = { PASSED_BY_VALUE };
