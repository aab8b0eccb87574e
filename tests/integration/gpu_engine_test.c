/* gpu_engine_test.c - whole models on a GPU against the host device: logits of a prompt and of
 * single tokens behind it, and the same text chosen from them; two runs give the same bits.
 *
 *     gpu_engine_test DEVICE [SHAPE]      SHAPE: of a known model, with two of its layers */
#include "ops_lab.h"

#include "convert/convert.h"
#include "engine/engine.h"
#include "temp_folder.h"

#define PROMPT 11u
#define STEPS 5u
#define ROWS (1 + STEPS)

static const char *shape_name;

struct run {
    struct device *device;
    struct ops ops;
    struct engine *engine;
    struct error err;
};

/* Logits of the prompt's last token and of STEPS tokens behind it; what they are is fixed. */
static void run_model(const char *device, const struct gguf_file *file,
                      const struct model_report *report, enum dtype kv_dtype, float *logits)
{
    struct run run = { 0 };
    struct device_options options = { .guards = true, .poison = true };
    struct engine_options engine_options = { .context = 64, .kv_dtype = kv_dtype };
    size_t vocab = report->config.vocab_size;
    CHECK_OK(all_open(device, &options, &run.device, &run.err), &run.err);
    CHECK_OK(ops_load(&run.ops, run.device, CPU_PATH_COUNT, &run.err), &run.err);
    CHECK_OK(engine_open(&run.ops, file, report, &engine_options, &run.engine, &run.err), &run.err);
    struct engine_token tokens[PROMPT];
    for (size_t i = 0; i < PROMPT; i++)
        tokens[i] = (struct engine_token){ (int32_t)(i * 37 % 250), 0, i + 1 == PROMPT };
    CHECK_OK(engine_forward(run.engine, tokens, PROMPT, &run.err), &run.err);
    CHECK_OK(engine_logits(run.engine, 0, logits, &run.err), &run.err);
    for (size_t i = 1; i < ROWS; i++) {
        tokens[0] = (struct engine_token){ (int32_t)(i * 53 % 250), 0, true };
        CHECK_OK(engine_forward(run.engine, tokens, 1, &run.err), &run.err);
        CHECK_OK(engine_logits(run.engine, 0, logits + i * vocab, &run.err), &run.err);
    }
    engine_close(run.engine);
    assert_int_equal(device_used_bytes(run.device), 0);
    device_close(run.device);
}

static double error_against(const float *found, const float *wanted, size_t count)
{
    double error = 0, power = 0;
    for (size_t i = 0; i < count; i++) {
        double difference = (double)found[i] - (double)wanted[i];
        error += difference * difference;
        power += (double)wanted[i] * (double)wanted[i];
    }
    return error / power;
}

static void check_model(enum model_arch arch, enum convert_type type, enum dtype kv_dtype)
{
    struct temp_folder folder;
    struct error err;
    struct gguf_file *file;
    struct model_report report;
    struct model_shape shape = *model_shape_find(shape_name ? shape_name : "tiny");
    uint64_t bytes;
    char name[96];
    shape.block_count = 2;
    if (!shape_name) {
        shape.arch = arch;
        shape.head_count = 4;
        shape.head_count_kv = arch == MODEL_ARCH_QWEN2 ? 4 : 2;
        shape.head_dim = 64;
        shape.vocab_size = 320;
        shape.context_length = 64;
    }
    temp_folder_init(&folder);
    struct temp_path path = temp_folder_path(&folder, "model.gguf");
    struct convert_synth request = { .shape = shape, .type = type, .seed = 3, .path = path.text };
    CHECK_OK(convert_synth(&request, NULL, &bytes, &err), &err);
    CHECK_OK(gguf_open(path.text, &file, &err), &err);
    model_check(file, NULL, &report);
    assert_false(model_report_refuses(&report, false));
    size_t vocab = report.config.vocab_size;
    float *host = malloc(ROWS * vocab * sizeof(float)), *gpu = malloc(ROWS * vocab * sizeof(float));
    float *again = malloc(ROWS * vocab * sizeof(float));
    assert_true(host && gpu && again);
    run_model("host", file, &report, kv_dtype, host);
    run_model(lab_device, file, &report, kv_dtype, gpu);
    run_model(lab_device, file, &report, kv_dtype, again);
    snprintf(name, sizeof(name), "%s, %s, cache %s", model_arch_info(shape.arch)->name,
             convert_type_name(type), dtype_name(kv_dtype));
    for (size_t row = 0; row < ROWS; row++) {
        double error = error_against(gpu + row * vocab, host + row * vocab, vocab);
        /* The host rounds activations to 8 bits, a GPU those of a prompt to 11: what differs is
         * mostly the host's, and more of it in narrow models. */
        if (!(error < (shape_name ? 1e-4 : 2e-4)))
            fail_msg("%s, row %zu: normalised error %g", name, row, error);
        if (row == ROWS - 1)
            print_message("%s: normalised error %.2g\n", name, error);
    }
    if (memcmp(gpu, again, ROWS * vocab * sizeof(float)) != 0)
        fail_msg("%s: two runs give other bits", name);
    free(host);
    free(gpu);
    free(again);
    gguf_close(file);
    temp_folder_release(&folder);
}

static void test_models(void **state)
{
    (void)state;
    check_model(MODEL_ARCH_LLAMA, CONVERT_Q4_K_M, DTYPE_F16);
    check_model(MODEL_ARCH_LLAMA, CONVERT_Q8_0, DTYPE_F16);
    check_model(MODEL_ARCH_LLAMA, CONVERT_BF16, DTYPE_F16);
    if (shape_name)
        return;
    check_model(MODEL_ARCH_QWEN2, CONVERT_Q4_0, DTYPE_Q8_0);
    check_model(MODEL_ARCH_QWEN3, CONVERT_F32, DTYPE_F32);
}

int main(int argument_count, char **arguments)
{
    if (!lab_choose_named(argument_count, arguments))
        return LAB_SKIPPED;
    shape_name = argument_count > 2 ? arguments[2] : NULL;
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_models) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
