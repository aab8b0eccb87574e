/* Clean: the legacy default stream waits for blocking streams and they for it; the per-thread
 * default stream is one of those. No event and no wait of the host is needed between them. */
#include "../foreign.h"

#include <thread>

enum { COUNT = 1 << 18, ROUNDS = 4 };

static int legacy(float *a, float *b, float *host, cudaStream_t blocking, float value)
{
    delay<<<1, 1, 0, blocking>>>(2);
    fill<<<BLOCKS(COUNT), 0, blocking>>>(a, COUNT, value);
    CHECK(cudaMemcpyAsync(b, a, COUNT * sizeof(float), cudaMemcpyDeviceToDevice,
                          cudaStreamLegacy)); /* waits for the blocking stream */
    CHECK(cudaMemcpyAsync(host, b, COUNT * sizeof(float), cudaMemcpyDeviceToHost,
                          blocking)); /* and the blocking stream for it */
    CHECK(cudaMemsetAsync(b, 0, COUNT * sizeof(float), 0));
    CHECK(cudaStreamSynchronize(blocking));
    return count_equal(host, COUNT, value) == COUNT;
}

static int per_thread(float *a, float *b, float *host, float value)
{
    delay<<<1, 1, 0, cudaStreamPerThread>>>(2);
    CHECK(cudaMemsetAsync(a, 0, COUNT * sizeof(float), cudaStreamPerThread));
    fill<<<BLOCKS(COUNT), 0, cudaStreamPerThread>>>(a, COUNT, value);
    CHECK(cudaMemcpyAsync(b, a, COUNT * sizeof(float), cudaMemcpyDeviceToDevice, cudaStreamLegacy));
    CHECK(cudaMemcpyAsync(host, b, COUNT * sizeof(float), cudaMemcpyDeviceToHost,
                          cudaStreamPerThread));
    CHECK(cudaStreamSynchronize(cudaStreamPerThread));
    return count_equal(host, COUNT, value) == COUNT;
}

/* A synchronous copy on the default stream after work on a blocking one. */
static int synchronous(float *a, float *host, cudaStream_t blocking, float value)
{
    delay<<<1, 1, 0, blocking>>>(2);
    CHECK(cudaMemsetAsync(a, 0, COUNT * sizeof(float), blocking));
    fill<<<BLOCKS(COUNT), 0, blocking>>>(a, COUNT, value);
    CHECK(cudaMemcpy(host, a, COUNT * sizeof(float), cudaMemcpyDeviceToHost));
    return count_equal(host, COUNT, value) == COUNT;
}

static void run(int *right)
{
    cudaStream_t blocking;
    float *a, *b, *host;
    CHECK(cudaStreamCreate(&blocking));
    CHECK(cudaMalloc(&a, COUNT * sizeof(float)));
    CHECK(cudaMalloc(&b, COUNT * sizeof(float)));
    CHECK(cudaMallocHost(&host, COUNT * sizeof(float)));
    for (int round = 0; round < ROUNDS; round++)
        *right += legacy(a, b, host, blocking, 1.0f + round) +
                  per_thread(a, b, host, 2.0f + round) +
                  synchronous(a, host, blocking, 3.0f + round);
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    CHECK(cudaFreeHost(host));
    CHECK(cudaStreamDestroy(blocking));
}

int main()
{
    int right = 0, right_of_thread = 0;
    run(&right);
    std::thread thread(run, &right_of_thread);
    thread.join();
    right += right_of_thread;
    printf("rounds right: %d of %d\n", right, 6 * ROUNDS);
    return right == 6 * ROUNDS ? 0 : 1;
}
