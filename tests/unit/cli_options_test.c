/* cli_options_test.c - the command line against a table of options: what is accepted, and what it
 * sets. */
#include "cli_options.h"

#include <string.h>

/* Lines that are accepted, and what they set. */
static const struct {
    const char *name;
    const char *words[ARGUMENT_LIMIT];
    struct settings settings;
    const char *operands[3];
} good_lines[] = {
    { "nothing but operands", { "in" }, { .shape = "default", .context = 7 }, { "in" } },
    { "flag", { "--json", "in" }, { .json = true, .shape = "default", .context = 7 }, { "in" } },
    { "short flag", { "in", "-f" }, { .force = true, .shape = "default", .context = 7 }, { "in" } },
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

static void test_good_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(good_lines); i++) {
        struct outcome outcome = parse_line(good_lines[i].words);
        const struct settings *found = &outcome.settings, *wanted = &good_lines[i].settings;
        if (outcome.status)
            fail_msg("%s: %s", good_lines[i].name, outcome.err.text);
        if (found->json != wanted->json || found->force != wanted->force ||
            strcmp(found->shape, wanted->shape) != 0 || !found->out != !wanted->out ||
            (found->out && strcmp(found->out, wanted->out) != 0) ||
            found->context != wanted->context || found->seed != wanted->seed || outcome.help)
            fail_msg("%s: wrong settings", good_lines[i].name);
        size_t count = 0;
        for (; good_lines[i].operands[count]; count++)
            assert_string_equal(outcome.operands[count], good_lines[i].operands[count]);
        assert_int_equal(outcome.operand_count, count);
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
        struct outcome outcome = parse_line(rows[i].words);
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
    struct outcome outcome = parse_line(words);
    CHECK_OK(outcome.status, &outcome.err);
    assert_int_equal(outcome.settings.names.count, 3);
    assert_string_equal(outcome.settings.names.items[0], "b");
    assert_string_equal(outcome.settings.names.items[1], "a");
    assert_string_equal(outcome.settings.names.items[2], "b");
    static const char *const wrong[] = { "-n", "a", "-n", "c", NULL };
    outcome = parse_line(wrong);
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
    check_contains("many", outcome.err.text, "--name: expected at most 64 times");
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
        struct outcome outcome = parse_line(lines[i]);
        assert_int_equal(outcome.status, STATUS_OK);
        assert_true(outcome.help);
    }
    static const char *const operand[] = { "--", "--help", NULL };
    assert_false(parse_line(operand).help);
    /* What stands after a flag that takes a value is its value. */
    static const char *const value[] = { "in", "--out", "--help", NULL };
    assert_false(parse_line(value).help);
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
        cmocka_unit_test(test_good_lines),   cmocka_unit_test(test_help_ends_parsing),
        cmocka_unit_test(test_lists),        cmocka_unit_test(test_common),
        cmocka_unit_test(test_option_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
