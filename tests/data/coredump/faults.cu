// faults.cu - kernels whose line tables and arguments tests/unit/coredump_image_test.c looks up:
// inlined calls two deep, a function that is called, and arguments of several sizes.
struct pair {
    float *data;
    int stride;
};

__device__ __noinline__ float deep(const float *in, long i)
{
    return in[i * 1000000007L];
}

__device__ __forceinline__ float inner(const float *in, int i)
{
    return in[i] + 1.0f;
}

__device__ __forceinline__ float outer(const float *in, int i)
{
    float a = inner(in, i);
    float b = inner(in, i * 7);
    return a * b;
}

__global__ void nest(float *out, const float *in, int n)
{
    int i = threadIdx.x;
    out[i] = outer(in, i) + outer(in, n) + deep(in, n);
}

__global__ void scale(char flag, short shift, struct pair pair, const float *in)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    pair.data[(long)i * pair.stride] = flag ? in[i] : in[i + shift];
}
