/* help.c - --help, for greta and for each command; and `greta help`. */
#include "cli/cli.h"

#include "cli/colour.h"
#include "cli/version.h"

#include <string.h>

#define HELP_COLUMN 30
#define HELP_WIDTH 100

/* Prints words at column, breaking lines at HELP_WIDTH; `at` is where the cursor is. */
static void print_wrapped(FILE *out, const char *text, int column, int at)
{
    while (*text) {
        int length = (int)strcspn(text, " \n");
        if (at > column && at + 1 + length > HELP_WIDTH) {
            fprintf(out, "\n%*s", column, "");
            at = column;
        } else if (at > column) {
            fputc(' ', out);
            at++;
        }
        fprintf(out, "%.*s", length, text);
        at += length;
        text += length;
        while (*text == ' ')
            text++;
        if (*text == '\n') {
            fprintf(out, "\n%*s", text[1] ? column : 0, "");
            at = column;
            text++;
        }
    }
    fputc('\n', out);
}

static void print_heading(FILE *out, bool colour, const char *words)
{
    fprintf(out, "%s%s%s", cli_colour_begin(colour, CLI_COLOUR_HEADING), words,
            cli_colour_end(colour));
}

void cli_print_help(FILE *out, bool colour)
{
    fputs("greta finds what broke a GPU program, and runs GGUF language models.\n\n", out);
    print_heading(out, colour, "usage:");
    fputs(" greta COMMAND [options]\n\n", out);
    print_heading(out, colour, "commands:");
    fputc('\n', out);
    for (size_t i = 0; i < cli_command_count(); i++)
        fprintf(out, "  %-12s %s\n", cli_command_at(i)->name, cli_command_at(i)->summary);
    fputs("\n  greta COMMAND --help   what a command does and its options\n"
          "  greta --version, -V    the version\n\n"
          "exit status: 0 done; 1 done, and the answer is no; 2 wrong usage; 3 could not run;\n"
          "4 inconclusive; 130 interrupted\n",
          out);
}

static void print_option(FILE *out, const struct cli_option *option)
{
    char names[128] = "", name[64];
    for (size_t i = 0; cli_option_name(option, i, name, sizeof(name)); i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof(names) - used, "%s%s", i ? ", " : "", name);
    }
    int at = fprintf(out, "  %s%s%s", names, option->argument ? " " : "",
                     option->argument ? option->argument : "");
    if (at >= HELP_COLUMN)
        fprintf(out, "\n%*s", HELP_COLUMN, "");
    else
        fprintf(out, "%*s", HELP_COLUMN - at, "");
    print_wrapped(out, option->help, HELP_COLUMN, HELP_COLUMN);
    if (option->kind == CLI_TEXT_LIST)
        fprintf(out, "%*smay be given several times\n", HELP_COLUMN, "");
    if (option->values) {
        fprintf(out, "%*sone of: ", HELP_COLUMN, "");
        print_wrapped(out, option->values, HELP_COLUMN + 8, HELP_COLUMN + 8);
    }
}

void cli_print_command_help(FILE *out, bool colour, const struct cli_command *command)
{
    fprintf(out, "greta %s - %s\n\n", command->name, command->summary);
    print_heading(out, colour, "usage:");
    fprintf(out, " greta %s%s%s%s\n\n", command->name, command->option_count ? " [options]" : "",
            command->operands[0] ? " " : "", command->operands);
    print_wrapped(out, command->description, 0, 0);
    fputc('\n', out);
    print_heading(out, colour, "options:");
    fputc('\n', out);
    const struct cli_option *option;
    for (size_t i = 0; (option = cli_command_option(command, i)) != NULL; i++)
        print_option(out, option);
    fprintf(out, "  %-*sthis text\n", HELP_COLUMN - 2, "--help, -h");
    if (command->examples) {
        fputc('\n', out);
        print_heading(out, colour, "examples:");
        fprintf(out, "\n%s", command->examples);
    }
}

static enum cli_exit run_help(const struct cli_invocation *invocation)
{
    if (invocation->operand_count == 0) {
        cli_print_help(stdout, invocation->colour_out);
        return CLI_EXIT_OK;
    }
    const struct cli_command *command = cli_command_find(invocation->operands[0]);
    struct error err;
    if (!command) {
        error_set_at(&err, STATUS_USAGE, __FILE__, __LINE__, "unknown command '%s'",
                     invocation->operands[0]);
        return cli_fail(invocation, &err);
    }
    cli_print_command_help(stdout, invocation->colour_out, command);
    return CLI_EXIT_OK;
}

const struct cli_command cli_help = {
    .name = "help",
    .operands = "[COMMAND]",
    .operand_most = 1,
    .summary = "show what greta or one of its commands does",
    .description = "Prints the commands, or with COMMAND what that command does and its options.",
    .run = run_help,
};
