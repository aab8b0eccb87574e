/* The program reads the first value of a result in pinned memory before its copy has arrived: the wait
 * comes after the reading.
 *
 * On hardware: no error; what is read is the old value, every time with this much work ahead.
 * To be named: the load in read_first, and the copy in download that had not been waited for. */
#include "foreign.h"

enum { COUNT = 1 << 16 };

CULPRIT void download(float *host, const float *device, cudaStream_t stream)
{
    CHECK(cudaMemcpyAsync(host, device, COUNT * sizeof(float), cudaMemcpyDeviceToHost, stream));
}

CULPRIT float read_first(const volatile float *values)
{
    return values[0];
}

int main()
{
    load_kernels();
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    float *host, *device;
    CHECK(cudaMallocHost(&host, COUNT * sizeof(float)));
    CHECK(cudaMalloc(&device, COUNT * sizeof(float)));
    set_all(host, COUNT, 0.0f);
    fill<<<BLOCKS(COUNT), 0, stream>>>(device, COUNT, 7.0f);
    delay<<<1, 1, 0, stream>>>(DELAY_MS);
    download(host, device, stream);
    float early = read_first(host);
    CHECK(cudaStreamSynchronize(stream));
    printf("read %.1f, then right: %d of %d\n", early, count_equal(host, COUNT, 7.0f), COUNT);
    CHECK(cudaFree(device));
    CHECK(cudaFreeHost(host));
    CHECK(cudaStreamDestroy(stream));
    return 0;
}
