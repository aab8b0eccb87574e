/* Clean, if not pretty: a program that leans on what waits by itself. cudaFree and cudaFreeHost
 * wait for the device, a synchronous copy waits for its stream; nothing is freed at the end. */
#include "../foreign.h"

enum { COUNT = 1 << 18, ROUNDS = 4 };

int main()
{
    cudaStream_t stream;
    float *kept, *host = new float[COUNT];
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&kept, COUNT * sizeof(float)));
    int right = 0;
    for (int round = 0; round < ROUNDS; round++) {
        float *values;
        CHECK(cudaMalloc(&values, COUNT * sizeof(float)));
        delay<<<1, 1, 0, stream>>>(2);
        CHECK(cudaMemsetAsync(values, 0, COUNT * sizeof(float), stream));
        fill<<<BLOCKS(COUNT), 0, stream>>>(values, COUNT, 1.0f + round);
        scale<<<BLOCKS(COUNT), 0, stream>>>(values, kept, COUNT, 2.0f);
        CHECK(cudaFree(values)); /* waits for the whole device */
        CHECK(cudaMemcpy(host, kept, COUNT * sizeof(float), cudaMemcpyDeviceToHost));
        right += count_equal(host, COUNT, 2.0f * (1 + round)) == COUNT;
    }
    printf("rounds right: %d of %d\n", right, ROUNDS);
    return right == ROUNDS ? 0 : 1;
}
