/* Clean: copies within a device: neighbouring ranges of one buffer on two streams, peer copies of a
 * device with itself, the default direction, a synchronous copy that is asynchronous to the host
 * and followed by work on the same stream. */
#include "../foreign.h"

enum { COUNT = 1 << 18 };

int main()
{
    cudaStream_t first, second;
    float *a, *b, *host = new float[2 * COUNT];
    size_t half = COUNT * sizeof(float);
    CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&a, 2 * half));
    CHECK(cudaMalloc(&b, 2 * half));
    fill<<<BLOCKS(2 * COUNT)>>>(a, 2 * COUNT, 3.0f);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpyAsync(b, a, half, cudaMemcpyDeviceToDevice, first));
    CHECK(cudaMemcpyPeerAsync(b + COUNT, 0, a + COUNT, 0, half, second));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpyPeer(a, 0, b + COUNT, 0, half));
    CHECK(cudaMemcpy(a + COUNT, b, half, cudaMemcpyDefault));
    scale<<<BLOCKS(2 * COUNT)>>>(a, b, 2 * COUNT, 2.0f);
    CHECK(cudaMemcpy(a, b, 2 * half, cudaMemcpyDeviceToDevice));
    CHECK(cudaMemcpy(host, a, 2 * half, cudaMemcpyDefault));
    int right = count_equal(host, 2 * COUNT, 6.0f);
    CHECK(cudaFree(a));
    CHECK(cudaFree(b));
    CHECK(cudaStreamDestroy(first));
    CHECK(cudaStreamDestroy(second));
    delete[] host;
    printf("right: %d of %d\n", right, 2 * COUNT);
    return right == 2 * COUNT ? 0 : 1;
}
