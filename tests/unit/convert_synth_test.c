/* convert_synth_test.c - synthetic models: shapes that run, weights that look like weights. */
#include "convert_model.h"

#include "convert/synth_random.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Randomness ----------------------------------------------------------------------------- */

/* Same seed, same bytes, also tomorrow and on another machine. */
static void test_random_numbers_are_pinned(void **state)
{
    (void)state;
    uint64_t counter = 0;
    assert_true(random_next(&counter) == 0xE220A8397B1DCDAFu); /* as SplitMix64 is published */
    assert_true(random_next(&counter) == 0x6E789E6AA1B965F4u);
    assert_true(random_next(&counter) == 0x06C45D188009454Fu);
    assert_true(random_seed(1, "a") != random_seed(1, "b"));
    assert_true(random_seed(1, "a") != random_seed(2, "a"));
    assert_true(random_seed(1, "ab") != random_seed(1, "ba"));
}

static void test_seed(void **state)
{
    (void)state;
    struct temp_folder folder;
    temp_folder_init(&folder);
    struct model_shape shape = small_shape(MODEL_ARCH_LLAMA);
    synth_model(&folder, "one", &shape, CONVERT_Q4_K_M, 1);
    synth_model(&folder, "again", &shape, CONVERT_Q4_K_M, 1);
    synth_model(&folder, "two", &shape, CONVERT_Q4_K_M, 2);
    assert_true(same_files(&folder, "one", "again"));
    struct gguf_file *one = open_model(&folder, "one");
    struct gguf_file *two = open_model(&folder, "two");
    for (size_t i = 0; i < gguf_tensor_count(one); i++) {
        const struct gguf_tensor *tensor = gguf_tensor_at(one, i);
        if (memcmp(tensor->data, gguf_tensor_at(two, i)->data, (size_t)tensor->bytes) == 0)
            fail_msg("tensor %zu does not depend on the seed", i);
    }
    gguf_close(one);
    gguf_close(two);
    temp_folder_release(&folder);
}

/* ---- Weights -------------------------------------------------------------------------------- */

static bool ends_with(struct text_view name, const char *end)
{
    size_t length = strlen(end);
    return name.length >= length && memcmp(name.bytes + name.length - length, end, length) == 0;
}

/* What synth.c promises of a tensor's values. */
static void promised(const struct gguf_tensor *tensor, const struct model_shape *shape,
                     double *ret_mean, double *ret_deviation)
{
    bool factor = ends_with(tensor->name, "norm.weight") ||
                  ends_with(tensor->name, "sinks.weight") ||
                  ends_with(tensor->name, "_scale.weight");
    *ret_mean = factor ? 1 : 0;
    *ret_deviation = 1 / sqrt((double)tensor->shape.dims[0]);
    if (ends_with(tensor->name, "ffn_gate_inp_shexp.weight"))
        *ret_mean = 0; /* the one row of a matrix */
    else if (tensor->shape.dims[1] == 1 || ends_with(tensor->name, ".bias"))
        *ret_deviation = 0.05;
    else if (text_view_is(tensor->name, "token_embd.weight") && !shape->tied_embeddings)
        *ret_deviation = 1;
    else if (ends_with(tensor->name, "attn_output.weight") ||
             ends_with(tensor->name, "ffn_down.weight") ||
             ends_with(tensor->name, "ffn_down_exps.weight") ||
             ends_with(tensor->name, "ffn_down_shexp.weight"))
        *ret_deviation /= sqrt(2.0 * shape->block_count);
}

/* Mean, deviation, the share within one deviation (68.3 %), and no value beyond 6. */
static void check_gaussian(const char *what, const struct gguf_tensor *tensor,
                           const struct model_shape *shape)
{
    double mean, deviation, sum = 0, squares = 0, largest = 0;
    size_t count, within = 0;
    float *values = tensor_values(tensor, &count);
    promised(tensor, shape, &mean, &deviation);
    if (quant_first_bad(values, count) != count)
        fail_msg("%s: not finite", what);
    for (size_t i = 0; i < count; i++) {
        double from_mean = (values[i] - mean) / deviation;
        sum += from_mean;
        squares += from_mean * from_mean;
        within += fabs(from_mean) < 1;
        largest = fabs(from_mean) > largest ? fabs(from_mean) : largest;
    }
    free(values);
    /* Short vectors have a wider spread: 4 sigma of each statistic, and what quantizing adds. */
    double root = sqrt((double)count);
    double share = (double)within / (double)count;
    double codes = tensor->dtype == DTYPE_MXFP4 ? 0.09 : 0.04; /* its values are few */
    if (fabs(sum / (double)count) > 0.02 + 4 / root ||
        fabs(sqrt(squares / (double)count) - 1) > 0.02 + 3 / root ||
        fabs(share - 0.683) > codes + 2 / root || largest > 6.2)
        fail_msg("%s %.*s %s: mean %g, deviation %g, %g within one, largest %g", what,
                 (int)tensor->name.length, tensor->name.bytes, dtype_name(tensor->dtype),
                 sum / (double)count, sqrt(squares / (double)count), share, largest);
}

