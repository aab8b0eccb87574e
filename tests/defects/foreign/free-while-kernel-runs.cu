/* Memory is given back on one stream while a kernel on another still writes it: no event orders
 * the two. The pool hands it out again at once.
 *
 * On hardware: no error; the pool hands the same address out again, and the kernel overwrites
 * every byte of its new owner.
 * To be named: the cudaFreeAsync in give_back, and the kernel fill as the work it did not wait
 * for. */
#include "foreign.h"

/* As much as the pool takes at a time: it comes back whole. */
enum { COUNT = 1 << 23 };

CULPRIT void give_back(float *device, cudaStream_t stream)
{
    CHECK(cudaFreeAsync(device, stream));
}

int main()
{
    load_kernels();
    cudaStream_t worker, other;
    CHECK(cudaStreamCreateWithFlags(&worker, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    float *device, *next, *host;
    CHECK(cudaMallocHost(&host, COUNT * sizeof(float)));
    CHECK(cudaMallocAsync(&device, COUNT * sizeof(float), other));
    CHECK(cudaStreamSynchronize(other));

    delay<<<1, 1, 0, worker>>>(DELAY_MS);
    fill<<<BLOCKS(COUNT), 0, worker>>>(device, COUNT, 1.0f);
    give_back(device, other);

    CHECK(cudaMallocAsync(&next, COUNT * sizeof(float), other));
    CHECK(cudaMemsetAsync(next, 0, COUNT * sizeof(float), other));
    CHECK(cudaStreamSynchronize(worker));
    CHECK(cudaMemcpyAsync(host, next, COUNT * sizeof(float), cudaMemcpyDeviceToHost, other));
    CHECK(cudaStreamSynchronize(other));
    printf("same address: %s, zeros left: %d of %d\n", next == device ? "yes" : "no",
           count_equal(host, COUNT, 0.0f), COUNT);
    CHECK(cudaFreeAsync(next, other));
    CHECK(cudaStreamDestroy(worker));
    CHECK(cudaStreamDestroy(other));
    CHECK(cudaFreeHost(host));
    return 0;
}
