/* gguf_split_test.c - models in several files: found from any part, opened whole or not at all. */
#include "gguf_open.h"
#include "temp_folder.h"
#include "test.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define PARTS 3

/* What the parts say of themselves; a test changes what it wants to be wrong. */
struct part {
    bool has_no, has_count, has_total;
    uint64_t no, count, total;
    const char *tensor; /* of 8 floats */
};

struct model {
    struct temp_folder folder;
    struct part parts[PARTS];
};

static void model_init(struct model *model)
{
    static const char *const names[PARTS] = { "one", "two", "three" };
    temp_folder_init(&model->folder);
    for (uint64_t i = 0; i < PARTS; i++)
        model->parts[i] = (struct part){ true, true, true, i, PARTS, PARTS, names[i] };
}

static struct temp_path part_path(const struct model *model, uint32_t number)
{
    char name[64];
    snprintf(name, sizeof(name), "m-%05" PRIu32 "-of-%05d.gguf", number, PARTS);
    return temp_folder_path(&model->folder, name);
}

static void write_part(const struct model *model, const struct part *part, const char *name)
{
    struct gguf_build build;
    gguf_build_init(&build, 3);
    gguf_build_string(&build, "general.name", name);
    if (part->has_no)
        gguf_build_number(&build, "split.no", BUILD_U16, part->no);
    if (part->has_count)
        gguf_build_number(&build, "split.count", BUILD_U16, part->count);
    if (part->has_total)
        gguf_build_number(&build, "split.tensors.count", BUILD_I32, part->total);
    gguf_build_tensor(&build, part->tensor, 1, (const uint64_t[]){ 8 }, BUILD_TENSOR_F32, 32);
    gguf_build_finish(&build);
    temp_folder_write(&model->folder, name, text_get(&build.text), build.text.length);
    gguf_build_release(&build);
}

static void write_parts(const struct model *model)
{
    for (uint32_t i = 0; i < PARTS; i++) {
        char name[64];
        snprintf(name, sizeof(name), "m-%05" PRIu32 "-of-%05d.gguf", i + 1, PARTS);
        write_part(model, &model->parts[i], name);
    }
}

/* Opening part 1 fails with that status and those words. */
static void check_refused(const struct model *model, enum status wanted, const char *const *words)
{
    struct gguf_file *file = NULL;
    struct error err;
    CHECK_FAILS(gguf_open(part_path(model, 1).text, &file, &err), wanted, &err);
    for (size_t i = 0; words[i]; i++)
        check_contains("split", err.text, words[i]);
    assert_null(file);
}

static void test_opened_by_any_part(void **state)
{
    (void)state;
    struct model model;
    model_init(&model);
    write_parts(&model);
    for (uint32_t number = 1; number <= PARTS; number++) {
        struct gguf_file *file;
        struct error err;
        CHECK_OK(gguf_open(part_path(&model, number).text, &file, &err), &err);
        assert_int_equal(gguf_shard_count(file), PARTS);
        assert_string_equal(gguf_path(file), part_path(&model, 1).text);
        assert_int_equal(gguf_tensor_count(file), PARTS);
        uint64_t no;
        CHECK_OK(gguf_get_u64(file, "split.no", &no, &err), &err);
        assert_int_equal(no, 0); /* metadata is that of the first part */
        for (size_t i = 0; i < PARTS; i++) {
            const struct gguf_tensor *tensor = gguf_tensor_at(file, i);
            assert_true(text_view_is(tensor->name, model.parts[i].tensor));
            assert_ptr_equal(gguf_tensor_find(file, model.parts[i].tensor), tensor);
            assert_int_equal(tensor->shard_index, i);
            assert_int_equal(tensor->data[31], gguf_build_data(31));
            assert_true(gguf_is_same_file(file, part_path(&model, (uint32_t)i + 1).text));
        }
        gguf_close(file);
    }
    temp_folder_release(&model.folder);
}