static uint64_t row_bytes_of(const struct gguf_tensor *tensor)
{
    return tensor->bytes / tensor->shape.dims[1];
}

static size_t compared_bytes; /* of a row; qsort has no context */

static int by_bytes(const void *left, const void *right)
{
    return memcmp(left, right, compared_bytes);
}

static void check_rows_distinct(const char *what, const struct gguf_tensor *tensor)
{
    compared_bytes = (size_t)row_bytes_of(tensor);
    size_t rows = (size_t)tensor->shape.dims[1];
    char *sorted = malloc((size_t)tensor->bytes);
    assert_non_null(sorted);
    memcpy(sorted, tensor->data, (size_t)tensor->bytes);
    qsort(sorted, rows, compared_bytes, by_bytes);
    for (size_t i = 1; i < rows; i++)
        if (by_bytes(sorted + (i - 1) * compared_bytes, sorted + i * compared_bytes) == 0)
            fail_msg("%s: two rows of the embedding are equal", what);
    free(sorted);
}

static void check_runs(const char *what, const struct gguf_file *file)
{
    static struct model_report report;
    model_check(file, NULL, &report);
    if (report.problem_count)
        fail_msg("%s: %s", what, report.problems[0].text);
    assert_false(model_report_refuses(&report, false));
}

static void test_every_architecture_and_type(void **state)
{
    (void)state;
    struct temp_folder folder;
    temp_folder_init(&folder);
    for (int i = 0; i < MODEL_ARCH_COUNT * CONVERT_TYPE_COUNT; i++) {
        enum model_arch arch = (enum model_arch)(i / CONVERT_TYPE_COUNT);
        enum convert_type type = (enum convert_type)(i % CONVERT_TYPE_COUNT);
        struct model_shape shape = small_shape(arch);
        shape.tied_embeddings = i % 2;
        char name[64];
        snprintf(name, sizeof(name), "%s %s", model_arch_info(arch)->name, convert_type_name(type));
        synth_model(&folder, name, &shape, type, 7);
        struct gguf_file *file = open_model(&folder, name);
        check_runs(name, file);
        for (size_t t = 0; t < gguf_tensor_count(file); t++)
            check_gaussian(name, gguf_tensor_at(file, t), &shape);
        check_rows_distinct(name, gguf_tensor_find(file, "token_embd.weight"));
        gguf_close(file);
    }
    assert_int_equal(temp_folder_count(&folder), MODEL_ARCH_COUNT * CONVERT_TYPE_COUNT);
    temp_folder_release(&folder);
}

/* Many short rows are where drawing blocks from a pool would give equal ones; rows that are no
 * whole blocks are where a tensor ends inside a draw. */
static void test_awkward_rows(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t width, feed, vocab;
        enum convert_type type;
    } rows[] = {
        { "one block a row", 256, 256, 20000, CONVERT_Q4_K_M },
        { "one small block a row", 32, 32, 20000, CONVERT_Q8_0 },
        { "three blocks a row", 96, 32, 20000, CONVERT_Q4_0 },
        { "four blocks a row", 128, 32, 20000, CONVERT_Q8_0 },
        { "eight floats a row", 8, 8, 20000, CONVERT_F32 },
        { "rows that are no blocks", 72, 172, 1000, CONVERT_Q4_K_M },
    };
    struct temp_folder folder;
    temp_folder_init(&folder);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct model_shape shape = small_shape(MODEL_ARCH_LLAMA);
        shape.embedding_length = rows[i].width;
        shape.feed_forward_length = rows[i].feed;
        shape.vocab_size = rows[i].vocab;
        shape.head_dim = 8;
        synth_model(&folder, rows[i].name, &shape, rows[i].type, 1);
        struct gguf_file *file = open_model(&folder, rows[i].name);
        check_runs(rows[i].name, file);
        check_rows_distinct(rows[i].name, gguf_tensor_find(file, "token_embd.weight"));
        check_rows_distinct(rows[i].name, gguf_tensor_find(file, "output.weight"));
        gguf_close(file);
    }
    temp_folder_release(&folder);
}

