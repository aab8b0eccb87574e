/* convert_quantize_test.c - a model in another type: what changes and what stays. */
#include "convert_input.h"

#include "base/size.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- What comes out ------------------------------------------------------------------------- */

/* Root of the mean squared difference, over that of the values. */
static double relative_error(const struct gguf_tensor *a, const struct gguf_tensor *b)
{
    size_t count, b_count;
    float *values = tensor_values(a, &count), *others = tensor_values(b, &b_count);
    assert_int_equal(count, b_count);
    double errors = 0, squares = 0;
    for (size_t i = 0; i < count; i++) {
        errors += (double)(values[i] - others[i]) * (values[i] - others[i]);
        squares += (double)values[i] * values[i];
    }
    free(values);
    free(others);
    return sqrt(errors / squares);
}

/* In the order of the directory, each at the next multiple of 32, the last one padded too. */
static void check_layout(const char *what, const struct gguf_file *file)
{
    uint64_t at = gguf_tensor_at(file, 0)->offset_bytes;
    assert_int_equal(at % 32, 0);
    for (size_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *tensor = gguf_tensor_at(file, i);
        if (tensor->offset_bytes != at)
            fail_msg("%s: tensor %zu is not where the one before ends", what, i);
        assert_true(size_align_up(at + tensor->bytes, 32, &at));
    }
    assert_int_equal(gguf_size_bytes(file), at);
}

static void check_metadata_kept(const struct gguf_file *input, const struct gguf_file *output)
{
    for (size_t i = 0; i < gguf_entry_count(input); i++) {
        const struct gguf_entry *entry = gguf_entry_at(input, i);
        char key[128];
        snprintf(key, sizeof(key), "%.*s", (int)entry->key.length, entry->key.bytes);
        const struct gguf_value *value = gguf_find(output, key);
        if (strncmp(key, "split.", 6) == 0) {
            assert_null(value);
            continue;
        }
        assert_non_null(value);
        if (strcmp(key, "general.file_type") == 0)
            continue;
        if (value->type != entry->value.type || value->count != entry->value.count ||
            value->bytes != entry->value.bytes ||
            memcmp(value->data, entry->value.data, (size_t)value->bytes) != 0)
            fail_msg("%s changed", key);
    }
}

static void test_every_type(void **state)
{
    (void)state;
    static const struct {
        enum convert_type type;
        enum dtype dtype; /* of most matrices */
        uint32_t file_type;
        double error; /* of gaussian values, at most */
    } rows[] = {
        { CONVERT_F32, DTYPE_F32, 0, 0 },         { CONVERT_F16, DTYPE_F16, 1, 0.0003 },
        { CONVERT_BF16, DTYPE_BF16, 32, 0.002 },  { CONVERT_Q8_0, DTYPE_Q8_0, 7, 0.007 },
        { CONVERT_Q4_0, DTYPE_Q4_0, 2, 0.11 },    { CONVERT_Q4_K_M, DTYPE_Q4_K, 15, 0.08 },
        { CONVERT_Q5_K_M, DTYPE_Q5_K, 17, 0.04 }, { CONVERT_Q6_K, DTYPE_Q6_K, 18, 0.02 },
        { CONVERT_MXFP4, DTYPE_Q8_0, 38, 0.007 },
    };
    _Static_assert(COUNT_OF(rows) == CONVERT_TYPE_COUNT, "every type is tried");
    struct temp_folder folder;
    temp_folder_init(&folder);
    struct model_shape shape = small_shape(MODEL_ARCH_LLAMA);
    synth_model(&folder, "input", &shape, CONVERT_F32, 1);
    struct gguf_file *input = open_model(&folder, "input");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *name = convert_type_name(rows[i].type);
        struct convert_quantize_result result;
        struct error err;
        uint64_t number;
        CHECK_OK(quantize(&folder, input, name, rows[i].type, 0, &result, &err), &err);
        struct gguf_file *output = open_model(&folder, name);
        assert_int_equal(result.input_bytes, gguf_size_bytes(input));
        assert_int_equal(result.output_bytes, gguf_size_bytes(output));
        assert_int_equal(result.requantized_count, 0);
        assert_int_equal(result.converted_count, rows[i].type == CONVERT_F32 ? 0 : 2 + 2 * 7);
        assert_int_equal(result.converted_count + result.copied_count, gguf_tensor_count(input));
        assert_int_equal(gguf_tensor_find(output, "blk.0.ffn_up.weight")->dtype, rows[i].dtype);
        for (size_t t = 0; t < gguf_tensor_count(input); t++) {
            const struct gguf_tensor *tensor = gguf_tensor_at(output, t);
            double error = relative_error(gguf_tensor_at(input, t), tensor);
            double most = tensor->shape.dims[1] == 1 ? 0 : rows[i].error;
            if (!(error <= most))
                fail_msg("%s, tensor %zu: error %g", name, t, error);
        }
        CHECK_OK(gguf_get_u64(output, "general.file_type", &number, &err), &err);
        assert_int_equal(number, rows[i].file_type);
        CHECK_OK(gguf_get_u64(output, "general.quantization_version", &number, &err), &err);
        assert_int_equal(number, 2);
        check_metadata_kept(input, output);
        check_layout(name, output);
        static struct model_report report;
        model_check(output, NULL, &report);
        assert_false(model_report_refuses(&report, false));
        gguf_close(output);
    }
    gguf_close(input);
    temp_folder_release(&folder);
}

