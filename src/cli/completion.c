/* completion.c - shell completion from the command tables. */
#include "cli/cli.h"

#include "inject/inject.h"

#include <string.h>

/* Calls for every name of every option. */
#define FOR_EACH_NAME(command, option, name)                                                       \
    for (size_t o_ = 0; ((option) = cli_command_option((command), o_)) != NULL; o_++)              \
        for (size_t n_ = 0; cli_option_name((option), n_, (name), sizeof(name)); n_++)

static bool has_values(const struct cli_option *option)
{
    return option->values || option->completes == CLI_COMPLETES_FAULT;
}

static void print_values(FILE *out, const struct cli_option *option)
{
    if (option->values)
        fputs(option->values, out);
    for (int fault = 0; !option->values && fault < INJECT_FAULT_COUNT; fault++)
        fprintf(out, "%s%s", fault ? " " : "", inject_fault_name((enum inject_fault)fault));
}

static void print_command_names(FILE *out)
{
    for (size_t i = 0; i < cli_command_count(); i++)
        fprintf(out, "%s%s", i ? " " : "", cli_command_at(i)->name);
}

static void print_bash(FILE *out)
{
    char name[64];
    const struct cli_option *option;
    fputs("# bash completion for greta\n_greta()\n{\n"
          "    local word=\"${COMP_WORDS[COMP_CWORD]}\" before=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
          "    COMPREPLY=()\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        COMPREPLY=($(compgen -W \"",
          out);
    print_command_names(out);
    fputs(" --help --version\" -- \"$word\"))\n        return\n    fi\n"
          "    case \"${COMP_WORDS[1]} $before\" in\n",
          out);
    for (size_t i = 0; i < cli_command_count(); i++) {
        const struct cli_command *command = cli_command_at(i);
        FOR_EACH_NAME (command, option, name)
            if (has_values(option)) {
                fprintf(out, "    '%s %s') COMPREPLY=($(compgen -W \"", command->name, name);
                print_values(out, option);
                fputs("\" -- \"$word\")); return ;;\n", out);
            }
    }
    fputs("    esac\n    if [[ \"$word\" == -* ]]; then\n        case \"${COMP_WORDS[1]}\" in\n",
          out);
    for (size_t i = 0; i < cli_command_count(); i++) {
        const struct cli_command *command = cli_command_at(i);
        fprintf(out, "        %s) COMPREPLY=($(compgen -W \"--help", command->name);
        FOR_EACH_NAME (command, option, name)
            fprintf(out, " %s", name);
        fputs("\" -- \"$word\")) ;;\n", out);
    }
    fputs("        esac\n        return\n    fi\n    case \"${COMP_WORDS[1]} $COMP_CWORD\" in\n",
          out);
    for (size_t i = 0; i < cli_command_count(); i++) {
        const struct cli_command *command = cli_command_at(i);
        if (command->actions)
            fprintf(out, "    '%s 2') COMPREPLY=($(compgen -W \"%s\" -- \"$word\")); return ;;\n",
                    command->name, command->actions);
        if (command->last_operand_values)
            fprintf(out, "    '%s %zu') COMPREPLY=($(compgen -W \"%s\" -- \"$word\")); return ;;\n",
                    command->name, command->operand_most + 1, command->last_operand_values);
    }
    fputs("    esac\n    COMPREPLY=($(compgen -f -- \"$word\"))\n}\n"
          "complete -o filenames -F _greta greta\n",
          out);
}

/* Help text inside zsh's and fish's quotes. */
static void print_quoted(FILE *out, const char *text, const char *escaped)
{
    for (; *text; text++) {
        if (strchr(escaped, *text))
            fputc('\\', out);
        fputc(*text == '\n' ? ' ' : *text, out);
    }
}

