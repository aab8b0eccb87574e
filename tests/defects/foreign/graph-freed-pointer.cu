/* A graph clears and fills a scratch buffer; the buffer is freed, its address goes to somebody
 * else, and the graph is launched again.
 *
 * On hardware: no error; the new owner of the address loses every byte.
 * Only possible, not CONFIRMED: the new owner's address is the old one's, and a program that checks
 * its addresses before it launches a graph again makes the same calls rightly.
 * To be named: the memset that was captured in main, in the second launch of the graph, and the free
 * in give_back. */
#include "foreign.h"

enum { COUNT = 1 << 20 };

CULPRIT void replay(cudaGraphExec_t graph, cudaStream_t stream)
{
    CHECK(cudaGraphLaunch(graph, stream));
    CHECK(cudaStreamSynchronize(stream));
}

CULPRIT void give_back(float *scratch)
{
    CHECK(cudaFree(scratch));
}

int main()
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    float *scratch, *other, *host = new float[COUNT];
    CHECK(cudaMalloc(&scratch, COUNT * sizeof(float)));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cudaMemsetAsync(scratch, 0, COUNT * sizeof(float), stream));
    fill<<<BLOCKS(COUNT), 0, stream>>>(scratch, COUNT, 1.0f);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaStreamSynchronize(stream));

    give_back(scratch);
    CHECK(cudaMalloc(&other, COUNT * sizeof(float)));
    CHECK(cudaMemset(other, 0, COUNT * sizeof(float)));
    CHECK(cudaDeviceSynchronize());
    replay(executable, stream);

    CHECK(cudaMemcpy(host, other, COUNT * sizeof(float), cudaMemcpyDeviceToHost));
    printf("same address: %s, zeros left: %d of %d\n", other == scratch ? "yes" : "no",
           count_equal(host, COUNT, 0.0f), COUNT);
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaFree(other));
    CHECK(cudaStreamDestroy(stream));
    delete[] host;
    return 0;
}
