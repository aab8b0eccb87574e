/* Clean: functions of the host inside a stream, which fill what is copied next and read what was
 * copied before; a callback with a status; an event that is polled. */
#include "../foreign.h"

#include <atomic>

enum { COUNT = 1 << 16, ROUNDS = 8 };

struct turn {
    float *sent, *received;
    float value;
    int right;
};

static std::atomic<int> called;

static void produce(void *context)
{
    struct turn *turn = (struct turn *)context;
    set_all(turn->sent, COUNT, turn->value);
}

static void consume(void *context)
{
    struct turn *turn = (struct turn *)context;
    turn->right = count_equal(turn->received, COUNT, 2.0f * turn->value) == COUNT;
}

static void finished(cudaStream_t stream, cudaError_t status, void *context)
{
    (void)stream;
    (void)context;
    called += status == cudaSuccess;
}

int main()
{
    cudaStream_t stream;
    cudaEvent_t done;
    float *values, *results, *sent, *received;
    struct turn turns[ROUNDS];
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    CHECK(cudaMalloc(&values, COUNT * sizeof(float)));
    CHECK(cudaMalloc(&results, COUNT * sizeof(float)));
    CHECK(cudaMallocHost(&sent, COUNT * sizeof(float)));
    CHECK(cudaMallocHost(&received, COUNT * sizeof(float)));
    for (int round = 0; round < ROUNDS; round++) {
        turns[round] = (struct turn){ sent, received, 1.0f + round, 0 };
        CHECK(cudaLaunchHostFunc(stream, produce, &turns[round]));
        CHECK(cudaMemcpyAsync(values, sent, COUNT * sizeof(float), cudaMemcpyHostToDevice, stream));
        scale<<<BLOCKS(COUNT), 0, stream>>>(values, results, COUNT, 2.0f);
        CHECK(cudaMemcpyAsync(received, results, COUNT * sizeof(float), cudaMemcpyDeviceToHost,
                              stream));
        CHECK(cudaLaunchHostFunc(stream, consume, &turns[round]));
    }
    CHECK(cudaStreamAddCallback(stream, finished, NULL, 0));
    CHECK(cudaEventRecord(done, stream));
    while (cudaEventQuery(done) == cudaErrorNotReady)
        ;
    int right = called;
    for (int round = 0; round < ROUNDS; round++)
        right += turns[round].right;
    CHECK(cudaFree(values));
    CHECK(cudaFree(results));
    CHECK(cudaFreeHost(sent));
    CHECK(cudaFreeHost(received));
    CHECK(cudaEventDestroy(done));
    CHECK(cudaStreamDestroy(stream));
    printf("right: %d of %d\n", right, ROUNDS + 1);
    return right == ROUNDS + 1 ? 0 : 1;
}
