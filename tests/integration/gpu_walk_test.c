/* gpu_walk_test.c - a graph as one kernel against the same graph as a kernel for each launch: the
 * same bits of every logit, of models of every type it can do, and the other way taken for those it
 * cannot; a planted fault has the name of its own launch.
 *
 *     gpu_walk_test DEVICE [OP:LAYER:OPERAND]     the fault: OPERAND of OP is nowhere
 *     gpu_walk_test DEVICE lost-block                     a block never comes (emulated alone) */
#include "ops_lab.h"

#include "convert/convert.h"
#include "device/device_impl.h"
#include "engine/engine.h"
#include "temp_folder.h"

#include <dlfcn.h>

static const char *planted;

struct model {
    struct temp_folder folder;
    struct gguf_file *file;
    struct model_report report;
    struct error err;
};

static struct model_shape narrow_shape(void)
{
    struct model_shape shape = *model_shape_find("tiny");
    shape.block_count = 2;
    shape.head_count = 4;
    shape.head_count_kv = 2;
    shape.head_dim = 64;
    shape.vocab_size = 320;
    shape.context_length = 384;
    return shape;
}

/* Rows of several teams, the last of them short; an odd number of rows; every head for itself. */
static struct model_shape wide_shape(void)
{
    struct model_shape shape = narrow_shape();
    shape.embedding_length = 512;
    shape.feed_forward_length = 2304;
    shape.head_count = shape.head_count_kv = 4;
    shape.head_dim = 128;
    shape.vocab_size = 333;
    shape.block_count = 3;
    return shape;
}

/* Q6_K is laid out for it where rows are multiples of 2048. */
static struct model_shape k_shape(void)
{
    struct model_shape shape = narrow_shape();
    shape.embedding_length = shape.feed_forward_length = 2048;
    shape.vocab_size = 261;
    shape.block_count = 1;
    return shape;
}

static void write_model(struct model *model, const struct model_shape *shape,
                        enum convert_type type)
{
    temp_folder_init(&model->folder);
    struct temp_path path = temp_folder_path(&model->folder, "model.gguf");
    struct convert_synth request = { .shape = *shape, .type = type, .seed = 7, .path = path.text };
    uint64_t bytes;
    CHECK_OK(convert_synth(&request, NULL, &bytes, &model->err), &model->err);
    CHECK_OK(gguf_open(path.text, &model->file, &model->err), &model->err);
    model_check(model->file, NULL, &model->report);
    assert_false(model_report_refuses(&model->report, false));
}

static void remove_model(struct model *model)
{
    gguf_close(model->file);
    temp_folder_release(&model->folder);
}

/* How often the emulated driver has run a kernel; -1 on a real one, which does not say. */
static long ran(const char *kernel)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *symbol = library ? dlsym(library, "fake_gpu_ran") : NULL;
    long (*ask)(const char *) = NULL;
    memcpy(&ask, &symbol, sizeof(ask));
    long count = ask ? ask(kernel) : -1;
    if (library)
        dlclose(library);
    return count;
}

struct run {
    struct device *device;
    struct ops ops;
    struct engine *engine;
    struct error err;
};

static void open_run(struct run *run, const struct model *model, bool walk, enum dtype kv_dtype,
                     struct device_options options)
{
    struct engine_options engine_options = { .kv_dtype = kv_dtype };
    memset(run, 0, sizeof(*run));
    options.walk = walk;
    CHECK_OK(all_open(lab_device, &options, &run->device, &run->err), &run->err);
    CHECK_OK(ops_load(&run->ops, run->device, CPU_PATH_COUNT, &run->err), &run->err);
    CHECK_OK(engine_open(&run->ops, model->file, &model->report, &engine_options, &run->engine,
                         &run->err),
             &run->err);
}

static void close_run(struct run *run)
{
    engine_close(run->engine);
    assert_int_equal(device_used_bytes(run->device), 0);
    device_close(run->device);
}

