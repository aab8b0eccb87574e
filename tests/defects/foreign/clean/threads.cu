/* Clean: four host threads, each with a stream and memory of its own; then one uses what the
 * others made, after they were joined; then one thread waits for another's event. */
#include "../foreign.h"

#include <thread>

enum { COUNT = 1 << 18, THREADS = 4, ROUNDS = 8 };

static float *results[THREADS];
static cudaEvent_t done[THREADS];
static int right[THREADS];

static void work(int index)
{
    cudaStream_t stream;
    float *host, *values;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMallocHost(&host, COUNT * sizeof(float)));
    CHECK(cudaMallocAsync(&values, COUNT * sizeof(float), stream));
    for (int round = 0; round < ROUNDS; round++) {
        set_all(host, COUNT, 1.0f + index);
        CHECK(cudaMemcpyAsync(values, host, COUNT * sizeof(float), cudaMemcpyHostToDevice, stream));
        scale<<<BLOCKS(COUNT), 0, stream>>>(values, results[index], COUNT, 2.0f);
        CHECK(cudaMemcpyAsync(host, results[index], COUNT * sizeof(float), cudaMemcpyDeviceToHost,
                              stream));
        CHECK(cudaStreamSynchronize(stream));
        right[index] += count_equal(host, COUNT, 2.0f * (1 + index)) == COUNT;
    }
    CHECK(cudaFreeAsync(values, stream));
    fill<<<BLOCKS(COUNT), 0, stream>>>(results[index], COUNT, 9.0f);
    CHECK(cudaEventRecord(done[index], stream));
    CHECK(cudaStreamDestroy(stream)); /* the fill still runs: the event stands for it */
    CHECK(cudaFreeHost(host));
}

int main()
{
    std::thread threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK(cudaMalloc(&results[i], COUNT * sizeof(float)));
        CHECK(cudaEventCreateWithFlags(&done[i], cudaEventDisableTiming));
    }
    for (int i = 0; i < THREADS; i++)
        threads[i] = std::thread(work, i);
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    float *host = new float[COUNT];
    int all = 0;
    for (int i = 0; i < THREADS; i++) {
        threads[i].join();
        CHECK(cudaStreamWaitEvent(stream, done[i], 0));
        CHECK(cudaMemcpyAsync(host, results[i], COUNT * sizeof(float), cudaMemcpyDeviceToHost,
                              stream));
        CHECK(cudaStreamSynchronize(stream));
        all += right[i] + (count_equal(host, COUNT, 9.0f) == COUNT);
        CHECK(cudaFree(results[i]));
        CHECK(cudaEventDestroy(done[i]));
    }
    CHECK(cudaStreamDestroy(stream));
    delete[] host;
    printf("rounds right: %d of %d\n", all, THREADS * (ROUNDS + 1));
    return all == THREADS * (ROUNDS + 1) ? 0 : 1;
}
