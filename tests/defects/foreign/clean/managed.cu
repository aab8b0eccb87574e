/* Clean: a little managed memory, touched by host and device in turn, prefetched both ways. */
#include "../foreign.h"

enum { COUNT = 1 << 18, ROUNDS = 4 };

int main()
{
    float *values, *results;
    CHECK(cudaMallocManaged(&values, COUNT * sizeof(float)));
    CHECK(cudaMallocManaged(&results, COUNT * sizeof(float)));
    cudaMemLocation device = { cudaMemLocationTypeDevice, 0 };
    cudaMemLocation host = { cudaMemLocationTypeHost, 0 };
    int right = 0;
    for (int round = 0; round < ROUNDS; round++) {
        set_all(values, COUNT, 1.0f + round);
        CHECK(cudaMemPrefetchAsync(values, COUNT * sizeof(float), device, 0, 0));
        scale<<<BLOCKS(COUNT)>>>(values, results, COUNT, 2.0f);
        CHECK(cudaMemPrefetchAsync(results, COUNT * sizeof(float), host, 0, 0));
        CHECK(cudaDeviceSynchronize());
        right += count_equal(results, COUNT, 2.0f * (1 + round)) == COUNT;
        CHECK(cudaMemcpy(values, results, COUNT * sizeof(float), cudaMemcpyDefault));
        CHECK(cudaMemset(results, 0, COUNT * sizeof(float)));
        CHECK(cudaDeviceSynchronize());
    }
    CHECK(cudaFree(values));
    CHECK(cudaFree(results));
    printf("rounds right: %d of %d\n", right, ROUNDS);
    return right == ROUNDS ? 0 : 1;
}
