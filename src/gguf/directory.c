/* directory.c - the tensor directory of one GGUF file: names, shapes and types, each checked as it
 * is read. Where the data lies is checked in validate.c. */
#include "gguf/gguf_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static enum status check_tensor_name(const struct bytes *in, uint64_t start, struct text_view name,
                                     struct error *err)
{
    if (name.length == 0)
        return bytes_fail(in, start, "name length", err, "expected at least 1, found 0");
    const char *zero = memchr(name.bytes, '\0', name.length);
    if (zero)
        return bytes_fail(in, start + 8 + (uint64_t)(zero - name.bytes), "name", err,
                          "expected no NUL byte, found one");
    return STATUS_OK;
}

static enum status read_shape(struct bytes *in, struct shape *ret, struct error *err)
{
    uint32_t rank;
    uint64_t start = in->at;
    TRY(bytes_u32(in, "n_dims", &rank, err));
    if (rank > SHAPE_RANK_LIMIT)
        return bytes_fail(in, start, "n_dims", err, "expected at most %d, found %" PRIu32,
                          SHAPE_RANK_LIMIT, rank);
    uint64_t dims[SHAPE_RANK_LIMIT];
    for (uint32_t i = 0; i < rank; i++) {
        char field[16] = "dims[0]";
        field[5] = (char)('0' + i);
        TRY(bytes_u64(in, field, &dims[i], err));
    }
    *ret = shape_make(rank, dims);
    return STATUS_OK;
}

static enum status read_dtype(struct bytes *in, enum dtype *ret, struct error *err)
{
    uint32_t id;
    uint64_t start = in->at;
    TRY(bytes_u32(in, "type", &id, err));
    if (dtype_from_file_id(id, ret))
        return STATUS_OK;
    const char *withdrawn = dtype_withdrawn_name(id);
    if (withdrawn)
        return bytes_fail(in, start, "type", err,
                          "expected a current tensor type, found %" PRIu32
                          " (%s), withdrawn from the format; convert the model again",
                          id, withdrawn);
    return bytes_fail(in, start, "type", err,
                      "expected a known tensor type, found %" PRIu32
                      "; the file may be newer than this greta",
                      id);
}

/* The size in bytes of what dtype and shape declare. */
static enum status size_tensor(const struct bytes *in, uint64_t dims_start,
                               struct gguf_tensor *tensor, struct error *err)
{
    if (shape_bytes(&tensor->shape, tensor->dtype, &tensor->bytes))
        return STATUS_OK;
    const struct dtype_info *info = dtype_info(tensor->dtype);
    char shape[SHAPE_TEXT_BYTES];
    if (tensor->shape.dims[0] % info->block_elements)
        return bytes_fail(in, dims_start, "dims[0]", err,
                          "expected a multiple of %" PRIu32 " (a block of %s), found %" PRIu64,
                          info->block_elements, info->name, tensor->shape.dims[0]);
    return bytes_fail(in, dims_start, "dims", err,
                      "expected a size below 2^64 bytes, found %s of %s",
                      shape_text(&tensor->shape, shape), info->name);
}

static enum status read_tensor(struct bytes *in, struct gguf_tensor *tensor, uint64_t index,
                               struct error *err)
{
    bytes_set_context(in, "tensor %" PRIu64, index);
    uint64_t start = in->at;
    TRY(bytes_string(in, "name length", GGUF_TENSOR_NAME_LIMIT_BYTES, &tensor->name, err));
    TRY(check_tensor_name(in, start, tensor->name, err));
    char shown[GGUF_SHOWN_NAME_BYTES];
    bytes_set_context(in, "tensor %" PRIu64 " (%s)", index,
                      text_printable(tensor->name, shown, sizeof(shown)));
    uint64_t dims_start = in->at + 4; /* after n_dims */
    TRY(read_shape(in, &tensor->shape, err));
    TRY(read_dtype(in, &tensor->dtype, err));
    TRY(size_tensor(in, dims_start, tensor, err));
    /* Relative to the data section until the start of that is known: see gguf_validate_data. */
    return bytes_u64(in, "offset", &tensor->offset_bytes, err);
}

enum status gguf_read_directory(struct bytes *in, struct gguf_shard *shard, struct error *err)
{
    shard->tensors = calloc((size_t)shard->tensor_count + 1, sizeof(*shard->tensors));
    if (!shard->tensors)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory for %" PRIu64 " tensor entries",
                         shard->path, shard->tensor_count);
    for (uint64_t i = 0; i < shard->tensor_count; i++)
        TRY(read_tensor(in, &shard->tensors[i], i, err));
    return STATUS_OK;
}
