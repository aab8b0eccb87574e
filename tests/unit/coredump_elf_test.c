/* coredump_elf_test.c - sections of ELF files, and what damaged ones are refused for. */
#include "coredump/elf.h"
#include "elf_build.h"
#include "test.h"

#include <string.h>

static void build_file(struct text *file, bool many_sections)
{
    struct elf_build build;
    elf_build_init(&build, ELF_TYPE_CORE, ELF_MACHINE_CUDA);
    build.many_sections = many_sections;
    elf_build_add(&build,
                  &(struct build_section){ .name = ".one", .type = 0x80000009, .row_bytes = 3 },
                  "abcdef", 6);
    elf_build_add(&build,
                  &(struct build_section){
                      .name = ".two", .type = 7, .address = 0x7F0000001000, .link = 1, .info = 5 },
                  "xy", 2);
    elf_build_finish(&build, file);
    elf_build_release(&build);
}

static enum status open_text(const struct text *file, struct elf *elf, struct error *err)
{
    return elf_open(file->bytes, file->length, "dump", elf, err);
}

static void test_sections(void **state)
{
    (void)state;
    for (int many = 0; many < 2; many++) {
        struct elf_section section;
        struct text file;
        struct error err;
        struct elf elf;
        build_file(&file, many);
        CHECK_OK(open_text(&file, &elf, &err), &err);
        assert_int_equal(elf.section_count, 4);
        assert_int_equal(elf.type, ELF_TYPE_CORE);
        assert_int_equal(elf.machine, ELF_MACHINE_CUDA);
        CHECK_OK(elf_section_at(&elf, 1, &section, &err), &err);
        assert_int_equal(section.row_bytes, 3);
        assert_memory_equal(elf.data + section.offset, "abcdef", 6);
        CHECK_OK(elf_section_at(&elf, 2, &section, &err), &err);
        assert_true(text_view_is(elf_section_name(&elf, &section), ".two"));
        assert_int_equal(section.address, 0x7F0000001000);
        assert_int_equal(section.link, 1);
        assert_int_equal(section.info, 5);
        assert_int_equal(elf_section_type(&elf, 1), 0x80000009);
        text_release(&file);
    }
}

/* A number in the header that is damaged, and what the error says. */
static const struct {
    const char *what;
    size_t at, bytes;
    uint64_t value;
    enum status status;
    const char *error;
} damages[] = {
    { "another magic", 0, 1, 'M', STATUS_BAD_FILE, "expected 7f 45 4c 46, found 4d 45 4c 46" },
    { "compressed", 0, 2, 0x8B1F, STATUS_BAD_FILE, "expand it with gunzip" },
    { "32 bits", 4, 1, 1, STATUS_BAD_FILE, "expected 2 and 1 (64 bits, little endian), found 1" },
    { "big endian", 5, 1, 2, STATUS_BAD_FILE, "found 2 and 2" },
    { "no sections", 40, 8, 0, STATUS_BAD_FILE, "was it written to its end?" },
    { "sections outside", 40, 8, 1u << 30, STATUS_BAD_FILE, "the file was cut short" },
    { "offset that wraps", 40, 8, UINT64_MAX - 8, STATUS_BAD_FILE, "the file was cut short" },
    { "other headers", 58, 2, 40, STATUS_BAD_FILE, "size of a section header: expected 64" },
    { "too many sections", 60, 2, 5, STATUS_BAD_FILE, "found 5: the file was cut short" },
    { "no number", 60, 2, 0, STATUS_BAD_FILE, "which is what fits in the file, found 0" },
};

static void test_damaged_header(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(damages); i++) {
        struct text file;
        struct error err;
        struct elf elf;
        build_file(&file, false);
        build_put_number(&file, damages[i].at, damages[i].value, damages[i].bytes);
        CHECK_FAILS(open_text(&file, &elf, &err), damages[i].status, &err);
        check_contains(damages[i].what, err.text, damages[i].error);
        check_contains(damages[i].what, err.text, "dump: ");
        text_release(&file);
    }
}

static void test_section_outside(void **state)
{
    (void)state;
    struct elf_section section;
    struct text file;
    struct error err;
    struct elf elf;
    build_file(&file, false);
    build_put_number(&file, build_section_at(&file, 2) + 32, UINT64_MAX, 8);
    CHECK_OK(open_text(&file, &elf, &err), &err);
    CHECK_FAILS(elf_section_at(&elf, 2, &section, &err), STATUS_BAD_FILE, &err);
    check_contains("section", err.text, "section 2 (.two)");
    check_contains("section", err.text, "do not fit in the file");
    text_release(&file);
}

/* A name outside the table is empty. */
static void test_names(void **state)
{
    (void)state;
    struct elf_section section;
    struct text file;
    struct error err;
    struct elf elf;
    build_file(&file, false);
    build_put_number(&file, build_section_at(&file, 1), UINT32_MAX, 4);
    build_put_number(&file, 62, 77, 2);
    CHECK_OK(open_text(&file, &elf, &err), &err);
    CHECK_OK(elf_section_at(&elf, 1, &section, &err), &err);
    assert_int_equal(elf_section_name(&elf, &section).length, 0);
    assert_true(text_view_is(elf_string((struct text_view){ "ab", 2 }, 1), "b"));
    text_release(&file);
}

/* Cut anywhere, it is refused. */
static void test_cut(void **state)
{
    (void)state;
    struct text file;
    struct error err;
    struct elf elf;
    build_file(&file, false);
    for (size_t length = 0; length < file.length; length++)
        CHECK_FAILS(elf_open(file.bytes, length, "dump", &elf, &err), STATUS_BAD_FILE, &err);
    text_release(&file);
}

/* Section 0 has a number that no file holds. */
static void test_absurd_count(void **state)
{
    (void)state;
    struct text file;
    struct error err;
    struct elf elf;
    build_file(&file, true);
    build_put_number(&file, build_section_at(&file, 0) + 32, UINT64_MAX, 8);
    CHECK_FAILS(open_text(&file, &elf, &err), STATUS_BAD_FILE, &err);
    check_contains("count", err.text, "found 18446744073709551615");
    text_release(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sections),
        cmocka_unit_test(test_damaged_header),
        cmocka_unit_test(test_section_outside),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_absurd_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
