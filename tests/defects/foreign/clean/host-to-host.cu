/* Registered memory is copied to other host memory and unregistered at once. From host to host a copy
 * waits, with cudaMemcpyDefault too: nothing is wrong. */
#include "../foreign.h"

enum { COUNT = 1 << 20 };

int main()
{
    float *source = (float *)aligned_alloc(4096, COUNT * sizeof(float));
    float *target = (float *)aligned_alloc(4096, COUNT * sizeof(float));
    if (!source || !target)
        return 3;
    for (int round = 0; round < 3; round++) {
        set_all(source, COUNT, 1.0f + round);
        CHECK(cudaHostRegister(source, COUNT * sizeof(float), cudaHostRegisterDefault));
        CHECK(cudaMemcpy(target, source, COUNT * sizeof(float), cudaMemcpyDefault));
        CHECK(cudaHostUnregister(source));
        printf("round %d right: %d of %d\n", round, count_equal(target, COUNT, 1.0f + round), COUNT);
    }
    free(source);
    free(target);
    return 0;
}
