/* cli_tables_test.c - the tables of commands are complete, and true to the modules below. */
#include "test.h"

#include "cli/cli.h"
#include "convert/convert.h"

#include <stdlib.h>
#include <string.h>

/* ---- Every command -------------------------------------------------------------------------- */

static void test_commands_are_complete(void **state)
{
    (void)state;
    assert_true(cli_command_count() >= 6);
    for (size_t i = 0; i < cli_command_count(); i++) {
        const struct cli_command *command = cli_command_at(i);
        assert_non_null(command->run);
        assert_non_null(command->operands);
        assert_true(command->summary && command->summary[0] && strlen(command->summary) <= 80);
        assert_true(command->description && command->description[0]);
        assert_true(command->operand_least <= command->operand_most);
        assert_int_equal(command->operand_most == 0, command->operands[0] == '\0');
        assert_int_equal(command->settings_bytes == 0, command->defaults == NULL);
        assert_ptr_equal(cli_command_find(command->name), command);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(command->name, cli_command_at(j)->name);
    }
    assert_null(cli_command_find(""));
    assert_null(cli_command_find("nothing"));
}

static size_t kind_bytes(enum cli_option_kind kind)
{
    switch (kind) {
    case CLI_FLAG:
    case CLI_CLEAR_FLAG:
        return sizeof(bool);
    case CLI_TEXT:
        return sizeof(char *);
    case CLI_U32:
        return sizeof(uint32_t);
    case CLI_U64:
        return sizeof(uint64_t);
    case CLI_I32:
        return sizeof(int32_t);
    case CLI_F32:
        return sizeof(float);
    case CLI_TEXT_LIST:
        return sizeof(struct cli_text_list);
    }
    return SIZE_MAX;
}

static void check_option(const struct cli_command *command, const struct cli_option *option)
{
    char name[64];
    assert_true(option->help && option->help[0]);
    if ((option->kind == CLI_FLAG || option->kind == CLI_CLEAR_FLAG) != !option->argument)
        fail_msg("%s %s: a flag has no argument, all others have", command->name, option->names);
    if (option->offset + kind_bytes(option->kind) > command->settings_bytes)
        fail_msg("%s %s: outside of the settings", command->name, option->names);
    for (size_t i = 0; cli_option_name(option, i, name, sizeof(name)); i++) {
        bool is_long = strncmp(name, "--", 2) == 0 && strlen(name) > 3;
        /* "-n", and what llama.cpp's users type: "-ub", "-ctk", "-no-cnv". */
        bool is_short = name[0] == '-' && name[1] != '-' && strlen(name) >= 2 && strlen(name) <= 7;
        if (!is_long && !is_short)
            fail_msg("%s: '%s' is no flag", command->name, name);
        if (i == 0 && !is_long)
            fail_msg("%s: '%s': the long name comes first", command->name, name);
        if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
            fail_msg("%s: every command has --help already", command->name);
    }
}

/* How many options of the command, the common ones among them, have the name. */
static size_t count_name(const struct cli_command *command, const char *wanted)
{
    size_t count = 0;
    char name[64];
    const struct cli_option *option;
    for (size_t i = 0; (option = cli_command_option(command, i)) != NULL; i++)
        for (size_t j = 0; cli_option_name(option, j, name, sizeof(name)); j++)
            count += strcmp(name, wanted) == 0;
    return count;
}

static void test_options_are_complete(void **state)
{
    (void)state;
    for (size_t i = 0; i < cli_command_count(); i++) {
        const struct cli_command *command = cli_command_at(i);
        for (size_t o = 0; o < command->option_count; o++) {
            const struct cli_option *option = &command->options[o];
            char name[64];
            check_option(command, option);
            for (size_t n = 0; cli_option_name(option, n, name, sizeof(name)); n++)
                if (count_name(command, name) != 1)
                    fail_msg("%s: %s is there twice", command->name, name);
            for (size_t other = 0; other < o; other++)
                if (command->options[other].offset == option->offset &&
                    command->options[other].kind == option->kind)
                    fail_msg("%s: %s and %s set the same", command->name, option->names,
                             command->options[other].names);
        }
    }
}

