/* completion.c - shell completion from the command tables. */
#include "cli/cli.h"

#include <string.h>

/* Calls for every name of every option. */
#define FOR_EACH_NAME(command, option, name)                                                       \
    for (size_t o_ = 0; o_ < (command)->option_count && ((option) = &(command)->options[o_]);      \
         o_++)                                                                                     \
        for (size_t n_ = 0; cli_option_name((option), n_, (name), sizeof(name)); n_++)

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
            if (option->values)
                fprintf(out,
                        "    '%s %s') COMPREPLY=($(compgen -W \"%s\" -- \"$word\")); return ;;\n",
                        command->name, name, option->values);
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
    for (size_t i = 0; i < cli_command_count(); i++)
        if (cli_command_at(i)->actions)
            fprintf(out, "    '%s 2') COMPREPLY=($(compgen -W \"%s\" -- \"$word\")); return ;;\n",
                    cli_command_at(i)->name, cli_command_at(i)->actions);
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
            if (option->values)
                fprintf(out, "(%s)", option->values);
            else if (option->completes_file)
                fputs("_files", out);
            fputs("\" \\\n", out);
        }
        if (command->actions) /* the first operand is the command itself */
            fprintf(out, "    '2:action:(%s)' \\\n", command->actions);
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
            if (option->values)
                fprintf(out, " -x -a \"%s\"", option->values);
            else if (option->argument)
                fputs(option->completes_file ? " -r -F" : " -x", out);
            fputs(" -d \"", out);
            print_quoted(out, option->help, "\"\\$");
            fputs("\"\n", out);
        }
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
    .operand_least = 1,
    .operand_most = 1,
    .summary = "print shell completion",
    .description = "Prints a completion script for a shell; the build installs all of them.",
    .examples = "  source <(greta completion bash)   # for this shell only\n",
    .run = run_completion,
};
