/* build: --default-stream per-thread
 *
 * Clean: built so that the default stream is one of each thread: launches and copies without a
 * stream of two threads, each in its own order, joined by the host. */
#include "../foreign.h"

#include <thread>

enum { COUNT = 1 << 18, ROUNDS = 8 };

static void run(float *values, float value, int *right)
{
    float *results, *host;
    CHECK(cudaMalloc(&results, COUNT * sizeof(float)));
    CHECK(cudaMallocHost(&host, COUNT * sizeof(float)));
    for (int round = 0; round < ROUNDS; round++) {
        set_all(host, COUNT, value);
        CHECK(cudaMemcpyAsync(values, host, COUNT * sizeof(float), cudaMemcpyHostToDevice, 0));
        CHECK(cudaMemsetAsync(results, 0, COUNT * sizeof(float), 0));
        scale<<<BLOCKS(COUNT)>>>(values, results, COUNT, 2.0f);
        CHECK(cudaMemcpyAsync(host, results, COUNT * sizeof(float), cudaMemcpyDeviceToHost, 0));
        CHECK(cudaStreamSynchronize(0));
        *right += count_equal(host, COUNT, 2.0f * value) == COUNT;
    }
    CHECK(cudaFree(results));
    CHECK(cudaFreeHost(host));
}

int main()
{
    float *values[2], *host = new float[COUNT];
    int right[2] = { 0, 0 };
    for (int i = 0; i < 2; i++)
        CHECK(cudaMalloc(&values[i], COUNT * sizeof(float)));
    std::thread first(run, values[0], 1.0f, &right[0]), second(run, values[1], 2.0f, &right[1]);
    first.join();
    second.join();
    int all = right[0] + right[1];
    for (int i = 0; i < 2; i++) {
        CHECK(cudaMemcpy(host, values[i], COUNT * sizeof(float), cudaMemcpyDeviceToHost));
        all += count_equal(host, COUNT, 1.0f + i) == COUNT;
        CHECK(cudaFree(values[i]));
    }
    delete[] host;
    printf("rounds right: %d of %d\n", all, 2 * ROUNDS + 2);
    return all == 2 * ROUNDS + 2 ? 0 : 1;
}
