/* Every request takes scratch memory and none gives it back.
 *
 * On hardware: nothing happens until a cudaMalloc fails, hours later and elsewhere.
 * Only possible, not CONFIRMED: calls cannot show that the memory is not wanted any more; that it
 * grows with the work and is not used again is the evidence.
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
    }
    CHECK(cudaFree(result));
    printf("last: %g\n", host);
    return 0;
}
