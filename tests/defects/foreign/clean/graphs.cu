/* Clean: a graph captured over two streams, replayed, updated to other memory by a second capture
 * and by the parameters of a node, with the old memory freed after each update; memory allocated
 * inside a graph. */
#include "../foreign.h"

enum { COUNT = 1 << 16 };

static cudaStream_t main_stream, side_stream;

static cudaGraph_t capture(float *values, float *results, float *host)
{
    cudaGraph_t graph;
    cudaEvent_t forked, joined;
    CHECK(cudaEventCreateWithFlags(&forked, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming));
    CHECK(cudaStreamBeginCapture(main_stream, cudaStreamCaptureModeThreadLocal));
    fill<<<BLOCKS(COUNT), 0, main_stream>>>(values, COUNT, 3.0f);
    CHECK(cudaEventRecord(forked, main_stream));
    CHECK(cudaStreamWaitEvent(side_stream, forked, 0));
    CHECK(cudaMemsetAsync(results, 0, COUNT * sizeof(float), side_stream));
    CHECK(cudaEventRecord(joined, side_stream));
    CHECK(cudaStreamWaitEvent(main_stream, joined, 0));
    scale<<<BLOCKS(COUNT), 0, main_stream>>>(values, results, COUNT, 2.0f);
    CHECK(cudaMemcpyAsync(host, results, COUNT * sizeof(float), cudaMemcpyDeviceToHost,
                          main_stream));
    CHECK(cudaStreamEndCapture(main_stream, &graph));
    CHECK(cudaEventDestroy(forked));
    CHECK(cudaEventDestroy(joined));
    return graph;
}

static int launch(cudaGraphExec_t executable, float *host, float wanted)
{
    set_all(host, COUNT, 0.0f);
    CHECK(cudaGraphLaunch(executable, main_stream));
    CHECK(cudaStreamSynchronize(main_stream));
    return count_equal(host, COUNT, wanted) == COUNT;
}

/* One kernel node, moved to other memory by its parameters. */
static int update_node(float *host)
{
    float *first, *second, value = 5.0f;
    int count = COUNT;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaGraphNode_t kernel, copy;
    CHECK(cudaMalloc(&first, COUNT * sizeof(float)));
    CHECK(cudaMalloc(&second, COUNT * sizeof(float)));
    CHECK(cudaGraphCreate(&graph, 0));
    void *arguments[] = { &first, &count, &value };
    cudaKernelNodeParams parameters = {};
    parameters.func = (void *)fill;
    parameters.gridDim = dim3((COUNT + 255) / 256);
    parameters.blockDim = dim3(256);
    parameters.kernelParams = arguments;
    CHECK(cudaGraphAddKernelNode(&kernel, graph, NULL, 0, &parameters));
    CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, &kernel, 1, host, first, COUNT * sizeof(float),
                                   cudaMemcpyDeviceToHost));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    int right = launch(executable, host, 5.0f);
    void *moved[] = { &second, &count, &value };
    parameters.kernelParams = moved;
    CHECK(cudaGraphExecKernelNodeSetParams(executable, kernel, &parameters));
    CHECK(cudaGraphExecMemcpyNodeSetParams1D(executable, copy, host, second,
                                             COUNT * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaFree(first));
    right += launch(executable, host, 5.0f);
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaFree(second));
    return right;
}

/* Memory that lives inside the graph. */
static int allocate_inside(float *host)
{
    float *inside;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamBeginCapture(main_stream, cudaStreamCaptureModeThreadLocal));
    CHECK(cudaMallocAsync(&inside, COUNT * sizeof(float), main_stream));
    fill<<<BLOCKS(COUNT), 0, main_stream>>>(inside, COUNT, 7.0f);
    CHECK(cudaMemcpyAsync(host, inside, COUNT * sizeof(float), cudaMemcpyDeviceToHost,
                          main_stream));
    CHECK(cudaFreeAsync(inside, main_stream));
    CHECK(cudaStreamEndCapture(main_stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    int right = launch(executable, host, 7.0f) + launch(executable, host, 7.0f);
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
    return right;
}

int main()
{
    CHECK(cudaStreamCreateWithFlags(&main_stream, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&side_stream, cudaStreamNonBlocking));
    float *values[2], *results[2], *host;
    CHECK(cudaMallocHost(&host, COUNT * sizeof(float)));
    for (int i = 0; i < 2; i++) {
        CHECK(cudaMalloc(&values[i], COUNT * sizeof(float)));
        CHECK(cudaMalloc(&results[i], COUNT * sizeof(float)));
    }
    cudaGraph_t before = capture(values[0], results[0], host);
    cudaGraph_t after = capture(values[1], results[1], host);
    cudaGraphExec_t executable;
    CHECK(cudaGraphInstantiate(&executable, before, 0));
    int right = launch(executable, host, 6.0f) + launch(executable, host, 6.0f);
    cudaGraphExecUpdateResultInfo info;
    CHECK(cudaGraphExecUpdate(executable, after, &info));
    CHECK(cudaFree(values[0]));
    CHECK(cudaFree(results[0]));
    right += launch(executable, host, 6.0f) + launch(executable, host, 6.0f);
    right += update_node(host) + allocate_inside(host);

    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(before));
    CHECK(cudaGraphDestroy(after));
    CHECK(cudaFree(values[1]));
    CHECK(cudaFree(results[1]));
    CHECK(cudaFreeHost(host));
    CHECK(cudaStreamDestroy(main_stream));
    CHECK(cudaStreamDestroy(side_stream));
    printf("replays right: %d of 8\n", right);
    return right == 8 ? 0 : 1;
}
