/* cli_options_bad_test.c - command lines that are refused: the message says what was expected, and
 * names the nearest flag. */
#include "cli_options.h"

#include <string.h>

static void test_bad_lines(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *words[ARGUMENT_LIMIT];
        const char *text;
    } rows[] = {
        { "near miss",
          { "--jsn", "in" },
          "unknown flag '--jsn'; did you mean --json? (see greta try --help)" },
        { "near an alias",
          { "--ctx-sise=3" },
          "unknown flag '--ctx-sise'; did you mean --ctx-size?" },
        { "nothing like it",
          { "--completely-else" },
          "unknown flag '--completely-else' (see greta try --help)" },
        { "short unknown", { "-z" }, "unknown flag '-z' (see greta try --help)" },
        { "short, one letter off", { "-fz" }, "unknown flag '-fz' (see greta try --help)" },
        { "of llama.cpp", { "-cnv" }, "-cnv is not an option of greta: say it yourself" },
        { "of llama.cpp, long", { "--conversation=1" }, "--conversation is not an option of greta" },
        { "no such colour", { "--color=red" }, "--color: expected one of: auto always never" },
        { "quiet has no value", { "--quiet=1" }, "--quiet: expected no value, found '1'" },
        { "beginning of a name", { "--sh", "tiny" }, "unknown flag '--sh'" },
        { "short flags together", { "-fs", "tiny" }, "unknown flag '-fs'" },
        { "short with =", { "-s=tiny" }, "unknown flag '-s=tiny'" },
        { "single dash", { "-json" }, "unknown flag '-json'; did you mean --json?" },
        { "value for a flag", { "--json=yes" }, "--json: expected no value, found 'yes'" },
        { "value missing", { "in", "--out" }, "--out: expected a value (FILE), found none" },
        { "value missing, short", { "in", "-c" }, "-c: expected a value (N), found none" },
        { "not a number", { "-c", "many" }, "-c: expected a whole number from 0, found 'many'" },
        { "negative", { "--ctx=-1" }, "--ctx: expected a whole number from 0, found '-1'" },
        { "signed", { "--ctx=+1" }, "found '+1'" },
        { "space", { "--ctx= 1" }, "found ' 1'" },
        { "number and more", { "--ctx=4k" }, "found '4k'" },
        { "fraction", { "--ctx=1.5" }, "found '1.5'" },
        { "empty number", { "--ctx=" }, "found ''" },
        { "hexadecimal", { "--seed=0x10" }, "found '0x10'" },
        { "past u32",
          { "--ctx=4294967296" },
          "--ctx: expected at most 4294967295, found '4294967296'" },
        { "past u64",
          { "--seed=18446744073709551616" },
          "--seed: expected at most 18446744073709551615" },
        { "not in the list",
          { "--shape", "huge" },
          "--shape: expected one of: tiny large; found 'huge'" },
        { "part of a word of the list", { "--shape=tin" }, "found 'tin'" },
        { "two words of the list", { "--shape=tiny large" }, "found 'tiny large'" },
        { "empty, not in the list", { "--shape=" }, "found ''" },
        { "no operand", { "--json" }, "expected IN OUT, found nothing (see greta try --help)" },
        { "too many operands", { "a", "b", "c" }, "expected IN OUT, found 'c' too" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct outcome outcome = parse_line(rows[i].words);
        if (outcome.status != STATUS_USAGE)
            fail_msg("%s: %s", rows[i].name, status_name(outcome.status));
        check_contains(rows[i].name, outcome.err.text, rows[i].text);
        assert_null(strchr(outcome.err.text, '\n'));
    }
}

static void test_very_long_flag(void **state)
{
    (void)state;
    char flag[300] = "--";
    memset(flag + 2, 'x', sizeof(flag) - 3);
    flag[sizeof(flag) - 1] = '\0';
    const char *words[] = { flag, NULL };
    struct outcome outcome = parse_line(words);
    assert_int_equal(outcome.status, STATUS_USAGE);
    check_contains("long", outcome.err.text, "unknown flag '--xxx");
    flag[200] = '=';
    outcome = parse_line(words);
    assert_int_equal(outcome.status, STATUS_USAGE);
}

static void test_nearest(void **state)
{
    (void)state;
    static const struct {
        const char *word, *list, *nearest;
    } rows[] = {
        { "inspct", "inspect synth quantize", "inspect" },
        { "synht", "inspect synth quantize", "synth" },
        { "quantise", "inspect synth quantize", "quantize" },
        { "tony", "tiny|tinyllama", "tiny" },
        { "inspect", "inspect synth", "inspect" },
        { "bench", "inspect synth quantize", NULL },
        { "", "inspect synth", NULL },
        { "x", "", NULL },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char buffer[64];
        const char *nearest = cli_nearest(rows[i].word, rows[i].list, buffer, sizeof(buffer));
        if (!nearest != !rows[i].nearest || (nearest && strcmp(nearest, rows[i].nearest) != 0))
            fail_msg("%s: found %s", rows[i].word, nearest ? nearest : "nothing");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_very_long_flag),
        cmocka_unit_test(test_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