static enum status forward(struct run *run, int32_t id)
{
    struct engine_token token = { id, 0, true };
    return engine_forward(run->engine, &token, 1, &run->err);
}

/* A prompt, then the logits of `steps` tokens behind it, one by one. */
static void decode(struct run *run, size_t prompt, size_t steps, size_t vocab, float *logits)
{
    struct engine_token *tokens = calloc(prompt, sizeof(*tokens));
    assert_non_null(tokens);
    for (size_t i = 0; i < prompt; i++)
        tokens[i] = (struct engine_token){ (int32_t)(i * 37 % 250), 0, i + 1 == prompt };
    CHECK_OK(engine_forward(run->engine, tokens, prompt, &run->err), &run->err);
    for (size_t i = 0; i < steps; i++) {
        CHECK_OK(forward(run, (int32_t)(i * 53 % 250)), &run->err);
        CHECK_OK(engine_logits(run->engine, 0, logits + i * vocab, &run->err), &run->err);
    }
    free(tokens);
}

struct scene {
    struct model_shape shape;
    enum convert_type type;
    enum dtype kv_dtype;
    size_t prompt, steps;
    bool walked;
};

static void check_scene(const struct scene *scene)
{
    struct model model;
    struct run run;
    write_model(&model, &scene->shape, scene->type);
    size_t vocab = model.report.config.vocab_size, count = scene->steps * vocab;
    float *plain = malloc(count * sizeof(float)), *walked = malloc(count * sizeof(float));
    assert_true(plain && walked);
    struct device_options options = { .guards = true, .poison = true };
    open_run(&run, &model, false, scene->kv_dtype, options);
    decode(&run, scene->prompt, scene->steps, vocab, plain);
    close_run(&run);
    long before = ran("walk_graph");
    open_run(&run, &model, true, scene->kv_dtype, options);
    decode(&run, scene->prompt, scene->steps, vocab, walked);
    close_run(&run);
    const char *name = convert_type_name(scene->type);
    bool walks = scene->walked && strncmp(lab_device, "hip", 3) != 0; /* NVIDIA's alone */
    if (before >= 0 && ran("walk_graph") - before != (walks ? (long)scene->steps : 0))
        fail_msg("%s: %ld walks of %zu steps", name, ran("walk_graph") - before, scene->steps);
    for (size_t i = 0; i < count; i++)
        if (memcmp(&plain[i], &walked[i], sizeof(float)) != 0)
            fail_msg("%s, step %zu, logit %zu: expected %.9g, found %.9g", name, i / vocab,
                     i % vocab, (double)plain[i], (double)walked[i]);
    print_message("%s, %u wide, %zu tokens: %s, the same bits\n", name,
                  scene->shape.embedding_length, scene->prompt + scene->steps,
                  scene->walked ? "walked" : "a kernel each");
    free(plain);
    free(walked);
    remove_model(&model);
}

static void test_types(void **state)
{
    (void)state;
    check_scene(&(struct scene){ narrow_shape(), CONVERT_Q8_0, DTYPE_F16, 11, 3, true });
    check_scene(&(struct scene){ narrow_shape(), CONVERT_F16, DTYPE_F16, 3, 3, true });
    check_scene(&(struct scene){ wide_shape(), CONVERT_Q8_0, DTYPE_F16, 3, 3, true });
    check_scene(&(struct scene){ wide_shape(), CONVERT_BF16, DTYPE_F16, 3, 3, true });
}

/* Q4_K alone and with Q6_K in one group of products; Q6_K alone. */
static void test_k_types(void **state)
{
    (void)state;
    check_scene(&(struct scene){ k_shape(), CONVERT_Q4_K_M, DTYPE_F16, 3, 2, true });
    struct model_shape shape = k_shape();
    shape.head_count = 32; /* so that the output's rows are long enough */
    shape.head_count_kv = 4;
    shape.block_count = 1;
    setenv("FAKE_GPU_PROCESSORS", "5", 1); /* on fewer, heads share blocks of attention */
    check_scene(&(struct scene){ shape, CONVERT_Q6_K, DTYPE_F16, 2, 2, true });
    unsetenv("FAKE_GPU_PROCESSORS");
}

