/* hash.c - XXH64 and SHA-256 of tensors, the two hashes that other GGUF tools print. */
#include "gguf/gguf_impl.h"

#include "base/parallel.h"

#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <xxhash.h>

/* Progress is reported, and a stop is noticed, after this many bytes. */
#define SLICE_BYTES ((uint64_t)16 << 20)

/* Both hashes of a stream of bytes. */
struct hasher {
    XXH64_state_t *xxh64;
    EVP_MD_CTX *sha256;
};

static bool hasher_init(struct hasher *hasher)
{
    hasher->xxh64 = XXH64_createState();
    hasher->sha256 = EVP_MD_CTX_new();
    return hasher->xxh64 && hasher->sha256 && XXH64_reset(hasher->xxh64, 0) == XXH_OK &&
           EVP_DigestInit_ex(hasher->sha256, EVP_sha256(), NULL) == 1;
}

static bool hasher_add(struct hasher *hasher, const uint8_t *bytes, uint64_t count)
{
    return XXH64_update(hasher->xxh64, bytes, (size_t)count) == XXH_OK &&
           EVP_DigestUpdate(hasher->sha256, bytes, (size_t)count) == 1;
}

static bool hasher_finish(struct hasher *hasher, struct gguf_hash *ret)
{
    ret->xxh64 = XXH64_digest(hasher->xxh64);
    return EVP_DigestFinal_ex(hasher->sha256, ret->sha256, NULL) == 1;
}

static void hasher_release(struct hasher *hasher)
{
    XXH64_freeState(hasher->xxh64);
    EVP_MD_CTX_free(hasher->sha256);
}

/* Shared by the threads; the lock guards everything below it. */
struct job {
    const struct gguf_file *file;
    const struct progress *progress;
    struct gguf_hash *hashes;
    uint64_t total_bytes;
    pthread_mutex_t lock;
    uint64_t done_bytes;
    enum status status; /* the first failure; later parts do nothing */
    struct error *err;
};

/* Adds to the bytes done; false if the work is to stop. */
static bool advance(struct job *job, uint64_t bytes)
{
    pthread_mutex_lock(&job->lock);
    job->done_bytes += bytes;
    if (!job->status)
        job->status = progress_step(job->progress, job->done_bytes, job->total_bytes, job->err);
    bool go_on = !job->status;
    pthread_mutex_unlock(&job->lock);
    return go_on;
}

static void fail(struct job *job)
{
    pthread_mutex_lock(&job->lock);
    if (!job->status)
        job->status = error_set(job->err, STATUS_NO_MEMORY, "%s: cannot hash: libcrypto refused",
                                gguf_path(job->file));
    pthread_mutex_unlock(&job->lock);
}

/* False if stopped or failed; the job has the reason. */
static bool add_tensor(struct job *job, struct hasher *hasher, const struct gguf_tensor *tensor)
{
    for (uint64_t at = 0; at < tensor->bytes; at += SLICE_BYTES) {
        uint64_t slice = tensor->bytes - at < SLICE_BYTES ? tensor->bytes - at : SLICE_BYTES;
        if (!hasher_add(hasher, tensor->data + at, slice)) {
            fail(job);
            return false;
        }
        if (!advance(job, slice))
            return false;
    }
    return true;
}

static void hash_part(void *context, uint64_t index)
{
    struct job *job = context;
    struct hasher hasher;
    bool good = hasher_init(&hasher);
    if (good && add_tensor(job, &hasher, gguf_tensor_at(job->file, (size_t)index)))
        good = hasher_finish(&hasher, &job->hashes[index]);
    if (!good)
        fail(job);
    hasher_release(&hasher);
}

enum status gguf_hash_tensors(const struct gguf_file *file, const struct progress *progress,
                              struct gguf_hash *ret_hashes, struct error *err)
{
    struct job job = { .file = file, .progress = progress, .hashes = ret_hashes, .err = err };
    for (size_t i = 0; i < gguf_tensor_count(file); i++)
        job.total_bytes += gguf_tensor_at(file, i)->bytes;
    pthread_mutex_init(&job.lock, NULL);
    parallel_run(gguf_tensor_count(file), 0, hash_part, &job);
    pthread_mutex_destroy(&job.lock);
    return job.status ? job.status : gguf_check_whole(file, err);
}
