/* cli_options_test.c - the command line against a table of options. */
#include "test.h"

#include "cli/cli.h"

#include <string.h>

struct settings {
    bool json, force;
    const char *shape, *out;
    uint32_t context;
    uint64_t seed;
    struct cli_text_list names;
};

static const struct cli_option options[] = {
    { "--json", NULL, CLI_FLAG, offsetof(struct settings, json), "h", NULL, false },
    { "--force|-f", NULL, CLI_FLAG, offsetof(struct settings, force), "h", NULL, false },
    { "--shape|-s", "NAME", CLI_TEXT, offsetof(struct settings, shape), "h", "tiny large", false },
    { "--out|-o", "FILE", CLI_TEXT, offsetof(struct settings, out), "h", NULL, true },
    { "--ctx|-c|--ctx-size", "N", CLI_U32, offsetof(struct settings, context), "h", NULL, false },
    { "--seed", "N", CLI_U64, offsetof(struct settings, seed), "h", NULL, false },
    { "--name|-n", "X", CLI_TEXT_LIST, offsetof(struct settings, names), "h", "a b", false },
};

static const struct cli_refusal refusals[] = { { "-cnv|--conversation", "say it yourself" } };

static const struct cli_command command = { .name = "try",
                                            .operands = "IN OUT",
                                            .operand_least = 1,
                                            .operand_most = 2,
                                            .options = options,
                                            .option_count = COUNT_OF(options),
                                            .refusals = refusals,
                                            .refusal_count = COUNT_OF(refusals) };

#define ARGUMENT_LIMIT 6

/* What cli_parse made of a line. */
struct outcome {
    enum status status;
    struct settings settings;
    struct cli_common common;
    const char *operands[ARGUMENT_LIMIT];
    size_t operand_count;
    bool help;
    struct error err;
};

static struct outcome parse(const char *const *words)
{
    struct outcome outcome = { .settings = { .shape = "default", .context = 7 } };
    char *arguments[ARGUMENT_LIMIT];
    int count = 0;
    for (; count < ARGUMENT_LIMIT && words[count]; count++)
        arguments[count] = (char *)(uintptr_t)words[count];
    outcome.status = cli_parse(&command, count, arguments, &outcome.settings, &outcome.common,
                               outcome.operands, &outcome.operand_count, &outcome.help,
                               &outcome.err);
    return outcome;
}

static void test_good_lines(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *words[ARGUMENT_LIMIT];
        struct settings settings;
        const char *operands[3];
    } rows[] = {
        { "nothing but operands", { "in" }, { .shape = "default", .context = 7 }, { "in" } },
        { "flag",
          { "--json", "in" },
          { .json = true, .shape = "default", .context = 7 },
          { "in" } },
        { "short flag",
          { "in", "-f" },
          { .force = true, .shape = "default", .context = 7 },
          { "in" } },
        { "value apart",
          { "--out", "x", "in" },
          { .shape = "default", .out = "x", .context = 7 },
          { "in" } },
        { "value with =",
          { "--out=x", "in" },
          { .shape = "default", .out = "x", .context = 7 },
          { "in" } },
        { "value holds =",
          { "--out=a=b", "in" },
          { .shape = "default", .out = "a=b", .context = 7 },
          { "in" } },
        { "empty value",
          { "--out=", "in" },
          { .shape = "default", .out = "", .context = 7 },
          { "in" } },
        { "value like a flag",
          { "--out", "--json", "in" },
          { .shape = "default", .out = "--json", .context = 7 },
          { "in" } },
        { "short with value", { "-s", "tiny", "in" }, { .shape = "tiny", .context = 7 }, { "in" } },
        { "first name", { "--ctx", "9", "in" }, { .shape = "default", .context = 9 }, { "in" } },
        { "second name", { "-c", "9", "in" }, { .shape = "default", .context = 9 }, { "in" } },
        { "third name", { "--ctx-size=9", "in" }, { .shape = "default", .context = 9 }, { "in" } },
        { "last one counts",
          { "-c", "1", "-c", "2", "in" },
          { .shape = "default", .context = 2 },
          { "in" } },
        { "largest u32",
          { "-c", "4294967295", "in" },
          { .shape = "default", .context = UINT32_MAX },
          { "in" } },
        { "largest u64",
          { "--seed=18446744073709551615", "in" },
          { .shape = "default", .context = 7, .seed = UINT64_MAX },
          { "in" } },
        { "leading zeros",
          { "--seed=007", "in" },
          { .shape = "default", .context = 7, .seed = 7 },
          { "in" } },
        { "flags between operands",
          { "a", "--json", "b" },
          { .json = true, .shape = "default", .context = 7 },
          { "a", "b" } },
        { "end of flags",
          { "--json", "--", "--force", "-x" },
          { .json = true, .shape = "default", .context = 7 },
          { "--force", "-x" } },
        { "-- is a name after --", { "--", "--" }, { .shape = "default", .context = 7 }, { "--" } },
        { "a dash is an operand", { "-" }, { .shape = "default", .context = 7 }, { "-" } },
        { "empty operand", { "" }, { .shape = "default", .context = 7 }, { "" } },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct outcome outcome = parse(rows[i].words);
        const struct settings *found = &outcome.settings, *wanted = &rows[i].settings;
        if (outcome.status)
            fail_msg("%s: %s", rows[i].name, outcome.err.text);
        if (found->json != wanted->json || found->force != wanted->force ||
            strcmp(found->shape, wanted->shape) != 0 || !found->out != !wanted->out ||
            (found->out && strcmp(found->out, wanted->out) != 0) ||
            found->context != wanted->context || found->seed != wanted->seed || outcome.help)
            fail_msg("%s: wrong settings", rows[i].name);
        size_t count = 0;
        for (; rows[i].operands[count]; count++)
            assert_string_equal(outcome.operands[count], rows[i].operands[count]);
        assert_int_equal(outcome.operand_count, count);
    }
}

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
        { "of llama.cpp", { "-cnv" }, "-cnv: greta has no such option: say it yourself" },
        { "of llama.cpp, long", { "--conversation=1" }, "--conversation: greta has no such" },
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
        struct outcome outcome = parse(rows[i].words);
        if (outcome.status != STATUS_USAGE)
            fail_msg("%s: %s", rows[i].name, status_name(outcome.status));
        check_contains(rows[i].name, outcome.err.text, rows[i].text);
        assert_null(strchr(outcome.err.text, '\n'));
    }
}

