/* writer.c - GGUF files, written front to back in one pass.
 *
 * Layout: version 3, metadata, directory, then each tensor at the next multiple of the alignment in
 * the order of the directory, the last one padded too: some readers accept nothing else. The
 * directory needs all sizes, so tensors are declared before the first byte is written; their data
 * is streamed and never held. */
#include "gguf/writer.h"

#include "base/array.h"
#include "base/size.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum status gguf_writer_create(struct gguf_writer **ret_writer, struct error *err)
{
    struct gguf_writer *writer = calloc(1, sizeof(*writer));
    if (!writer)
        return error_set(err, STATUS_NO_MEMORY, "no memory to write a GGUF file");
    writer->out.descriptor = -1;
    *ret_writer = writer;
    return STATUS_OK;
}

void gguf_writer_destroy(struct gguf_writer *writer)
{
    if (!writer)
        return;
    for (size_t i = 0; i < writer->entry_count; i++) {
        text_release(&writer->entries[i].key);
        text_release(&writer->entries[i].value);
    }
    for (size_t i = 0; i < writer->tensor_count; i++)
        text_release(&writer->tensors[i].name);
    free(writer->entries);
    free(writer->tensors);
    outfile_release(&writer->out);
    free(writer);
}

/* ---- Tensors -------------------------------------------------------------------------------- */

/* A rank of 4 with trailing ones is written as the shortest equal shape, with at least one
 * dimension. */
static uint32_t written_rank(const struct shape *shape)
{
    uint32_t rank = shape->rank;
    while (rank > 1 && shape->dims[rank - 1] == 1)
        rank--;
    return rank ? rank : 1;
}

enum status gguf_writer_add_tensor(struct gguf_writer *writer, struct text_view name,
                                   enum dtype dtype, const struct shape *shape, struct error *err)
{
    ASSERT(!writer->begun);
    char shown[128];
    text_printable(name, shown, sizeof(shown));
    if (name.length == 0 || name.length > GGUF_TENSOR_NAME_LIMIT_BYTES ||
        memchr(name.bytes, '\0', name.length))
        return error_set(err, STATUS_USAGE,
                         "tensor '%s': expected a name of 1 to %u bytes without NUL, found %zu",
                         shown, GGUF_TENSOR_NAME_LIMIT_BYTES, name.length);
    struct pending_tensor tensor = { .dtype = dtype, .shape = *shape };
    uint64_t padded, end;
    char shape_words[SHAPE_TEXT_BYTES];
    if (!shape_bytes(shape, dtype, &tensor.bytes) ||
        !size_align_up(tensor.bytes, GGUF_ALIGNMENT_DEFAULT, &padded) ||
        !size_add(writer->data_bytes, padded, &end) || end > INT64_MAX)
        return error_set(
            err, STATUS_USAGE,
            "tensor '%s': expected whole blocks of %s and a size that fits a file, found "
            "shape %s",
            shown, dtype_name(dtype), shape_text(shape, shape_words));
    tensor.offset_bytes = writer->data_bytes;
    text_add_bytes(&tensor.name, name.bytes, name.length);
    struct pending_tensor *tensors = array_reserve(
        writer->tensors, writer->tensor_count, &writer->tensor_capacity, sizeof(*writer->tensors));
    if (tensors)
        writer->tensors = tensors;
    if (tensor.name.failed || !tensors) {
        text_release(&tensor.name);
        return error_set(err, STATUS_NO_MEMORY, "no memory to write a GGUF file");
    }
    writer->tensors[writer->tensor_count++] = tensor;
    writer->data_bytes = end;
    return STATUS_OK;
}

static int by_tensor_name(const void *left, const void *right)
{
    const struct text *a = &(*(const struct pending_tensor *const *)left)->name;
    const struct text *b = &(*(const struct pending_tensor *const *)right)->name;
    return text_view_compare((struct text_view){ text_get(a), a->length },
                             (struct text_view){ text_get(b), b->length });
}

static enum status refuse_duplicate_names(const struct gguf_writer *writer, struct error *err)
{
    const struct pending_tensor **sorted = malloc((writer->tensor_count + 1) * sizeof(*sorted));
    if (!sorted)
        return error_set(err, STATUS_NO_MEMORY, "no memory to write a GGUF file");
    for (size_t i = 0; i < writer->tensor_count; i++)
        sorted[i] = &writer->tensors[i];
    qsort(sorted, writer->tensor_count, sizeof(*sorted), by_tensor_name);
    enum status status = STATUS_OK;
    for (size_t i = 1; i < writer->tensor_count && !status; i++)
        if (by_tensor_name(&sorted[i - 1], &sorted[i]) == 0)
            status = error_set(err, STATUS_USAGE,
                               "tensor '%s': expected a new name, found it twice",
                               text_get(&sorted[i]->name));
    free(sorted);
    return status;
}

