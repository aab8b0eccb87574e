/* build: -lineinfo
 * Four streams work at the same time on buffers of their own. The third one's second launch writes
 * past the end; the host waits for the first stream, and is given the error there.
 *
 * On hardware: cudaErrorIllegalAddress at a wait for a stream that did nothing wrong.
 * To be named: the launch in write_past_end. */
#include "foreign.h"

enum { COUNT = 1 << 16, STREAMS = 4, ROUNDS = 6, WILD_STREAM = 2, WILD_ROUND = 1 };

__global__ void spread(float *values, int count, long long stride)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count)
        values[index * stride] = 1.0f; /* the write past the end */
}

CULPRIT void write_past_end(float *values, cudaStream_t stream)
{
    spread<<<BLOCKS(COUNT), 0, stream>>>(values, COUNT, 1ll << 24);
}

int main()
{
    cudaStream_t streams[STREAMS];
    float *values[STREAMS];
    for (int s = 0; s < STREAMS; s++) {
        CHECK(cudaStreamCreateWithFlags(&streams[s], cudaStreamNonBlocking));
        CHECK(cudaMalloc(&values[s], COUNT * sizeof(float)));
    }
    load_kernels();
    for (int round = 0; round < ROUNDS; round++)
        for (int s = 0; s < STREAMS; s++) {
            delay<<<1, 1, 0, streams[s]>>>(1);
            if (s == WILD_STREAM && round == WILD_ROUND)
                write_past_end(values[s], streams[s]);
            else
                spread<<<BLOCKS(COUNT), 0, streams[s]>>>(values[s], COUNT, 1);
        }
    cudaError_t error = cudaStreamSynchronize(streams[0]);
    printf("wait: %s\n", cudaGetErrorName(error));
    if (error)
        return 1;
    error = cudaDeviceSynchronize();
    printf("all: %s\n", cudaGetErrorName(error));
    return error ? 1 : 0;
}
