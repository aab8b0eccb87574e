/* terminal.c - errors, warnings and progress on stderr; and Ctrl-C. */
#include "cli/cli.h"

#include "base/clock.h"
#include "base/text.h"
#include "cli/colour.h"

#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

/* Set by the handler, which may not do more; long work reads it between steps. */
static volatile sig_atomic_t interrupted;

static void note_interrupt(int signal_number)
{
    interrupted = signal_number;
}

bool cli_is_interrupted(void)
{
    return interrupted != 0;
}

void cli_catch_interrupts(void)
{
    /* One shot: the second signal has the default action. */
    struct sigaction action = { .sa_handler = note_interrupt, .sa_flags = (int)SA_RESETHAND };
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    /* Under nohup greta must outlive the terminal. */
    struct sigaction before;
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGHUP, &action, NULL);
}

bool cli_forget_interrupt(void)
{
    if (interrupted != SIGINT)
        return false;
    interrupted = 0;
    cli_catch_interrupts();
    return true;
}

void cli_finish_calls(void)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
    for (size_t i = 0; i < COUNT_OF(signals); i++) {
        struct sigaction action;
        if (sigaction(signals[i], NULL, &action) != 0 || action.sa_handler != note_interrupt)
            continue;
        action.sa_flags |= SA_RESTART;
        sigaction(signals[i], &action, NULL);
    }
}

/* ---- Errors and warnings -------------------------------------------------------------------- */

void cli_put_line(const char *line)
{
    struct text shown;
    text_init(&shown);
    text_add_printable(&shown, text_view_of(line), SIZE_MAX);
    fprintf(stderr, "%s\n", text_get(&shown));
    text_release(&shown);
}

enum cli_exit cli_fail(const struct cli_invocation *invocation, const struct error *err)
{
    bool colour = invocation->colour_err;
    char shown[CLI_SHOWN_BYTES];
    fprintf(stderr, "%sgreta %s:%s %s\n", cli_colour_begin(colour, CLI_COLOUR_BAD),
            invocation->command->name, cli_colour_end(colour),
            text_printable(text_view_of(err->text), shown, sizeof(shown)));
    switch (err->status) {
    case STATUS_USAGE:
        return CLI_EXIT_USAGE;
    case STATUS_REFUSED:
        return CLI_EXIT_FAILED;
    case STATUS_INTERRUPTED:
        return CLI_EXIT_INTERRUPTED;
    default:
        return CLI_EXIT_CANNOT;
    }
}

void cli_warn(const struct cli_invocation *invocation, const char *format, ...)
{
    bool colour = invocation->colour_err;
    struct text line;
    va_list arguments;
    text_init(&line);
    va_start(arguments, format);
    text_addf_va(&line, format, arguments);
    va_end(arguments);
    fprintf(stderr, "greta %s: %swarning:%s ", invocation->command->name,
            cli_colour_begin(colour, CLI_COLOUR_UNSURE), cli_colour_end(colour));
    cli_put_line(text_get(&line));
    text_release(&line);
}

/* ---- Progress ------------------------------------------------------------------------------- */

#define REDRAW_NS 100000000u /* ten times a second looks smooth */

static void draw(struct cli_progress *progress, uint64_t done, uint64_t total, uint64_t now_ns)
{
    double seconds = (double)(now_ns - progress->started_ns) / 1e9;
    double share = total ? (double)done / (double)total : 1.0;
    char done_words[TEXT_BYTES_CAPACITY], total_words[TEXT_BYTES_CAPACITY];
    char speed[TEXT_BYTES_CAPACITY];
    fprintf(stderr, "\r\033[K%s: %3.0f %%", progress->what, 100 * share);
    if (strcmp(progress->unit, "bytes") == 0 && seconds > 0)
        fprintf(stderr, ", %s of %s, %s/s", text_bytes(done, done_words),
                text_bytes(total, total_words),
                text_bytes((uint64_t)((double)done / seconds), speed));
    if (share > 0.01 && seconds > 1)
        fprintf(stderr, ", %.0f s left", seconds / share - seconds);
    fflush(stderr);
    progress->line_open = true;
}

static bool step(void *context, uint64_t done, uint64_t total)
{
    struct cli_progress *progress = context;
    if (interrupted)
        return false;
    uint64_t now_ns = clock_ns();
    if (progress->shown && now_ns - progress->drawn_ns >= REDRAW_NS) {
        progress->drawn_ns = now_ns;
        draw(progress, done, total, now_ns);
    }
    return true;
}

void cli_progress_begin(struct cli_progress *progress, const struct cli_invocation *invocation,
                        const char *what, const char *unit)
{
    uint64_t now_ns = clock_ns();
    *progress = (struct cli_progress){ .progress = { step, progress },
                                       .what = what,
                                       .unit = unit,
                                       .shown = invocation->environment->progress_shown &&
                                                !invocation->quiet,
                                       .started_ns = now_ns,
                                       .drawn_ns = now_ns };
}

void cli_progress_end(struct cli_progress *progress)
{
    if (progress->line_open)
        fputs("\r\033[K", stderr);
    progress->line_open = false;
}
