/* A kernel fills managed memory; the program adds up the result before it has waited for the kernel.
 *
 * On hardware: no error; the sum is of old values, every time with this much work ahead.
 * To be named: the load in sum_up, and the kernel that changed what it had read. */
#include "foreign.h"

enum { COUNT = 1 << 16 };

CULPRIT float sum_up(const volatile float *values)
{
    float sum = 0.0f;
    for (int i = 0; i < COUNT; i++)
        sum += values[i];
    return sum;
}

CULPRIT void compute(float *values, cudaStream_t stream)
{
    fill<<<BLOCKS(COUNT), 0, stream>>>(values, COUNT, 7.0f);
}

int main()
{
    load_kernels();
    cudaStream_t stream;
    float *values;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMallocManaged(&values, COUNT * sizeof(float)));
    set_all(values, COUNT, 0.0f);
    delay<<<1, 1, 0, stream>>>(DELAY_MS);
    compute(values, stream);
    float early = sum_up(values);
    CHECK(cudaStreamSynchronize(stream));
    printf("sum %.1f, then %.1f\n", early, sum_up(values));
    CHECK(cudaFree(values));
    CHECK(cudaStreamDestroy(stream));
    return 0;
}
