/* validate.c - checks across the entries of a file: bounds, overlaps, duplicates; and the sorted
 * indexes that find duplicates and serve look-ups.
 *
 * The indexes are sorted instead of hashed, so that no file is slow to check. */
#include "gguf/gguf_impl.h"

#include "base/size.h"

#include <inttypes.h>
#include <stdlib.h>

/* Errors about a tensor name file, byte, tensor and field, as the reader's errors do. */
#define tensor_fail(shard, tensor, err, ...)                                                       \
    (describe_tensor((shard), (tensor), (err), error_set((err), STATUS_BAD_FILE, __VA_ARGS__)))

static enum status describe_tensor(const struct gguf_shard *shard, const struct gguf_tensor *tensor,
                                   struct error *err, enum status status)
{
    char shown[GGUF_SHOWN_NAME_BYTES];
    /* The offset is the last field of an entry, so its place follows from that of the name. */
    uint64_t entry_end = (uint64_t)((const uint8_t *)tensor->name.bytes - shard->data) +
                         tensor->name.length + 4 + 8 * (uint64_t)tensor->shape.rank + 4;
    error_wrap(err, "%s: byte %" PRIu64 ": tensor %" PRIu64 " (%s): offset", shard->path, entry_end,
               (uint64_t)(tensor - shard->tensors),
               text_printable(tensor->name, shown, sizeof(shown)));
    return status;
}

static enum status check_bounds(const struct gguf_shard *shard, const struct gguf_tensor *tensor,
                                struct error *err)
{
    uint64_t data_bytes = shard->size > shard->data_start ? shard->size - shard->data_start : 0;
    if (tensor->offset_bytes % shard->alignment)
        return tensor_fail(shard, tensor, err,
                           "expected a multiple of the alignment %" PRIu64 ", found %" PRIu64,
                           shard->alignment, tensor->offset_bytes);
    if (!size_range_inside(tensor->offset_bytes, tensor->bytes, data_bytes))
        return tensor_fail(shard, tensor, err,
                           "expected offset + size within the %" PRIu64
                           " bytes of data in the file, found %" PRIu64 " + %" PRIu64
                           "; the file may be cut short",
                           data_bytes, tensor->offset_bytes, tensor->bytes);
    return STATUS_OK;
}

static int by_offset(const void *left, const void *right)
{
    const struct gguf_tensor *a = *(const struct gguf_tensor *const *)left;
    const struct gguf_tensor *b = *(const struct gguf_tensor *const *)right;
    if (a->offset_bytes != b->offset_bytes)
        return a->offset_bytes < b->offset_bytes ? -1 : 1;
    /* An empty tensor may share its offset with the next one. */
    return a->bytes < b->bytes ? -1 : a->bytes > b->bytes;
}

static enum status check_overlaps(const struct gguf_shard *shard, struct error *err)
{
    size_t count = (size_t)shard->tensor_count;
    const struct gguf_tensor **sorted = malloc((count + 1) * sizeof(*sorted));
    if (!sorted)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory to check its tensors", shard->path);
    for (size_t i = 0; i < count; i++)
        sorted[i] = &shard->tensors[i];
    qsort(sorted, count, sizeof(*sorted), by_offset);
    enum status status = STATUS_OK;
    for (size_t i = 1; i < count && !status; i++) {
        const struct gguf_tensor *before = sorted[i - 1];
        char shown[GGUF_SHOWN_NAME_BYTES];
        if (sorted[i]->offset_bytes < before->offset_bytes + before->bytes)
            status = tensor_fail(shard, sorted[i], err,
                                 "expected at least %" PRIu64
                                 ", the end of tensor %s, found %" PRIu64 ": they overlap",
                                 before->offset_bytes + before->bytes,
                                 text_printable(before->name, shown, sizeof(shown)),
                                 sorted[i]->offset_bytes);
    }
    free(sorted);
    return status;
}

enum status gguf_validate_data(const struct gguf_shard *shard, struct error *err)
{
    for (uint64_t i = 0; i < shard->tensor_count; i++)
        TRY(check_bounds(shard, &shard->tensors[i], err));
    TRY(check_overlaps(shard, err));
    for (uint64_t i = 0; i < shard->tensor_count; i++) {
        struct gguf_tensor *tensor = &shard->tensors[i];
        tensor->offset_bytes += shard->data_start;
        tensor->data = shard->data + tensor->offset_bytes;
    }
    return STATUS_OK;
}