/* What it cannot do is done as before. */
static void test_others(void **state)
{
    (void)state;
    check_scene(&(struct scene){ narrow_shape(), CONVERT_F32, DTYPE_F16, 5, 3, false });
    check_scene(&(struct scene){ narrow_shape(), CONVERT_Q4_0, DTYPE_F16, 5, 3, false });
    check_scene(&(struct scene){ narrow_shape(), CONVERT_Q8_0, DTYPE_F32, 5, 3, false });
    struct model_shape shape = narrow_shape();
    shape.arch = MODEL_ARCH_QWEN3; /* norms of heads */
    check_scene(&(struct scene){ shape, CONVERT_Q8_0, DTYPE_F16, 5, 3, false });
    shape = *model_shape_find("stories260k");
    check_scene(&(struct scene){ shape, CONVERT_F32, DTYPE_F16, 5, 3, false });
}

/* Slots in several parts, and a graph that is replayed many times, on other numbers of processors.
 */
static void test_long(void **state)
{
    (void)state;
    setenv("FAKE_GPU_PROCESSORS", "5", 1);
    check_scene(&(struct scene){ narrow_shape(), CONVERT_Q8_0, DTYPE_F16, 140, 3, true });
    setenv("FAKE_GPU_PROCESSORS", "3", 1);
    check_scene(&(struct scene){ narrow_shape(), CONVERT_F16, DTYPE_F16, 8, 30, true });
    setenv("FAKE_GPU_PROCESSORS", "1", 1);
    check_scene(&(struct scene){ narrow_shape(), CONVERT_BF16, DTYPE_F16, 3, 2, true });
    /* More slots than a block weighs at once. */
    struct model_shape shape = narrow_shape();
    shape.block_count = shape.head_count_kv = 1;
    shape.head_count = 2;
    shape.head_dim = 128;
    check_scene(&(struct scene){ shape, CONVERT_BF16, DTYPE_F16, 270, 1, true });
    unsetenv("FAKE_GPU_PROCESSORS");
}

/* Biases of q, k and v. */
static void test_biases(void **state)
{
    (void)state;
    struct model_shape shape = narrow_shape();
    shape.arch = MODEL_ARCH_QWEN2;
    check_scene(&(struct scene){ shape, CONVERT_Q8_0, DTYPE_F16, 5, 3, true });
}

/* What is left at the end is done behind the walk: the output is the table of tokens, as it lies in
 * the file. */
static void test_tail(void **state)
{
    (void)state;
    struct model_shape shape = narrow_shape();
    shape.tied_embeddings = true;
    check_scene(&(struct scene){ shape, CONVERT_Q8_0, DTYPE_F16, 5, 3, true });
}

/* A graph whose inspections are made at its end is walked. */
static void test_inspected(void **state)
{
    (void)state;
    struct model model;
    struct run run;
    struct lab lab = { 0 };
    struct model_shape shape = narrow_shape();
    pthread_mutex_init(&lab.lock, NULL);
    write_model(&model, &shape, CONVERT_Q8_0);
    float *logits = malloc(model.report.config.vocab_size * sizeof(float));
    assert_non_null(logits);
    struct device_options options = { .observer = { lab_notify, &lab }, .scan_every = 1 };
    long before = ran("walk_graph");
    open_run(&run, &model, true, DTYPE_F16, options);
    decode(&run, 3, 1, model.report.config.vocab_size, logits);
    close_run(&run);
    assert_true(before < 0 || ran("walk_graph") == before + 1);
    free(logits);
    remove_model(&model);
    pthread_mutex_destroy(&lab.lock);
}

/* ---- Faults --------------------------------------------------------------------------------- */

static const struct device_methods *real;
static struct device_methods spoiling;
static struct device_command *spoilt; /* as long as the graph lives */
static char spoilt_op[32];
static int spoilt_layer, spoilt_operand;