/* ---- Lists of values ------------------------------------------------------------------------ */

static const struct cli_option *option_of(const struct cli_command *command, const char *names)
{
    for (size_t i = 0; i < command->option_count; i++)
        if (strcmp(command->options[i].names, names) == 0)
            return &command->options[i];
    fail_msg("%s has no %s", command->name, names);
    return NULL;
}

static bool list_has(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = strstr(list, word); at; at = strstr(at + 1, word))
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

static size_t list_length(const char *list)
{
    size_t count = 1;
    for (; *list; list++)
        count += *list == ' ';
    return count;
}

static void test_synth_knows_every_shape(void **state)
{
    (void)state;
    const char *list = option_of(&cli_synth, "--shape|-s")->values;
    for (size_t i = 0; i < model_shape_count(); i++)
        if (!list_has(list, model_shape_at(i)->slug))
            fail_msg("%s is missing", model_shape_at(i)->slug);
    assert_true(list_has(list, "custom"));
    assert_int_equal(list_length(list), model_shape_count() + 1);
}

static void test_synth_knows_every_type(void **state)
{
    (void)state;
    const char *list = option_of(&cli_synth, "--type|-t")->values;
    for (int i = 0; i < CONVERT_TYPE_COUNT; i++)
        if (!list_has(list, convert_type_name((enum convert_type)i)))
            fail_msg("%s is missing", convert_type_name((enum convert_type)i));
    assert_int_equal(list_length(list), CONVERT_TYPE_COUNT);
    /* quantize has its types as an operand: a shell offers them, and they are in its text. */
    assert_string_equal(cli_quantize.last_operand_values, list);
    for (int i = 0; i < CONVERT_TYPE_COUNT; i++)
        check_contains("quantize", cli_quantize.description,
                       convert_type_name((enum convert_type)i));
}

static void test_synth_knows_every_architecture(void **state)
{
    (void)state;
    const char *list = option_of(&cli_synth, "--arch")->values;
    for (int i = 0; i < MODEL_ARCH_COUNT; i++)
        assert_true(list_has(list, model_arch_info((enum model_arch)i)->name));
    assert_int_equal(list_length(list), MODEL_ARCH_COUNT);
}

/* ---- Help ----------------------------------------------------------------------------------- */

/* No line of a terminal is wider. */
#define HELP_COLUMNS 100

static void check_fits(const char *what, const char *text)
{
    while (*text) {
        size_t length = strcspn(text, "\n");
        if (length > HELP_COLUMNS)
            fail_msg("%s: a line of %zu columns: %.*s", what, length, (int)length, text);
        if (length && text[length - 1] == ' ')
            fail_msg("%s: a space ends '%.*s'", what, (int)length, text);
        text += length + (text[length] == '\n');
    }
}

static void test_help_fits_and_is_complete(void **state)
{
    (void)state;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    cli_print_help(out, false);
    fflush(out);
    check_fits("greta", text);
    for (size_t i = 0; i < cli_command_count(); i++) {
        check_contains("commands", text, cli_command_at(i)->name);
        check_contains("commands", text, cli_command_at(i)->summary);
    }
    fclose(out);
    free(text);
    for (size_t i = 0; i < cli_command_count(); i++) {
        const struct cli_command *command = cli_command_at(i);
        out = open_memstream(&text, &bytes);
        cli_print_command_help(out, false, command);
        fflush(out);
        check_fits(command->name, text);
        check_contains(command->name, text, command->summary);
        check_contains(command->name, text, "--help, -h");
        for (size_t o = 0; o < command->option_count; o++) {
            char name[64];
            for (size_t n = 0; cli_option_name(&command->options[o], n, name, sizeof(name)); n++)
                check_contains(command->name, text, name);
        }
        fclose(out);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_commands_are_complete),
        cmocka_unit_test(test_options_are_complete),
        cmocka_unit_test(test_synth_knows_every_shape),
        cmocka_unit_test(test_synth_knows_every_type),
        cmocka_unit_test(test_synth_knows_every_architecture),
        cmocka_unit_test(test_help_fits_and_is_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
