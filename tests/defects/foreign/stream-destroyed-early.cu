/* A stream is destroyed with a copy still queued, in the belief that this waits; what should have
 * landed on the host is sent on at once by another stream.
 *
 * On hardware: cudaStreamDestroy comes back at once, no error; what is sent on is not what should
 * have landed: none of the values is right.
 * To be named: the copy in send_on, the copy in copy_back it did not wait for; the
 * cudaStreamDestroy between them orders nothing. */
#include "foreign.h"

enum { COUNT = 1 << 20 };

CULPRIT void copy_back(float *host, const float *device, cudaStream_t stream)
{
    CHECK(cudaMemcpyAsync(host, device, COUNT * sizeof(float), cudaMemcpyDeviceToHost, stream));
}

CULPRIT void send_on(float *device, const float *host, cudaStream_t stream)
{
    CHECK(cudaMemcpyAsync(device, host, COUNT * sizeof(float), cudaMemcpyHostToDevice, stream));
}

int main()
{
    load_kernels();
    cudaStream_t first, second;
    CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    float *source, *target, *host, *result = new float[COUNT];
    CHECK(cudaMallocHost(&host, COUNT * sizeof(float)));
    CHECK(cudaMalloc(&source, COUNT * sizeof(float)));
    CHECK(cudaMalloc(&target, COUNT * sizeof(float)));
    set_all(host, COUNT, 0.0f);

    delay<<<1, 1, 0, first>>>(DELAY_MS);
    fill<<<BLOCKS(COUNT), 0, first>>>(source, COUNT, 1.0f);
    copy_back(host, source, first);
    CHECK(cudaStreamDestroy(first));
    send_on(target, host, second);

    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(result, target, COUNT * sizeof(float), cudaMemcpyDeviceToHost));
    printf("right: %d of %d\n", count_equal(result, COUNT, 1.0f), COUNT);
    delete[] result;
    CHECK(cudaFree(source));
    CHECK(cudaFree(target));
    CHECK(cudaFreeHost(host));
    CHECK(cudaStreamDestroy(second));
    return 0;
}
