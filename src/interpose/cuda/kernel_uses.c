/* kernel_uses.c - what the PTX of the modules that a program loads shows of its kernels: by module
 * and name, and by kernel once the program has got it.
 *
 * Texts are read when they are given to the driver, for at most TEXT_BYTES in all: at 50 MB/s, what
 * one core reads, a third of a second of a program's whole time. What is later is not looked at,
 * and any pointer of its kernels may be written through, as without PTX. */
#define _GNU_SOURCE /* process_vm_readv */
#include "interpose/cuda/cuda.h"
#include "interpose/cuda/images.h"
#include "interpose/cuda/ptx.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define TEXT_BYTES (UINT64_C(16) << 20)
#define ROW_LIMIT 8192u
#define PLACES 16384u /* a power of two */

/* Never freed: a launch of another thread may be reading it. */
struct uses_row {
    uint64_t module, name_hash;
    struct kernel_uses *uses; /* NULL: not known after all */
};

static struct {
    pthread_mutex_t lock; /* guards all below */
    uint64_t text_bytes;  /* read so far */
    struct uses_row rows[ROW_LIMIT];
    size_t row_count;
    struct {
        uint64_t kernel;
        const struct kernel_uses *uses;
    } kernels[PLACES];
    size_t kernel_count;
} known = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint64_t hash_of(const char *name, size_t bytes)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ (uint8_t)name[i]) * UINT64_C(0x100000001B3);
    return hash;
}

static struct uses_row *find_row(uint64_t module, uint64_t name_hash)
{
    for (size_t i = known.row_count; i > 0; i--)
        if (known.rows[i - 1].module == module && known.rows[i - 1].name_hash == name_hash)
            return &known.rows[i - 1];
    return NULL;
}

/* ---- Modules -------------------------------------------------------------------------------- */

/* With several texts, for several chips, what any of them does may be done. */
static void join(struct uses_row *row, const struct kernel_uses *uses)
{
    struct kernel_uses *sum = row->uses;
    bool alike = sum && sum->parameter_count == uses->parameter_count &&
                 memcmp(sum->sizes, uses->sizes, sizeof(sum->sizes)) == 0;
    if (!alike) {
        row->uses = NULL;
        return;
    }
    for (size_t i = 0; i < KERNEL_WORD_LIMIT; i++)
        sum->uses[i] |= uses->uses[i];
}

static void add_kernel(void *context, const char *name, size_t name_bytes,
                       const struct kernel_uses *uses)
{
    const uint64_t *module = context;
    uint64_t hash = hash_of(name, name_bytes);
    struct uses_row *row = find_row(*module, hash);
    if (row) {
        join(row, uses);
        return;
    }
    struct kernel_uses *kept = known.row_count < ROW_LIMIT ? malloc(sizeof(*kept)) : NULL;
    if (!kept)
        return;
    *kept = *uses;
    known.rows[known.row_count++] = (struct uses_row){ *module, hash, kept };
}

static void add_text(void *context, const char *text, size_t bytes)
{
    known.text_bytes += bytes;
    if (known.text_bytes <= TEXT_BYTES)
        ptx_read(text, bytes, add_kernel, context);
}

static bool read_own(void *context, uint64_t address, void *to, size_t bytes)
{
    (void)context;
    struct iovec here = { to, bytes }, there = { (void *)(uintptr_t)address, bytes };
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

void cuda_uses_loaded(uint64_t module, const void *image)
{
    static const struct image_reader reader = { read_own, NULL };
    pthread_mutex_lock(&known.lock);
    if (module && known.text_bytes < TEXT_BYTES && known.row_count < ROW_LIMIT)
        image_read(&reader, (uint64_t)(uintptr_t)image, add_text, &module);
    pthread_mutex_unlock(&known.lock);
}

/* ---- Kernels -------------------------------------------------------------------------------- */

static size_t place_of(uint64_t kernel)
{
    size_t at = (size_t)(kernel * UINT64_C(0x9E3779B97F4A7C15) >> 50) & (PLACES - 1);
    while (known.kernels[at].kernel && known.kernels[at].kernel != kernel)
        at = (at + 1) & (PLACES - 1);
    return at;
}

static void bind(uint64_t kernel, const struct kernel_uses *uses)
{
    size_t at = place_of(kernel);
    if (!known.kernels[at].kernel && (!uses || known.kernel_count == PLACES / 2))
        return;
    known.kernel_count += !known.kernels[at].kernel;
    known.kernels[at].kernel = kernel;
    known.kernels[at].uses = uses;
}

void cuda_uses_named(uint64_t kernel, uint64_t module, const char *name)
{
    if (!kernel || !name)
        return;
    pthread_mutex_lock(&known.lock);
    const struct uses_row *row = find_row(module, hash_of(name, strlen(name)));
    bind(kernel, row ? row->uses : NULL);
    pthread_mutex_unlock(&known.lock);
}

void cuda_uses_same(uint64_t kernel, uint64_t as)
{
    pthread_mutex_lock(&known.lock);
    if (kernel)
        bind(kernel, known.kernels[place_of(as)].uses);
    pthread_mutex_unlock(&known.lock);
}

const struct kernel_uses *cuda_uses_of(uint64_t kernel)
{
    pthread_mutex_lock(&known.lock);
    const struct kernel_uses *uses = kernel ? known.kernels[place_of(kernel)].uses : NULL;
    pthread_mutex_unlock(&known.lock);
    return uses;
}

void cuda_uses_forget(void)
{
    pthread_mutex_lock(&known.lock);
    memset(known.kernels, 0, sizeof(known.kernels));
    known.kernel_count = known.row_count = 0;
    pthread_mutex_unlock(&known.lock);
}
