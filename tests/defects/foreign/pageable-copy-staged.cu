/* A pageable buffer is uploaded with cudaMemcpy, which returns when the buffer has been read; another
 * stream, which does not wait for the default stream, copies the values on at once.
 *
 * On hardware: the last part may not have arrived; whether that shows depends on the size and the
 * driver. The documentation says that the copy "may not have completed".
 * Only possible, not CONFIRMED, for that reason.
 * To be named: the copy in send_on, and the upload it does not wait for. */
#include "foreign.h"

enum { COUNT = 1 << 22 };

CULPRIT void upload(float *device, const float *host)
{
    CHECK(cudaMemcpy(device, host, COUNT * sizeof(float), cudaMemcpyHostToDevice));
}

CULPRIT void send_on(float *target, const float *device, cudaStream_t stream)
{
    CHECK(cudaMemcpyAsync(target, device, COUNT * sizeof(float), cudaMemcpyDeviceToDevice, stream));
}

int main()
{
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    float *device, *target, *host = new float[COUNT], *result = new float[COUNT];
    CHECK(cudaMalloc(&device, COUNT * sizeof(float)));
    CHECK(cudaMalloc(&target, COUNT * sizeof(float)));
    set_all(host, COUNT, 1.0f);

    upload(device, host);
    send_on(target, device, stream);

    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(result, target, COUNT * sizeof(float), cudaMemcpyDeviceToHost));
    printf("right: %d of %d\n", count_equal(result, COUNT, 1.0f), COUNT);
    CHECK(cudaFree(device));
    CHECK(cudaFree(target));
    CHECK(cudaStreamDestroy(stream));
    delete[] host;
    delete[] result;
    return 0;
}
