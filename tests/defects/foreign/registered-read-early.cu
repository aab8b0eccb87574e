/* A result in the program's own memory, registered, is read before its copy has arrived.
 *
 * On hardware: no error; what is read is the old value.
 * To be named: the load in read_last, and the copy in download. */
#include "foreign.h"

enum { COUNT = 1 << 16 };

CULPRIT void download(float *host, const float *device, cudaStream_t stream)
{
    CHECK(cudaMemcpyAsync(host, device, COUNT * sizeof(float), cudaMemcpyDeviceToHost, stream));
}

CULPRIT float read_last(const volatile float *values)
{
    return values[COUNT - 1];
}

int main()
{
    load_kernels();
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    float *host = (float *)aligned_alloc(4096, COUNT * sizeof(float)), *device;
    CHECK(cudaHostRegister(host, COUNT * sizeof(float), cudaHostRegisterDefault));
    CHECK(cudaMalloc(&device, COUNT * sizeof(float)));
    set_all(host, COUNT, 0.0f);
    fill<<<BLOCKS(COUNT), 0, stream>>>(device, COUNT, 7.0f);
    delay<<<1, 1, 0, stream>>>(DELAY_MS);
    download(host, device, stream);
    float early = read_last(host);
    CHECK(cudaStreamSynchronize(stream));
    printf("read %.1f, then right: %d of %d\n", early, count_equal(host, COUNT, 7.0f), COUNT);
    CHECK(cudaFree(device));
    CHECK(cudaHostUnregister(host));
    CHECK(cudaStreamDestroy(stream));
    free(host);
    return 0;
}
