/* report_coredump_test.c - sentences about core dumps: hostile names, kinds that are not known,
 * what the dump does not decide. tests/cli/coredump_test.sh holds whole texts. */
#include "dump_build.h"
#include "test.h"

#include "coredump/coredump.h"
#include "report/coredump_texts.h"

#include <string.h>

static void print_specimen(const struct dump_specimen *specimen, enum report_language language,
                           struct text *ret_text)
{
    struct coredump *dump;
    struct text file;
    struct error err;
    dump_specimen(specimen, &file);
    CHECK_OK(coredump_open_memory(file.bytes, file.length, "dump", &dump, &err), &err);
    text_init(ret_text);
    report_coredump(dump, language, ret_text);
    assert_false(ret_text->failed);
    coredump_close(dump);
    text_release(&file);
}

/* What the first line and the gaps say, by what the dump has. */
static void test_sentences(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        struct dump_specimen specimen;
        const char *words[REPORT_LANGUAGE_COUNT];
    } rows[] = {
        { "of the warp alone",
          { .pc = 0x10, .error_pc = true },
          { "the dump marks the warp, but has no kind", "el volcado marca el warp" } },
        { "kind of the SM",
          { .pc = 0x10, .error_pc = true, .sm_exception = 6 },
          { "failed at 0x10: warp misaligned address", "falló en 0x10: dirección mal alineada" } },
        { "kind of the SM, gap",
          { .pc = 0x10, .error_pc = true, .sm_exception = 6 },
          { "its kind is in the row of the SM", "su tipo está en la fila del SM" } },
        { "a number that is not known",
          { .pc = 0x10, .exception = 99 },
          { "What exception 99 means", "Qué significa la excepción 99" } },
        { "where a lane stopped",
          { .pc = 0x10, .exception = 1 },
          { "failed, stopped at 0x10: lane illegal address",
            "falló, detenido en 0x10: dirección ilegal en un hilo" } },
        { "no arguments",
          { .pc = 0x10, .exception = 1 },
          { "The arguments of grid 55: the dump does not have them",
            "Los argumentos de la malla 55: el volcado no los tiene" } },
        { "an image that cannot be read",
          { .pc = 0x10, .exception = 1, .image = "no image", .image_bytes = 8 },
          { "What 1 image of the dump would tell", "Lo que diría 1 imagen del volcado" } },
        { "several",
          { .pc = 0x10, .exception = 1, .failed_warps = 2 },
          { "; 1 more warp or SM has an exception", "; 1 warp o SM más tiene una excepción" } },
        { "none",
          { .pc = 0x10 },
          { "no exception: the dump shows 2 live grids",
            "ninguna excepción: el volcado muestra 2" } },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (int language = 0; language < REPORT_LANGUAGE_COUNT; language++) {
            struct text text;
            print_specimen(&rows[i].specimen, (enum report_language)language, &text);
            check_contains(rows[i].what, text_get(&text), rows[i].words[language]);
            text_release(&text);
        }
}

/* Every number has words of its own. */
static void test_kinds(void **state)
{
    (void)state;
    for (int language = 0; language < REPORT_LANGUAGE_COUNT; language++)
        for (uint32_t i = 0; i < COREDUMP_EXCEPTION_COUNT; i++)
            for (uint32_t j = 0; j < i; j++)
                assert_string_not_equal(
                    coredump_exception_words(i, (enum report_language)language),
                    coredump_exception_words(j, (enum report_language)language));
}

static void check_function(const char *mangled, bool brief, const char *wanted)
{
    struct text text;
    text_init(&text);
    coredump_add_function(&text, text_view_of(mangled), brief);
    assert_string_equal(text_get(&text), wanted);
    text_release(&text);
}

/* Each template argument is the one before, twice: 2^30 of them, if it were written out. */
static void test_names(void **state)
{
    (void)state;
    struct text bomb, shown;
    check_function("_Z4nestPfPKfi", false, "nest(float*, float const*, int)");
    check_function("_Z4nestPfPKfi", true, "nest");
    check_function("plain", false, "plain");
    check_function("one\033[31m", false, "one\\x1B[31m");
    text_init(&bomb);
    text_init(&shown);
    text_add(&bomb, "_Z1f1AIiE1BIS0_S0_E");
    for (int i = 0; i < 30; i++)
        text_addf(&bomb, "1BIS%c_S%c_E", "23456789ABCDEFGHIJKLMNOPQRSTUVWX"[i],
                  "23456789ABCDEFGHIJKLMNOPQRSTUVWX"[i]);
    coredump_add_function(&shown, text_view_of(text_get(&bomb)), false);
    assert_string_equal(text_get(&shown), text_get(&bomb));
    text_release(&bomb);
    text_release(&shown);
}

static void test_values(void **state)
{
    (void)state;
    static const uint8_t bytes[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 };
    static const struct {
        uint64_t count, most;
        const char *wanted;
    } rows[] = { { 1, 64, "0x01" },           { 2, 64, "0x0201" },
                 { 4, 64, "0x04030201" },     { 8, 64, "0x0807060504030201" },
                 { 3, 64, "010203" },         { 12, 64, "01020304 05060708 090a0b0c" },
                 { 12, 5, "01020304 05 ..." } };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct text text;
        text_init(&text);
        coredump_add_value(&text, bytes, rows[i].count, rows[i].most);
        assert_string_equal(text_get(&text), rows[i].wanted);
        text_release(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sentences),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
