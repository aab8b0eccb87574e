/* quantize.c - converts one GGUF file into another of a different type.
 *
 * A tensor is a run of whole blocks, so rows do not matter: it is cut into chunks that are whole
 * blocks of both types, and the chunks are decoded and encoded independently. Memory is one slab of
 * output, whatever the size of the model. */
#include "convert/convert_impl.h"

#include "base/parallel.h"
#include "tensor/quant.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Values decoded at a time, on the stack; a multiple of every block size. */
#define CHUNK_ELEMENTS 2048u
/* Values one thread takes at a time. */
#define PART_ELEMENTS (32u * CHUNK_ELEMENTS)
/* Values between two writes. */
#define SLAB_ELEMENTS (64u * PART_ELEMENTS)

/* What happens to a tensor. */
struct step {
    const struct gguf_tensor *tensor;
    enum dtype dtype;
};

/* One slab of one tensor, shared by the threads. */
struct slab {
    enum dtype source_dtype, target_dtype;
    const uint8_t *source; /* first block of the slab */
    uint8_t *target;       /* NULL: only search for values that are not finite */
    uint64_t element_count;
    atomic_uint_fast64_t first_bad; /* index in the slab of the first NaN or infinity */
};

static uint64_t bytes_of(enum dtype dtype, uint64_t element_count)
{
    const struct dtype_info *info = dtype_info(dtype);
    return element_count / info->block_elements * info->block_bytes;
}

static void note_bad(struct slab *slab, uint64_t index)
{
    uint_fast64_t seen = atomic_load(&slab->first_bad);
    while (index < seen && !atomic_compare_exchange_weak(&slab->first_bad, &seen, index))
        ;
}

static void convert_part(void *context, uint64_t part_index)
{
    struct slab *slab = context;
    float values[CHUNK_ELEMENTS];
    uint64_t at = part_index * PART_ELEMENTS;
    uint64_t end = at + PART_ELEMENTS;
    if (end > slab->element_count)
        end = slab->element_count;
    while (at < end) {
        size_t count = end - at < CHUNK_ELEMENTS ? (size_t)(end - at) : CHUNK_ELEMENTS;
        quant_decode_row(slab->source_dtype, slab->source + bytes_of(slab->source_dtype, at), count,
                         values);
        size_t bad = quant_first_bad(values, count);
        if (bad < count) {
            note_bad(slab, at + bad);
            return;
        }
        if (slab->target)
            quant_encode_row(slab->target_dtype, values, count,
                             slab->target + bytes_of(slab->target_dtype, at));
        at += count;
    }
}

/* How far the whole conversion is, in values. */
struct work {
    const struct convert_quantize *request;
    const struct progress *progress;
    struct gguf_writer *writer;
    uint8_t *target; /* room for a slab of f32 */
    uint64_t done_elements, total_elements;
};

/* A tensor that keeps its type goes the same way, without being encoded. */
static enum status convert_tensor(struct work *work, const struct step *step, struct error *err)
{
    const struct gguf_tensor *tensor = step->tensor;
    uint64_t element_count;
    ASSERT(shape_element_count(&tensor->shape, &element_count));
    for (uint64_t at = 0; at < element_count; at += SLAB_ELEMENTS) {
        TRY(progress_step(work->progress, work->done_elements, work->total_elements, err));
        uint64_t left = element_count - at;
        struct slab slab = { .source_dtype = tensor->dtype,
                             .target_dtype = step->dtype,
                             .source = tensor->data + bytes_of(tensor->dtype, at),
                             .target = step->dtype == tensor->dtype ? NULL : work->target,
                             .element_count = left < SLAB_ELEMENTS ? left : SLAB_ELEMENTS };
        atomic_init(&slab.first_bad, UINT64_MAX);
        uint64_t parts = (slab.element_count + PART_ELEMENTS - 1) / PART_ELEMENTS;
        parallel_run(parts, work->request->thread_count, convert_part, &slab);
        uint64_t bad = atomic_load(&slab.first_bad);
        char shown[96];
        if (bad != UINT64_MAX)
            return error_set(err, STATUS_BAD_FILE,
                             "%s: tensor %s: expected finite values, found NaN or infinity at "
                             "element %" PRIu64 "; the model is damaged",
                             gguf_path(work->request->input),
                             text_printable(tensor->name, shown, sizeof(shown)), at + bad);
        TRY(gguf_writer_append(work->writer, slab.target ? slab.target : slab.source,
                               (size_t)bytes_of(step->dtype, slab.element_count), err));
        work->done_elements += slab.element_count;
    }
    return STATUS_OK;
}

/* For types that cannot be decoded. */
static enum status copy_tensor(struct work *work, const struct gguf_tensor *tensor,
                               struct error *err)
{
    uint64_t element_count;
    ASSERT(shape_element_count(&tensor->shape, &element_count));
    const size_t slice_bytes = (size_t)16 << 20;
    for (uint64_t at = 0; at < tensor->bytes; at += slice_bytes) {
        TRY(progress_step(work->progress, work->done_elements, work->total_elements, err));
        uint64_t left = tensor->bytes - at;
        TRY(gguf_writer_append(work->writer, tensor->data + at,
                               left < slice_bytes ? (size_t)left : slice_bytes, err));
    }
    work->done_elements += element_count;
    return STATUS_OK;
}

/* ---- Planning ------------------------------------------------------------------------------- */

