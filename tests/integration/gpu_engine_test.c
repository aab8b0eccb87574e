/* gpu_engine_test.c - whole models on a GPU against the host device: logits of a prompt and of
 * single tokens after it, and of several sequences at once; two runs give the same bits.
 *
 *     gpu_engine_test DEVICE [SHAPE]      SHAPE: of a known model, with two of its layers */
#include "ops_lab.h"

#include "convert/convert.h"
#include "engine/engine.h"
#include "engine_scene.h"
#include "temp_folder.h"

#include <unistd.h>

#define PROMPT 11u
#define STEPS 5u
#define ROWS (1 + STEPS)

static const char *shape_name;

struct run {
    struct device *device;
    struct ops ops;
    struct engine *engine;
    struct error err;
    struct lab_watch watch;
};

static void open_device(struct run *run, const char *device)
{
    struct device_options options = { .observer = { lab_watch_notify, &run->watch },
                                      .guards = true,
                                      .poison = true };
    CHECK_OK(all_open(device, &options, &run->device, &run->err), &run->err);
    CHECK_OK(ops_load(&run->ops, run->device, CPU_PATH_COUNT, &run->err), &run->err);
}

/* Nothing is left on it, nothing was written next to a buffer, no index was past its bound. */
static void close_device(struct run *run)
{
    assert_int_equal(device_used_bytes(run->device), 0);
    device_close(run->device);
    lab_watch_check(&run->watch);
}

/* Logits of the prompt's last token and of STEPS tokens after it; what they are is fixed. */
static void run_model(const char *device, const struct gguf_file *file,
                      const struct model_report *report, enum dtype kv_dtype, float *logits)
{
    struct run run = { 0 };
    struct engine_options engine_options = { .context = 64, .kv_dtype = kv_dtype };
    size_t vocab = report->config.vocab_size;
    open_device(&run, device);
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
    close_device(&run);
}

/* Logits of SEQUENCES sequences, one token of each at a time, in LONG steps. */
#define SEQUENCES 12u
#define LONG 3u
#define SEQUENCE_ROWS (SEQUENCES * LONG)

