/* convert_input.h - files made by hand, tensor by tensor, for the tests of convert_quantize. */
#ifndef GRETA_TESTS_CONVERT_INPUT_H
#define GRETA_TESTS_CONVERT_INPUT_H

#include "convert_model.h"

static inline enum status quantize(const struct temp_folder *folder, const struct gguf_file *input,
                                   const char *name, enum convert_type type, uint32_t threads,
                                   struct convert_quantize_result *ret_result, struct error *err)
{
    struct temp_path path = temp_folder_path(folder, name);
    struct convert_quantize request = {
        .input = input, .path = path.text, .type = type, .thread_count = threads
    };
    return convert_quantize(&request, NULL, ret_result, err);
}

struct input_tensor {
    const char *name;
    enum dtype dtype;
    struct shape shape;
    size_t special_at; /* element that is `special`; the others are small and finite */
    float special;     /* 0: none */
};

/* Finite values of any type: encoded where greta can, zero bytes elsewhere. */
static inline void append_tensor(struct gguf_writer *writer, const struct input_tensor *tensor)
{
    struct error err;
    uint64_t bytes, count;
    assert_true(shape_bytes(&tensor->shape, tensor->dtype, &bytes));
    assert_true(shape_element_count(&tensor->shape, &count));
    uint8_t *data = calloc(1, (size_t)bytes);
    float *values = calloc((size_t)count, sizeof(*values));
    for (size_t i = 0; i < count; i++)
        values[i] = (float)(int)(i * 7919 % 255) / 128.0f - 1;
    if (tensor->special != 0)
        values[tensor->special_at] = tensor->special;
    if (quant_can_encode(tensor->dtype))
        quant_encode_row(tensor->dtype, values, (size_t)count, data);
    CHECK_OK(gguf_writer_append(writer, data, (size_t)bytes, &err), &err);
    free(values);
    free(data);
}

static inline struct gguf_file *make_input(const struct temp_folder *folder, const char *name,
                                           const struct input_tensor *tensors, size_t count)
{
    struct gguf_writer *writer;
    struct error err;
    static const uint64_t wide[] = { 1, UINT64_MAX };
    CHECK_OK(gguf_writer_create(&writer, &err), &err);
    gguf_writer_put_text(writer, "general.architecture", "llama");
    gguf_writer_put_u32(writer, "llama.block_count", 1);
    gguf_writer_put_u32(writer, "general.file_type", 1);
    gguf_writer_put_u32(writer, "split.no", 0);
    gguf_writer_put_u32(writer, "split.count", 1);
    gguf_writer_put_u32(writer, "split.tensors.count", (uint32_t)count);
    gguf_writer_put_u32(writer, "splitting.is.not.split", 5);
    gguf_writer_put_array(writer, "custom.wide", GGUF_U64, wide, 2);
    for (size_t i = 0; i < count; i++)
        CHECK_OK(gguf_writer_add_tensor(writer, text_view_of(tensors[i].name), tensors[i].dtype,
                                        &tensors[i].shape, &err),
                 &err);
    CHECK_OK(gguf_writer_begin_data(writer, temp_folder_path(folder, name).text, true, &err), &err);
    for (size_t i = 0; i < count; i++)
        append_tensor(writer, &tensors[i]);
    CHECK_OK(gguf_writer_finish(writer, &err), &err);
    gguf_writer_destroy(writer);
    return open_model(folder, name);
}

#endif
