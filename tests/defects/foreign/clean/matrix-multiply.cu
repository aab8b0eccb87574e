/* Clean: what a sample looks like: tiles in shared memory, warm-up, timing by events, a check
 * against the processor. */
#include "../foreign.h"

#include <cmath>

enum { SIZE = 1024, TILE = 32, REPEATS = 300 };

static __global__ void multiply(const float *a, const float *b, float *c, int size)
{
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < size; k += TILE) {
        tile_a[threadIdx.y][threadIdx.x] = a[row * size + k + threadIdx.x];
        tile_b[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * size + column];
        __syncthreads();
        for (int i = 0; i < TILE; i++)
            sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
        __syncthreads();
    }
    c[row * size + column] = sum;
}

static int count_right(const float *a, const float *b, const float *c)
{
    int right = 0;
    for (int row = 0; row < SIZE; row += 37)
        for (int column = 0; column < SIZE; column += 41) {
            double sum = 0;
            for (int k = 0; k < SIZE; k++)
                sum += (double)a[row * SIZE + k] * b[k * SIZE + column];
            right += fabs(sum - c[row * SIZE + column]) < 1e-3 * SIZE;
        }
    return right;
}

int main()
{
    size_t bytes = SIZE * SIZE * sizeof(float);
    float *a, *b, *c, *device_a, *device_b, *device_c;
    cudaStream_t stream;
    cudaEvent_t start, stop;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&stop));
    CHECK(cudaMallocHost(&a, bytes));
    CHECK(cudaMallocHost(&b, bytes));
    CHECK(cudaMallocHost(&c, bytes));
    CHECK(cudaMalloc(&device_a, bytes));
    CHECK(cudaMalloc(&device_b, bytes));
    CHECK(cudaMalloc(&device_c, bytes));
    for (int i = 0; i < SIZE * SIZE; i++) {
        a[i] = (i * 7 % 13) / 13.0f;
        b[i] = (i * 5 % 11) / 11.0f;
    }
    CHECK(cudaMemcpyAsync(device_a, a, bytes, cudaMemcpyHostToDevice, stream));
    CHECK(cudaMemcpyAsync(device_b, b, bytes, cudaMemcpyHostToDevice, stream));
    dim3 blocks(SIZE / TILE, SIZE / TILE), threads(TILE, TILE);
    multiply<<<blocks, threads, 0, stream>>>(device_a, device_b, device_c, SIZE);
    CHECK(cudaStreamSynchronize(stream));

    CHECK(cudaEventRecord(start, stream));
    for (int i = 0; i < REPEATS; i++)
        multiply<<<blocks, threads, 0, stream>>>(device_a, device_b, device_c, SIZE);
    CHECK(cudaEventRecord(stop, stream));
    CHECK(cudaEventSynchronize(stop));
    float milliseconds;
    CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
    CHECK(cudaMemcpyAsync(c, device_c, bytes, cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    int right = count_right(a, b, c), wanted = 28 * 25;
    fprintf(stderr, "%.3f ms per multiplication\n", milliseconds / REPEATS);
    printf("right: %d of %d\n", right, wanted);
    CHECK(cudaFree(device_a));
    CHECK(cudaFree(device_b));
    CHECK(cudaFree(device_c));
    CHECK(cudaFreeHost(a));
    CHECK(cudaFreeHost(b));
    CHECK(cudaFreeHost(c));
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(stop));
    CHECK(cudaStreamDestroy(stream));
    return right == wanted ? 0 : 1;
}
