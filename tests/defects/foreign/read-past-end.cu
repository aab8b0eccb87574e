/* A result of 1000 values is copied to the host with the size of a padded one (4096 values).
 *
 * On hardware: the driver knows the size to the byte: the copy returns cudaErrorInvalidValue and
 * copies nothing, not even the 1000 values. A program that does not look at the result computes
 * with old bytes.
 * To be named: the cudaMemcpy in copy_back, with 16384 bytes asked of 4000. */
#include "foreign.h"

enum { COUNT = 1000, PADDED = 4096 };

CULPRIT void copy_back(float *host, const float *device)
{
    cudaError_t error = cudaMemcpy(host, device, PADDED * sizeof(float), cudaMemcpyDeviceToHost);
    printf("copy: %s\n", cudaGetErrorName(error));
}

int main()
{
    static float host[PADDED];
    float *device;
    CHECK(cudaMalloc(&device, COUNT * sizeof(float)));
    fill<<<BLOCKS(COUNT)>>>(device, COUNT, 2.0f);
    copy_back(host, device);
    printf("right: %d of %d\n", count_equal(host, COUNT, 2.0f), COUNT);
    CHECK(cudaFree(device));
    return 0;
}
