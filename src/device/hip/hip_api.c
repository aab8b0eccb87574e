/* hip_api.c - see hip_api.h. */
#include "device/hip/hip_api.h"

static const struct dynlib_symbol symbols[] = {
#define HIP_CALL(name, parameters) { #name, offsetof(struct hip_api, name), false },
#define HIP_OPTIONAL(name, parameters) { #name, offsetof(struct hip_api, name), true },
#include "device/hip/hip_api.def"
#undef HIP_OPTIONAL
#undef HIP_CALL
    { "hipGetErrorName", offsetof(struct hip_api, hipGetErrorName), false },
};

enum status hip_api_open(struct hip_api *api, struct dynlib **ret_library, struct error *err)
{
    static const char *const names[] = { "libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6",
                                         "libamdhip64.so.5", NULL };
    return dynlib_load(names, symbols, COUNT_OF(symbols), api, ret_library, err);
}
