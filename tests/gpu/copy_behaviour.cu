/* copy_behaviour.cu - which copies, memsets and frees wait on this GPU, compared with the table that
 * greta trace goes by (src/interpose/copy_behaviour.def).
 *
 * A kernel that takes DELAY_MS is queued in the stream of the call. Whether the call waited for it is
 * seen from the stream when the call returns; whether the copy itself was done, from the stream again
 * and, where the host can read the target, from its bytes. One line for each row that was measured:
 *
 *     copy sync pageable device cudaMemcpy: staged; before done 5 of 5, itself done 3 of 5: same
 *
 * "same": as the table says; "measured": the table leaves it open; "DIFFERS": the table is wrong
 * here. Exit status: 0; 1 if a call that must wait did not; 77 if there is no GPU; 3 on an error.
 *
 *     nvcc -arch=native -O1 -I src -o copy_behaviour tests/gpu/copy_behaviour.cu */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

enum behaviour { WAITS, STAGED, RETURNS, OPEN };
enum memory { PAGEABLE, PINNED, REGISTERED, MANAGED, DEVICE, MEMORY_COUNT };
enum form { SYNC, ASYNC };
enum runtime { CUDA, HIP };
enum { POOL = MEMORY_COUNT, MAPPED };

static const char *const behaviours[] = { "waits", "staged", "returns", "open" };
static const char *const memories[] = { "pageable", "pinned", "registered", "managed", "device",
                                        "pool", "mapped" };
static const char *const forms[] = { "sync", "async" };

/* Large enough that a copy takes a while, small enough to be quick: 1 row of ROW bytes times ROWS. */
enum { ROW = 1 << 20, ROWS = 16, BYTES = ROW * ROWS, REPEATS = 5, DELAY_MS = 20 };

#define CHECK(call) check((call), #call, __LINE__)

static void check(cudaError_t error, const char *call, int line)
{
    if (error == cudaSuccess)
        return;
    printf("line %d: %s: %s\n", line, call, cudaGetErrorString(error));
    exit(3);
}

static __global__ void delay(unsigned milliseconds)
{
    unsigned long long begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - begin < milliseconds * 1000000ull);
}

/* ---- Memory --------------------------------------------------------------------------------- */

static void *take(int memory)
{
    void *made = NULL;
    if (memory == PAGEABLE || memory == REGISTERED)
        made = aligned_alloc(4096, BYTES);
    if (memory == REGISTERED)
        CHECK(cudaHostRegister(made, BYTES, cudaHostRegisterDefault));
    if (memory == PINNED)
        CHECK(cudaMallocHost(&made, BYTES));
    if (memory == MANAGED)
        CHECK(cudaMallocManaged(&made, BYTES));
    if (memory == DEVICE)
        CHECK(cudaMalloc(&made, BYTES));
    if (memory == POOL)
        CHECK(cudaMallocAsync(&made, BYTES, 0));
    if (!made)
        exit(3);
    return made;
}

static void give_back(int memory, void *made)
{
    if (memory == REGISTERED)
        CHECK(cudaHostUnregister(made));
    if (memory == PAGEABLE || memory == REGISTERED)
        free(made);
    else if (memory == PINNED)
        CHECK(cudaFreeHost(made));
    else
        CHECK(cudaFree(made));
}

static bool is_host(int memory)
{
    return memory == PAGEABLE || memory == PINNED || memory == REGISTERED;
}

