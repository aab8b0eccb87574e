/* Two owners free the same memory.
 *
 * On hardware: the second free returns cudaErrorInvalidValue; if the address had been given out
 * again in between, it would free somebody else's memory.
 * To be named: the cudaFree in give_back_again, and the one in give_back. */
#include "foreign.h"

CULPRIT void give_back(float *device)
{
    CHECK(cudaFree(device));
}

CULPRIT void give_back_again(float *device)
{
    cudaError_t error = cudaFree(device);
    printf("second free: %s\n", cudaGetErrorName(error));
}

int main()
{
    float *device;
    CHECK(cudaMalloc(&device, 4096));
    CHECK(cudaMemset(device, 0, 4096));
    give_back(device);
    give_back_again(device);
    return 0;
}
