/* One pinned buffer feeds four uploads. A kernel after each upload writes a flag in mapped host memory;
 * the host reads the flag until it is there and only then fills the buffer again. There is no call
 * that waits, and nothing wrong: greta must not call it CONFIRMED. */
#include "../foreign.h"

enum { COUNT = 1 << 16, BATCHES = 4 };

static __global__ void raise(volatile int *flag, int value)
{
    *flag = value;
    __threadfence_system();
}

int main()
{
    load_kernels();
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    float *staging, *device, *host = new float[COUNT];
    volatile int *flag;
    int *flag_on_device;
    CHECK(cudaMallocHost(&staging, COUNT * sizeof(float)));
    CHECK(cudaHostAlloc((void **)&flag, sizeof(*flag), cudaHostAllocMapped));
    CHECK(cudaHostGetDevicePointer((void **)&flag_on_device, (void *)flag, 0));
    CHECK(cudaMalloc(&device, BATCHES * COUNT * sizeof(float)));
    *flag = 0;

    delay<<<1, 1, 0, stream>>>(DELAY_MS);
    for (int batch = 0; batch < BATCHES; batch++) {
        set_all(staging, COUNT, 1.0f + batch);
        CHECK(cudaMemcpyAsync(device + batch * COUNT, staging, COUNT * sizeof(float),
                              cudaMemcpyHostToDevice, stream));
        raise<<<1, 1, 0, stream>>>(flag_on_device, batch + 1);
        while (*flag != batch + 1)
            ;
    }
    CHECK(cudaStreamSynchronize(stream));
    for (int batch = 0; batch < BATCHES; batch++) {
        CHECK(cudaMemcpy(host, device + batch * COUNT, COUNT * sizeof(float),
                         cudaMemcpyDeviceToHost));
        printf("batch %d right: %d of %d\n", batch, count_equal(host, COUNT, 1.0f + batch), COUNT);
    }
    delete[] host;
    CHECK(cudaFree(device));
    CHECK(cudaFreeHost((void *)flag));
    CHECK(cudaFreeHost(staging));
    CHECK(cudaStreamDestroy(stream));
    return 0;
}