/* Below all checks: one operand of one recorded launch is nowhere. */
static enum status spoil_graph(struct device *device, void *stream,
                               const struct device_command *commands, size_t count,
                               void **ret_graph, struct error *err)
{
    spoilt = malloc(count * sizeof(*spoilt));
    assert_non_null(spoilt);
    memcpy(spoilt, commands, count * sizeof(*spoilt));
    size_t hits = 0;
    for (size_t i = 0; i < count; i++)
        if (strcmp(spoilt[i].contract->name, spoilt_op) == 0 &&
            spoilt[i].scope.layer == spoilt_layer && hits++ == 0)
            spoilt[i].operands[spoilt_operand].data = (void *)(uintptr_t)UINT64_C(0x666000000000);
    assert_true(hits > 0);
    return real->graph_create(device, stream, spoilt, count, ret_graph, err);
}

static void test_fault(void **state)
{
    (void)state;
    struct model model;
    struct run run;
    struct model_shape shape = narrow_shape();
    char wanted[128];
    assert_int_equal(sscanf(planted, "%31[^:]:%d:%d", spoilt_op, &spoilt_layer, &spoilt_operand),
                     3);
    write_model(&model, &shape, CONVERT_Q8_0);
    open_run(&run, &model, true, DTYPE_F16, (struct device_options){ 0 });
    real = run.device->methods;
    spoiling = *real;
    spoiling.graph_create = spoil_graph;
    run.device->methods = &spoiling;
    long before = ran("walk_graph");
    enum status status = forward(&run, 1);
    if (!status)
        status = engine_wait(run.engine, &run.err);
    assert_int_equal(status, STATUS_LOST);
    assert_true(before < 0 || ran("walk_graph") > before);
    snprintf(wanted, sizeof(wanted), "first fault: %s,%s", spoilt_op,
             spoilt_layer < 0 ? "" : " layer 1");
    check_contains("the launch", run.err.text, wanted);
    engine_close(run.engine);
    device_close(run.device);
    free(spoilt);
    remove_model(&model);
}

/* A block that never comes is not waited for for ever. */
static void test_lost_block(void **state)
{
    (void)state;
    struct model model;
    struct run run;
    struct model_shape shape = narrow_shape();
    write_model(&model, &shape, CONVERT_Q8_0);
    open_run(&run, &model, true, DTYPE_F16, (struct device_options){ 0 });
    if (ran("walk_graph") >= 0) {
        setenv("FAKE_GPU_LOST_BLOCK", "1", 1);
        enum status status = forward(&run, 1);
        if (!status)
            status = engine_wait(run.engine, &run.err);
        assert_int_equal(status, STATUS_LOST);
        /* Of the first row that needs something of it. */
        check_contains("the launch", run.err.text, "first fault: rope, layer 0");
    }
    engine_close(run.engine);
    device_close(run.device);
    remove_model(&model);
}

int main(int argument_count, char **arguments)
{
    if (argument_count < 2) {
        printf("skipped: no device was named\n");
        return LAB_SKIPPED;
    }
    if (!lab_choose(argument_count, arguments))
        return LAB_SKIPPED;
    planted = argument_count > 2 ? arguments[2] : NULL;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),    cmocka_unit_test(test_k_types),
        cmocka_unit_test(test_others),   cmocka_unit_test(test_long),
        cmocka_unit_test(test_biases),   cmocka_unit_test(test_tail),
        cmocka_unit_test(test_inspected)
    };
    const struct CMUnitTest fault[] = { cmocka_unit_test(test_fault) };
    const struct CMUnitTest lost[] = { cmocka_unit_test(test_lost_block) };
    if (planted && strcmp(planted, "lost-block") == 0)
        return cmocka_run_group_tests(lost, NULL, NULL);
    return planted ? cmocka_run_group_tests(fault, NULL, NULL)
                   : cmocka_run_group_tests(tests, NULL, NULL);
}
