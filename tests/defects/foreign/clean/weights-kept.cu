/* Weights are allocated at one place, converted by a kernel each, used in every round and left to the
 * driver at the end. That is no leak. */
#include "../foreign.h"

enum { COUNT = 1 << 16, TENSORS = 16, ROUNDS = 4 };

CULPRIT float *load()
{
    float *weights;
    CHECK(cudaMalloc(&weights, COUNT * sizeof(float)));
    fill<<<BLOCKS(COUNT)>>>(weights, COUNT, 1.0f);
    return weights;
}

int main()
{
    float *weights[TENSORS], *result, host = 0;
    CHECK(cudaMalloc(&result, COUNT * sizeof(float)));
    for (int i = 0; i < TENSORS; i++)
        weights[i] = load();
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < TENSORS; i++)
            scale<<<BLOCKS(COUNT)>>>(weights[i], result, COUNT, 1.0f + round);
    CHECK(cudaMemcpy(&host, result, sizeof(host), cudaMemcpyDeviceToHost));
    printf("last: %g\n", host);
    return 0;
}