static void test_missing_part(void **state)
{
    (void)state;
    for (uint32_t missing = 1; missing <= PARTS; missing++) {
        struct model model;
        model_init(&model);
        write_parts(&model);
        struct temp_path gone = part_path(&model, missing);
        assert_int_equal(unlink(gone.text), 0);
        char part[32];
        snprintf(part, sizeof(part), "part %" PRIu32 " of 3", missing);
        check_refused(&model, STATUS_NOT_FOUND, (const char *const[]){ part, gone.text, NULL });
        temp_folder_release(&model.folder);
    }
}

static void test_damaged_part(void **state)
{
    (void)state;
    struct model model;
    model_init(&model);
    write_parts(&model);
    assert_int_equal(truncate(part_path(&model, 2).text, 40), 0);
    check_refused(&model, STATUS_BAD_FILE,
                  (const char *const[]){ "part 2 of 3", "m-00002-of-00003.gguf: byte ", NULL });
    temp_folder_release(&model.folder);
}

static void test_parts_that_disagree(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct part second; /* the tensor's name is left as it is where NULL */
        const char *words;
    } rows[] = {
        { "wrong number", { true, true, true, 2, 3, 3, NULL }, "split.no: expected 1, found 2" },
        { "no number",
          { false, true, true, 0, 3, 3, NULL },
          "split.no: expected 1, found no such key" },
        { "wrong count", { true, true, true, 1, 4, 3, NULL }, "split.count: expected 3, found 4" },
        { "no count",
          { true, false, true, 1, 0, 3, NULL },
          "split.count: expected 3, found no such key" },
        { "too few tensors",
          { true, true, true, 1, 3, 4, NULL },
          "split.tensors.count: expected 3, found 4" },
        { "negative total",
          { true, true, true, 1, 3, (uint64_t)-1, NULL },
          "split.tensors.count: expected a whole number, found i32" },
        { "tensor twice",
          { true, true, true, 1, 3, 3, "one" },
          "tensor name: expected a new name, found 'one' again (first in " },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct model model;
        model_init(&model);
        const char *tensor = model.parts[1].tensor;
        model.parts[1] = rows[i].second;
        if (!model.parts[1].tensor)
            model.parts[1].tensor = tensor;
        write_parts(&model);
        check_refused(&model, STATUS_BAD_FILE,
                      (const char *const[]){ "m-00002-of-00003.gguf: ", rows[i].words, NULL });
        temp_folder_release(&model.folder);
    }
}

/* split.tensors.count is of little use and some writers leave it out. */
static void test_total_may_be_absent(void **state)
{
    (void)state;
    struct model model;
    model_init(&model);
    for (size_t i = 0; i < PARTS; i++)
        model.parts[i].has_total = false;
    write_parts(&model);
    struct gguf_file *file;
    struct error err;
    CHECK_OK(gguf_open(part_path(&model, 3).text, &file, &err), &err);
    gguf_close(file);
    temp_folder_release(&model.folder);
}

/* A part that is another part: the same file again must not count as the next one. */
static void test_part_that_is_another_part(void **state)
{
    (void)state;
    int (*const ways[])(const char *, const char *) = { symlink, link };
    for (size_t i = 0; i < COUNT_OF(ways); i++) {
        for (uint32_t number = 2; number <= PARTS; number++) {
            struct model model;
            model_init(&model);
            write_parts(&model);
            struct temp_path first = part_path(&model, 1), other = part_path(&model, number);
            assert_int_equal(unlink(other.text), 0);
            assert_int_equal(ways[i](first.text, other.text), 0);
            check_refused(&model, STATUS_BAD_FILE,
                          (const char *const[]){ other.text, "split.no: expected ", NULL });
            temp_folder_release(&model.folder);
        }
    }
}

/* The same without any split.no to compare. */
static void test_parts_without_numbers(void **state)
{
    (void)state;
    struct model model;
    model_init(&model);
    for (size_t i = 0; i < PARTS; i++)
        model.parts[i].has_no = model.parts[i].has_count = model.parts[i].has_total = false;
    write_parts(&model);
    check_refused(&model, STATUS_BAD_FILE,
                  (const char *const[]){ "split.count: expected 3", NULL });
    temp_folder_release(&model.folder);
}

