/* The second half of the result is copied back, and only the first was ever computed: each half is an
 * allocation of its own, and the launch for the second one is missing.
 *
 * On hardware: no error; the numbers are what the memory held before.
 * To be named: the copy in copy_back of the half that nothing wrote. */
#include "foreign.h"

enum { COUNT = 1 << 16 };

static float host[COUNT];

CULPRIT void copy_back(const float *half, const char *name)
{
    CHECK(cudaMemcpy(host, half, COUNT * sizeof(float), cudaMemcpyDeviceToHost));
    printf("%s: %g\n", name, host[0]);
}

int main()
{
    float *halves[2];
    for (int i = 0; i < 2; i++)
        CHECK(cudaMalloc(&halves[i], COUNT * sizeof(float)));
    fill<<<BLOCKS(COUNT)>>>(halves[0], COUNT, 1.0f);
    copy_back(halves[0], "first");
    copy_back(halves[1], "second");
    for (int i = 0; i < 2; i++)
        CHECK(cudaFree(halves[i]));
    return 0;
}
