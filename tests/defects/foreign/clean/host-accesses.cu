/* Accesses of the host to pinned and registered memory that are right: after each kind of wait, of a
 * source that is only read, of neighbours of what is copied, after a flag in mapped memory; and a
 * handler of SIGSEGV of the program's own, with siglongjmp out of it. Under --trap-host too nothing is
 * wrong, and all is printed as without. */
#include "../foreign.h"

#include <csetjmp>
#include <csignal>
#include <cstring>
#include <sys/mman.h>

enum { COUNT = 1 << 16, PART = 1000 };

static sigjmp_buf back;

static void on_fault(int)
{
    siglongjmp(back, 1);
}

static bool is_readable(const volatile char *bytes)
{
    if (sigsetjmp(back, 1))
        return false;
    (void)*bytes;
    return true;
}

static __global__ void raise(volatile int *flag, int value)
{
    *flag = value;
    __threadfence_system();
}

int main()
{
    load_kernels();
    cudaStream_t stream, other;
    cudaEvent_t event;
    float *host, *device;
    volatile int *flag;
    int *flag_on_device;
    char *closed = (char *)mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    CHECK(cudaMallocHost(&host, COUNT * sizeof(float)));
    CHECK(cudaMalloc(&device, COUNT * sizeof(float)));
    signal(SIGSEGV, on_fault);
    set_all(host, COUNT, 1.0f);

    for (int round = 0; round < 4; round++) {
        fill<<<BLOCKS(COUNT), 0, stream>>>(device, COUNT, 2.0f + round);
        delay<<<1, 1, 0, stream>>>(DELAY_MS);
        CHECK(cudaMemcpyAsync(host, device, COUNT * sizeof(float), cudaMemcpyDeviceToHost, stream));
        CHECK(cudaEventRecord(event, stream));
        if (round == 0)
            CHECK(cudaStreamSynchronize(stream));
        if (round == 1)
            CHECK(cudaEventSynchronize(event));
        while (round == 2 && cudaStreamQuery(stream) == cudaErrorNotReady)
            ;
        if (round == 3) {
            CHECK(cudaStreamWaitEvent(other, event, 0));
            CHECK(cudaStreamSynchronize(other));
        }
        printf("round %d right: %d\n", round, count_equal(host, COUNT, 2.0f + round));
    }

    /* A source that both only read; neighbours of what is copied. */
    CHECK(cudaMemcpyAsync(device, host, COUNT * sizeof(float), cudaMemcpyHostToDevice, stream));
    printf("source: %.1f\n", host[PART]);
    CHECK(cudaMemcpyAsync(host + PART, device, PART * sizeof(float), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    delay<<<1, 1, 0, stream>>>(DELAY_MS);
    CHECK(cudaMemcpyAsync(host + PART, device, PART * sizeof(float), cudaMemcpyDeviceToHost, stream));
    host[PART - 1] = 11.0f;
    host[2 * PART] = 12.0f;
    printf("own handler: %d\n", is_readable(closed));
    CHECK(cudaStreamSynchronize(stream));
    printf("neighbours: %.1f %.1f\n", host[PART - 1], host[2 * PART]);

    /* After a flag of the device. */
    CHECK(cudaHostAlloc((void **)&flag, sizeof(*flag), cudaHostAllocMapped));
    CHECK(cudaHostGetDevicePointer((void **)&flag_on_device, (void *)flag, 0));
    *flag = 0;
    fill<<<BLOCKS(COUNT), 0, stream>>>(device, COUNT, 9.0f);
    CHECK(cudaMemcpyAsync(host, device, COUNT * sizeof(float), cudaMemcpyDeviceToHost, stream));
    raise<<<1, 1, 0, stream>>>(flag_on_device, 1);
    while (*flag != 1)
        ;
    printf("after the flag right: %d\n", count_equal(host, COUNT, 9.0f));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFreeHost((void *)flag));
    CHECK(cudaFree(device));
    CHECK(cudaFreeHost(host));
    CHECK(cudaEventDestroy(event));
    CHECK(cudaStreamDestroy(other));
    CHECK(cudaStreamDestroy(stream));
    return 0;
}