/* ---- The file ------------------------------------------------------------------------------- */

static void build_head(const struct gguf_writer *writer, struct text *head)
{
    text_add_bytes(head, "GGUF", 4);
    gguf_add_number(head, 3, 4);
    gguf_add_number(head, writer->tensor_count, 8);
    gguf_add_number(head, writer->entry_count, 8);
    for (size_t i = 0; i < writer->entry_count; i++) {
        const struct pending_entry *entry = &writer->entries[i];
        gguf_add_string(head, (struct text_view){ text_get(&entry->key), entry->key.length });
        text_add_bytes(head, text_get(&entry->value), entry->value.length);
        head->failed = head->failed || entry->key.failed || entry->value.failed;
    }
    for (size_t i = 0; i < writer->tensor_count; i++) {
        const struct pending_tensor *tensor = &writer->tensors[i];
        uint32_t rank = written_rank(&tensor->shape);
        gguf_add_string(head, (struct text_view){ text_get(&tensor->name), tensor->name.length });
        gguf_add_number(head, rank, 4);
        for (uint32_t d = 0; d < rank; d++)
            gguf_add_number(head, tensor->shape.dims[d], 8);
        gguf_add_number(head, dtype_info(tensor->dtype)->file_id, 4);
        gguf_add_number(head, tensor->offset_bytes, 8);
    }
    uint64_t padded;
    if (size_align_up(head->length, GGUF_ALIGNMENT_DEFAULT, &padded))
        text_add_fill(head, '\0', (size_t)padded - head->length);
}

static enum status pad_tensor(struct gguf_writer *writer, uint64_t bytes, struct error *err)
{
    static const uint8_t zeros[GGUF_ALIGNMENT_DEFAULT];
    uint64_t over = bytes % GGUF_ALIGNMENT_DEFAULT;
    if (over == 0)
        return STATUS_OK;
    return outfile_write(&writer->out, zeros, (size_t)(GGUF_ALIGNMENT_DEFAULT - over), err);
}

/* Skips complete tensors, also empty ones, and pads each. */
static enum status step_over_complete(struct gguf_writer *writer, struct error *err)
{
    while (writer->current_tensor < writer->tensor_count &&
           writer->current_bytes == writer->tensors[writer->current_tensor].bytes) {
        TRY(pad_tensor(writer, writer->current_bytes, err));
        writer->current_tensor++;
        writer->current_bytes = 0;
    }
    return STATUS_OK;
}

enum status gguf_writer_begin_data(struct gguf_writer *writer, const char *path, bool replace,
                                   struct error *err)
{
    ASSERT(!writer->begun);
    /* The layout uses the default alignment; a copied key must not say otherwise. */
    gguf_writer_put_u32(writer, "general.alignment", GGUF_ALIGNMENT_DEFAULT);
    TRY(refuse_duplicate_names(writer, err));
    struct text head;
    text_init(&head);
    build_head(writer, &head);
    enum status status;
    if (writer->failed || head.failed) {
        status = error_set(err, STATUS_NO_MEMORY, "%s: no memory for its metadata", path);
        goto done;
    }
    writer->size_bytes = head.length + writer->data_bytes;
    status = outfile_open(&writer->out, path, replace, writer->size_bytes, err);
    if (status)
        goto done;
    writer->begun = true;
    status = outfile_write(&writer->out, text_get(&head), head.length, err);
    if (status)
        goto done;
    status = step_over_complete(writer, err);
done:
    text_release(&head);
    return status;
}

uint64_t gguf_writer_size_bytes(const struct gguf_writer *writer)
{
    return writer->size_bytes;
}

enum status gguf_writer_append(struct gguf_writer *writer, const void *bytes, size_t count,
                               struct error *err)
{
    ASSERT(writer->begun);
    if (count == 0)
        return STATUS_OK;
    ASSERT(writer->current_tensor < writer->tensor_count);
    const struct pending_tensor *tensor = &writer->tensors[writer->current_tensor];
    ASSERT(count <= tensor->bytes - writer->current_bytes);
    TRY(outfile_write(&writer->out, bytes, count, err));
    writer->current_bytes += count;
    return step_over_complete(writer, err);
}

enum status gguf_writer_finish(struct gguf_writer *writer, struct error *err)
{
    ASSERT(writer->begun && writer->current_tensor == writer->tensor_count);
    ASSERT(writer->out.written_bytes == writer->size_bytes);
    return outfile_commit(&writer->out, err);
}
