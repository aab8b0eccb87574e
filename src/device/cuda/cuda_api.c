/* cuda_api.c - see cuda_api.h. */
#include "device/cuda/cuda_api.h"

static const struct dynlib_symbol symbols[] = {
#define CUDA_CALL(name, parameters) { #name, offsetof(struct cuda_api, name), false },
#define CUDA_OLD CUDA_CALL
#include "device/cuda/cuda_api.def"
#undef CUDA_OLD
#undef CUDA_CALL
};

enum status cuda_api_open(struct cuda_api *api, struct dynlib **ret_library, struct error *err)
{
    static const char *const names[] = { "libcuda.so.1", "libcuda.so", NULL };
    return dynlib_load(names, symbols, COUNT_OF(symbols), api, ret_library, err);
}
