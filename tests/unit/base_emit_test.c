/* base_emit_test.c - one call order, two renderings; the JSON is parsed back. */
#include "test.h"

#include "base/emit.h"
#include "temp_folder.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls build for a new emit and returns what emit_finish wrote; free it. */
static char *render(enum emit_format format, void (*build)(struct emit *emit))
{
    struct emit *emit;
    struct error err;
    char *bytes = NULL;
    size_t count = 0;
    FILE *out = open_memstream(&bytes, &count);
    assert_non_null(out);
    CHECK_OK(emit_create(format, &emit, &err), &err);
    assert_int_equal(emit_is_json(emit), format == EMIT_JSON);
    build(emit);
    CHECK_OK(emit_finish(emit, out, &err), &err);
    emit_destroy(emit);
    fclose(out);
    return bytes;
}

static void check_text(void (*build)(struct emit *emit), const char *expected)
{
    char *text = render(EMIT_TEXT, build);
    assert_string_equal(text, expected);
    free(text);
}

/* The parsed JSON; json_decref it. */
static json_t *parse(void (*build)(struct emit *emit))
{
    char *text = render(EMIT_JSON, build);
    json_error_t error;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!root)
        fail_msg("%s in %s", error.text, text);
    assert_int_equal(text[strlen(text) - 1], '\n');
    free(text);
    return root;
}

/* ---- Shapes --------------------------------------------------------------------------------- */

static void build_nested(struct emit *emit)
{
    emit_text(emit, "file", "m.gguf");
    emit_object_begin(emit, "model");
    emit_text(emit, "name", "llama");
    emit_count(emit, "head_count_kv", 8);
    emit_object_begin(emit, "rope");
    emit_flag(emit, "on", true);
    emit_object_end(emit);
    emit_object_end(emit);
    emit_list_begin(emit, "problems");
    emit_text(emit, NULL, "one");
    emit_count(emit, NULL, 2);
    emit_list_end(emit);
    emit_list_begin(emit, "nothing");
    emit_list_end(emit);
    emit_integer(emit, "last", -5);
}

static void test_nested(void **state)
{
    (void)state;
    check_text(build_nested, "file  m.gguf\n"
                             "model\n"
                             "  name           llama\n"
                             "  head count kv  8\n"
                             "  rope\n"
                             "    on  yes\n"
                             "problems\n"
                             "  - one\n"
                             "  - 2\n"
                             "nothing\n"
                             "last  -5\n");
    json_t *root = parse(build_nested);
    json_t *model = json_object_get(root, "model");
    assert_string_equal(json_string_value(json_object_get(root, "file")), "m.gguf");
    assert_int_equal(json_integer_value(json_object_get(model, "head_count_kv")), 8);
    assert_true(json_is_true(json_object_get(json_object_get(model, "rope"), "on")));
    json_t *problems = json_object_get(root, "problems");
    assert_int_equal(json_array_size(problems), 2);
    assert_int_equal(json_integer_value(json_array_get(problems, 1)), 2);
    assert_int_equal(json_array_size(json_object_get(root, "nothing")), 0);
    assert_int_equal(json_integer_value(json_object_get(root, "last")), -5);
    json_decref(root);
}

static void build_table(struct emit *emit)
{
    static const struct {
        const char *name;
        uint64_t count, bytes;
    } rows[] = { { "Q4_K", 7, 2048 }, { "\xC3\xA9", 12345, 5 } };
    emit_list_begin(emit, "types");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        emit_object_begin(emit, NULL);
        emit_text(emit, "type", rows[i].name);
        emit_count(emit, "tensor_count", rows[i].count);
        emit_bytes(emit, "size", rows[i].bytes);
        emit_object_end(emit);
    }
    emit_list_end(emit);
}

static void test_table(void **state)
{
    (void)state;
    check_text(build_table, "types\n"
                            "  type  tensor count  size\n"
                            "  Q4_K             7  2.00 KiB\n"
                            "  \xC3\xA9            12345  5 bytes\n");
    json_t *root = parse(build_table);
    json_t *row = json_array_get(json_object_get(root, "types"), 0);
    assert_int_equal(json_integer_value(json_object_get(row, "size")), 2048);
    json_decref(root);
}

/* ---- Values --------------------------------------------------------------------------------- */

static void build_values(struct emit *emit)
{
    emit_count(emit, "largest_signed", INT64_MAX);
    emit_count(emit, "largest", UINT64_MAX);
    emit_integer(emit, "least", INT64_MIN);
    emit_bytes(emit, "size", 4921246720u);
    emit_real(emit, "epsilon", 1e-5f);
    emit_real(emit, "nan", NAN);
    emit_real(emit, "infinite", -INFINITY);
    emit_flag(emit, "off", false);
    emit_index(emit, "layer", 7);
    emit_index(emit, "head", -1);
    emit_note(emit, "note", "for people");
    emit_textf(emit, "made", "%d of %s", 3, "four");
}

