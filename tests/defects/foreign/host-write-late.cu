/* One value of a large pinned buffer is changed while the copy that reads it is still queued: too few
 * bytes to be seen in samples of the memory.
 *
 * On hardware: no error; the changed value arrives, although the program changed it after the copy.
 * To be named: the store in change_one, and the copy in upload. */
#include "foreign.h"

enum { COUNT = 1 << 20, CHANGED = 777777 };

CULPRIT void upload(float *device, const float *host, cudaStream_t stream)
{
    CHECK(cudaMemcpyAsync(device, host, COUNT * sizeof(float), cudaMemcpyHostToDevice, stream));
}

CULPRIT void change_one(volatile float *values)
{
    values[CHANGED] = 2.0f;
}

int main()
{
    load_kernels();
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    float *host, *device, arrived;
    CHECK(cudaMallocHost(&host, COUNT * sizeof(float)));
    CHECK(cudaMalloc(&device, COUNT * sizeof(float)));
    set_all(host, COUNT, 1.0f);
    delay<<<1, 1, 0, stream>>>(DELAY_MS);
    upload(device, host, stream);
    change_one(host);
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(&arrived, device + CHANGED, sizeof(arrived), cudaMemcpyDeviceToHost));
    printf("arrived: %.1f\n", arrived);
    CHECK(cudaFree(device));
    CHECK(cudaFreeHost(host));
    CHECK(cudaStreamDestroy(stream));
    return 0;
}
