/* cuda_types.h - the types of the driver that are passed by value, for the two halves of
 * cuda_signatures_test: one has the toolkit's declarations, the other our own. */
#ifndef GRETA_TESTS_CUDA_TYPES_H
#define GRETA_TESTS_CUDA_TYPES_H

#include <stddef.h>

#define PASSED_BY_VALUE                                                                            \
    TYPE(CUresult)                                                                                 \
    TYPE(CUdeviceptr)                                                                              \
    TYPE(CUmemGenericAllocationHandle)                                                             \
    TYPE(cuuint32_t)                                                                               \
    TYPE(cuuint64_t)                                                                               \
    TYPE(CUdevice)                                                                                 \
    TYPE(CUmemAllocationHandleType)                                                                \
    TYPE(CUpointer_attribute)                                                                      \
    TYPE(CUstreamCaptureMode)                                                                      \
    TYPE(CUdriverProcAddressQueryResult)                                                           \
    TYPE(CUgraphExecUpdateResult)                                                                  \
    TYPE(CUstream)                                                                                 \
    TYPE(CUhostFn)                                                                                 \
    TYPE(CUstreamCallback)                                                                         \
    TYPE(CUipcEventHandle)                                                                         \
    TYPE(CUipcMemHandle)

struct type_shape {
    const char *name;
    size_t bytes, alignment;
};
#define TYPE(name) { #name, sizeof(name), _Alignof(name) },

#define TYPE_COUNT 16
extern const struct type_shape toolkit_types[TYPE_COUNT];

#endif