static cudaMemcpyKind kind_of(int source, int target)
{
    if (is_host(source))
        return is_host(target) ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
    return is_host(target) ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

/* ---- One measurement ------------------------------------------------------------------------ */

struct seen {
    int before, itself; /* of REPEATS: the kernel, the copy was done when the call returned */
};

static bool failed;

/* A call that must wait and did not is what must not be: the rest is worth knowing. */
static void report(const char *what, int form, int source, int target, const char *call, int reported,
                   const struct seen *seen)
{
    /* Between two places of host memory the processor may copy, with the stream still at work. */
    bool between = source >= 0 && is_host(source) && is_host(target);
    bool early = seen->before != REPEATS, unfinished = seen->itself != REPEATS;
    bool broken = (reported == WAITS && (unfinished || (early && !between))) || (reported == STAGED && early);
    bool differs = broken || (reported == WAITS && early) || (reported == RETURNS && seen->before > 0);
    failed = failed || broken;
    printf("%s %s %s %s %s: %s; before done %d of %d, itself done %d of %d: %s\n", what,
           form < 0 ? "-" : forms[form], source < 0 ? "-" : memories[source], memories[target], call,
           behaviours[reported], seen->before, REPEATS, seen->itself, REPEATS,
           reported == OPEN ? "measured" : differs ? "DIFFERS" : "same");
    fflush(stdout);
}

/* Work of the stream before the call, and marks after that work and after the call. */
struct probe {
    cudaStream_t stream;
    cudaEvent_t before;
};

static struct probe begin(cudaStream_t stream)
{
    struct probe probe = { stream, NULL };
    CHECK(cudaEventCreateWithFlags(&probe.before, cudaEventDisableTiming));
    CHECK(cudaDeviceSynchronize());
    delay<<<1, 1, 0, stream>>>(DELAY_MS);
    CHECK(cudaEventRecord(probe.before, stream));
    return probe;
}

static bool is_done(cudaError_t answer)
{
    if (answer != cudaErrorNotReady)
        CHECK(answer);
    return answer == cudaSuccess;
}

static void end(struct probe *probe, const void *shown, char value, struct seen *seen)
{
    /* The stream first: it may be done a moment later. */
    bool itself = is_done(cudaStreamQuery(probe->stream));
    seen->before += is_done(cudaEventQuery(probe->before));
    if (shown) { /* bytes say more than the stream, of a copy that is not the stream's */
        const char *bytes = (const char *)shown;
        itself = bytes[0] == value && bytes[BYTES / 2] == value && bytes[BYTES - 1] == value;
    }
    seen->itself += itself;
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaEventDestroy(probe->before));
}

/* ---- Copies --------------------------------------------------------------------------------- */

enum call { LINEAR, BY_ADDRESS, ROWS_2D, PLANES_3D, CALL_COUNT };
static const char *const calls[][2] = { { "cudaMemcpy", "cudaMemcpyAsync" },
                                        { "cudaMemcpyDefault", "cudaMemcpyDefaultAsync" },
                                        { "cudaMemcpy2D", "cudaMemcpy2DAsync" },
                                        { "cudaMemcpy3D", "cudaMemcpy3DAsync" } };

static cudaError_t copy(int call, int form, void *to, const void *from, cudaMemcpyKind kind,
                        cudaStream_t stream)
{
    if (call == BY_ADDRESS)
        kind = cudaMemcpyDefault;
    if (call == ROWS_2D)
        return form == ASYNC ? cudaMemcpy2DAsync(to, ROW, from, ROW, ROW, ROWS, kind, stream)
                             : cudaMemcpy2D(to, ROW, from, ROW, ROW, ROWS, kind);
    if (call == PLANES_3D) {
        cudaMemcpy3DParms parameters = {};
        parameters.srcPtr = make_cudaPitchedPtr((void *)from, ROW, ROW, ROWS / 2);
        parameters.dstPtr = make_cudaPitchedPtr(to, ROW, ROW, ROWS / 2);
        parameters.extent = make_cudaExtent(ROW, ROWS / 2, 2);
        parameters.kind = kind;
        return form == ASYNC ? cudaMemcpy3DAsync(&parameters, stream) : cudaMemcpy3D(&parameters);
    }
    return form == ASYNC ? cudaMemcpyAsync(to, from, BYTES, kind, stream)
                         : cudaMemcpy(to, from, BYTES, kind);
}

static void measure_copy(int form, int source, int target, int reported, cudaStream_t apart)
{
    void *from = take(source), *to = take(target);
    cudaStream_t stream = form == ASYNC ? apart : cudaStreamLegacy;
    for (int call = 0; call < CALL_COUNT; call++) {
        struct seen seen = { 0, 0 };
        for (int i = 0; i < REPEATS; i++) {
            char value = (char)(1 + call * REPEATS + i);
            if (is_host(source))
                memset(from, value, BYTES);
            else
                CHECK(cudaMemset(from, value, BYTES));
            struct probe probe = begin(stream);
            CHECK(copy(call, form, to, from, kind_of(source, target), stream));
            end(&probe, is_host(target) ? to : NULL, value, &seen);
        }
        report("copy", form, source, target, calls[call][form], reported, &seen);
    }
    give_back(source, from);
    give_back(target, to);
}

