/* Memory is written in every way before it is copied back: by a copy, by a fill, by a kernel, by a
 * kernel that finds the pointer in a struct and by one that finds it in memory. Nothing is wrong. */
#include "../foreign.h"

enum { COUNT = 1 << 12 };

struct job {
    int count;
    float *results;
};

__global__ void run_job(struct job job)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < job.count)
        job.results[index] = 1.0f;
}

__global__ void run_all(float **results, int count)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count)
        results[0][index] = 1.0f;
}

static void copy_back(const char *name, float *device)
{
    static float host[COUNT];
    CHECK(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
    printf("%s right: %d of %d\n", name, count_equal(host, COUNT, 1.0f), COUNT);
    CHECK(cudaFree(device));
}

int main()
{
    static float host[COUNT];
    float *device[5], **table;
    set_all(host, COUNT, 1.0f);
    for (float *&memory : device)
        CHECK(cudaMalloc(&memory, COUNT * sizeof(float)));
    CHECK(cudaMalloc(&table, sizeof(float *)));
    CHECK(cudaMemcpy(device[0], host, sizeof(host), cudaMemcpyHostToDevice));
    copy_back("copy", device[0]);
    CHECK(cudaMemset(device[1], 0x3f, COUNT * sizeof(float)));
    copy_back("fill", device[1]);
    fill<<<BLOCKS(COUNT)>>>(device[2], COUNT, 1.0f);
    copy_back("kernel", device[2]);
    run_job<<<BLOCKS(COUNT)>>>(job{COUNT, device[3]});
    copy_back("struct", device[3]);
    CHECK(cudaMemcpy(table, &device[4], sizeof(float *), cudaMemcpyHostToDevice));
    run_all<<<BLOCKS(COUNT)>>>(table, COUNT);
    copy_back("memory", device[4]);
    CHECK(cudaFree(table));
    return 0;
}
