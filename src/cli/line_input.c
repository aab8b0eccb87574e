/* line_input.c - see line_input.h.
 *
 * libedit is opened when it is needed, so that greta neither needs it to build nor to run. */
#include "cli/line_input.h"

#include "base/dynlib.h"
#include "cli/cli.h"

#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More than a person types; a pipe may bring anything. */
#define LINE_LIMIT_BYTES ((size_t)16 << 20)
#define HISTORY_LINES 1000

/* As in libedit's histedit.h, whose numbers are part of its ABI. */
struct history_event {
    int number;
    const char *text;
};
enum { EDIT_PROMPT = 0, EDIT_EDITOR = 2, EDIT_BIND = 4, EDIT_SETTY = 8, EDIT_HISTORY = 10 };
enum { HISTORY_SET_SIZE = 1, HISTORY_ENTER = 10, HISTORY_LOAD = 17, HISTORY_SAVE = 18 };

struct edit_calls {
    void *(*el_init)(const char *program, FILE *in, FILE *out, FILE *err);
    void (*el_end)(void *editor);
    const char *(*el_gets)(void *editor, int *ret_count);
    int (*el_set)(void *editor, int what, ...);
    void *(*history_init)(void);
    void (*history_end)(void *history);
    int (*history)(void *history, struct history_event *event, int what, ...);
};

#define CALL(name)                                                                                 \
    {                                                                                              \
#name, offsetof(struct edit_calls, name), false                                            \
    }
static const struct dynlib_symbol symbols[] = {
    CALL(el_init),      CALL(el_end),      CALL(el_gets), CALL(el_set),
    CALL(history_init), CALL(history_end), CALL(history),
};

struct line_input {
    bool editing;
    struct dynlib *library; /* NULL: lines are read as they are */
    struct edit_calls calls;
    void *editor, *history;
    char *history_path;
    char *line; /* of getline */
    size_t line_bytes;
};

/* ---- libedit --------------------------------------------------------------------------------- */

static const char first_prompt[] = "> ", more_prompt[] = ". ";

static const char *give_first(void *editor)
{
    (void)editor;
    return first_prompt;
}

static const char *give_more(void *editor)
{
    (void)editor;
    return more_prompt;
}

static void begin_editing(struct line_input *input)
{
    const struct edit_calls *calls = &input->calls;
    struct history_event event;
    setlocale(LC_CTYPE, "C.UTF-8"); /* how many columns a character takes */
    input->editor = calls->el_init("greta", stdin, stdout, stderr);
    input->history = calls->history_init();
    if (!input->editor || !input->history)
        return;
    calls->history(input->history, &event, HISTORY_SET_SIZE, HISTORY_LINES);
    calls->el_set(input->editor, EDIT_EDITOR, "emacs");
    calls->el_set(input->editor, EDIT_HISTORY, calls->history, input->history);
    /* Ctrl-C is a key like any other: it clears the line. */
    calls->el_set(input->editor, EDIT_SETTY, "-d", "-isig", (char *)NULL);
    calls->el_set(input->editor, EDIT_BIND, "-s", "^C", "^A^K^J", (char *)NULL);
    if (input->history_path)
        calls->history(input->history, &event, HISTORY_LOAD, input->history_path);
}

static void end_editing(struct line_input *input)
{
    const struct edit_calls *calls = &input->calls;
    struct history_event event;
    if (input->history && input->history_path)
        calls->history(input->history, &event, HISTORY_SAVE, input->history_path);
    if (input->editor)
        calls->el_end(input->editor);
    if (input->history)
        calls->history_end(input->history);
    dynlib_close(input->library);
}

/* ---- Lines ----------------------------------------------------------------------------------- */

enum status line_input_open(bool editing, const char *history_path, struct line_input **ret,
                            struct error *err)
{
    static const char *const names[] = { "libedit.so.2", NULL };
    struct error unused;
    struct line_input *input = calloc(1, sizeof(*input));
    if (!input)
        return error_set(err, STATUS_NO_MEMORY, "no memory for input");
    input->editing = editing;
    input->history_path = history_path ? strdup(history_path) : NULL;
    if (editing && dynlib_load(names, symbols, COUNT_OF(symbols), &input->calls, &input->library,
                               &unused) == STATUS_OK)
        begin_editing(input);
    *ret = input;
    return STATUS_OK;
}

void line_input_close(struct line_input *input)
{
    if (!input)
        return;
    if (input->library)
        end_editing(input);
    free(input->history_path);
    free(input->line);
    free(input);
}

static enum status at_end(struct error *err)
{
    if (cli_is_interrupted())
        return error_set(err, STATUS_INTERRUPTED, "interrupted");
    return error_set(err, STATUS_NOT_FOUND, "the input has ended");
}

static enum status add_line(struct text *line, const char *bytes, size_t length, struct error *err)
{
    while (length > 0 && (bytes[length - 1] == '\n' || bytes[length - 1] == '\r'))
        length--;
    if (length > LINE_LIMIT_BYTES)
        return error_set(err, STATUS_LIMIT, "a line of more than %zu bytes", LINE_LIMIT_BYTES);
    text_add_bytes(line, bytes, length);
    return line->failed ? error_set(err, STATUS_NO_MEMORY, "no memory for a line") : STATUS_OK;
}

enum status line_input_read(struct line_input *input, bool more, struct text *line,
                            struct error *err)
{
    text_clear(line);
    if (input->editor) {
        int count = 0;
        input->calls.el_set(input->editor, EDIT_PROMPT, more ? give_more : give_first);
        const char *typed = input->calls.el_gets(input->editor, &count);
        return typed && count > 0 ? add_line(line, typed, (size_t)count, err) : at_end(err);
    }
    if (input->editing) {
        fputs(more ? more_prompt : first_prompt, stdout);
        fflush(stdout);
    }
    ssize_t count = getline(&input->line, &input->line_bytes, stdin);
    return count > 0 ? add_line(line, input->line, (size_t)count, err) : at_end(err);
}

void line_input_remember(struct line_input *input, const char *entry)
{
    struct history_event event;
    if (input->editor && input->history && entry[0])
        input->calls.history(input->history, &event, HISTORY_ENTER, entry);
}