static uint32_t layer_count_of(const struct gguf_file *file)
{
    struct text_view arch;
    struct error ignored;
    char key[96], shown[64];
    uint64_t count;
    if (gguf_get_text(file, "general.architecture", &arch, &ignored))
        return 0;
    snprintf(key, sizeof(key), "%s.block_count", text_printable(arch, shown, sizeof(shown)));
    if (gguf_get_u64(file, key, &count, &ignored) || count > UINT32_MAX / 8)
        return 0;
    return (uint32_t)count;
}

/* A matrix gets the type of the mix; a vector of floats becomes F32, which every engine accepts;
 * everything else keeps its type. */
static enum dtype target_dtype(const struct convert_mix *mix, const struct gguf_tensor *tensor)
{
    if (convert_is_quantized(tensor->name, &tensor->shape))
        return convert_dtype(mix, tensor->name, &tensor->shape);
    if (tensor->dtype == DTYPE_F16 || tensor->dtype == DTYPE_BF16)
        return DTYPE_F32;
    return tensor->dtype;
}

static bool is_block_type(enum dtype dtype)
{
    return dtype_info(dtype)->block_elements > 1;
}

static enum status prepare_tensor(const struct convert_quantize *request,
                                  const struct convert_mix *mix, const struct gguf_tensor *tensor,
                                  struct step *ret_step, struct convert_quantize_result *result,
                                  struct error *err)
{
    *ret_step = (struct step){ tensor, target_dtype(mix, tensor) };
    if (ret_step->dtype == tensor->dtype) {
        result->copied_count++;
        return STATUS_OK;
    }
    char shown[96];
    if (!quant_can_decode(tensor->dtype))
        return error_set(err, STATUS_UNSUPPORTED,
                         "%s: tensor %s: expected a type greta can decode, found %s; start from an "
                         "F32, F16 or BF16 file",
                         gguf_path(request->input),
                         text_printable(tensor->name, shown, sizeof(shown)),
                         dtype_name(tensor->dtype));
    result->converted_count++;
    result->requantized_count += is_block_type(tensor->dtype) && is_block_type(ret_step->dtype);
    return STATUS_OK;
}

static void copy_metadata(const struct convert_quantize *request, struct gguf_writer *writer)
{
    for (size_t i = 0; i < gguf_entry_count(request->input); i++) {
        const struct gguf_entry *entry = gguf_entry_at(request->input, i);
        /* The output is one file, however many the input has. */
        if (entry->key.length > 6 && memcmp(entry->key.bytes, "split.", 6) == 0)
            continue;
        gguf_writer_put_value(writer, entry->key, &entry->value);
    }
    gguf_writer_put_u32(writer, "general.file_type", convert_file_type(request->type));
    gguf_writer_put_u32(writer, "general.quantization_version", 2);
}

static enum status prepare_all(struct work *work, struct step *steps,
                               struct convert_quantize_result *result, struct error *err)
{
    const struct gguf_file *input = work->request->input;
    struct convert_mix mix = { work->request->type, layer_count_of(input),
                               !gguf_tensor_find(input, "output.weight") };
    copy_metadata(work->request, work->writer);
    for (size_t i = 0; i < gguf_tensor_count(input); i++) {
        const struct gguf_tensor *tensor = gguf_tensor_at(input, i);
        uint64_t element_count;
        if (!shape_element_count(&tensor->shape, &element_count))
            return error_set(err, STATUS_BAD_FILE, "%s: a tensor has more than 2^64 elements",
                             gguf_path(input));
        work->total_elements += element_count;
        TRY(prepare_tensor(work->request, &mix, tensor, &steps[i], result, err));
        TRY(gguf_writer_add_tensor(work->writer, tensor->name, steps[i].dtype, &tensor->shape,
                                   err));
    }
    return STATUS_OK;
}

static enum status run(struct work *work, const struct step *steps, struct error *err)
{
    const struct convert_quantize *request = work->request;
    TRY(gguf_writer_begin_data(work->writer, request->path, request->replace, err));
    for (size_t i = 0; i < gguf_tensor_count(request->input); i++) {
        const struct gguf_tensor *tensor = steps[i].tensor;
        ASSERT(tensor);
        if (!quant_can_decode(tensor->dtype))
            TRY(copy_tensor(work, tensor, err));
        else
            TRY(convert_tensor(work, &steps[i], err));
        gguf_tensor_drop(request->input, tensor);
    }
    TRY(progress_step(work->progress, work->total_elements, work->total_elements, err));
    TRY(gguf_check_whole(request->input, err));
    return gguf_writer_finish(work->writer, err);
}

enum status convert_quantize(const struct convert_quantize *request,
                             const struct progress *progress,
                             struct convert_quantize_result *ret_result, struct error *err)
{
    struct work work = { .request = request, .progress = progress };
    struct convert_quantize_result result = { .input_bytes = gguf_size_bytes(request->input) };
    struct step *steps = calloc(gguf_tensor_count(request->input) + 1, sizeof(*steps));
    work.target = malloc(SLAB_ELEMENTS * sizeof(float));
    enum status status;
    if (!steps || !work.target) {
        status = error_set(err, STATUS_NO_MEMORY, "no memory to convert a model");
        goto done;
    }
    status = gguf_writer_create(&work.writer, err);
    if (status)
        goto done;
    status = prepare_all(&work, steps, &result, err);
    if (status)
        goto done;
    status = run(&work, steps, err);
    if (status)
        goto done;
    result.output_bytes = gguf_writer_size_bytes(work.writer);
    *ret_result = result;
done:
    gguf_writer_destroy(work.writer);
    free(work.target);
    free(steps);
    return status;
}
