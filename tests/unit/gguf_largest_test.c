/* gguf_largest_test.c - the largest file there may be, whole or in parts: opened within a bound on
 * time and memory, or refused. */
#include "gguf_open.h"
#include "memory_limit.h"
#include "temp_folder.h"
#include "test.h"

#include <inttypes.h>
#include <stdio.h>

/* On top of the mapping of the file itself. */
#define MEMORY_LIMIT_BYTES ((uint64_t)64 << 20)
#define TIME_LIMIT_NS UINT64_C(5000000000) /* of processor time */

/* ---- One file ------------------------------------------------------------------------------- */

static void build_largest(struct gguf_build *build, struct temp_folder *folder)
{
    gguf_build_init(build, 3);
    char name[16];
    for (uint32_t i = 0; i < GGUF_ENTRY_LIMIT; i++) {
        snprintf(name, sizeof(name), "%" PRIX32, i);
        gguf_build_number(build, name, BUILD_U8, 0);
    }
    for (uint32_t i = 0; i < GGUF_TENSOR_LIMIT; i++) {
        snprintf(name, sizeof(name), "%" PRIX32, i);
        gguf_build_tensor(build, name, 0, NULL, BUILD_TENSOR_I8, 1);
    }
    gguf_build_finish(build);
    temp_folder_init(folder);
    temp_folder_write(folder, "largest.gguf", build->text.bytes, build->text.length);
}

static enum status open_limited(const char *path, uint64_t growth_bytes, uint64_t file_bytes,
                                struct gguf_file **ret_file, struct error *err)
{
    uint64_t limit_before = memory_limit_begin(growth_bytes + file_bytes);
    enum status status = gguf_open(path, ret_file, err);
    memory_limit_end(limit_before);
    return status;
}

static void test_largest_file(void **state)
{
    (void)state;
    struct gguf_build build;
    struct temp_folder folder;
    build_largest(&build, &folder);
    uint64_t file_bytes = build.text.length;
    gguf_build_release(&build);
    struct temp_path path = temp_folder_path(&folder, "largest.gguf");
    struct gguf_file *file = NULL;
    struct error err;
    uint64_t start_ns = processor_ns();
    CHECK_OK(open_limited(path.text, MEMORY_LIMIT_BYTES, file_bytes, &file, &err), &err);
    print_message("%u entries and %u tensors in %" PRIu64 " ms\n", GGUF_ENTRY_LIMIT,
                  GGUF_TENSOR_LIMIT, (processor_ns() - start_ns) / 1000000);
    if (memory_limit_works()) /* and so at full speed */
        assert_true(processor_ns() - start_ns < TIME_LIMIT_NS);
    assert_int_equal(gguf_tensor_count(file), GGUF_TENSOR_LIMIT);
    assert_non_null(gguf_tensor_find(file, "3FFFF"));
    assert_non_null(gguf_find(file, "FFFF"));
    gguf_close(file);

    /* With less than it needs the reader says so; nothing is lost, nothing crashes. This also shows
     * that the limit above is one. */
    size_t failed_count = 0;
    for (uint64_t growth = 0; memory_limit_works() && growth < MEMORY_LIMIT_BYTES;
         growth += 3 << 20) {
        enum status status = open_limited(path.text, growth, file_bytes, &file, &err);
        if (status && status != STATUS_NO_MEMORY)
            fail_msg("%" PRIu64 " bytes: %s", growth, err.text);
        failed_count += status != STATUS_OK;
        if (!status)
            gguf_close(file);
    }
    assert_true(failed_count > 10 || !memory_limit_works());
    temp_folder_release(&folder);
}

/* ---- Parts ---------------------------------------------------------------------------------- */

/* Writes part `number` of `count` with so many entries and tensors, none of them the same as those
 * of another part; returns its size. */
static uint64_t write_crowded_part(const struct temp_folder *folder, uint32_t number,
                                   uint32_t count, uint32_t entry_count, uint32_t tensor_count)
{
    struct gguf_build build;
    gguf_build_init(&build, 3);
    gguf_build_number(&build, "split.no", BUILD_U16, number - 1);
    gguf_build_number(&build, "split.count", BUILD_U16, count);
    char name[64];
    for (uint32_t i = 2; i < entry_count; i++) {
        snprintf(name, sizeof(name), "%" PRIX32, i);
        gguf_build_number(&build, name, BUILD_U8, 0);
    }
    for (uint32_t i = 0; i < tensor_count; i++) {
        snprintf(name, sizeof(name), "%" PRIX32 ".%" PRIu32, i, number);
        gguf_build_tensor(&build, name, 1, (const uint64_t[]){ 0 }, BUILD_TENSOR_F32, 0);
    }
    gguf_build_finish(&build);
    snprintf(name, sizeof(name), "m-%05" PRIu32 "-of-%05" PRIu32 ".gguf", number, count);
    temp_folder_write(folder, name, text_get(&build.text), build.text.length);
    uint64_t size = build.text.length;
    gguf_build_release(&build);
    return size;
}

/* Each part is within the limits of one file; together they must be, too, or a folder of small
 * files could ask for gigabytes. */
static void test_many_parts_cost_no_more_than_one_file(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t parts, entries, tensors;
        enum status status;
    } rows[] = {
        { "entries", 24, GGUF_ENTRY_LIMIT, 0, STATUS_OK },
        { "tensors", 4, 2, GGUF_TENSOR_LIMIT / 3, STATUS_BAD_FILE },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct temp_folder folder;
        temp_folder_init(&folder);
        uint64_t bytes = 0;
        for (uint32_t number = 1; number <= rows[i].parts; number++)
            bytes += 4096 + write_crowded_part(&folder, number, rows[i].parts, rows[i].entries,
                                               rows[i].tensors);
        char name[64];
        snprintf(name, sizeof(name), "m-00001-of-%05" PRIu32 ".gguf", rows[i].parts);
        struct gguf_file *file = NULL;
        struct error err;
        uint64_t before = memory_limit_begin(bytes + MEMORY_LIMIT_BYTES);
        enum status status = gguf_open(temp_folder_path(&folder, name).text, &file, &err);
        memory_limit_end(before);
        if (status != rows[i].status)
            fail_msg("%s: found %s", rows[i].name, status ? err.text : "no error");
        if (status)
            check_contains(rows[i].name, err.text,
                           "tensor_count: expected at most 262144 over all");
        gguf_close(file);
        temp_folder_release(&folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_largest_file),
        cmocka_unit_test(test_many_parts_cost_no_more_than_one_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
