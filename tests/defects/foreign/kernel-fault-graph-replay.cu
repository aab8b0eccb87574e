/* build: -lineinfo
 * A graph of three kernels is replayed eight times. The second of them takes its place from device
 * memory, which the host sets between replays; before the fifth it sets a wild one.
 *
 * On hardware: cudaErrorIllegalAddress when the fifth replay is waited for.
 * To be named: the launch in record_shift. The driver's numbers of launches do not count replays;
 * that the program waited for the first four singles out the fifth. */
#include "foreign.h"

enum { COUNT = 1 << 14, REPLAYS = 8, WILD = 4 };

__global__ void shift(const float *values, float *results, const long long *offset, int count)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count)
        results[index + *offset] = values[index]; /* the wild write */
}

CULPRIT void record_shift(const float *values, float *results, const long long *offset,
                          cudaStream_t stream)
{
    shift<<<BLOCKS(COUNT), 0, stream>>>(values, results, offset, COUNT);
}

int main()
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t replayable;
    float *values, *results, *sums;
    long long *offset, *offsets;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMalloc(&values, COUNT * sizeof(float)));
    CHECK(cudaMalloc(&results, COUNT * sizeof(float)));
    CHECK(cudaMalloc(&sums, COUNT * sizeof(float)));
    CHECK(cudaMalloc(&offset, sizeof(long long)));
    CHECK(cudaMallocHost(&offsets, REPLAYS * sizeof(long long)));
    load_kernels();

    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    fill<<<BLOCKS(COUNT), 0, stream>>>(values, COUNT, 1.0f);
    record_shift(values, results, offset, stream);
    scale<<<BLOCKS(COUNT), 0, stream>>>(values, sums, COUNT, 2.0f);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&replayable, graph, 0));

    for (int replay = 0; replay < REPLAYS; replay++) {
        offsets[replay] = replay == WILD ? 1ll << 40 : 0;
        CHECK(cudaMemcpyAsync(offset, offsets + replay, sizeof(long long), cudaMemcpyHostToDevice,
                              stream));
        CHECK(cudaGraphLaunch(replayable, stream));
        cudaError_t error = cudaStreamSynchronize(stream);
        printf("replay %d: %s\n", replay, cudaGetErrorName(error));
        if (error)
            return 1;
    }
    return 0;
}
