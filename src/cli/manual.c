/* manual.c - man pages from the command tables, in the language of man(7). */
#include "cli/cli.h"

#include "base/text.h"
#include "cli/version.h"

#include <ctype.h>
#include <string.h>

/* Adds text so that roff prints it as it is: a dash stays a dash, a line may start with a dot. */
static void add_escaped(struct text *out, const char *text)
{
    for (const char *at = text; *at; at++) {
        if ((at == text || at[-1] == '\n') && (*at == '.' || *at == '\''))
            text_add(out, "\\&");
        if (*at == '-')
            text_add(out, "\\-");
        else if (*at == '\\')
            text_add(out, "\\e");
        else
            text_add_bytes(out, at, 1);
    }
}

/* Blank lines divide paragraphs. */
static void add_paragraphs(struct text *out, const char *text)
{
    while (*text) {
        const char *end = strstr(text, "\n\n");
        size_t length = end ? (size_t)(end - text) : strlen(text);
        struct text paragraph;
        text_init(&paragraph);
        text_add_bytes(&paragraph, text, length);
        text_add(out, ".PP\n");
        add_escaped(out, text_get(&paragraph));
        text_add(out, "\n");
        out->failed = out->failed || paragraph.failed;
        text_release(&paragraph);
        text += length;
        while (*text == '\n')
            text++;
    }
}

/* "--one|-o" as "--one, -o". */
static void add_escaped_list(struct text *out, const char *names)
{
    for (; *names; names++) {
        char one[2] = { *names, '\0' };
        if (*names == '|')
            text_add(out, ", ");
        else
            add_escaped(out, one);
    }
}

static void add_option(struct text *out, const struct cli_option *option)
{
    char name[64];
    text_add(out, ".TP\n");
    for (size_t i = 0; cli_option_name(option, i, name, sizeof(name)); i++) {
        text_add(out, i ? ", \\fB" : "\\fB");
        add_escaped(out, name);
        text_add(out, "\\fR");
    }
    if (option->argument)
        text_addf(out, " \\fI%s\\fR", option->argument);
    text_add(out, "\n");
    add_escaped(out, option->help);
    text_add(out, "\n");
    if (option->kind == CLI_TEXT_LIST)
        text_add(out, "May be given several times.\n");
    if (option->values) {
        text_add(out, "One of: ");
        add_escaped(out, option->values);
        text_add(out, ".\n");
    }
}

static void add_title(struct text *out, const char *name)
{
    char upper[64];
    size_t i = 0;
    for (; name[i] && i + 1 < sizeof(upper); i++)
        upper[i] = (char)toupper((unsigned char)name[i]);
    upper[i] = '\0';
    text_add(out, ".TH ");
    add_escaped(out, upper);
    text_addf(out, " 1 \"\" \"greta %s\" \"greta manual\"\n", GRETA_VERSION);
}

static void add_exit_status(struct text *out)
{
    text_add(out, ".SH EXIT STATUS\n"
                  ".TP\n0\ndone, and the answer is yes where there was a question\n"
                  ".TP\n1\ndone, and the answer is no: refused by the guard rail, hashes differ\n"
                  ".TP\n2\nthe command line makes no sense\n"
                  ".TP\n3\ncould not run: a file is missing, damaged or cannot be written\n"
                  ".TP\n4\ninconclusive or not reproduced\n"
                  ".TP\n130\ninterrupted\n");
}