/* Llama 3.1's divisors: base 500000, heads of 128, factor 8. */
static void test_rope_divisors(void **state)
{
    (void)state;
    static const float blended[] = { 1.20748f, 1.55341f, 2.02631f, 2.69453f, 3.68425f, 5.25733f };
    struct temp_folder folder;
    temp_folder_init(&folder);
    struct model_shape shape = small_shape(MODEL_ARCH_LLAMA);
    shape.head_dim = 128;
    shape.rope_base = 5e5f;
    shape.rope_freqs_factor = 8;
    synth_model(&folder, "m", &shape, CONVERT_Q8_0, 1);
    struct gguf_file *file = open_model(&folder, "m");
    check_runs("rope_freqs", file);
    size_t count;
    float *values = tensor_values(gguf_tensor_find(file, "rope_freqs.weight"), &count);
    assert_int_equal(count, 64);
    for (size_t i = 0; i < count; i++) {
        float expected = i < 29 ? 1 : i < 35 ? blended[i - 29] : 8;
        if (fabsf(values[i] - expected) > 0.6e-5f)
            fail_msg("divisor %zu: expected %g, found %.7g", i, expected, values[i]);
    }
    free(values);
    gguf_close(file);
    temp_folder_release(&folder);
}

/* ---- Requests that make no sense, and runs that stop ---------------------------------------- */

static void test_impossible_shapes(void **state)
{
    (void)state;
    static const struct {
        size_t offset;
        uint32_t value;
        const char *words;
    } rows[] = {
        { offsetof(struct model_shape, embedding_length), 0, "--width: expected 1 to" },
        { offsetof(struct model_shape, block_count), 0, "--layers: expected 1 to 4096, found 0" },
        { offsetof(struct model_shape, block_count), 4097, "--layers: expected 1 to 4096" },
        { offsetof(struct model_shape, feed_forward_length), 1u << 21, "--ffn" },
        { offsetof(struct model_shape, head_count), 0, "--heads" },
        { offsetof(struct model_shape, head_count_kv), 0, "--kv-heads" },
        { offsetof(struct model_shape, head_count_kv), 3, "--kv-heads: expected a divisor of" },
        { offsetof(struct model_shape, head_dim), 12, "--head-dim: expected a multiple of 8" },
        { offsetof(struct model_shape, head_dim), 0, "--head-dim" },
        { offsetof(struct model_shape, vocab_size), 258, "--vocab: expected 259 to" },
        { offsetof(struct model_shape, context_length), 0, "--context" },
    };
    struct temp_folder folder;
    temp_folder_init(&folder);
    struct temp_path path = temp_folder_path(&folder, "m");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct convert_synth request = { .shape = small_shape(MODEL_ARCH_LLAMA),
                                         .path = path.text };
        struct error err;
        uint64_t bytes = 0;
        memcpy((char *)&request.shape + rows[i].offset, &rows[i].value, sizeof(rows[i].value));
        CHECK_FAILS(convert_synth(&request, NULL, &bytes, &err), STATUS_USAGE, &err);
        check_contains("words", err.text, rows[i].words);
    }
    assert_int_equal(temp_folder_count(&folder), 0);
    temp_folder_release(&folder);
}

struct watcher {
    int calls, stop_at; /* stop_at 0: never */
    uint64_t last_done, total;
};

static bool watch(void *context, uint64_t done, uint64_t total)
{
    struct watcher *watcher = context;
    assert_true(done >= watcher->last_done && done <= total);
    watcher->last_done = done;
    watcher->total = total;
    return ++watcher->calls != watcher->stop_at;
}

static void test_interrupted_anywhere(void **state)
{
    (void)state;
    struct temp_folder folder;
    temp_folder_init(&folder);
    struct temp_path path = temp_folder_path(&folder, "m");
    struct convert_synth request = { .shape = small_shape(MODEL_ARCH_QWEN3),
                                     .type = CONVERT_Q8_0,
                                     .path = path.text };
    struct watcher watcher = { 0 };
    struct progress progress = { watch, &watcher };
    struct error err;
    uint64_t bytes = 0;
    CHECK_OK(convert_synth(&request, &progress, &bytes, &err), &err);
    assert_int_equal(watcher.total, bytes);
    int calls = watcher.calls;
    request.replace = true;
    remove(path.text);
    for (int stop_at = 1; stop_at <= calls; stop_at++) {
        watcher = (struct watcher){ .stop_at = stop_at };
        CHECK_FAILS(convert_synth(&request, &progress, &bytes, &err), STATUS_INTERRUPTED, &err);
        assert_int_equal(temp_folder_count(&folder), 0);
    }
    temp_folder_release(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_numbers_are_pinned),
        cmocka_unit_test(test_seed),
        cmocka_unit_test(test_every_architecture_and_type),
        cmocka_unit_test(test_awkward_rows),
        cmocka_unit_test(test_rope_divisors),
        cmocka_unit_test(test_impossible_shapes),
        cmocka_unit_test(test_interrupted_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
