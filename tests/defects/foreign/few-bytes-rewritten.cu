/* 64 KiB of pinned memory are uploaded; before the copy has run, the host rewrites 32 bytes in the
 * middle of them.
 *
 * On hardware: no error; eight values arrive wrong.
 * To be named: the copy in upload. */
#include "foreign.h"

enum { COUNT = 1 << 14, CHANGED = 8 };

CULPRIT void upload(float *device, const float *staging, cudaStream_t stream)
{
    CHECK(cudaMemcpyAsync(device, staging, COUNT * sizeof(float), cudaMemcpyHostToDevice, stream));
}

int main()
{
    cudaStream_t stream;
    float *staging, *device, *host = new float[COUNT];
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMallocHost(&staging, COUNT * sizeof(float)));
    CHECK(cudaMalloc(&device, COUNT * sizeof(float)));
    load_kernels();
    set_all(staging, COUNT, 1.0f);

    delay<<<1, 1, 0, stream>>>(DELAY_MS);
    upload(device, staging, stream);
    set_all(staging + COUNT / 3, CHANGED, 2.0f);
    CHECK(cudaStreamSynchronize(stream));

    CHECK(cudaMemcpy(host, device, COUNT * sizeof(float), cudaMemcpyDeviceToHost));
    printf("right: %d of %d\n", count_equal(host, COUNT, 1.0f), COUNT);
    delete[] host;
    CHECK(cudaFree(device));
    CHECK(cudaFreeHost(staging));
    CHECK(cudaStreamDestroy(stream));
    return 0;
}
