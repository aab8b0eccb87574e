/* values.c - checks every weight, tensor by tensor, several parts of a tensor at a time. */
#include "model/model_impl.h"

#include "base/parallel.h"
#include "base/size.h"
#include "tensor/quant.h"

#include <inttypes.h>
#include <stdatomic.h>

/* Values decoded at a time, on the stack; a multiple of every block size. */
#define CHUNK_ELEMENTS 2048u
/* Values one thread takes at a time. */
#define PART_ELEMENTS (32u * CHUNK_ELEMENTS)

struct look {
    const struct gguf_tensor *tensor;
    uint64_t element_count;
    atomic_uint_fast64_t first_bad; /* index of the first NaN or infinity; element_count: none */
};

static void look_at_part(void *context, uint64_t part_index)
{
    struct look *look = context;
    const struct dtype_info *info = dtype_info(look->tensor->dtype);
    float values[CHUNK_ELEMENTS];
    uint64_t at = part_index * PART_ELEMENTS, end = at + PART_ELEMENTS;
    end = min_u64(end, look->element_count);
    while (at < end) {
        size_t count = end - at < CHUNK_ELEMENTS ? (size_t)(end - at) : CHUNK_ELEMENTS;
        const uint8_t *blocks = look->tensor->data + at / info->block_elements * info->block_bytes;
        quant_decode_row(look->tensor->dtype, blocks, count, values);
        uint64_t bad = at + quant_first_bad(values, count);
        uint_fast64_t seen = atomic_load(&look->first_bad);
        while (bad < at + count && bad < seen &&
               !atomic_compare_exchange_weak(&look->first_bad, &seen, bad))
            ;
        at += count;
    }
}

enum status model_check_values(const struct gguf_file *file, const struct progress *progress,
                               struct error *err)
{
    uint64_t done = 0, total = 0;
    for (size_t i = 0; i < gguf_tensor_count(file); i++)
        total += gguf_tensor_at(file, i)->bytes; /* fits: all of them are in the file */
    for (size_t i = 0; i < gguf_tensor_count(file); i++) {
        struct look look = { .tensor = gguf_tensor_at(file, i) };
        TRY(progress_step(progress, done, total, err));
        done += look.tensor->bytes;
        if (!quant_can_decode(look.tensor->dtype) ||
            !shape_element_count(&look.tensor->shape, &look.element_count))
            continue; /* no model can use it */
        atomic_init(&look.first_bad, look.element_count);
        parallel_run((look.element_count + PART_ELEMENTS - 1) / PART_ELEMENTS, 0, look_at_part,
                     &look);
        uint64_t bad = atomic_load(&look.first_bad);
        if (bad == look.element_count)
            continue;
        char name[128];
        return error_set(err, STATUS_REFUSED,
                         "%s: tensor %s: expected finite weights, found NaN or infinity at value "
                         "%" PRIu64 " of %" PRIu64 "; the file is damaged, get or convert it again",
                         gguf_path(file), text_printable(look.tensor->name, name, sizeof(name)),
                         bad, look.element_count);
    }
    return gguf_check_whole(file, err);
}
