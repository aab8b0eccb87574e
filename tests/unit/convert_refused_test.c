/* convert_refused_test.c - inputs that convert_quantize refuses, and ends in the middle: an error
 * that names the tensor, no output, nothing left behind. */
#define _GNU_SOURCE /* truncate */
#include "convert_input.h"

#include <math.h>
#include <unistd.h>

static void test_refused_tensors(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct input_tensor tensor;
        enum status status;
        const char *words[2];
    } rows[] = {
        { "NaN",
          { "blk.0.ffn_up.weight", DTYPE_F32, { 2, { 256, 400, 1, 1 } }, 70001, NAN },
          STATUS_BAD_FILE,
          { "tensor blk.0.ffn_up.weight", "element 70001" } },
        { "infinity",
          { "output.weight", DTYPE_F32, { 2, { 64, 2, 1, 1 } }, 127, -INFINITY },
          STATUS_BAD_FILE,
          { "tensor output.weight", "element 127" } },
        { "NaN in what is only copied",
          { "output_norm.weight", DTYPE_F32, { 1, { 64, 1, 1, 1 } }, 3, NAN },
          STATUS_BAD_FILE,
          { "tensor output_norm.weight", "element 3" } },
        { "a type greta cannot decode",
          { "blk.0.ffn_up.weight", DTYPE_IQ2_XXS, { 2, { 256, 2, 1, 1 } }, 0, 0 },
          STATUS_UNSUPPORTED,
          { "tensor blk.0.ffn_up.weight", "found IQ2_XXS" } },
    };
    struct temp_folder folder;
    temp_folder_init(&folder);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gguf_file *input = make_input(&folder, "input", &rows[i].tensor, 1);
        struct convert_quantize_result result = { .copied_count = 777 };
        struct error err;
        enum status status = quantize(&folder, input, "out", CONVERT_Q8_0, 3, &result, &err);
        if (status != rows[i].status)
            fail_msg("%s: %s", rows[i].name, status_name(status));
        check_contains(rows[i].name, err.text, rows[i].words[0]);
        check_contains(rows[i].name, err.text, rows[i].words[1]);
        assert_int_equal(result.copied_count, 777);
        assert_int_equal(temp_folder_count(&folder), 1); /* the input */
        gguf_close(input);
    }
    temp_folder_release(&folder);
}

/* Somebody cuts the input while it is open: no output made of zeros, nothing left behind. */
static void test_cut_input(void **state)
{
    (void)state;
    static const struct input_tensor tensor = {
        "output.weight", DTYPE_F32, { 2, { 64, 512, 1, 1 } }, 0, 0
    };
    struct temp_folder folder;
    struct convert_quantize_result result;
    struct error err;
    temp_folder_init(&folder);
    struct gguf_file *input = make_input(&folder, "input", &tensor, 1);
    assert_int_equal(truncate(temp_folder_path(&folder, "input").text, 16384), 0);
    CHECK_FAILS(quantize(&folder, input, "out", CONVERT_Q8_0, 0, &result, &err), STATUS_IO, &err);
    check_contains("cut", err.text, "it became shorter while it was read");
    gguf_close(input);
    assert_int_equal(temp_folder_count(&folder), 1);
    temp_folder_release(&folder);
}

static void test_existing_output(void **state)
{
    (void)state;
    static const struct input_tensor tensor = {
        "output.weight", DTYPE_F32, { 2, { 64, 2, 1, 1 } }, 0, 0
    };
    struct temp_folder folder;
    struct convert_quantize_result result;
    struct error err;
    temp_folder_init(&folder);
    struct gguf_file *input = make_input(&folder, "input", &tensor, 1);
    temp_folder_write(&folder, "out", "mine", 4);
    CHECK_FAILS(quantize(&folder, input, "out", CONVERT_F16, 0, &result, &err), STATUS_EXISTS,
                &err);
    /* In its own place: the mapping of the input stays good until the end. */
    struct temp_path path = temp_folder_path(&folder, "input");
    struct convert_quantize request = {
        .input = input, .path = path.text, .type = CONVERT_Q8_0, .replace = true
    };
    CHECK_OK(convert_quantize(&request, NULL, &result, &err), &err);
    gguf_close(input);
    struct gguf_file *output = open_model(&folder, "input");
    assert_int_equal(gguf_tensor_at(output, 0)->dtype, DTYPE_Q8_0);
    gguf_close(output);
    temp_folder_release(&folder);
}

static bool stop_at_zero(void *context, uint64_t done, uint64_t total)
{
    assert_true(done <= total);
    return (*(int *)context)-- != 0;
}

static void test_interrupted_anywhere(void **state)
{
    (void)state;
    struct temp_folder folder;
    temp_folder_init(&folder);
    struct model_shape shape = small_shape(MODEL_ARCH_QWEN2);
    synth_model(&folder, "input", &shape, CONVERT_F16, 1);
    struct gguf_file *input = open_model(&folder, "input");
    struct temp_path path = temp_folder_path(&folder, "out");
    struct convert_quantize request = { .input = input, .path = path.text, .type = CONVERT_Q8_0 };
    enum status status = STATUS_INTERRUPTED;
    int stops = 0;
    while (status == STATUS_INTERRUPTED) {
        int left = stops++;
        struct progress progress = { stop_at_zero, &left };
        struct convert_quantize_result result;
        struct error err;
        status = convert_quantize(&request, &progress, &result, &err);
        assert_int_equal(temp_folder_count(&folder), status ? 1 : 2);
    }
    assert_int_equal(status, STATUS_OK);
    assert_true(stops > 20);
    gguf_close(input);
    temp_folder_release(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_tensors),
        cmocka_unit_test(test_cut_input),
        cmocka_unit_test(test_existing_output),
        cmocka_unit_test(test_interrupted_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
