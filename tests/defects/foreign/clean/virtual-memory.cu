/* Clean: an address range that grows, chunk by chunk, through the driver's virtual memory calls,
 * with copies across the border of two chunks. It is unmapped after a wait and mapped again. */
#include "../foreign.h"

#include <cuda.h>

/* The driver's functions by name, as a program linked with nothing but the runtime gets them. */
template <typename Function> static Function *driver(const char *name)
{
    void *function = NULL;
    cudaDriverEntryPointQueryResult result;
    CHECK(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &result));
    if (!function) {
        printf("no %s\n", name);
        exit(3);
    }
    return (Function *)function;
}

#define DRIVER(name) driver<decltype(name)>(#name)

static void require(CUresult result, int line)
{
    if (result != CUDA_SUCCESS) {
        printf("line %d: driver error %d\n", line, (int)result);
        exit(1);
    }
}

int main()
{
    CHECK(cudaFree(0));
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    size_t piece;
    require(DRIVER(cuMemGetAllocationGranularity)(&piece, &properties,
                                                  CU_MEM_ALLOC_GRANULARITY_MINIMUM),
            __LINE__);
    CUdeviceptr base;
    require(DRIVER(cuMemAddressReserve)(&base, 4 * piece, 0, 0, 0), __LINE__);
    CUmemGenericAllocationHandle handles[2];
    CUmemAccessDesc access = {};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    int count = (int)(2 * piece / sizeof(float)), right = 0;
    float *host = new float[count], *values = (float *)base;

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2; i++) {
            require(DRIVER(cuMemCreate)(&handles[i], piece, &properties, 0), __LINE__);
            require(DRIVER(cuMemMap)(base + i * piece, piece, 0, handles[i], 0), __LINE__);
            require(DRIVER(cuMemSetAccess)(base + i * piece, piece, &access, 1), __LINE__);
        }
        fill<<<BLOCKS(count)>>>(values, count, 1.0f + round);
        CHECK(cudaMemcpy(host, values, 2 * piece, cudaMemcpyDeviceToHost));
        right += count_equal(host, count, 1.0f + round) == count;
        CHECK(cudaMemset(values, 0, 2 * piece));
        CHECK(cudaDeviceSynchronize());
        for (int i = 0; i < 2; i++) {
            require(DRIVER(cuMemUnmap)(base + i * piece, piece), __LINE__);
            require(DRIVER(cuMemRelease)(handles[i]), __LINE__);
        }
    }
    require(DRIVER(cuMemAddressFree)(base, 4 * piece), __LINE__);
    delete[] host;
    printf("rounds right: %d of 3\n", right);
    return right == 3 ? 0 : 1;
}
