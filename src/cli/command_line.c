/* command_line.c - see command_line.h. */
#include "cli/command_line.h"

#include <string.h>

void cli_add_command_line(struct text *text, const struct cli_environment *environment)
{
    text_add(text, "greta");
    for (int i = 1; i < environment->argument_count; i++) {
        const char *word = environment->arguments[i];
        bool plain = word[0] && !strpbrk(word, " \t\n'\"\\$&;|<>()*?");
        text_addf(text, plain ? " %s" : " '%s'", word);
    }
}