static void run_sequences(const char *device, const struct gguf_file *file,
                          const struct model_report *report, float *logits)
{
    struct run run = { 0 };
    struct engine_options engine_options = {
        .context = 16, .kv_dtype = DTYPE_F16, .sequence_limit = SEQUENCES, .logits_limit = SEQUENCES
    };
    size_t vocab = report->config.vocab_size;
    open_device(&run, device);
    CHECK_OK(engine_open(&run.ops, file, report, &engine_options, &run.engine, &run.err), &run.err);
    for (size_t step = 0; step < LONG; step++) {
        struct engine_token tokens[SEQUENCES];
        for (size_t s = 0; s < SEQUENCES; s++)
            tokens[s] = (struct engine_token){ (int32_t)((step * 41 + s * 29) % 250), (uint32_t)s,
                                               true };
        CHECK_OK(engine_forward(run.engine, tokens, SEQUENCES, &run.err), &run.err);
        for (size_t s = 0; s < SEQUENCES; s++, logits += vocab)
            CHECK_OK(engine_logits(run.engine, s, logits, &run.err), &run.err);
    }
    engine_close(run.engine);
    close_device(&run);
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

static void check_any(enum model_arch arch, enum convert_type type, enum dtype kv_dtype,
                      bool experts)
{
    struct temp_folder folder;
    struct error err;
    struct gguf_file *file;
    struct model_report report;
    struct model_shape shape = *model_shape_find(shape_name ? shape_name : "tiny");
    uint64_t bytes;
    char name[96];
    shape.block_count = 2;
    if (!shape_name && arch > MODEL_ARCH_QWEN3) {
        shape = scene_shape(arch);
        if (experts)
            scene_give_experts(&shape);
    } else if (!shape_name) {
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
    scene_shorten(&report.config);
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
        double limit = shape_name ? 1e-4 : 2e-4;
        if (arch > MODEL_ARCH_QWEN3) /* what a norm after a block or a cap makes of that */
            limit = type == CONVERT_F32 ? 1e-10 : 1e-3;
        if (!(error < limit))
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

static void check_model(enum model_arch arch, enum convert_type type, enum dtype kv_dtype)
{
    check_any(arch, type, kv_dtype, false);
}

static void test_sequences(void **state)
{
    struct temp_folder folder;
    struct error err;
    struct gguf_file *file;
    struct model_report report;
    struct model_shape shape = *model_shape_find(shape_name ? shape_name : "tiny");
    uint64_t bytes;
    (void)state;
    shape.block_count = 2;
    if (!shape_name) {
        shape.head_count = 8;
        shape.head_count_kv = 2;
        shape.head_dim = 64;
        shape.vocab_size = 320;
        shape.context_length = 64;
    }
    temp_folder_init(&folder);
    struct temp_path path = temp_folder_path(&folder, "model.gguf");
    struct convert_synth request = {
        .shape = shape, .type = CONVERT_Q4_K_M, .seed = 4, .path = path.text
    };
    CHECK_OK(convert_synth(&request, NULL, &bytes, &err), &err);
    CHECK_OK(gguf_open(path.text, &file, &err), &err);
    model_check(file, NULL, &report);
    assert_false(model_report_refuses(&report, false));
    size_t vocab = report.config.vocab_size, count = SEQUENCE_ROWS * vocab;
    float *host = malloc(count * sizeof(float)), *gpu = malloc(count * sizeof(float));
    float *again = malloc(count * sizeof(float));
    assert_true(host && gpu && again);
    run_sequences("host", file, &report, host);
    run_sequences(lab_device, file, &report, gpu);
    run_sequences(lab_device, file, &report, again);
    for (size_t row = 0; row < SEQUENCE_ROWS; row++) {
        double error = error_against(gpu + row * vocab, host + row * vocab, vocab);
        if (!(error < (shape_name ? 1e-4 : 2e-4)))
            fail_msg("sequences, row %zu: normalised error %g", row, error);
        if (row == SEQUENCE_ROWS - 1)
            print_message("sequences: normalised error %.2g\n", error);
    }
    if (memcmp(gpu, again, count * sizeof(float)) != 0)
        fail_msg("sequences: two runs give other bits");
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

static void test_families(void **state)
{
    (void)state;
    if (shape_name)
        return;
    check_model(MODEL_ARCH_GEMMA2, CONVERT_Q4_K_M, DTYPE_F16);
    check_model(MODEL_ARCH_GEMMA3, CONVERT_F32, DTYPE_F32);
    check_model(MODEL_ARCH_GEMMA4, CONVERT_F32, DTYPE_F32);
    check_model(MODEL_ARCH_GEMMA4, CONVERT_F16, DTYPE_F16);
    check_model(MODEL_ARCH_PHI3, CONVERT_Q8_0, DTYPE_F16);
    check_model(MODEL_ARCH_MISTRAL3, CONVERT_Q6_K, DTYPE_F16);
    check_model(MODEL_ARCH_GLM4, CONVERT_Q4_K_M, DTYPE_Q8_0);
    check_model(MODEL_ARCH_GRANITE, CONVERT_F32, DTYPE_F32);
    check_model(MODEL_ARCH_OLMO2, CONVERT_Q8_0, DTYPE_F16);
    check_model(MODEL_ARCH_SMOLLM3, CONVERT_F16, DTYPE_F16);
    check_model(MODEL_ARCH_COMMAND_R, CONVERT_F32, DTYPE_F32);
    check_model(MODEL_ARCH_COHERE2, CONVERT_Q4_K_M, DTYPE_F16);
    check_model(MODEL_ARCH_STARCODER2, CONVERT_BF16, DTYPE_F16);
    check_model(MODEL_ARCH_QWEN2MOE, CONVERT_F32, DTYPE_F32);
    check_model(MODEL_ARCH_QWEN3MOE, CONVERT_F32, DTYPE_F32);
    check_model(MODEL_ARCH_GRANITEMOE, CONVERT_F32, DTYPE_F32);
    check_model(MODEL_ARCH_GPT_OSS, CONVERT_F32, DTYPE_F32);
    check_model(MODEL_ARCH_LLAMA4, CONVERT_F32, DTYPE_F32);
    check_model(MODEL_ARCH_DEEPSEEK2, CONVERT_F32, DTYPE_F32);
    check_any(MODEL_ARCH_GEMMA4, CONVERT_F32, DTYPE_F32, true);
}

/* ---- Uploads -------------------------------------------------------------------------------- */

/* Enough rows for the output to be uploaded in several runs of them, the last one short. */
#define LONG_VOCABULARY 36000u
#define BLOCKS 8u /* of Q8_0 that become one of Q8_0_X8: 2 bytes of scale and 32 levels each */

struct found_weight {
    struct device_view view;
    const char *name;
};

static enum status find_weight(void *context, const char *name, const struct device_view *view,
                               struct error *err)
{
    struct found_weight *found = context;
    (void)err;
    if (strcmp(name, found->name) == 0)
        found->view = *view;
    return STATUS_OK;
}

static void check_repacked(const struct gguf_tensor *tensor, const uint8_t *found)
{
    for (uint64_t at = 0; at < tensor->bytes; at += BLOCKS * 34) {
        const uint8_t *from = tensor->data + at, *to = found + at;
        for (uint32_t block = 0; block < BLOCKS; block++)
            if (memcmp(to + block * 32, from + block * 34 + 2, 32) != 0 ||
                memcmp(to + BLOCKS * 32 + block * 2, from + block * 34, 2) != 0)
                fail_msg("block %u at byte %ju is another one", block, (uintmax_t)at);
    }
}

/* Weights are on the device as they are in the file, or in the layout that the device prefers, and
 * may not be written; progress counts them up to the end. */
static bool note_progress(void *context, uint64_t done, uint64_t total)
{
    uint64_t *last = context;
    assert_true(done <= total);
    *last = done;
    return true;
}

static bool stop(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    return done < total / 2;
}

static void test_uploads(void **state)
{
    (void)state;
    struct temp_folder folder;
    struct gguf_file *file;
    struct model_report report;
    struct run run = { 0 };
    struct model_shape shape = *model_shape_find("tiny");
    uint64_t bytes, done = 0;
    shape.block_count = 1;
    shape.vocab_size = LONG_VOCABULARY;
    temp_folder_init(&folder);
    struct temp_path path = temp_folder_path(&folder, "model.gguf");
    struct convert_synth request = {
        .shape = shape, .type = CONVERT_Q8_0, .seed = 3, .path = path.text
    };
    CHECK_OK(convert_synth(&request, NULL, &bytes, &run.err), &run.err);
    CHECK_OK(gguf_open(path.text, &file, &run.err), &run.err);
    model_check(file, NULL, &report);
    struct progress progress = { stop, NULL };
    struct engine_options engine_options = { .context = 64, .progress = &progress };
    open_device(&run, lab_device);
    CHECK_FAILS(engine_open(&run.ops, file, &report, &engine_options, &run.engine, &run.err),
                STATUS_INTERRUPTED, &run.err);
    assert_int_equal(device_used_bytes(run.device), 0);
    progress = (struct progress){ note_progress, &done };
    CHECK_OK(engine_open(&run.ops, file, &report, &engine_options, &run.engine, &run.err),
             &run.err);
    assert_int_equal(done, engine_budget(run.engine)->weight_bytes);
    static const char *const names[] = { "output.weight", "token_embd.weight" };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct found_weight found = { .name = names[i] };
        const struct gguf_tensor *tensor = gguf_tensor_find(file, names[i]);
        CHECK_OK(engine_weights_visit(run.engine, find_weight, &found, &run.err), &run.err);
        assert_non_null(tensor);
        uint8_t *back = malloc(tensor->bytes);
        assert_non_null(back);
        CHECK_OK(device_read(run.device, engine_stream(run.engine), &found.view, back, DEVICE_HERE,
                             &run.err),
                 &run.err);
        if (found.view.dtype == DTYPE_Q8_0_X8)
            check_repacked(tensor, back);
        else
            assert_memory_equal(back, tensor->data, tensor->bytes);
        assert_int_equal(found.view.dtype, i == 0 ? DTYPE_Q8_0_X8 : DTYPE_Q8_0);
        CHECK_FAILS(device_fill(run.device, engine_stream(run.engine), &found.view, 0, DEVICE_HERE,
                                &run.err),
                    STATUS_REFUSED, &run.err);
        free(back);
    }
    engine_close(run.engine);
    /* A file that is cut while it is read ends the upload, and nothing else. */
    assert_int_equal(truncate(path.text, (off_t)(bytes / 2)), 0);
    CHECK_FAILS(engine_open(&run.ops, file, &report, &engine_options, &run.engine, &run.err),
                STATUS_IO, &run.err);
    check_contains("the message", run.err.text, "became shorter while it was read");
    assert_int_equal(device_check(run.device, &run.err), STATUS_OK);
    close_device(&run);
    gguf_close(file);
    temp_folder_release(&folder);
}

int main(int argument_count, char **arguments)
{
    if (!lab_choose_named(argument_count, arguments))
        return LAB_SKIPPED;
    shape_name = argument_count > 2 ? arguments[2] : NULL;
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_models),
                                        cmocka_unit_test(test_families),
                                        cmocka_unit_test(test_uploads),
                                        cmocka_unit_test(test_sequences) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
