/* Clean: uploads, kernels and downloads on three streams, two sets of buffers, every hand-over by
 * an event. */
#include "../foreign.h"

enum { COUNT = 1 << 18, ROUNDS = 16, SETS = 2 };

int main()
{
    cudaStream_t in, work, out;
    CHECK(cudaStreamCreateWithFlags(&in, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&work, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithPriority(&out, cudaStreamNonBlocking, 0));
    float *sent[SETS], *received[SETS], *values[SETS], *results[SETS];
    cudaEvent_t uploaded[SETS], computed[SETS], downloaded[SETS];
    for (int i = 0; i < SETS; i++) {
        CHECK(cudaMallocHost(&sent[i], COUNT * sizeof(float)));
        CHECK(cudaMallocHost(&received[i], COUNT * sizeof(float)));
        CHECK(cudaMalloc(&values[i], COUNT * sizeof(float)));
        CHECK(cudaMalloc(&results[i], COUNT * sizeof(float)));
        CHECK(cudaEventCreateWithFlags(&uploaded[i], cudaEventDisableTiming));
        CHECK(cudaEventCreateWithFlags(&computed[i], cudaEventDisableTiming));
        CHECK(cudaEventCreateWithFlags(&downloaded[i], cudaEventDisableTiming));
    }

    int right = 0;
    for (int round = 0; round < ROUNDS + SETS; round++) {
        int i = round % SETS;
        if (round >= SETS) { /* the set's last user is done with all four buffers */
            CHECK(cudaEventSynchronize(downloaded[i]));
            right += count_equal(received[i], COUNT, 2.0f * (1 + round - SETS));
        }
        if (round >= ROUNDS)
            continue;
        set_all(sent[i], COUNT, 1.0f + round);
        CHECK(cudaStreamWaitEvent(in, computed[i], 0)); /* in the first round: never recorded */
        CHECK(cudaMemcpyAsync(values[i], sent[i], COUNT * sizeof(float), cudaMemcpyHostToDevice,
                              in));
        CHECK(cudaEventRecord(uploaded[i], in));
        CHECK(cudaStreamWaitEvent(work, uploaded[i], 0));
        CHECK(cudaStreamWaitEvent(work, downloaded[i], 0));
        scale<<<BLOCKS(COUNT), 0, work>>>(values[i], results[i], COUNT, 2.0f);
        CHECK(cudaEventRecord(computed[i], work));
        CHECK(cudaStreamWaitEvent(out, computed[i], 0));
        CHECK(cudaMemcpyAsync(received[i], results[i], COUNT * sizeof(float),
                              cudaMemcpyDeviceToHost, out));
        CHECK(cudaEventRecord(downloaded[i], out));
    }

    /* Only now is the stream of the uploads itself waited for; their sources were rewritten long
     * ago, after the waits for what came of them. */
    CHECK(cudaStreamSynchronize(in));
    printf("right: %d of %d\n", right, ROUNDS * COUNT);
    for (int i = 0; i < SETS; i++) {
        CHECK(cudaFree(values[i]));
        CHECK(cudaFree(results[i]));
        CHECK(cudaFreeHost(sent[i]));
        CHECK(cudaFreeHost(received[i]));
        CHECK(cudaEventDestroy(uploaded[i]));
        CHECK(cudaEventDestroy(computed[i]));
        CHECK(cudaEventDestroy(downloaded[i]));
    }
    CHECK(cudaStreamDestroy(in));
    CHECK(cudaStreamDestroy(work));
    CHECK(cudaStreamDestroy(out));
    return right == ROUNDS * COUNT ? 0 : 1;
}