static void test_vectors_and_metadata(void **state)
{
    (void)state;
    static const struct input_tensor tensors[] = {
        { "blk.0.attn_norm.weight", DTYPE_F16, { 1, { 7, 1, 1, 1 } }, 0, 0 },
        { "blk.0.attn_q.bias", DTYPE_BF16, { 1, { 5, 1, 1, 1 } }, 0, 0 },
        { "output.weight", DTYPE_F16, { 2, { 64, 3, 1, 1 } }, 0, 0 },
        { "some.table", DTYPE_I32, { 1, { 9, 1, 1, 1 } }, 0, 0 },
        { "blk.0.ffn_up.weight", DTYPE_F32, { 2, { 50, 3, 1, 1 } }, 0, 0 },
        { "blk.0.ffn_up_exps.weight", DTYPE_F32, { 3, { 32, 3, 2, 1 } }, 0, 0 },
    };
    static const enum dtype expected[] = { DTYPE_F32, DTYPE_F32, DTYPE_Q8_0,
                                           DTYPE_I32, DTYPE_F16, DTYPE_Q8_0 };
    struct temp_folder folder;
    struct convert_quantize_result result;
    struct error err;
    temp_folder_init(&folder);
    struct gguf_file *input = make_input(&folder, "input", tensors, COUNT_OF(tensors));
    CHECK_OK(quantize(&folder, input, "out", CONVERT_Q8_0, 0, &result, &err), &err);
    struct gguf_file *output = open_model(&folder, "out");
    for (size_t i = 0; i < COUNT_OF(expected); i++)
        assert_int_equal(gguf_tensor_at(output, i)->dtype, expected[i]);
    assert_int_equal(result.converted_count, 5);
    assert_int_equal(result.copied_count, 1);
    check_metadata_kept(input, output);
    assert_non_null(gguf_find(output, "splitting.is.not.split"));
    check_layout("out", output);
    gguf_close(output);
    gguf_close(input);
    temp_folder_release(&folder);
}

/* Across parts of 65,536 values and slabs of 4,194,304, with a rest. */
static void test_threads_do_not_matter(void **state)
{
    (void)state;
    static const struct input_tensor tensors[] = {
        { "output.weight", DTYPE_F32, { 2, { 4096, 1027, 1, 1 } }, 0, 0 },
        { "blk.0.ffn_up.weight", DTYPE_F16, { 2, { 288, 9, 1, 1 } }, 0, 0 },
    };
    struct temp_folder folder;
    struct convert_quantize_result result;
    struct error err;
    temp_folder_init(&folder);
    struct gguf_file *input = make_input(&folder, "input", tensors, COUNT_OF(tensors));
    static const uint32_t threads[] = { 1, 2, 5, 0 };
    char name[COUNT_OF(threads)][8];
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        snprintf(name[i], sizeof(name[i]), "out%zu", i);
        CHECK_OK(quantize(&folder, input, name[i], CONVERT_Q8_0, threads[i], &result, &err), &err);
        assert_true(same_files(&folder, name[0], name[i]));
    }
    struct gguf_file *output = open_model(&folder, name[0]);
    assert_true(relative_error(gguf_tensor_at(input, 0), gguf_tensor_at(output, 0)) < 0.005);
    gguf_close(output);
    gguf_close(input);
    temp_folder_release(&folder);
}

static void test_requantized(void **state)
{
    (void)state;
    static const struct input_tensor tensors[] = {
        { "output.weight", DTYPE_Q8_0, { 2, { 256, 3, 1, 1 } }, 0, 0 },
        { "blk.0.attn_q.weight", DTYPE_Q4_0, { 2, { 256, 3, 1, 1 } }, 0, 0 },
        { "blk.0.attn_k.weight", DTYPE_F16, { 2, { 256, 3, 1, 1 } }, 0, 0 },
    };
    static const struct {
        enum convert_type type;
        size_t converted, copied, requantized;
    } rows[] = { { CONVERT_Q6_K, 3, 0, 2 }, { CONVERT_Q8_0, 2, 1, 1 }, { CONVERT_F16, 2, 1, 0 } };
    struct temp_folder folder;
    struct convert_quantize_result result;
    struct error err;
    temp_folder_init(&folder);
    struct gguf_file *input = make_input(&folder, "input", tensors, COUNT_OF(tensors));
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const char *name = convert_type_name(rows[i].type);
        CHECK_OK(quantize(&folder, input, name, rows[i].type, 0, &result, &err), &err);
        assert_int_equal(result.converted_count, rows[i].converted);
        assert_int_equal(result.copied_count, rows[i].copied);
        assert_int_equal(result.requantized_count, rows[i].requantized);
    }
    gguf_close(input);
    temp_folder_release(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type),
        cmocka_unit_test(test_vectors_and_metadata),
        cmocka_unit_test(test_threads_do_not_matter),
        cmocka_unit_test(test_requantized),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