/* What every command takes; --color alone does not take an operand for its value. */
static void test_common(void **state)
{
    (void)state;
    static const struct {
        const char *words[ARGUMENT_LIMIT];
        const char *colour;
        bool quiet;
        size_t operand_count;
    } rows[] = {
        { { "in" }, NULL, false, 1 },
        { { "--color", "in" }, "always", false, 1 },
        { { "in", "--color" }, "always", false, 1 },
        { { "--color", "never", "in" }, "never", false, 1 },
        { { "--color=auto", "-q", "in", "out" }, "auto", true, 2 },
        { { "in", "--colour", "on", "--quiet" }, "on", true, 1 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct outcome outcome = parse(rows[i].words);
        CHECK_OK(outcome.status, &outcome.err);
        assert_int_equal(outcome.common.quiet, rows[i].quiet);
        assert_int_equal(outcome.operand_count, rows[i].operand_count);
        assert_int_equal(outcome.common.colour == NULL, rows[i].colour == NULL);
        if (rows[i].colour)
            assert_string_equal(outcome.common.colour, rows[i].colour);
    }
}

static void test_lists(void **state)
{
    (void)state;
    static const char *const words[] = { "-n", "b", "--name=a", "in", "-n", "b" };
    struct outcome outcome = parse(words);
    CHECK_OK(outcome.status, &outcome.err);
    assert_int_equal(outcome.settings.names.count, 3);
    assert_string_equal(outcome.settings.names.items[0], "b");
    assert_string_equal(outcome.settings.names.items[1], "a");
    assert_string_equal(outcome.settings.names.items[2], "b");
    static const char *const wrong[] = { "-n", "a", "-n", "c", NULL };
    outcome = parse(wrong);
    assert_int_equal(outcome.status, STATUS_USAGE);
    check_contains("list", outcome.err.text, "expected one of: a b; found 'c'");
    /* One more than fit. */
    char name[] = "--name=a";
    char *many[CLI_LIST_LIMIT + 1];
    const char *operands[CLI_LIST_LIMIT + 1];
    for (size_t i = 0; i < COUNT_OF(many); i++)
        many[i] = name;
    struct settings settings = { 0 };
    struct cli_common common = { 0 };
    size_t count;
    bool help;
    CHECK_FAILS(cli_parse(&command, CLI_LIST_LIMIT + 1, many, &settings, &common, operands, &count,
                          &help, &outcome.err),
                STATUS_USAGE, &outcome.err);
    check_contains("many", outcome.err.text, "--name: expected it at most 64 times");
}

static void test_help_ends_parsing(void **state)
{
    (void)state;
    static const char *const lines[][ARGUMENT_LIMIT] = {
        { "--help" },
        { "-h" },
        { "in", "--json", "--help", "--unknown" },
        { "-h", "a", "b", "c", "d" },
    };
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        struct outcome outcome = parse(lines[i]);
        assert_int_equal(outcome.status, STATUS_OK);
        assert_true(outcome.help);
    }
    static const char *const operand[] = { "--", "--help", NULL };
    assert_false(parse(operand).help);
    /* What stands after a flag that takes a value is its value. */
    static const char *const value[] = { "in", "--out", "--help", NULL };
    assert_false(parse(value).help);
}

static void test_very_long_flag(void **state)
{
    (void)state;
    char flag[300] = "--";
    memset(flag + 2, 'x', sizeof(flag) - 3);
    flag[sizeof(flag) - 1] = '\0';
    const char *words[] = { flag, NULL };
    struct outcome outcome = parse(words);
    assert_int_equal(outcome.status, STATUS_USAGE);
    check_contains("long", outcome.err.text, "unknown flag '--xxx");
    flag[200] = '=';
    outcome = parse(words);
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

static void test_option_names(void **state)
{
    (void)state;
    static const char *const names[] = { "--ctx", "-c", "--ctx-size" };
    char name[64];
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        assert_true(cli_option_name(&options[4], i, name, sizeof(name)));
        assert_string_equal(name, names[i]);
    }
    assert_false(cli_option_name(&options[4], 3, name, sizeof(name)));
    assert_false(cli_option_name(&options[4], 99, name, sizeof(name)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_lines),
        cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_help_ends_parsing),
        cmocka_unit_test(test_very_long_flag),
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_common),
        cmocka_unit_test(test_option_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