static void measure_memset(int form, int target, int reported, cudaStream_t apart)
{
    void *to = take(target);
    cudaStream_t stream = form == ASYNC ? apart : cudaStreamLegacy;
    struct seen seen = { 0, 0 };
    for (int i = 0; i < REPEATS; i++) {
        struct probe probe = begin(stream);
        CHECK(form == ASYNC ? cudaMemsetAsync(to, i + 1, BYTES, stream)
                            : cudaMemset(to, i + 1, BYTES));
        end(&probe, is_host(target) ? to : NULL, (char)(i + 1), &seen);
    }
    report("memset", form, -1, target, form == ASYNC ? "cudaMemsetAsync" : "cudaMemset", reported,
           &seen);
    give_back(target, to);
}

/* ---- Frees ---------------------------------------------------------------------------------- */

static void measure_free(int memory, int reported, cudaStream_t apart)
{
    static const char *const names[] = { "-",        "cudaFreeHost", "cudaHostUnregister",
                                         "cudaFree", "cudaFree",     "cudaFree" };
    struct seen seen = { 0, 0 };
    if (memory == MAPPED)
        return; /* of physical memory that was mapped by hand: the driver's interface */
    for (int i = 0; i < REPEATS; i++) {
        void *made = take(memory);
        struct probe probe = begin(apart);
        if (memory == REGISTERED)
            CHECK(cudaHostUnregister(made));
        else if (memory == PINNED)
            CHECK(cudaFreeHost(made));
        else
            CHECK(cudaFree(made));
        end(&probe, NULL, 0, &seen);
        if (memory == REGISTERED)
            free(made);
    }
    report("free", -1, -1, memory, names[memory], reported, &seen);
}

/* A plain copy between two devices does not wait, and is in order with other streams' work. */
static void measure_peers(cudaStream_t apart)
{
    int count = 0;
    CHECK(cudaGetDeviceCount(&count));
    if (count < 2) {
        printf("copy sync device device cudaMemcpyPeer: not measured, one GPU\n");
        return;
    }
    void *from = take(DEVICE), *to;
    struct seen seen = { 0, 0 };
    CHECK(cudaSetDevice(1));
    CHECK(cudaMalloc(&to, BYTES));
    CHECK(cudaSetDevice(0));
    for (int i = 0; i < REPEATS; i++) {
        struct probe probe = begin(apart);
        CHECK(cudaMemcpyPeer(to, 1, from, 0, BYTES));
        end(&probe, NULL, 0, &seen);
    }
    report("copy", SYNC, DEVICE, DEVICE, "cudaMemcpyPeer", RETURNS, &seen);
    CHECK(cudaFree(to));
    give_back(DEVICE, from);
}

int main()
{
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || !count) {
        printf("skipped: no NVIDIA GPU\n");
        return 77;
    }
    cudaStream_t apart;
    CHECK(cudaStreamCreateWithFlags(&apart, cudaStreamNonBlocking));
    delay<<<1, 1>>>(0); /* the first launch loads it, which waits */
    CHECK(cudaDeviceSynchronize());
#define COPIES(runtime, form, source, ...)                                                         \
    for (int target = 0, reported[] = { __VA_ARGS__ }; runtime == CUDA && target < MEMORY_COUNT;       \
         target++)                                                                                 \
        measure_copy(form, source, target, reported[target], apart);
#define MEMSETS(runtime, form, pinned, registered, managed, device)                                \
    if (runtime == CUDA) {                                                                         \
        measure_memset(form, PINNED, pinned, apart);                                               \
        measure_memset(form, REGISTERED, registered, apart);                                       \
        measure_memset(form, MANAGED, managed, apart);                                             \
        measure_memset(form, DEVICE, device, apart);                                               \
    }
#define FREES(runtime, device, pool, mapped, managed, pinned, registered)                          \
    if (runtime == CUDA) {                                                                         \
        measure_free(DEVICE, device, apart);                                                       \
        measure_free(POOL, pool, apart);                                                           \
        measure_free(MAPPED, mapped, apart);                                                       \
        measure_free(MANAGED, managed, apart);                                                     \
        measure_free(PINNED, pinned, apart);                                                       \
        measure_free(REGISTERED, registered, apart);                                               \
    }
#include "interpose/copy_behaviour.def"
    measure_peers(apart);
    CHECK(cudaStreamDestroy(apart));
    return failed ? 1 : 0;
}
