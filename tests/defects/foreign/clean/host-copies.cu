/* Clean: asynchronous copies from and to pinned, registered, mapped and pageable memory. Pinned
 * memory is written again after a wait; pageable memory at once, since the runtime took its bytes
 * before the call came back; one pinned buffer is sent to two places and never changes; another is
 * filled by a copy and sent on by the next, without the host looking. */
#include "../foreign.h"

enum { COUNT = 1 << 20, SMALL = 1 << 10, ROUNDS = 8 };

static cudaStream_t stream;

static int pinned(float *device)
{
    float *host;
    int right = 0;
    CHECK(cudaHostAlloc(&host, COUNT * sizeof(float), cudaHostAllocWriteCombined));
    CHECK(cudaFreeHost(host));
    CHECK(cudaHostAlloc(&host, COUNT * sizeof(float), cudaHostAllocDefault));
    for (int round = 0; round < ROUNDS; round++) {
        set_all(host, COUNT, 1.0f + round);
        CHECK(cudaMemcpyAsync(device, host, COUNT * sizeof(float), cudaMemcpyHostToDevice, stream));
        CHECK(cudaMemcpyAsync(device + COUNT, host, COUNT * sizeof(float), cudaMemcpyHostToDevice,
                              stream));
        CHECK(cudaStreamSynchronize(stream));
        set_all(host, COUNT, 0.0f);
        CHECK(cudaMemcpyAsync(host, device + COUNT, COUNT * sizeof(float), cudaMemcpyDeviceToHost,
                              stream));
        while (cudaStreamQuery(stream) == cudaErrorNotReady)
            ;
        right += count_equal(host, COUNT, 1.0f + round) == COUNT;
    }
    CHECK(cudaFreeHost(host));
    return right;
}

static int pageable(float *device, int count)
{
    float *host = (float *)malloc(count * sizeof(float));
    int right = 0;
    for (int round = 0; round < ROUNDS; round++) {
        set_all(host, count, 1.0f + round);
        CHECK(cudaMemcpyAsync(device, host, count * sizeof(float), cudaMemcpyHostToDevice, stream));
        set_all(host, count, 0.0f);
        CHECK(cudaMemcpyAsync(host, device, count * sizeof(float), cudaMemcpyDeviceToHost, stream));
        CHECK(cudaStreamSynchronize(stream));
        right += count_equal(host, count, 1.0f + round) == count;
    }
    free(host);
    return right;
}

static int registered(float *device)
{
    float *host = (float *)aligned_alloc(4096, COUNT * sizeof(float)), *mapped;
    int right = 0;
    CHECK(cudaHostRegister(host, COUNT * sizeof(float), cudaHostRegisterMapped));
    CHECK(cudaHostGetDevicePointer(&mapped, host, 0));
    for (int round = 0; round < ROUNDS; round++) {
        set_all(host, COUNT, 1.0f + round);
        scale<<<BLOCKS(COUNT), 0, stream>>>(mapped, device, COUNT, 2.0f);
        CHECK(cudaStreamSynchronize(stream));
        set_all(host, COUNT, 0.0f);
        CHECK(cudaMemcpyAsync(host, device, COUNT * sizeof(float), cudaMemcpyDefault, stream));
        CHECK(cudaStreamSynchronize(stream));
        right += count_equal(host, COUNT, 2.0f * (1 + round)) == COUNT;
    }
    CHECK(cudaHostUnregister(host));
    free(host);
    return right;
}

/* The pinned bytes change between the call that sends them and the wait: the copy before it does
 * that. */
static int through_pinned(float *device)
{
    float *host, *back = new float[COUNT];
    int right = 0;
    CHECK(cudaMallocHost(&host, COUNT * sizeof(float)));
    for (int round = 0; round < ROUNDS; round++) {
        fill<<<BLOCKS(COUNT), 0, stream>>>(device, COUNT, 1.0f + round);
        CHECK(cudaMemcpyAsync(host, device, COUNT * sizeof(float), cudaMemcpyDeviceToHost, stream));
        CHECK(cudaMemcpyAsync(device + COUNT, host, COUNT * sizeof(float), cudaMemcpyHostToDevice,
                              stream));
        CHECK(cudaStreamSynchronize(stream));
        CHECK(cudaMemcpy(back, device + COUNT, COUNT * sizeof(float), cudaMemcpyDeviceToHost));
        right += count_equal(back, COUNT, 1.0f + round) == COUNT;
    }
    CHECK(cudaFreeHost(host));
    delete[] back;
    return right;
}

int main()
{
    float *device;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&device, 2 * COUNT * sizeof(float)));
    int right = pinned(device) + pageable(device, COUNT) + pageable(device, SMALL) +
                registered(device) + through_pinned(device);
    CHECK(cudaFree(device));
    CHECK(cudaStreamDestroy(stream));
    printf("rounds right: %d of %d\n", right, 5 * ROUNDS);
    return right == 5 * ROUNDS ? 0 : 1;
}
