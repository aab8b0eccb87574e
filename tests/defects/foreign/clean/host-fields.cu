/* Host and kernel use the same managed memory at the same time, and correctly: the host's fields of a
 * struct next to the kernel's, an input that both read, a flag in mapped memory that the host reads
 * until the kernel raises it. Under --trap-host too nothing is wrong. */
#include "../foreign.h"

enum { COUNT = 1 << 14 };

struct shared {
    int of_host[16];
    int of_device[16];
};

static __global__ void count_up(struct shared *shared, const int *input, volatile int *flag)
{
    for (int i = 0; i < 16; i++)
        shared->of_device[i] = input[i] + 1;
    __threadfence_system();
    *flag = 1;
}

int main()
{
    load_kernels();
    cudaStream_t stream;
    struct shared *shared;
    int *input, sum = 0, concurrent = 0;
    volatile int *flag;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
    if (!concurrent) {
        printf("no concurrent access to managed memory\n");
        return 0;
    }
    CHECK(cudaMallocManaged(&shared, sizeof(*shared)));
    CHECK(cudaMallocManaged(&input, COUNT * sizeof(int)));
    CHECK(cudaHostAlloc((void **)&flag, sizeof(*flag), cudaHostAllocMapped));
    for (int i = 0; i < COUNT; i++)
        input[i] = i;
    for (int i = 0; i < 16; i++)
        shared->of_host[i] = i;
    *flag = 0;
    delay<<<1, 1, 0, stream>>>(DELAY_MS);
    count_up<<<1, 1, 0, stream>>>(shared, input, flag);
    for (int i = 0; i < COUNT; i++)
        sum += input[i] & 15;
    for (int i = 0; i < 16; i++)
        sum += shared->of_host[i];
    while (*flag == 0)
        ;
    for (int i = 0; i < 16; i++)
        sum += shared->of_device[i];
    CHECK(cudaStreamSynchronize(stream));
    printf("sum %d\n", sum);
    CHECK(cudaFreeHost((void *)flag));
    CHECK(cudaFree(input));
    CHECK(cudaFree(shared));
    CHECK(cudaStreamDestroy(stream));
    return 0;
}