static void test_links_in_a_circle(void **state)
{
    (void)state;
    struct model model;
    model_init(&model);
    write_parts(&model);
    struct temp_path second = part_path(&model, 2), third = part_path(&model, 3);
    assert_int_equal(unlink(second.text) | unlink(third.text), 0);
    assert_int_equal(symlink(second.text, third.text) | symlink(third.text, second.text), 0);
    check_refused(&model, STATUS_IO, (const char *const[]){ "part 2 of 3", second.text, NULL });
    temp_folder_release(&model.folder);
}

/* "a-00001-of-00001.gguf" is an ordinary file; a part under an ordinary name is refused, since the
 * others cannot be found from it. */
static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct part part;
        enum status status;
        const char *words;
    } rows[] = {
        { "a-00001-of-00001.gguf", { false, false, false, 0, 0, 0, "t" }, STATUS_OK, NULL },
        { "b-00001-of-00001.gguf", { true, true, true, 0, 1, 1, "t" }, STATUS_OK, NULL },
        { "c.gguf", { true, true, true, 0, 1, 1, "t" }, STATUS_OK, NULL },
        { "d.gguf",
          { true, true, true, 0, 2, 2, "t" },
          STATUS_BAD_FILE,
          "split.count: expected 1" },
        { "e-00001-of-00001.gguf",
          { true, true, true, 0, 2, 1, "t" },
          STATUS_BAD_FILE,
          "split.count" },
        /* Not numbers of a part: plain names. */
        { "f-00000-of-00002.gguf", { false, false, false, 0, 0, 0, "t" }, STATUS_OK, NULL },
        { "g-00003-of-00002.gguf", { false, false, false, 0, 0, 0, "t" }, STATUS_OK, NULL },
        { "h-0001-of-00002.gguf", { false, false, false, 0, 0, 0, "t" }, STATUS_OK, NULL },
        { "i-00001-of-0000x.gguf", { false, false, false, 0, 0, 0, "t" }, STATUS_OK, NULL },
        { "j-00001-of-00002.GGUF", { false, false, false, 0, 0, 0, "t" }, STATUS_OK, NULL },
        { "k-00001-of-01025.gguf",
          { false, false, false, 0, 0, 0, "t" },
          STATUS_LIMIT,
          "1024 parts" },
    };
    struct model model;
    model_init(&model);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        write_part(&model, &rows[i].part, rows[i].name);
        struct gguf_file *file = NULL;
        struct error err;
        enum status status = gguf_open(temp_folder_path(&model.folder, rows[i].name).text, &file,
                                       &err);
        if (status != rows[i].status)
            fail_msg("%s: found %s", rows[i].name, status ? err.text : "no error");
        if (rows[i].words)
            check_contains(rows[i].name, err.text, rows[i].words);
        gguf_close(file);
    }
    temp_folder_release(&model.folder);
}

/* In memory there are no other parts. */
static void test_part_in_memory(void **state)
{
    (void)state;
    struct gguf_build build;
    gguf_build_init(&build, 3);
    gguf_build_number(&build, "split.count", BUILD_U16, 2);
    struct opened opened = open_built(&build);
    CHECK_FAILS(opened.status, STATUS_BAD_FILE, &opened.err);
    check_contains("memory", opened.err.text, "split.count: expected 1");
    opened_release(&opened);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opened_by_any_part),
        cmocka_unit_test(test_missing_part),
        cmocka_unit_test(test_damaged_part),
        cmocka_unit_test(test_parts_that_disagree),
        cmocka_unit_test(test_total_may_be_absent),
        cmocka_unit_test(test_part_that_is_another_part),
        cmocka_unit_test(test_parts_without_numbers),
        cmocka_unit_test(test_links_in_a_circle),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_part_in_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
