/* convert_model.h - small synthetic models on disk for the tests of src/convert. */
#ifndef GRETA_TESTS_CONVERT_MODEL_H
#define GRETA_TESTS_CONVERT_MODEL_H

#include "test.h"

#include "convert/convert.h"
#include "temp_folder.h"
#include "tensor/quant.h"

#include <stdlib.h>

/* Rows of 256 and 512 values: whole blocks of every type. */
static inline struct model_shape small_shape(enum model_arch arch)
{
    return (struct model_shape){ .slug = "small",
                                 .title = "small",
                                 .arch = arch,
                                 .embedding_length = 256,
                                 .block_count = 2,
                                 .feed_forward_length = 512,
                                 .head_count = 4,
                                 .head_count_kv = 2,
                                 .head_dim = 64,
                                 .vocab_size = 400,
                                 .context_length = 128,
                                 .rope_base = 1e4f,
                                 .rms_epsilon = 1e-5f };
}

/* Writes the model as `name`; fails the test where that fails. */
static inline void synth_model(const struct temp_folder *folder, const char *name,
                               const struct model_shape *shape, enum convert_type type,
                               uint64_t seed)
{
    struct error err;
    struct temp_path path = temp_folder_path(folder, name);
    struct convert_synth request = {
        .shape = *shape, .type = type, .seed = seed, .path = path.text
    };
    uint64_t bytes = 0;
    CHECK_OK(convert_synth(&request, NULL, &bytes, &err), &err);
}

static inline struct gguf_file *open_model(const struct temp_folder *folder, const char *name)
{
    struct error err;
    struct gguf_file *file = NULL;
    CHECK_OK(gguf_open(temp_folder_path(folder, name).text, &file, &err), &err);
    return file;
}

/* All values of a tensor; free them. */
static inline float *tensor_values(const struct gguf_tensor *tensor, size_t *ret_count)
{
    uint64_t count;
    assert_true(shape_element_count(&tensor->shape, &count));
    float *values = malloc((size_t)count * sizeof(*values));
    assert_non_null(values);
    quant_decode_row(tensor->dtype, tensor->data, (size_t)count, values);
    *ret_count = (size_t)count;
    return values;
}

static inline bool same_files(const struct temp_folder *folder, const char *name, const char *other)
{
    struct text a, b;
    text_init(&a);
    text_init(&b);
    temp_folder_read(folder, name, &a);
    temp_folder_read(folder, other, &b);
    bool same = text_view_equal((struct text_view){ text_get(&a), a.length },
                                (struct text_view){ text_get(&b), b.length });
    text_release(&a);
    text_release(&b);
    return same;
}

#endif
