/* A result in pinned memory is written to a file before its copy has arrived: the operating system
 * reads it, not an instruction of the program.
 *
 * On hardware: no error; the file has the old values.
 * To be named: the write in save, and the copy in download. */
#include "foreign.h"

#include <unistd.h>

enum { COUNT = 1 << 16 };

CULPRIT void download(float *host, const float *device, cudaStream_t stream)
{
    CHECK(cudaMemcpyAsync(host, device, COUNT * sizeof(float), cudaMemcpyDeviceToHost, stream));
}

CULPRIT long save(int file, const float *values)
{
    long written = write(file, values, COUNT * sizeof(float));
    return written < 0 ? -1 : written; /* so that the call is not the last thing done */
}

int main()
{
    load_kernels();
    cudaStream_t stream;
    FILE *file = tmpfile();
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    float *host, *device, saved = -1.0f;
    CHECK(cudaMallocHost(&host, COUNT * sizeof(float)));
    CHECK(cudaMalloc(&device, COUNT * sizeof(float)));
    set_all(host, COUNT, 0.0f);
    fill<<<BLOCKS(COUNT), 0, stream>>>(device, COUNT, 7.0f);
    delay<<<1, 1, 0, stream>>>(DELAY_MS);
    download(host, device, stream);
    long written = save(fileno(file), host);
    CHECK(cudaStreamSynchronize(stream));
    if (pread(fileno(file), &saved, sizeof(saved), 0) == sizeof(saved))
        printf("written %ld bytes, the first is %.1f\n", written, saved);
    fclose(file);
    CHECK(cudaFree(device));
    CHECK(cudaFreeHost(host));
    CHECK(cudaStreamDestroy(stream));
    return 0;
}
