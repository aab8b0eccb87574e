/* build: -lineinfo -lcuda
 * Two contexts of one GPU run the same kernel with the same dimensions. The second one's pointer is
 * off by 2^40 bytes, as when an offset is added twice.
 *
 * On hardware: CUDA_ERROR_ILLEGAL_ADDRESS in the second context; the first goes on.
 * To be named: the launch in launch_second; each context numbers its launches itself. */
#include "foreign.h"
#include <cuda.h>

enum { COUNT = 1 << 12, LAUNCHES = 3 };

extern "C" __global__ void add_one(float *values, int count)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count)
        values[index] += 1.0f; /* the wild update */
}

static void check_driver(CUresult error, int line)
{
    if (error == CUDA_SUCCESS)
        return;
    const char *name = "?";
    cuGetErrorName(error, &name);
    printf("line %d: %s\n", line, name);
    exit(1);
}
#define DRIVER(call) check_driver((call), __LINE__)

CULPRIT void launch_first(float *values)
{
    add_one<<<BLOCKS(COUNT)>>>(values, COUNT);
}

CULPRIT void launch_second(float *values)
{
    add_one<<<BLOCKS(COUNT)>>>(values, COUNT);
}

int main()
{
    CUdevice device;
    CUcontext contexts[2];
    float *values[2];
    DRIVER(cuInit(0));
    DRIVER(cuDeviceGet(&device, 0));
    for (int c = 0; c < 2; c++) {
#if CUDA_VERSION >= 13000
        DRIVER(cuCtxCreate(&contexts[c], NULL, 0, device));
#else
        DRIVER(cuCtxCreate(&contexts[c], 0, device));
#endif
        CHECK(cudaMalloc(&values[c], COUNT * sizeof(float)));
        CHECK(cudaMemset(values[c], 0, COUNT * sizeof(float)));
    }
    for (int i = 0; i < LAUNCHES; i++) {
        DRIVER(cuCtxSetCurrent(contexts[0]));
        launch_first(values[0]);
        DRIVER(cuCtxSetCurrent(contexts[1]));
        launch_second(i == LAUNCHES - 1 ? values[1] + (1ll << 38) : values[1]);
    }
    cudaError_t error = cudaDeviceSynchronize();
    printf("wait: %s\n", cudaGetErrorName(error));
    return error ? 1 : 0;
}
