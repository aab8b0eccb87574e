/* writer.c - a folder of taps being written: arrays as they come, the index at the end. */
#include "tap/tap.h"

#include "base/outfile.h"
#include "tensor/npy.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct tap_writer {
    char *folder;
    json_t *taps; /* an array: what the index will say */
    uint64_t bytes;
    bool truncated;
    bool made; /* the folder was made here, and is removed if nothing was written */
};

/* Opens an empty folder, and makes it if necessary: nothing of an earlier run is mixed in or
 * replaced. */
static enum status make_folder(const char *folder, bool *ret_made, struct error *err)
{
    *ret_made = mkdir(folder, 0777) == 0;
    if (*ret_made)
        return STATUS_OK;
    if (errno != EEXIST)
        return error_set_os(err, errno, "%s: cannot make the folder", folder);
    DIR *listing = opendir(folder);
    if (!listing)
        return error_set_os(err, errno, "%s: cannot read the folder", folder);
    const struct dirent *entry;
    bool empty = true;
    while (empty && (entry = readdir(listing)))
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    closedir(listing);
    if (!empty)
        return error_set(err, STATUS_EXISTS,
                         "%s: expected a new or an empty folder, found one with files in it",
                         folder);
    return STATUS_OK;
}

enum status tap_writer_create(const char *folder, struct tap_writer **ret_writer, struct error *err)
{
    if (folder[0] == '\0')
        return error_set(err, STATUS_USAGE, "expected the name of a folder, found an empty one");
    struct tap_writer *writer = calloc(1, sizeof(*writer));
    if (writer) {
        writer->folder = strdup(folder);
        writer->taps = json_array();
    }
    enum status status = writer && writer->folder && writer->taps
                             ? make_folder(folder, &writer->made, err)
                             : error_set(err, STATUS_NO_MEMORY, "no memory for taps");
    if (status)
        tap_writer_destroy(writer);
    else
        *ret_writer = writer;
    return status;
}

/* "step0.layer3.attn.q.head2.npy" */
static void name_file(const struct tap_place *place, char *name, size_t bytes)
{
    int used = snprintf(name, bytes, "step%" PRId32, place->step);
    if (place->layer >= 0)
        used += snprintf(name + used, bytes - (size_t)used, ".layer%" PRId32, place->layer);
    used += snprintf(name + used, bytes - (size_t)used, ".%s", place->tensor);
    if (place->head >= 0)
        used += snprintf(name + used, bytes - (size_t)used, ".head%" PRId32, place->head);
    if (place->sequence >= 0)
        used += snprintf(name + used, bytes - (size_t)used, ".seq%" PRId32, place->sequence);
    snprintf(name + used, bytes - (size_t)used, ".npy");
}

static json_t *describe_stats(const struct tap_stats *stats)
{
    bool any = stats->nan_count + stats->infinite_count < stats->count;
    json_t *least = any ? json_real((double)stats->least) : json_null();
    json_t *most = any ? json_real((double)stats->most) : json_null();
    json_t *mean = any ? json_real(stats->mean) : json_null();
    return json_pack("{s:o, s:o, s:o, s:I, s:I}", "min", least, "max", most, "mean", mean, "nan",
                     (json_int_t)stats->nan_count, "inf", (json_int_t)stats->infinite_count);
}

static json_t *describe(const struct tap_record *record, const char *file)
{
    const struct tap_place *place = &record->place;
    json_t *shape = json_array();
    for (uint32_t i = record->shape.rank; shape && i-- > 0;)
        json_array_append_new(shape, json_integer((json_int_t)record->shape.dims[i]));
    return json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:o, s:s, s:s, s:o}", "file", file, "tensor",
                     place->tensor, "layer", (int)place->layer, "step", (int)place->step,
                     "sequence", (int)place->sequence, "head", (int)place->head, "shape", shape,
                     "dtype", "f4", "source_dtype", dtype_name(record->source_dtype), "stats",
                     describe_stats(&record->stats));
}

enum status tap_writer_add(struct tap_writer *writer, const struct tap_record *record,
                           const float *values, struct error *err)
{
    char name[192], path[4096];
    uint64_t bytes = NPY_HEADER_BYTES + record->stats.count * sizeof(float);
    if (writer->truncated || json_array_size(writer->taps) == TAP_FILE_LIMIT ||
        bytes > TAP_BYTES_LIMIT - writer->bytes) {
        writer->truncated = true;
        return STATUS_OK;
    }
    name_file(&record->place, name, sizeof(name));
    int length = snprintf(path, sizeof(path), "%s/%s", writer->folder, name);
    if (length < 0 || (size_t)length >= sizeof(path))
        return error_set(err, STATUS_LIMIT, "%s: expected a shorter name of a folder",
                         writer->folder);
    TRY(npy_write(path, &record->shape, values, err));
    writer->bytes += bytes;
    if (json_array_append_new(writer->taps, describe(record, name)) != 0)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the index of taps");
    return STATUS_OK;
}

enum status tap_writer_finish(struct tap_writer *writer, struct error *err)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/index.json", writer->folder);
    json_t *index = json_pack("{s:s, s:i, s:b, s:O}", "format", "greta-taps", "version", 1,
                              "truncated", (int)writer->truncated, "taps", writer->taps);
    char *text = index ? json_dumps(index, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(index);
    if (!text)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the index of taps");
    struct outfile out;
    enum status status = outfile_open(&out, path, false, 0, err);
    if (!status)
        status = outfile_write(&out, text, strlen(text), err);
    if (!status)
        status = outfile_write(&out, "\n", 1, err);
    if (!status)
        status = outfile_commit(&out, err);
    outfile_release(&out);
    free(text);
    return status;
}

bool tap_writer_is_truncated(const struct tap_writer *writer)
{
    return writer->truncated;
}

size_t tap_writer_count(const struct tap_writer *writer)
{
    return json_array_size(writer->taps);
}

void tap_writer_destroy(struct tap_writer *writer)
{
    if (!writer)
        return;
    if (writer->made)
        rmdir(writer->folder); /* does nothing if there is anything in it */
    free(writer->folder);
    json_decref(writer->taps);
    free(writer);
}
