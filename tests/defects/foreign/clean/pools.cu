/* Clean: memory in stream order. The same addresses come back many times, on the same stream and,
 * after an event, on another; a pool of the program's own; cudaFree of pool memory after a wait. */
#include "../foreign.h"

enum { COUNT = 1 << 18, ROUNDS = 8 };

static int round_trip(cudaStream_t first, cudaStream_t second, cudaMemPool_t pool, float value)
{
    float *a, *b, *host;
    cudaEvent_t done;
    CHECK(cudaMallocHost(&host, COUNT * sizeof(float)));
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    CHECK(cudaMallocAsync(&a, COUNT * sizeof(float), first));
    fill<<<BLOCKS(COUNT), 0, first>>>(a, COUNT, value);
    CHECK(cudaMallocFromPoolAsync(&b, COUNT * sizeof(float), pool, first));
    scale<<<BLOCKS(COUNT), 0, first>>>(a, b, COUNT, 2.0f);
    CHECK(cudaFreeAsync(a, first));
    CHECK(cudaEventRecord(done, first));
    CHECK(cudaStreamWaitEvent(second, done, 0));
    CHECK(cudaMemcpyAsync(host, b, COUNT * sizeof(float), cudaMemcpyDeviceToHost, second));
    CHECK(cudaFreeAsync(b, second)); /* another stream than it was taken on, in order */
    CHECK(cudaStreamSynchronize(second));
    int right = count_equal(host, COUNT, 2.0f * value);
    CHECK(cudaEventDestroy(done));
    CHECK(cudaFreeHost(host));
    return right;
}

int main()
{
    cudaStream_t first, second;
    CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    properties.location.id = 0;
    cudaMemPool_t pool;
    CHECK(cudaMemPoolCreate(&pool, &properties));
    unsigned long long keep = 1ull << 30;
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep));

    int right = 0;
    for (int round = 0; round < ROUNDS; round++)
        right += round_trip(first, second, pool, 1.0f + round);

    float *plain;
    CHECK(cudaMallocAsync(&plain, COUNT * sizeof(float), first));
    CHECK(cudaMemsetAsync(plain, 0, COUNT * sizeof(float), first));
    CHECK(cudaStreamSynchronize(first));
    CHECK(cudaFree(plain));
    CHECK(cudaMemPoolTrimTo(pool, 0));
    CHECK(cudaMemPoolDestroy(pool));
    CHECK(cudaStreamDestroy(first));
    CHECK(cudaStreamDestroy(second));
    printf("right: %d of %d\n", right, ROUNDS * COUNT);
    return right == ROUNDS * COUNT ? 0 : 1;
}