/* ---- Indexes -------------------------------------------------------------------------------- */

static int by_key(const void *left, const void *right)
{
    const struct gguf_entry *a = *(const struct gguf_entry *const *)left;
    const struct gguf_entry *b = *(const struct gguf_entry *const *)right;
    return text_view_compare(a->key, b->key);
}

enum status gguf_index_entries(struct gguf_shard *shard, const struct gguf_entry ***ret_index,
                               struct error *err)
{
    size_t count = (size_t)shard->entry_count;
    const struct gguf_entry **index = malloc((count + 1) * sizeof(*index));
    if (!index)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory for its index", shard->path);
    for (size_t i = 0; i < count; i++)
        index[i] = &shard->entries[i];
    qsort(index, count, sizeof(*index), by_key);
    for (size_t i = 1; i < count; i++) {
        if (by_key(&index[i - 1], &index[i]) != 0)
            continue;
        char shown[GGUF_SHOWN_NAME_BYTES];
        uint64_t first = (uint64_t)(index[i - 1] - shard->entries);
        uint64_t second = (uint64_t)(index[i] - shard->entries);
        uint64_t later = max_u64(first, second);
        uint64_t offset = (uint64_t)((const uint8_t *)shard->entries[later].key.bytes -
                                     shard->data);
        enum status status = error_set(
            err, STATUS_BAD_FILE,
            "%s: byte %" PRIu64 ": metadata entry %" PRIu64
            ": key: expected a new key, found '%s' again (first in entry %" PRIu64 ")",
            shard->path, offset, later, text_printable(index[i]->key, shown, sizeof(shown)),
            min_u64(first, second));
        free(index);
        return status;
    }
    *ret_index = index;
    return STATUS_OK;
}

const struct gguf_value *gguf_index_find(const struct gguf_entry *const *index, uint64_t count,
                                         struct text_view key)
{
    uint64_t low = 0, high = count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        int order = text_view_compare(index[middle]->key, key);
        if (order == 0)
            return &index[middle]->value;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static int by_name(const void *left, const void *right)
{
    const struct gguf_tensor *a = *(const struct gguf_tensor *const *)left;
    const struct gguf_tensor *b = *(const struct gguf_tensor *const *)right;
    return text_view_compare(a->name, b->name);
}

enum status gguf_index_tensors(struct gguf_file *file, struct error *err)
{
    size_t count = file->tensor_count;
    file->tensors_by_name = malloc((count + 1) * sizeof(*file->tensors_by_name));
    if (!file->tensors_by_name)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory for its index",
                         file->shards[0].path);
    for (size_t i = 0; i < count; i++)
        file->tensors_by_name[i] = &file->tensors[i];
    qsort(file->tensors_by_name, count, sizeof(*file->tensors_by_name), by_name);
    for (size_t i = 1; i < count; i++) {
        const struct gguf_tensor *a = file->tensors_by_name[i - 1];
        const struct gguf_tensor *b = file->tensors_by_name[i];
        if (!text_view_equal(a->name, b->name))
            continue;
        const struct gguf_tensor *first = a < b ? a : b, *later = a < b ? b : a;
        const struct gguf_shard *shard = &file->shards[later->shard_index];
        char shown[GGUF_SHOWN_NAME_BYTES];
        return error_set(err, STATUS_BAD_FILE,
                         "%s: byte %" PRIu64
                         ": tensor name: expected a new name, found '%s' again (first in %s)",
                         shard->path, (uint64_t)((const uint8_t *)later->name.bytes - shard->data),
                         text_printable(later->name, shown, sizeof(shown)),
                         file->shards[first->shard_index].path);
    }
    return STATUS_OK;
}

const struct gguf_tensor *gguf_tensor_find(const struct gguf_file *file, const char *name)
{
    struct text_view wanted = text_view_of(name);
    size_t low = 0, high = file->tensor_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = text_view_compare(file->tensors_by_name[middle]->name, wanted);
        if (order == 0)
            return file->tensors_by_name[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
