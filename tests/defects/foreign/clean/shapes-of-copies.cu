/* Clean: copies with a pitch, in three dimensions, through arrays and symbols. Two halves of one
 * pitched buffer are filled on two streams at once: their byte spans interleave, their bytes are
 * apart. */
#include "../foreign.h"

enum { WIDTH = 200, HEIGHT = 64, DEPTH = 4 };

static __device__ float symbol[WIDTH];

static int pitched(void)
{
    static float host[HEIGHT][WIDTH], back[HEIGHT][WIDTH];
    float *device;
    size_t pitch;
    cudaStream_t left, right;
    CHECK(cudaStreamCreateWithFlags(&left, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&right, cudaStreamNonBlocking));
    CHECK(cudaMallocPitch(&device, &pitch, WIDTH * sizeof(float), HEIGHT));
    CHECK(cudaMemset2D(device, pitch, 0, WIDTH * sizeof(float), HEIGHT));
    CHECK(cudaDeviceSynchronize());
    set_all(&host[0][0], HEIGHT * WIDTH, 4.0f);
    size_t half = WIDTH / 2 * sizeof(float);
    CHECK(cudaMemcpy2DAsync(device, pitch, host, sizeof(host[0]), half, HEIGHT,
                            cudaMemcpyHostToDevice, left));
    CHECK(cudaMemcpy2DAsync(device + WIDTH / 2, pitch, &host[0][WIDTH / 2], sizeof(host[0]), half,
                            HEIGHT, cudaMemcpyHostToDevice, right));
    CHECK(cudaStreamSynchronize(left));
    CHECK(cudaStreamSynchronize(right));
    CHECK(cudaMemcpy2D(back, sizeof(back[0]), device, pitch, WIDTH * sizeof(float), HEIGHT,
                       cudaMemcpyDeviceToHost));
    CHECK(cudaFree(device));
    CHECK(cudaStreamDestroy(left));
    CHECK(cudaStreamDestroy(right));
    return count_equal(&back[0][0], HEIGHT * WIDTH, 4.0f) == HEIGHT * WIDTH;
}

static int deep(void)
{
    static float host[DEPTH][HEIGHT][WIDTH], back[DEPTH][HEIGHT][WIDTH];
    cudaExtent extent = make_cudaExtent(WIDTH * sizeof(float), HEIGHT, DEPTH);
    cudaPitchedPtr device;
    CHECK(cudaMalloc3D(&device, extent));
    set_all(&host[0][0][0], DEPTH * HEIGHT * WIDTH, 5.0f);
    cudaMemcpy3DParms up = {};
    up.srcPtr = make_cudaPitchedPtr(host, WIDTH * sizeof(float), WIDTH, HEIGHT);
    up.dstPtr = device;
    up.extent = extent;
    up.kind = cudaMemcpyHostToDevice;
    CHECK(cudaMemcpy3D(&up));
    cudaMemcpy3DParms down = {};
    down.srcPtr = device;
    down.dstPtr = make_cudaPitchedPtr(back, WIDTH * sizeof(float), WIDTH, HEIGHT);
    down.extent = extent;
    down.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3DAsync(&down, 0));
    CHECK(cudaStreamSynchronize(0));
    CHECK(cudaFree(device.ptr));
    return count_equal(&back[0][0][0], DEPTH * HEIGHT * WIDTH, 5.0f) == DEPTH * HEIGHT * WIDTH;
}

static int array_and_symbol(void)
{
    static float host[HEIGHT][WIDTH], back[HEIGHT][WIDTH];
    cudaArray_t array;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    set_all(&host[0][0], HEIGHT * WIDTH, 6.0f);
    CHECK(cudaMallocArray(&array, &format, WIDTH, HEIGHT));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, host, sizeof(host[0]), sizeof(host[0]), HEIGHT,
                              cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy2DFromArray(back, sizeof(back[0]), array, 0, 0, sizeof(back[0]), HEIGHT,
                                cudaMemcpyDeviceToHost));
    CHECK(cudaFreeArray(array));
    int right = count_equal(&back[0][0], HEIGHT * WIDTH, 6.0f) == HEIGHT * WIDTH;
    CHECK(cudaMemcpyToSymbol(symbol, host, sizeof(symbol)));
    set_all(back[0], WIDTH, 0.0f);
    CHECK(cudaMemcpyFromSymbol(back[0], symbol, sizeof(symbol)));
    return right + (count_equal(back[0], WIDTH, 6.0f) == WIDTH);
}

int main()
{
    int right = pitched() + deep() + array_and_symbol();
    printf("shapes right: %d of 4\n", right);
    return right == 4 ? 0 : 1;
}