static void test_values(void **state)
{
    (void)state;
    check_text(build_values, "largest signed  9223372036854775807\n"
                             "largest         18446744073709551615\n"
                             "least           -9223372036854775808\n"
                             "size            4.58 GiB\n"
                             "epsilon         1e-05\n"
                             "nan             nan\n"
                             "infinite        -inf\n"
                             "off             no\n"
                             "layer           7\n"
                             "head            none\n"
                             "note            for people\n"
                             "made            3 of four\n");
    json_t *root = parse(build_values);
    assert_true(json_integer_value(json_object_get(root, "largest_signed")) == INT64_MAX);
    /* Beyond what a JSON reader may keep exactly: as text. */
    assert_string_equal(json_string_value(json_object_get(root, "largest")),
                        "18446744073709551615");
    assert_true(json_integer_value(json_object_get(root, "least")) == INT64_MIN);
    assert_true(json_integer_value(json_object_get(root, "size")) == 4921246720);
    assert_true((float)json_real_value(json_object_get(root, "epsilon")) == 1e-5f);
    assert_string_equal(json_string_value(json_object_get(root, "nan")), "nan");
    assert_string_equal(json_string_value(json_object_get(root, "infinite")), "-inf");
    assert_true(json_is_false(json_object_get(root, "off")));
    assert_int_equal(json_integer_value(json_object_get(root, "layer")), 7);
    assert_true(json_is_null(json_object_get(root, "head")));
    assert_null(json_object_get(root, "note"));
    json_decref(root);
}

static void build_foreign(struct emit *emit)
{
    emit_view(emit, "nul", (struct text_view){ "a\0b", 3 });
    emit_view(emit, "invalid", (struct text_view){ "\xFFz", 2 });
    emit_view(emit, "escape", (struct text_view){ "\x1B[2J\n", 5 });
    emit_view(emit, "quote", (struct text_view){ "\"\\", 2 });
    emit_text(emit, "bad_text", "caf\xE9");
    emit_textf(emit, "path", "%s/red", "\x1B[31m\xE2\x80\x8B");
}

static void test_foreign_bytes(void **state)
{
    (void)state;
    check_text(build_foreign, "nul       a\\x00b\n"
                              "invalid   \\xFFz\n"
                              "escape    \\x1B[2J\\x0A\n"
                              "quote     \"\\\n"
                              "bad text  caf\\xE9\n"
                              "path      \\x1B[31m\\xE2\\x80\\x8B/red\n");
    json_t *root = parse(build_foreign);
    json_t *nul = json_object_get(root, "nul");
    assert_int_equal(json_string_length(nul), 3);
    assert_memory_equal(json_string_value(nul), "a\0b", 3);
    assert_string_equal(json_string_value(json_object_get(root, "invalid")), "\\xFFz");
    assert_string_equal(json_string_value(json_object_get(root, "escape")), "\x1B[2J\n");
    assert_string_equal(json_string_value(json_object_get(root, "quote")), "\"\\");
    assert_string_equal(json_string_value(json_object_get(root, "bad_text")), "caf\\xE9");
    assert_string_equal(json_string_value(json_object_get(root, "path")),
                        "\x1B[31m\xE2\x80\x8B/red");
    json_decref(root);
}

static void build_long(struct emit *emit)
{
    char template[1001];
    memset(template, 't', sizeof(template) - 1);
    template[1000] = '\0';
    emit_view(emit, "chat", text_view_of(template));
}

static void test_long_text_is_cut_for_people_only(void **state)
{
    (void)state;
    char *text = render(EMIT_TEXT, build_long);
    assert_true(strlen(text) < 200);
    check_contains("cut", text, "ttt...\n");
    free(text);
    json_t *root = parse(build_long);
    assert_int_equal(json_string_length(json_object_get(root, "chat")), 1000);
    json_decref(root);
}

static void test_nothing(void **state)
{
    (void)state;
    struct emit *emit;
    struct error err;
    FILE *full = fopen("/dev/full", "w");
    if (!full)
        skip();
    CHECK_OK(emit_create(EMIT_JSON, &emit, &err), &err);
    CHECK_FAILS(emit_finish(emit, full, &err), STATUS_IO, &err);
    check_contains("why", err.text, "No space left");
    emit_destroy(emit);
    emit_destroy(NULL);
    fclose(full);
}

/* ---- Without memory ------------------------------------------------------------------------- */

static int allocations_left; /* of jansson, until one fails; later ones go well again */

static void *allocate_or_fail(size_t bytes)
{
    return allocations_left-- == 0 ? NULL : malloc(bytes);
}

static void build_everything(struct emit *emit)
{
    build_nested(emit);
    build_table(emit);
    build_values(emit);
    build_foreign(emit);
}

/* Fails the first allocation, then the second, and so on: each time the failure is reported at the
 * end and nothing else happens. */
static void test_every_allocation_may_fail(void **state)
{
    (void)state;
    FILE *out = fopen("/dev/null", "w");
    assert_non_null(out);
    json_set_alloc_funcs(allocate_or_fail, free);
    int failures = 0;
    bool done = false;
    for (int i = 0; !done && i < 10000; i++) {
        struct emit *emit = NULL;
        struct error err;
        allocations_left = i;
        enum status status = emit_create(i % 2 ? EMIT_TEXT : EMIT_JSON, &emit, &err);
        if (!status) {
            build_everything(emit);
            status = emit_finish(emit, out, &err);
        }
        done = allocations_left >= 0;
        if (!done && status)
            CHECK_FAILS(status, STATUS_NO_MEMORY, &err);
        failures += status == STATUS_NO_MEMORY;
        emit_destroy(emit);
    }
    json_set_alloc_funcs(malloc, free);
    fclose(out);
    assert_true(done);
    assert_true(failures > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_foreign_bytes),
        cmocka_unit_test(test_long_text_is_cut_for_people_only),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
