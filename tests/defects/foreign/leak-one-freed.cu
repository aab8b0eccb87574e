/* Every request takes scratch memory; only the first, which fails, gives it back.
 *
 * On hardware: nothing happens until a cudaMalloc fails, hours later and elsewhere.
 * Only possible, not CONFIRMED, as leak.cu.
 * To be named: the cudaMalloc in take_scratch, with how often and how much. */
#include "foreign.h"

enum { COUNT = 1 << 18, REQUESTS = 32 };

CULPRIT float *take_scratch()
{
    float *scratch;
    CHECK(cudaMalloc(&scratch, COUNT * sizeof(float)));
    return scratch;
}

int main()
{
    float *result, host = 0;
    CHECK(cudaMalloc(&result, COUNT * sizeof(float)));
    for (int request = 0; request < REQUESTS; request++) {
        float *scratch = take_scratch();
        fill<<<BLOCKS(COUNT)>>>(scratch, COUNT, 1.0f + request);
        scale<<<BLOCKS(COUNT)>>>(scratch, result, COUNT, 2.0f);
        CHECK(cudaMemcpy(&host, result, sizeof(host), cudaMemcpyDeviceToHost));
        if (request == 0)
            CHECK(cudaFree(scratch));
    }
    CHECK(cudaFree(result));
    printf("last: %g\n", host);
    return 0;
}
