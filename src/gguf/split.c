/* split.c - models that are cut into several files: their names, and whether the parts belong
 * together. */
#include "gguf/gguf_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "-00001-of-00005.gguf" */
#define SUFFIX_BYTES 20

static bool read_digits(const char *text, uint32_t *ret)
{
    uint32_t value = 0;
    for (size_t i = 0; i < 5; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        value = value * 10 + (uint32_t)(text[i] - '0');
    }
    *ret = value;
    return true;
}

bool gguf_split_parse(const char *path, struct gguf_split_name *ret)
{
    size_t length = strlen(path);
    if (length < SUFFIX_BYTES)
        return false;
    const char *suffix = path + length - SUFFIX_BYTES;
    uint32_t number, count;
    if (suffix[0] != '-' || !read_digits(suffix + 1, &number) ||
        memcmp(suffix + 6, "-of-", 4) != 0 || !read_digits(suffix + 10, &count) ||
        strcmp(suffix + 15, ".gguf") != 0)
        return false;
    if (number < 1 || number > count)
        return false;
    *ret = (struct gguf_split_name){ length - SUFFIX_BYTES, number - 1, count };
    return true;
}

char *gguf_split_path(const char *path, const struct gguf_split_name *name, uint32_t index)
{
    size_t room = name->prefix_length + SUFFIX_BYTES + 1;
    char *result = malloc(room);
    if (result)
        snprintf(result, room, "%.*s-%05" PRIu32 "-of-%05" PRIu32 ".gguf", (int)name->prefix_length,
                 path, (index + 1) % 100000, name->count % 100000);
    return result;
}

/* Reads one of the split.* numbers of a part; leaves *ret and *ret_offset alone if it is absent. */
static enum status split_number(const struct gguf_shard *shard, const char *key, uint64_t *ret,
                                uint64_t *ret_offset, struct error *err)
{
    for (uint64_t i = 0; i < shard->entry_count; i++) {
        const struct gguf_entry *entry = &shard->entries[i];
        if (!text_view_is(entry->key, key))
            continue;
        *ret_offset = entry->value.offset_bytes;
        if (entry->value.type == GGUF_ARRAY || !gguf_value_u64(&entry->value, 0, ret))
            return error_set(
                err, STATUS_BAD_FILE, "%s: byte %" PRIu64 ": %s: expected a whole number, found %s",
                shard->path, entry->value.offset_bytes, key, gguf_type_name(entry->value.type));
    }
    return STATUS_OK;
}

static enum status disagree(const struct gguf_shard *shard, uint64_t offset, const char *key,
                            uint64_t expected, uint64_t found, struct error *err)
{
    return error_set(err, STATUS_BAD_FILE,
                     "%s: byte %" PRIu64 ": %s: expected %" PRIu64 ", found %" PRIu64
                     "; the parts do not belong together",
                     shard->path, offset, key, expected, found);
}

/* A single part need not say that it is one; one of several parts must. */
static enum status expect_number(const struct gguf_shard *shard, const char *key,
                                 const struct gguf_split_name *name, uint64_t expected,
                                 struct error *err)
{
    uint64_t found = expected, offset = 0;
    TRY(split_number(shard, key, &found, &offset, err));
    if (offset == 0 && name->count > 1)
        return error_set(err, STATUS_BAD_FILE,
                         "%s: %s: expected %" PRIu64 ", found no such key; the file is not a part "
                         "of a split model",
                         shard->path, key, expected);
    return found == expected ? STATUS_OK : disagree(shard, offset, key, expected, found, err);
}

/* A file that says it is one of several parts, but has a name that does not lead to the others. */
static enum status check_single(const struct gguf_shard *shard, struct error *err)
{
    uint64_t count = 1, offset = 0;
    TRY(split_number(shard, "split.count", &count, &offset, err));
    if (count <= 1)
        return STATUS_OK;
    return error_set(err, STATUS_BAD_FILE,
                     "%s: byte %" PRIu64 ": split.count: expected 1 for a file of this name, found "
                     "%" PRIu64 "; rename the parts to NAME-00001-of-%05" PRIu64 ".gguf and so on",
                     shard->path, offset, count, count % 100000);
}

enum status gguf_split_check_part(struct gguf_shard *shard, const struct gguf_split_name *name,
                                  uint32_t index, struct error *err)
{
    if (!name)
        return check_single(shard, err);
    TRY(expect_number(shard, "split.count", name, name->count, err));
    TRY(expect_number(shard, "split.no", name, index, err));
    return split_number(shard, "split.tensors.count", &shard->split_total,
                        &shard->split_total_offset, err);
}

enum status gguf_split_check_total(const struct gguf_file *file, struct error *err)
{
    for (uint32_t i = 0; i < file->shard_count; i++) {
        const struct gguf_shard *shard = &file->shards[i];
        if (shard->split_total_offset && shard->split_total != file->tensor_count)
            return disagree(shard, shard->split_total_offset, "split.tensors.count",
                            file->tensor_count, shard->split_total, err);
    }
    return STATUS_OK;
}
