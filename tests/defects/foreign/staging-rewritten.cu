/* One pinned buffer feeds four uploads; the host writes the next batch into it while the copy of
 * the one before is still queued.
 *
 * On hardware: no error; three of the four batches arrive wrong in every value.
 * To be named: the copy in upload, whose bytes changed before anybody waited for it. */
#include "foreign.h"

enum { COUNT = 1 << 16, BATCHES = 4 };

CULPRIT void upload(float *device, const float *staging, cudaStream_t stream)
{
    CHECK(cudaMemcpyAsync(device, staging, COUNT * sizeof(float), cudaMemcpyHostToDevice, stream));
}

int main()
{
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    float *staging, *device, *host = new float[COUNT];
    CHECK(cudaMallocHost(&staging, COUNT * sizeof(float)));
    CHECK(cudaMalloc(&device, BATCHES * COUNT * sizeof(float)));

    delay<<<1, 1, 0, stream>>>(DELAY_MS);
    for (int batch = 0; batch < BATCHES; batch++) {
        set_all(staging, COUNT, 1.0f + batch);
        upload(device + batch * COUNT, staging, stream);
    }
    CHECK(cudaStreamSynchronize(stream));

    for (int batch = 0; batch < BATCHES; batch++) {
        CHECK(cudaMemcpy(host, device + batch * COUNT, COUNT * sizeof(float),
                         cudaMemcpyDeviceToHost));
        printf("batch %d right: %d of %d\n", batch, count_equal(host, COUNT, 1.0f + batch), COUNT);
    }
    delete[] host;
    CHECK(cudaFree(device));
    CHECK(cudaFreeHost(staging));
    CHECK(cudaStreamDestroy(stream));
    return 0;
}
