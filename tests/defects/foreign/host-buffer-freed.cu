/* The host memory of an asynchronous copy is unregistered and unmapped while the copy is queued.
 *
 * On hardware: on an H200 (driver 580) cudaHostUnregister waits for the copy, as cudaFreeHost
 * does, and the bytes arrive; no document promises it, and a copy that is not done must not lose
 * its memory.
 * Only possible, not CONFIRMED, for that reason: the call that frees may wait, unseen.
 * To be named: the cudaHostUnregister in give_back, and the copy in upload that still reads
 * there. */
#include "foreign.h"

#include <sys/mman.h>

enum { COUNT = 1 << 20 };

CULPRIT void upload(float *device, const float *host, cudaStream_t stream)
{
    delay<<<1, 1, 0, stream>>>(DELAY_MS);
    CHECK(cudaMemcpyAsync(device, host, COUNT * sizeof(float), cudaMemcpyHostToDevice, stream));
}

CULPRIT void give_back(float *host)
{
    CHECK(cudaHostUnregister(host));
    munmap(host, COUNT * sizeof(float));
}

int main()
{
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    float *device;
    static float result[COUNT];
    float *host = (float *)mmap(NULL, COUNT * sizeof(float), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (host == MAP_FAILED)
        return 3;
    CHECK(cudaHostRegister(host, COUNT * sizeof(float), cudaHostRegisterDefault));
    CHECK(cudaMalloc(&device, COUNT * sizeof(float)));
    set_all(host, COUNT, 1.0f);

    upload(device, host, stream);
    give_back(host);

    cudaError_t error = cudaStreamSynchronize(stream);
    printf("sync: %s\n", cudaGetErrorName(error));
    CHECK(cudaMemcpy(result, device, COUNT * sizeof(float), cudaMemcpyDeviceToHost));
    printf("right: %d of %d\n", count_equal(result, COUNT, 1.0f), COUNT);
    CHECK(cudaFree(device));
    CHECK(cudaStreamDestroy(stream));
    return 0;
}