static void add_command_page(struct text *out, const struct cli_command *command)
{
    char title[64];
    snprintf(title, sizeof(title), "greta-%s", command->name);
    add_title(out, title);
    text_addf(out, ".SH NAME\ngreta\\-%s \\- %s\n", command->name, command->summary);
    text_addf(out, ".SH SYNOPSIS\n\\fBgreta %s\\fR%s", command->name,
              command->option_count ? " [\\fIoptions\\fR]" : "");
    text_addf(out, "%s%s\n.SH DESCRIPTION\n", command->operands[0] ? " " : "", command->operands);
    add_paragraphs(out, command->description);
    text_add(out, ".SH OPTIONS\n");
    const struct cli_option *option;
    for (size_t i = 0; (option = cli_command_option(command, i)) != NULL; i++)
        add_option(out, option);
    text_add(out, ".TP\n\\fB\\-\\-help\\fR, \\fB\\-h\\fR\nThe same as this page, shorter.\n");
    if (command->refusal_count)
        text_add(out, ".SH FLAGS OF LLAMA.CPP\nThese are refused; what to do instead:\n");
    for (size_t i = 0; i < command->refusal_count; i++) {
        text_add(out, ".TP\n\\fB");
        add_escaped_list(out, command->refusals[i].names);
        text_add(out, "\\fR\n");
        add_escaped(out, command->refusals[i].instead);
        text_add(out, "\n");
    }
    if (command->examples) {
        text_add(out, ".SH EXAMPLES\n.nf\n");
        add_escaped(out, command->examples);
        text_add(out, ".fi\n");
    }
    add_exit_status(out);
    text_add(out, ".SH SEE ALSO\n\\fBgreta\\fR(1)\n");
}

static void add_main_page(struct text *out)
{
    add_title(out, "greta");
    text_add(out,
             ".SH NAME\ngreta \\- find what broke a GPU program, and run GGUF language models\n"
             ".SH SYNOPSIS\n\\fBgreta\\fR \\fICOMMAND\\fR [\\fIoptions\\fR]\n"
             ".SH DESCRIPTION\n");
    add_paragraphs(
        out, "greta runs GGUF language models on processors and GPUs, accounts for every byte "
             "that crosses between device and host, and names the launch, layer, step and "
             "tensor that caused a fault. greta_infer is another name of greta infer. Results go "
             "to standard output, everything else to standard error. Commands whose results a "
             "script may read have --json.");
    text_add(out, ".SH COMMANDS\n");
    for (size_t i = 0; i < cli_command_count(); i++) {
        const struct cli_command *command = cli_command_at(i);
        text_addf(out, ".TP\n\\fBgreta\\-%s\\fR(1)\n", command->name);
        add_escaped(out, command->summary);
        text_add(out, "\n");
    }
    text_add(out, ".SH ENVIRONMENT\n");
    for (size_t i = 0; i < cli_variable_count(); i++) {
        const struct cli_variable *variable = cli_variable_at(i);
        text_addf(out, ".TP\n\\fB%s\\fR=\\fI%s\\fR\n", variable->name, variable->value);
        add_escaped(out, variable->help);
        text_add(out, "\n");
    }
    add_exit_status(out);
}

static enum cli_exit run_manual(const struct cli_invocation *invocation)
{
    struct text page;
    struct error err;
    enum cli_exit code = CLI_EXIT_OK;
    text_init(&page);
    if (invocation->operand_count == 0) {
        add_main_page(&page);
    } else {
        const struct cli_command *command = cli_command_find(invocation->operands[0]);
        if (!command) {
            error_set_at(&err, STATUS_USAGE, __FILE__, __LINE__, "unknown command '%s'",
                         invocation->operands[0]);
            code = cli_fail(invocation, &err);
            goto done;
        }
        add_command_page(&page, command);
    }
    if (page.failed || fputs(text_get(&page), stdout) < 0 || fflush(stdout) != 0) {
        error_set_at(&err, STATUS_IO, __FILE__, __LINE__, "cannot write the page");
        code = cli_fail(invocation, &err);
    }
done:
    text_release(&page);
    return code;
}

const struct cli_command cli_manual = {
    .name = "manual",
    .operands = "[COMMAND]",
    .operand_most = 1,
    .summary = "print the man page of greta or one of its commands",
    .description = "Prints a page in the language of man(7); the build installs all of them.",
    .examples = "  greta manual inspect | man -l -   # read it without installing\n",
    .run = run_manual,
};