static void print_zsh(FILE *out)
{
    char name[64];
    const struct cli_option *option;
    fputs("#compdef greta\n# zsh completion for greta\nlocal -a commands\ncommands=(\n", out);
    for (size_t i = 0; i < cli_command_count(); i++) {
        fprintf(out, "  \"%s:", cli_command_at(i)->name);
        print_quoted(out, cli_command_at(i)->summary, "\"\\$`:");
        fputs("\"\n", out);
    }
    fputs(")\nif (( CURRENT == 2 )); then\n  _describe 'command' commands\n  return\nfi\n"
          "case $words[2] in\n",
          out);
    for (size_t i = 0; i < cli_command_count(); i++) {
        const struct cli_command *command = cli_command_at(i);
        fprintf(out, "%s)\n  _arguments \\\n", command->name);
        FOR_EACH_NAME (command, option, name) {
            fprintf(out, "    \"%s%s[", option->kind == CLI_TEXT_LIST ? "*" : "", name);
            print_quoted(out, option->help, "\"\\$`[]:");
            fputs("]", out);
            if (option->argument)
                fprintf(out, ":%s:", option->argument);
            if (has_values(option)) {
                fputc('(', out);
                print_values(out, option);
                fputc(')', out);
            } else if (option->completes == CLI_COMPLETES_FILE) {
                fputs("_files", out);
            }
            fputs("\" \\\n", out);
        }
        if (command->actions) /* the first operand is the command itself */
            fprintf(out, "    '2:action:(%s)' \\\n", command->actions);
        if (command->last_operand_values)
            fprintf(out, "    '%zu:value:(%s)' \\\n", command->operand_most + 1,
                    command->last_operand_values);
        fputs("    '--help[show help]' '*:file:_files'\n  ;;\n", out);
    }
    fputs("esac\n", out);
}

static void print_fish(FILE *out)
{
    char name[64];
    const struct cli_option *option;
    fputs("# fish completion for greta\n", out);
    for (size_t i = 0; i < cli_command_count(); i++) {
        const struct cli_command *command = cli_command_at(i);
        fprintf(out, "complete -c greta -n __fish_use_subcommand -f -a %s -d \"", command->name);
        print_quoted(out, command->summary, "\"\\$");
        fputs("\"\n", out);
        if (command->actions)
            fprintf(out,
                    "complete -c greta -n '__fish_seen_subcommand_from %s; and not "
                    "__fish_seen_subcommand_from %s' -f -a \"%s\"\n",
                    command->name, command->actions, command->actions);
        FOR_EACH_NAME (command, option, name) {
            bool is_long = strncmp(name, "--", 2) == 0;
            fprintf(out, "complete -c greta -n '__fish_seen_subcommand_from %s' %s %s",
                    command->name,
                    is_long            ? "-l"
                    : strlen(name) > 2 ? "-o"
                                       : "-s",
                    name + (is_long ? 2 : 1));
            if (has_values(option)) {
                fputs(" -x -a \"", out);
                print_values(out, option);
                fputc('"', out);
            } else if (option->argument) {
                fputs(option->completes == CLI_COMPLETES_FILE ? " -r -F" : " -x", out);
            }
            fputs(" -d \"", out);
            print_quoted(out, option->help, "\"\\$");
            fputs("\"\n", out);
        }
        if (command->last_operand_values)
            fprintf(out, "complete -c greta -n '__fish_seen_subcommand_from %s' -a \"%s\"\n",
                    command->name, command->last_operand_values);
    }
}

static enum cli_exit run_completion(const struct cli_invocation *invocation)
{
    const char *shell = invocation->operands[0];
    if (strcmp(shell, "bash") == 0)
        print_bash(stdout);
    else if (strcmp(shell, "zsh") == 0)
        print_zsh(stdout);
    else if (strcmp(shell, "fish") == 0)
        print_fish(stdout);
    else {
        struct error err;
        error_set_at(&err, STATUS_USAGE, __FILE__, __LINE__,
                     "expected bash, zsh or fish, found '%s'", shell);
        return cli_fail(invocation, &err);
    }
    return CLI_EXIT_OK;
}

const struct cli_command cli_completion = {
    .name = "completion",
    .operands = "bash|zsh|fish",
    .actions = "bash zsh fish",
    .operand_least = 1,
    .operand_most = 1,
    .summary = "print shell completion",
    .description = "Prints a completion script for a shell; the build installs all of them.",
    .examples = "  source <(greta completion bash)   # for this shell only\n",
    .run = run_completion,
};
