/* file.c - opens and closes a model, one file or all parts of a split one, and gives access to what
 * was read. */
#include "gguf/gguf_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void shard_release(struct gguf_shard *shard)
{
    free(shard->entries);
    free(shard->tensors);
    mapfile_release(&shard->map);
    free(shard->path);
}

void gguf_close(struct gguf_file *file)
{
    if (!file)
        return;
    for (uint32_t i = 0; file->shards && i < file->shard_count; i++)
        shard_release(&file->shards[i]);
    free(file->shards);
    free(file->entries_by_key);
    free(file->tensors);
    free(file->tensors_by_name);
    free(file);
}

static enum status create(uint32_t shard_count, struct gguf_file **ret_file, struct error *err)
{
    struct gguf_file *file = calloc(1, sizeof(*file));
    if (file)
        file->shards = calloc(shard_count, sizeof(*file->shards));
    if (!file || !file->shards) {
        free(file);
        return error_set(err, STATUS_NO_MEMORY, "no memory to open a GGUF file");
    }
    file->shard_count = shard_count;
    *ret_file = file;
    return STATUS_OK;
}

/* Parts that stay open for gguf_tensor_read. Further parts are read through the mapping, because a
 * process may have only a few files open. */
#define OPEN_LIMIT 128u

/* Takes ownership of path. */
static enum status open_shard(struct gguf_shard *shard, uint32_t index, char *take_path,
                              struct error *err)
{
    shard->path = take_path;
    if (!take_path)
        return error_set(err, STATUS_NO_MEMORY, "no memory to open a GGUF file");
    TRY(index < OPEN_LIMIT ? mapfile_open_kept(&shard->map, take_path, err)
                           : mapfile_open(&shard->map, take_path, err));
    mapfile_watch(&shard->map);
    shard->data = shard->map.data;
    shard->size = shard->map.size;
    return gguf_read_shard(shard, err);
}

/* Runs after a part is read and before the next. All parts together may cost no more memory than
 * one file may: tensors are counted as they come, and the metadata of later parts, which is about
 * the split, is checked and dropped. */
static enum status settle_shard(struct gguf_file *file, uint32_t index,
                                const struct gguf_split_name *name, struct error *err)
{
    struct gguf_shard *shard = &file->shards[index];
    const struct gguf_entry **by_key;
    TRY(gguf_split_check_part(shard, name, index, err));
    TRY(gguf_index_entries(shard, &by_key, err));
    if (index == 0) {
        file->entries_by_key = by_key;
    } else {
        free(by_key);
        free(shard->entries);
        shard->entries = NULL;
    }
    file->tensor_count += shard->tensor_count;
    if (file->tensor_count > GGUF_TENSOR_LIMIT)
        return error_set(err, STATUS_BAD_FILE,
                         "%s: byte 8: tensor_count: expected at most %u over all parts, found %zu",
                         shard->path, GGUF_TENSOR_LIMIT, file->tensor_count);
    return STATUS_OK;
}

/* Makes one list of the tensors of all shards. */
static enum status merge_tensors(struct gguf_file *file, struct error *err)
{
    file->tensors = malloc((file->tensor_count + 1) * sizeof(*file->tensors));
    if (!file->tensors)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory for %zu tensor entries",
                         file->shards[0].path, file->tensor_count);
    struct gguf_tensor *tensor = file->tensors;
    for (uint32_t i = 0; i < file->shard_count; i++) {
        struct gguf_shard *shard = &file->shards[i];
        for (uint64_t j = 0; j < shard->tensor_count; j++, tensor++) {
            *tensor = shard->tensors[j];
            tensor->shard_index = i;
        }
        free(shard->tensors);
        shard->tensors = NULL;
    }
    return STATUS_OK;
}

/* Runs after all shards are complete. */
static enum status complete(struct gguf_file *file, struct error *err)
{
    TRY(gguf_split_check_total(file, err));
    TRY(merge_tensors(file, err));
    return gguf_index_tensors(file, err);
}

static enum status open_all(struct gguf_file *file, const char *path,
                            const struct gguf_split_name *name, struct error *err)
{
    for (uint32_t i = 0; i < file->shard_count; i++) {
        char *shard_path = name ? gguf_split_path(path, name, i) : strdup(path);
        enum status status = open_shard(&file->shards[i], i, shard_path, err);
        if (!status)
            status = settle_shard(file, i, name, err);
        if (status && name)
            error_wrap(err, "part %" PRIu32 " of %" PRIu32, i + 1, name->count);
        TRY(status);
    }
    return complete(file, err);
}

