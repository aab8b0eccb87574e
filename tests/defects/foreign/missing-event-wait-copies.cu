/* Values are uploaded on one stream and copied back on another, which does not wait.
 *
 * On hardware: no error; not one of the values that come back is right.
 * To be named: the copies in upload and copy_back. */
#include "foreign.h"

enum { COUNT = 1 << 20 };

CULPRIT void upload(float *device, const float *host, cudaStream_t stream)
{
    delay<<<1, 1, 0, stream>>>(DELAY_MS);
    CHECK(cudaMemcpyAsync(device, host, COUNT * sizeof(float), cudaMemcpyHostToDevice, stream));
}

CULPRIT void copy_back(float *host, const float *device, cudaStream_t stream)
{
    CHECK(cudaMemcpyAsync(host, device, COUNT * sizeof(float), cudaMemcpyDeviceToHost, stream));
}

int main()
{
    cudaStream_t in, out;
    CHECK(cudaStreamCreateWithFlags(&in, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&out, cudaStreamNonBlocking));
    float *sent, *received, *device;
    CHECK(cudaMallocHost(&sent, COUNT * sizeof(float)));
    CHECK(cudaMallocHost(&received, COUNT * sizeof(float)));
    CHECK(cudaMalloc(&device, COUNT * sizeof(float)));
    CHECK(cudaMemset(device, 0, COUNT * sizeof(float)));
    CHECK(cudaDeviceSynchronize());
    set_all(sent, COUNT, 1.0f);

    upload(device, sent, in);
    copy_back(received, device, out);

    CHECK(cudaDeviceSynchronize());
    printf("right: %d of %d\n", count_equal(received, COUNT, 1.0f), COUNT);
    CHECK(cudaFree(device));
    CHECK(cudaFreeHost(sent));
    CHECK(cudaFreeHost(received));
    CHECK(cudaStreamDestroy(in));
    CHECK(cudaStreamDestroy(out));
    return 0;
}
