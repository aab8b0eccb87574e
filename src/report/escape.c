/* escape.c - see escape.h. */
#include "report/escape.h"

#include <ctype.h>
#include <string.h>

/* U+FFFE and U+FFFF are UTF-8, but no XML parser takes them. */
static bool is_noncharacter(const char *bytes, size_t length)
{
    const unsigned char *b = (const unsigned char *)bytes;
    return length == 3 && b[0] == 0xEF && b[1] == 0xBF && b[2] >= 0xBE;
}

static void add_printable(struct text *shown, const char *text)
{
    text_init(shown);
    text_add_printable(shown, text_view_of(text), ESCAPE_LIMIT);
}

void escape_markup(struct text *out, const char *text)
{
    struct text shown;
    add_printable(&shown, text);
    for (const char *at = text_get(&shown); *at;) {
        size_t length = text_utf8_length(at, strlen(at));
        switch (*at) {
        case '&':
            text_add(out, "&amp;");
            break;
        case '<':
            text_add(out, "&lt;");
            break;
        case '>':
            text_add(out, "&gt;");
            break;
        case '"':
            text_add(out, "&quot;");
            break;
        case '\'':
            text_add(out, "&#39;");
            break;
        default:
            if (is_noncharacter(at, length))
                text_add(out, "?");
            else
                text_add_bytes(out, at, length);
        }
        at += length;
    }
    out->failed = out->failed || shown.failed;
    text_release(&shown);
}

void escape_markdown(struct text *out, const char *text)
{
    struct text shown;
    add_printable(&shown, text);
    const char *whole = text_get(&shown);
    for (const char *at = whole; *at; at++) {
        /* An underscore inside a word is no markup: rms_norm stays readable. */
        bool inside_word = *at == '_' && at > whole && at[-1] != ' ' && at[1] && at[1] != ' ';
        if (strchr("\\`*_[]<>|#~&", *at) && !inside_word)
            text_add(out, "\\");
        text_add_bytes(out, at, 1);
    }
    out->failed = out->failed || shown.failed;
    text_release(&shown);
}

static size_t longest_run(const char *text, char wanted)
{
    size_t longest = 0, run = 0;
    for (; *text; text++) {
        run = *text == wanted ? run + 1 : 0;
        if (run > longest)
            longest = run;
    }
    return longest;
}

void escape_markdown_code(struct text *out, const char *text, bool in_table)
{
    struct text shown;
    add_printable(&shown, text);
    const char *whole = text_get(&shown);
    size_t fence = longest_run(whole, '`') + 1;
    bool padded = fence > 1 || whole[0] == '\0';
    text_add_fill(out, '`', fence);
    text_add(out, padded ? " " : "");
    for (const char *at = whole; *at; at++) {
        text_add(out, in_table && *at == '|' ? "\\" : "");
        text_add_bytes(out, at, 1);
    }
    text_add(out, padded ? " " : "");
    text_add_fill(out, '`', fence);
    out->failed = out->failed || shown.failed;
    text_release(&shown);
}

void escape_json(struct text *out, const char *text)
{
    struct text shown;
    add_printable(&shown, text);
    text_add(out, "\"");
    for (const char *at = text_get(&shown); *at; at++) {
        text_add(out, *at == '"' || *at == '\\' ? "\\" : "");
        text_add_bytes(out, at, 1);
    }
    text_add(out, "\"");
    out->failed = out->failed || shown.failed;
    text_release(&shown);
}

void escape_uri(struct text *out, const char *path)
{
    for (; *path; path++)
        if (isalnum((unsigned char)*path) || strchr("-._~/", *path))
            text_add_bytes(out, path, 1);
        else
            text_addf(out, "%%%02X", (unsigned)(unsigned char)*path);
}