enum status gguf_open(const char *path, struct gguf_file **ret_file, struct error *err)
{
    struct gguf_split_name name;
    bool split = gguf_split_parse(path, &name);
    if (split && name.count > GGUF_SHARD_LIMIT)
        return error_set(err, STATUS_LIMIT, "%s: expected at most %u parts, found %" PRIu32, path,
                         GGUF_SHARD_LIMIT, name.count);
    struct gguf_file *file;
    TRY(create(split ? name.count : 1, &file, err));
    enum status status = open_all(file, path, split ? &name : NULL, err);
    /* If the file was cut meanwhile, that is the error, whatever else was found wrong. */
    struct error cut;
    if (gguf_check_whole(file, &cut)) {
        *err = cut;
        status = cut.status;
    }
    if (status)
        gguf_close(file);
    else
        *ret_file = file;
    return status;
}

enum status gguf_open_memory(const void *bytes, uint64_t size, const char *name,
                             struct gguf_file **ret_file, struct error *err)
{
    struct gguf_file *file;
    TRY(create(1, &file, err));
    struct gguf_shard *shard = &file->shards[0];
    enum status status;
    shard->path = strdup(name);
    shard->data = bytes;
    shard->size = size;
    if (!shard->path)
        status = error_set(err, STATUS_NO_MEMORY, "no memory to open a GGUF file");
    else
        status = gguf_read_shard(shard, err);
    if (!status)
        status = settle_shard(file, 0, NULL, err);
    if (!status)
        status = complete(file, err);
    if (status)
        gguf_close(file);
    else
        *ret_file = file;
    return status;
}

enum status gguf_check_whole(const struct gguf_file *file, struct error *err)
{
    for (uint32_t i = 0; i < file->shard_count; i++)
        if (file->shards[i].path)
            TRY(mapfile_check(&file->shards[i].map, file->shards[i].path, err));
    return STATUS_OK;
}

/* ---- What was read -------------------------------------------------------------------------- */

const char *gguf_path(const struct gguf_file *file)
{
    return file->shards[0].path;
}

uint32_t gguf_version(const struct gguf_file *file)
{
    return file->shards[0].version;
}

uint64_t gguf_alignment(const struct gguf_file *file)
{
    return file->shards[0].alignment;
}

uint64_t gguf_size_bytes(const struct gguf_file *file)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < file->shard_count; i++)
        total += file->shards[i].size;
    return total;
}

uint32_t gguf_shard_count(const struct gguf_file *file)
{
    return file->shard_count;
}

bool gguf_is_same_file(const struct gguf_file *file, const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return false;
    for (uint32_t i = 0; i < file->shard_count; i++) {
        const struct mapfile *map = &file->shards[i].map;
        if (map->data && map->device == (uint64_t)info.st_dev &&
            map->inode == (uint64_t)info.st_ino)
            return true;
    }
    return false;
}

size_t gguf_entry_count(const struct gguf_file *file)
{
    return (size_t)file->shards[0].entry_count;
}

const struct gguf_entry *gguf_entry_at(const struct gguf_file *file, size_t index)
{
    ASSERT(index < gguf_entry_count(file));
    return &file->shards[0].entries[index];
}

const struct gguf_value *gguf_find(const struct gguf_file *file, const char *key)
{
    return gguf_index_find(file->entries_by_key, file->shards[0].entry_count, text_view_of(key));
}

size_t gguf_tensor_count(const struct gguf_file *file)
{
    return file->tensor_count;
}

const struct gguf_tensor *gguf_tensor_at(const struct gguf_file *file, size_t index)
{
    ASSERT(index < file->tensor_count);
    return &file->tensors[index];
}

void gguf_tensor_ahead(const struct gguf_file *file, const struct gguf_tensor *tensor)
{
    mapfile_ahead(&file->shards[tensor->shard_index].map, tensor->offset_bytes, tensor->bytes);
}

enum status gguf_tensor_read(const struct gguf_file *file, const struct gguf_tensor *tensor,
                             uint64_t at, void *target, uint64_t bytes, struct error *err)
{
    const struct gguf_shard *shard = &file->shards[tensor->shard_index];
    ASSERT(at <= tensor->bytes && bytes <= tensor->bytes - at);
    if (!shard->map.data) { /* the file is in memory */
        memcpy(target, tensor->data + at, (size_t)bytes);
        return STATUS_OK;
    }
    enum status status = mapfile_read(&shard->map, tensor->offset_bytes + at, target, bytes, err);
    return status ? error_wrap(err, "%s", shard->path) : STATUS_OK;
}

void gguf_tensor_drop(const struct gguf_file *file, const struct gguf_tensor *tensor)
{
    mapfile_drop(&file->shards[tensor->shard_index].map, tensor->offset_bytes, tensor->bytes);
}
