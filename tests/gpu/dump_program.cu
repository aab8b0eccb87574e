/* dump_program.cu - faults that dump_check.sh lets greta trace explain, plain and traced.
 *
 *     dump_program streams       kernels of three streams with memsets between them; one is wild
 *     dump_program equal         50 equal launches, of which the 23rd is wild
 *     dump_program equal-memset  the same with a memset in between
 *     dump_program graph         a graph of three kernels replayed ten times, wild in the fourth replay
 *     dump_program graph-waited  the same with a wait after each replay
 *     dump_program contexts      equal launches in two contexts
 *     dump_program assert        a device-side assert
 *     dump_program unreported    exits with 3 before any call reports the fault
 *     dump_program none          no fault
 *
 * All others print the error that a call returned and exit with 7. A line "expected ..." says which
 * launch of the process it was, from 1, and how many memsets came before it. */
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>

enum { COUNT = 1 << 16 };

__global__ void add_one(int *values, int count)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count)
        values[index]++;
}

__global__ void wild(int *values, long long offset)
{
    values[offset + threadIdx.x] = 1; /* the line that fails */
}

/* Wild when it runs for that time: its launches are equal to the last bit. */
__global__ void wild_at(int *counter, int *values, int time)
{
    int count = ++*counter;
    if (count == time)
        values[1ll << 42] = 1; /* the line that fails when it is time */
}

__global__ void asserting(int value)
{
    assert(value == 0);
}

static void check(cudaError_t error, const char *call)
{
    if (error == cudaSuccess)
        return;
    printf("%s: %s\n", call, cudaGetErrorName(error));
    exit(7);
}
#define CHECK(call) check((call), #call)

struct memory {
    int *values, *counter;
    cudaStream_t streams[3];
};

static struct memory prepare()
{
    struct memory memory;
    CHECK(cudaMalloc(&memory.values, COUNT * sizeof(int)));
    CHECK(cudaMalloc(&memory.counter, sizeof(int)));
    CHECK(cudaMemset(memory.counter, 0, sizeof(int)));
    for (int i = 0; i < 3; i++)
        CHECK(cudaStreamCreateWithFlags(&memory.streams[i], cudaStreamNonBlocking));
    CHECK(cudaDeviceSynchronize());
    return memory;
}

static int finish()
{
    CHECK(cudaDeviceSynchronize());
    puts("no error");
    return 0;
}

static int streams()
{
    struct memory memory = prepare();
    for (int i = 0; i < 20; i++) {
        add_one<<<COUNT / 256, 256, 0, memory.streams[i % 3]>>>(memory.values, COUNT);
        CHECK(cudaMemsetAsync(memory.counter, 0, sizeof(int), memory.streams[(i + 1) % 3]));
    }
    wild<<<2, 64, 0, memory.streams[1]>>>(memory.values, 1ll << 42);
    for (int i = 0; i < 20; i++)
        add_one<<<COUNT / 256, 256, 0, memory.streams[i % 3]>>>(memory.values, COUNT);
    puts("expected launch 21, after 21 memsets");
    return finish();
}

static int equal(bool with_memset)
{
    struct memory memory = prepare();
    for (int i = 1; i <= 50; i++) {
        wild_at<<<1, 1, 0, memory.streams[0]>>>(memory.counter, memory.values, 23);
        if (with_memset && i == 10)
            CHECK(cudaMemsetAsync(memory.values, 0, 64, memory.streams[0]));
    }
    printf("expected launch 23, after %d memsets\n", with_memset ? 2 : 1);
    return finish();
}

static int graph(bool waits)
{
    struct memory memory = prepare();
    cudaStream_t stream = memory.streams[0];
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    add_one<<<1, 32, 0, stream>>>(memory.values, 32); /* one that is not in the graph */
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    add_one<<<COUNT / 256, 256, 0, stream>>>(memory.values, COUNT);
    wild_at<<<1, 1, 0, stream>>>(memory.counter, memory.values, 4);
    add_one<<<COUNT / 128, 128, 0, stream>>>(memory.values, COUNT);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiateWithFlags(&executable, graph, 0));
    puts("expected node 2, replay 4, after 1 launch and 1 memset");
    for (int i = 0; i < 10; i++) {
        CHECK(cudaGraphLaunch(executable, stream));
        if (waits)
            CHECK(cudaStreamSynchronize(stream));
    }
    return finish();
}

/* The second context is not the runtime's own; its launches look like those of the first. */
static int contexts()
{
    struct memory memory = prepare();
    CUcontext first, second;
    CUdevice device;
    int *values, *counter;
    cuCtxGetCurrent(&first);
    cuCtxGetDevice(&device);
#if CUDA_VERSION >= 13000
    cuCtxCreate(&second, NULL, 0, device);
#else
    cuCtxCreate(&second, 0, device);
#endif
    CHECK(cudaMalloc(&values, COUNT * sizeof(int)));
    CHECK(cudaMalloc(&counter, sizeof(int)));
    CHECK(cudaMemset(counter, 0, sizeof(int)));
    for (int i = 0; i < 10; i++) {
        cuCtxSetCurrent(first);
        wild_at<<<1, 1, 0, memory.streams[0]>>>(memory.counter, memory.values, 99);
        cuCtxSetCurrent(second);
        wild_at<<<1, 1>>>(counter, values, 6);
    }
    puts("expected launch 12, the 6th of its context, after 1 memset there");
    return finish();
}

static int asserts()
{
    struct memory memory = prepare();
    add_one<<<COUNT / 256, 256, 0, memory.streams[0]>>>(memory.values, COUNT);
    asserting<<<1, 32, 0, memory.streams[1]>>>(1);
    puts("expected launch 2, after 1 memset");
    return finish();
}

static int unreported()
{
    struct memory memory = prepare();
    wild<<<2, 64, 0, memory.streams[1]>>>(memory.values, 1ll << 42);
    puts("expected launch 1, after 1 memset");
    return 3;
}

static int none()
{
    struct memory memory = prepare();
    add_one<<<COUNT / 256, 256, 0, memory.streams[0]>>>(memory.values, COUNT);
    return finish();
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "none";
    static const struct {
        const char *name;
        int (*run)();
    } modes[] = {
        { "streams", streams },
        { "equal", [] { return equal(false); } },
        { "equal-memset", [] { return equal(true); } },
        { "graph", [] { return graph(false); } },
        { "graph-waited", [] { return graph(true); } },
        { "contexts", contexts },
        { "assert", asserts },
        { "unreported", unreported },
    };
    for (const auto &mode : modes)
        if (strcmp(mode.name, what) == 0)
            return mode.run();
    return none();
}
