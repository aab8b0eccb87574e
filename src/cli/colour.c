/* colour.c - colours for words on a terminal. Text is made without colours; words that say how
 * something ended are coloured as they are written, so that every table, report and status has the
 * same colours. */
#include "cli/colour.h"

#include <string.h>

#define END "\033[0m"

static const char *const escapes[] = {
    [CLI_COLOUR_GOOD] = "\033[1;32m",
    [CLI_COLOUR_BAD] = "\033[1;31m",
    [CLI_COLOUR_UNSURE] = "\033[1;33m",
    [CLI_COLOUR_HEADING] = "\033[1m",
};
_Static_assert(COUNT_OF(escapes) == CLI_COLOUR_COUNT, "every colour has its escape");

/* A word that is the beginning of another comes after it. tools/film.py has the same colours. */
static const struct {
    const char *word;
    enum cli_colour colour;
} words[] = {
    { "STATUS=OK", CLI_COLOUR_GOOD },
    { "STATUS=FAILED", CLI_COLOUR_BAD },
    { "STATUS=FINDINGS", CLI_COLOUR_BAD },
    { "STATUS=INTERRUPTED", CLI_COLOUR_UNSURE },
    { "STATUS=INCONCLUSIVE", CLI_COLOUR_UNSURE },
    { "FAILED", CLI_COLOUR_BAD },
    { "CLEAN", CLI_COLOUR_GOOD },
    { "REFUTED", CLI_COLOUR_GOOD },
    { "ROOT CAUSE FOUND", CLI_COLOUR_BAD },
    { "DEFECT SEEN", CLI_COLOUR_BAD },
    { "CONFIRMED", CLI_COLOUR_BAD },
    { "INCONCLUSIVE", CLI_COLOUR_UNSURE },
    { "NOT REPRODUCED", CLI_COLOUR_UNSURE },
    { "NOT SEEN", CLI_COLOUR_UNSURE },
    { "LIMPIO", CLI_COLOUR_GOOD },
    { "REFUTADA", CLI_COLOUR_GOOD },
    { "CAUSA RAÍZ ENCONTRADA", CLI_COLOUR_BAD },
    { "DEFECTO VISTO", CLI_COLOUR_BAD },
    { "CONFIRMADA", CLI_COLOUR_BAD },
    { "NO CONCLUYENTE", CLI_COLOUR_UNSURE },
    { "NO REPRODUCIDO", CLI_COLOUR_UNSURE },
    { "NO VISTO", CLI_COLOUR_UNSURE },
    { "NO VISTA", CLI_COLOUR_UNSURE },
};

const char *cli_colour_begin(bool on, enum cli_colour colour)
{
    return on ? escapes[colour] : "";
}

const char *cli_colour_end(bool on)
{
    return on ? END : "";
}

/* True if the word ends there: no letter, digit or dash follows. */
static bool ends_at(const char *at)
{
    return *at == '\0' || strchr(" \n\t.,:;)", *at) != NULL;
}

/* Length of the table's word at `at`; 0: none. */
static size_t find_word(const char *at, enum cli_colour *ret_colour)
{
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        size_t length = strlen(words[i].word);
        if (strncmp(at, words[i].word, length) == 0 && ends_at(at + length)) {
            *ret_colour = words[i].colour;
            return length;
        }
    }
    return 0;
}

void cli_put_coloured(FILE *out, bool on, const char *text)
{
    const char *begin = text;
    if (!on) {
        fputs(text, out);
        return;
    }
    while (*text) {
        enum cli_colour colour;
        bool starts = text == begin || text[-1] == ' ' || text[-1] == '\n';
        size_t length = starts ? find_word(text, &colour) : 0;
        if (length)
            fprintf(out, "%s%.*s%s", escapes[colour], (int)length, text, END);
        else
            fputc(*text, out);
        text += length ? length : 1;
    }
}

void cli_put_table(FILE *out, bool on, const char *text)
{
    size_t heading = strcspn(text, "\n");
    if (on && text[heading])
        fprintf(out, "%s%.*s%s", escapes[CLI_COLOUR_HEADING], (int)heading, text, END);
    cli_put_coloured(out, on, on && text[heading] ? text + heading : text);
}
