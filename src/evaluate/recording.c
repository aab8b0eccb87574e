/* recording.c - a file of logits: a header of 64 bytes, then a row of float32 for each scored
 * token, chunk by chunk, little endian.
 *
 * Bytes of the header: 0 "GRETALOG"; 8 u32 version (1); 12 u32 context; 16 u32 vocabulary; 20 u32
 * zero; 24 u64 chunks; 32 u64 XXH3 of the tokens as u32; 40 zeros. */
#include "evaluate/evaluate_impl.h"

#include "base/bytes.h"
#include "base/mapfile.h"
#include "base/size.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "GRETALOG"
#define VERSION 1u
#define HEAD_BYTES 64u

struct evaluate_recording {
    struct mapfile map;
    struct evaluate_recording_info info;
};

static bool recording_bytes(const struct evaluate_recording_info *info, uint64_t *ret)
{
    uint64_t rows, bytes;
    return size_mul(info->chunk_count, evaluate_scored_per_chunk(info->context), &rows) &&
           size_mul(rows, (uint64_t)info->vocab_size * sizeof(float), &bytes) &&
           size_add(bytes, HEAD_BYTES, ret);
}

/* ---- Reading -------------------------------------------------------------------------------- */

static enum status read_head(struct bytes *in, struct evaluate_recording_info *info,
                             struct error *err)
{
    const uint8_t *magic;
    uint32_t version, zero;
    uint64_t expected;
    TRY(bytes_take(in, "magic", sizeof(MAGIC) - 1, &magic, err));
    if (memcmp(magic, MAGIC, sizeof(MAGIC) - 1) != 0)
        return bytes_fail(in, 0, "magic", err, "expected %s, a recording of greta eval", MAGIC);
    TRY(bytes_u32(in, "version", &version, err));
    if (version != VERSION)
        return bytes_fail(in, 8, "version", err, "expected %u, found %" PRIu32, VERSION, version);
    TRY(bytes_u32(in, "context", &info->context, err));
    TRY(bytes_u32(in, "vocabulary", &info->vocab_size, err));
    TRY(bytes_u32(in, "zero", &zero, err));
    TRY(bytes_u64(in, "chunks", &info->chunk_count, err));
    TRY(bytes_u64(in, "hash", &info->ids_hash, err));
    if (info->context < EVALUATE_CONTEXT_LEAST || info->context > INT32_MAX)
        return bytes_fail(in, 12, "context", err, "expected %u to %d, found %" PRIu32,
                          EVALUATE_CONTEXT_LEAST, INT32_MAX, info->context);
    if (info->vocab_size == 0 || info->chunk_count == 0)
        return bytes_fail(in, 16, "vocabulary and chunks", err,
                          "expected more than 0, found %" PRIu32 " and %" PRIu64, info->vocab_size,
                          info->chunk_count);
    if (!recording_bytes(info, &expected) || expected != in->size)
        return bytes_fail(in, 24, "chunks", err,
                          "expected a file that holds %" PRIu64 " chunks, found %" PRIu64
                          " bytes; was it copied whole?",
                          info->chunk_count, in->size);
    return STATUS_OK;
}

enum status evaluate_recording_open(const char *path, struct evaluate_recording **ret_recording,
                                    struct error *err)
{
    struct bytes in;
    struct evaluate_recording *recording = calloc(1, sizeof(*recording));
    *ret_recording = NULL;
    if (!recording)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a recording");
    enum status status = mapfile_open(&recording->map, path, err);
    if (!status) {
        bytes_init(&in, recording->map.data, recording->map.size, path);
        status = read_head(&in, &recording->info, err);
    }
    if (status)
        evaluate_recording_close(recording);
    else
        *ret_recording = recording;
    return status;
}

void evaluate_recording_close(struct evaluate_recording *recording)
{
    if (!recording)
        return;
    mapfile_release(&recording->map);
    free(recording);
}

const struct evaluate_recording_info *
evaluate_recording_info(const struct evaluate_recording *recording)
{
    return &recording->info;
}

const float *evaluate_recording_row(const struct evaluate_recording *recording, uint64_t row)
{
    uint64_t row_bytes = (uint64_t)recording->info.vocab_size * sizeof(float);
    /* The mapping begins at a page, and the header is a multiple of 4 bytes. */
    return (const float *)(const void *)(recording->map.data + HEAD_BYTES + row * row_bytes);
}

/* ---- Writing -------------------------------------------------------------------------------- */

enum status evaluate_recording_begin(struct outfile *out, const char *path, bool replace,
                                     const struct evaluate_recording_info *info, struct error *err)
{
    uint64_t expected;
    const uint32_t numbers[] = { VERSION, info->context, info->vocab_size, 0 };
    uint8_t head[HEAD_BYTES] = { 0 };
    if (!recording_bytes(info, &expected))
        return error_set(err, STATUS_LIMIT, "%s: a recording would be too large", path);
    memcpy(head, MAGIC, sizeof(MAGIC) - 1);
    memcpy(head + 8, numbers, sizeof(numbers));
    memcpy(head + 24, &info->chunk_count, sizeof(info->chunk_count));
    memcpy(head + 32, &info->ids_hash, sizeof(info->ids_hash));
    TRY(outfile_open(out, path, replace, expected, err));
    return outfile_write(out, head, sizeof(head), err);
}
