/* index.c - reads the index of a folder of taps. The index may come from anywhere, so it may name
 * only plain files in that folder. */
#include "tap/tap.h"

#include "base/mapfile.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INDEX_LIMIT_BYTES ((uint64_t)64 << 20)
#define ENTRY_LIMIT 200000u

/* No separators, no control characters, not hidden. */
static bool is_plain_name(const char *name, size_t length, size_t limit)
{
    if (length == 0 || length >= limit || name[0] == '.')
        return false;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] <= ' ' || name[i] == '/' || name[i] == '\\' ||
            (unsigned char)name[i] >= 0x7F)
            return false;
    return true;
}

static enum status wrong(const struct tap_index *index, size_t entry, const char *what,
                         struct error *err)
{
    return error_set(err, STATUS_BAD_FILE, "%s/index.json: tap %zu: expected %s", index->folder,
                     entry, what);
}

/* A whole number of 32 bits; absent: -1 where that is allowed. */
static bool read_number(const json_t *object, const char *key, bool optional, int32_t *ret)
{
    const json_t *value = json_object_get(object, key);
    if (!value && optional) {
        *ret = -1;
        return true;
    }
    if (!json_is_integer(value) || json_integer_value(value) < -1 ||
        json_integer_value(value) > INT32_MAX)
        return false;
    *ret = (int32_t)json_integer_value(value);
    return true;
}

static enum status read_entry(struct tap_index *index, size_t number, const json_t *object,
                              struct error *err)
{
    struct tap_entry *entry = &index->entries[number];
    const json_t *file = json_object_get(object, "file"),
                 *tensor = json_object_get(object, "tensor");
    if (!json_is_string(file) ||
        !is_plain_name(json_string_value(file), json_string_length(file), sizeof(entry->file)))
        return wrong(index, number, "\"file\": a plain file name", err);
    if (!json_is_string(tensor) ||
        !is_plain_name(json_string_value(tensor), json_string_length(tensor),
                       sizeof(entry->place.tensor)))
        return wrong(index, number, "\"tensor\": a short plain name", err);
    memcpy(entry->file, json_string_value(file), json_string_length(file));
    memcpy(entry->place.tensor, json_string_value(tensor), json_string_length(tensor));
    if (!read_number(object, "layer", false, &entry->place.layer) ||
        !read_number(object, "step", false, &entry->place.step) ||
        !read_number(object, "sequence", true, &entry->place.sequence) ||
        !read_number(object, "head", true, &entry->place.head))
        return wrong(index, number, "\"layer\", \"step\", \"sequence\", \"head\": numbers from -1",
                     err);
    return STATUS_OK;
}

static enum status read_entries(struct tap_index *index, const json_t *root, struct error *err)
{
    const json_t *format = json_object_get(root, "format"), *taps = json_object_get(root, "taps");
    const json_t *version = json_object_get(root, "version");
    if (!json_is_string(format) || strcmp(json_string_value(format), "greta-taps") != 0 ||
        !json_is_array(taps))
        return error_set(err, STATUS_BAD_FILE,
                         "%s/index.json: expected \"format\": \"greta-taps\" and a list \"taps\", "
                         "found something else",
                         index->folder);
    if (!json_is_integer(version) || json_integer_value(version) != 1)
        return error_set(err, STATUS_UNSUPPORTED, "%s/index.json: expected version 1",
                         index->folder);
    index->count = json_array_size(taps);
    if (index->count > ENTRY_LIMIT)
        return error_set(err, STATUS_LIMIT, "%s/index.json: expected at most %u taps, found %zu",
                         index->folder, ENTRY_LIMIT, index->count);
    index->truncated = json_is_true(json_object_get(root, "truncated"));
    index->entries = calloc(index->count ? index->count : 1, sizeof(*index->entries));
    if (!index->entries)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the index of taps");
    for (size_t i = 0; i < index->count; i++)
        TRY(read_entry(index, i, json_array_get(taps, i), err));
    return STATUS_OK;
}

static enum status read_file(struct tap_index *index, const char *path, struct error *err)
{
    struct mapfile map;
    json_error_t problem;
    TRY(mapfile_open(&map, path, err));
    enum status status = STATUS_OK;
    json_t *root = NULL;
    if (map.size > INDEX_LIMIT_BYTES)
        status = error_set(err, STATUS_LIMIT,
                           "%s: expected at most %" PRIu64 " bytes, found %" PRIu64, path,
                           INDEX_LIMIT_BYTES, map.size);
    else
        root = json_loadb(map.data ? (const char *)map.data : "", (size_t)map.size,
                          JSON_REJECT_DUPLICATES, &problem);
    mapfile_release(&map);
    if (!status && !root)
        status = error_set(err, STATUS_BAD_FILE, "%s: line %d: expected JSON: %s", path,
                           problem.line, problem.text);
    if (!status)
        status = read_entries(index, root, err);
    json_decref(root);
    return status;
}

enum status tap_index_read(struct tap_index *index, const char *folder, struct error *err)
{
    char path[4096];
    *index = (struct tap_index){ .folder = strdup(folder) };
    if (!index->folder)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the index of taps");
    snprintf(path, sizeof(path), "%s/index.json", folder);
    enum status status = read_file(index, path, err);
    if (status)
        tap_index_release(index);
    return status;
}

void tap_index_release(struct tap_index *index)
{
    free(index->folder);
    free(index->entries);
    *index = (struct tap_index){ 0 };
}
