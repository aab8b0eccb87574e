/* cmd_flight.c - greta flight: the contents of a recording, as a summary, as lines, or as a
 * timeline. */
#include "base/outfile.h"
#include "cli/cli.h"
#include "cli/flight_list.h"
#include "cli/flight_show.h"
#include "report/export.h"
#include "report/report.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct settings {
    int32_t stream, layer, step;
    const char *tensor, *op, *from, *to, *format, *output;
    bool failures, force, json;
};

static const struct settings defaults = { .stream = -1, .layer = -1, .step = -1, .format = "text" };

#define AT(field) offsetof(struct settings, field)

static const struct cli_option options[] = {
    { "--stream", "N", CLI_I32, AT(stream), "only events of this stream", NULL, false },
    { "--layer", "N", CLI_I32, AT(layer), "only events of this layer", NULL, false },
    { "--step", "N", CLI_I32, AT(step), "only events of this step", NULL, false },
    { "--tensor", "NAME", CLI_TEXT, AT(tensor), "only events of this tensor", NULL, false },
    { "--op", "NAME", CLI_TEXT, AT(op), "only this op or kind, for instance rope or copy-out", NULL,
      false },
    { "--from", "MS", CLI_TEXT, AT(from), "only from this time on, in ms since the start", NULL,
      false },
    { "--to", "MS", CLI_TEXT, AT(to), "only up to this time, in ms since the start", NULL, false },
    { "--failures", NULL, CLI_FLAG, AT(failures),
      "only calls that failed, were refused, left a trap, or never ended", NULL, false },
    { "--format", "NAME", CLI_TEXT, AT(format),
      "with export: lines of text, of JSON, or a timeline "
      "that opens in Perfetto",
      "text jsonl chrome", false },
    { "--output|-o", "FILE", CLI_TEXT, AT(output),
      "with export: the file to write "
      "(default: standard output)",
      NULL, true },
    { "--force|-f", NULL, CLI_FLAG, AT(force), "replace FILE if it exists", NULL, false },
    { "--json", NULL, CLI_FLAG, AT(json), "with show and list: JSON instead of text", NULL, false },
};

enum action { ACTION_SHOW, ACTION_LIST, ACTION_EVENTS, ACTION_EXPORT };

/* ---- The request ---------------------------------------------------------------------------- */

/* `list FILE` means `events FILE`, as it did before folders could be listed. */
static enum status find_action(const struct cli_invocation *invocation, enum action *ret,
                               struct error *err)
{
    static const char *const names[] = { "show", "list", "events", "export" };
    const char *word = invocation->operands[0];
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (strcmp(word, names[i]) == 0) {
            *ret = (enum action)i;
            struct stat info;
            bool file = invocation->operand_count > 1;
            if (*ret == ACTION_LIST && file &&
                (stat(invocation->operands[1], &info) != 0 || !S_ISDIR(info.st_mode)))
                *ret = ACTION_EVENTS;
            if (*ret != ACTION_LIST && !file)
                return error_set(err, STATUS_USAGE, "%s: expected a FILE, found none", word);
            return STATUS_OK;
        }
    return error_set(err, STATUS_USAGE, "expected show, list, events or export, found '%s'", word);
}

static enum status parse_ms(const char *flag, const char *text, uint64_t *ret_ns, struct error *err)
{
    char *end;
    if (!text)
        return STATUS_OK;
    errno = 0;
    double ms = strtod(text, &end);
    bool plain = text[0] >= '0' && text[0] <= '9' && *end == '\0';
    /* Below 2^63 ns. */
    if (!plain || errno || !isfinite(ms) || ms > 9e12)
        return error_set(err, STATUS_USAGE, "%s: expected milliseconds from 0, found '%s'", flag,
                         text);
    *ret_ns = (uint64_t)(ms * 1e6);
    return STATUS_OK;
}

static enum status copy_name(const char *flag, const char *text, char *field, size_t bytes,
                             struct error *err)
{
    if (!text)
        return STATUS_OK;
    if (strlen(text) >= bytes)
        return error_set(err, STATUS_USAGE, "%s: expected at most %zu bytes, found %zu", flag,
                         bytes - 1, strlen(text));
    event_set_text(field, bytes, text);
    return STATUS_OK;
}

static enum status make_filter(const struct settings *settings, struct report_filter *ret,
                               struct error *err)
{
    *ret = (struct report_filter){ .stream = settings->stream,
                                   .layer = settings->layer,
                                   .step = settings->step,
                                   .failures_only = settings->failures };
    TRY(parse_ms("--from", settings->from, &ret->from_ns, err));
    TRY(parse_ms("--to", settings->to, &ret->to_ns, err));
    if (settings->to && ret->to_ns < ret->from_ns)
        return error_set(err, STATUS_USAGE, "--to: expected a time after --from, found '%s'",
                         settings->to);
    /* 0 means to the end. */
    if (settings->to && ret->to_ns == 0)
        ret->to_ns = 1;
    TRY(copy_name("--tensor", settings->tensor, ret->tensor, sizeof(ret->tensor), err));
    return copy_name("--op", settings->op, ret->op, sizeof(ret->op), err);
}

/* Flags that would have no effect are refused. */
static enum status check_flags(const struct settings *settings, enum action action,
                               struct error *err)
{
    bool filters = settings->stream >= 0 || settings->layer >= 0 || settings->step >= 0 ||
                   settings->tensor || settings->op || settings->from || settings->to ||
                   settings->failures;
    bool exports = settings->output || settings->force || strcmp(settings->format, "text") != 0;
    if (settings->stream < -1 || settings->layer < -1 || settings->step < -1)
        return error_set(err, STATUS_USAGE,
                         "--stream, --layer, --step: expected a number from 0, found a negative "
                         "one");
    if ((action == ACTION_SHOW || action == ACTION_LIST) && filters)
        return error_set(err, STATUS_USAGE,
                         "filters apply to events and export; show looks at all events");
    if (action != ACTION_EXPORT && exports)
        return error_set(err, STATUS_USAGE, "--format, --output and --force are for export");
    if (action != ACTION_SHOW && action != ACTION_LIST && settings->json)
        return error_set(err, STATUS_USAGE,
                         "--json is for show and for the list of a folder; see export --format "
                         "jsonl");
    return STATUS_OK;
}

/* ---- Doing it ------------------------------------------------------------------------------- */

static enum status to_stdout(void *context, const char *bytes, size_t count, struct error *err)
{
    (void)context;
    if (cli_is_interrupted())
        return error_set(err, STATUS_INTERRUPTED, "interrupted");
    if (fwrite(bytes, 1, count, stdout) != count)
        return error_set_os(err, errno, "cannot write the output");
    return STATUS_OK;
}

static enum status to_file(void *context, const char *bytes, size_t count, struct error *err)
{
    if (cli_is_interrupted())
        return error_set(err, STATUS_INTERRUPTED, "interrupted");
    return outfile_write(context, bytes, count, err);
}

static enum status print_events(const struct flight_reader *reader,
                                const struct report_filter *filter, enum report_event_format format,
                                struct error *err)
{
    const struct report_sink sink = { to_stdout, NULL };
    TRY(report_events(reader, filter, format, &sink, err));
    return fflush(stdout) == 0 ? STATUS_OK : error_set_os(err, errno, "cannot write the output");
}

static enum status write_events(const struct flight_reader *reader,
                                const struct report_filter *filter, enum report_event_format format,
                                const struct settings *settings, struct error *err)
{
    struct outfile file;
    const struct report_sink sink = { to_file, &file };
    TRY(outfile_open(&file, settings->output, settings->force, 0, err));
    enum status status = report_events(reader, filter, format, &sink, err);
    if (!status)
        status = outfile_commit(&file, err);
    outfile_release(&file);
    return status;
}

/* reader NULL: list the recordings of the folder `path`. */
static enum status show(const struct cli_invocation *invocation, const char *path,
                        const struct flight_reader *reader, struct error *err)
{
    const struct settings *settings = invocation->settings;
    struct emit *emit;
    TRY(emit_create(settings->json ? EMIT_JSON : EMIT_TEXT, &emit, err));
    enum status status = reader ? flight_show(emit, path, reader, err)
                                : flight_list(emit, invocation, path, err);
    if (!status)
        status = emit_finish(emit, stdout, err);
    emit_destroy(emit);
    return status;
}

static enum status run(const struct cli_invocation *invocation, struct error *err)
{
    const struct settings *settings = invocation->settings;
    const char *path = invocation->operand_count > 1 ? invocation->operands[1] : ".";
    struct report_filter filter;
    struct flight_reader *reader;
    enum action action;
    TRY(find_action(invocation, &action, err));
    TRY(check_flags(settings, action, err));
    TRY(make_filter(settings, &filter, err));
    enum report_event_format format = strcmp(settings->format, "chrome") == 0  ? REPORT_EVENT_CHROME
                                      : strcmp(settings->format, "jsonl") == 0 ? REPORT_EVENT_JSONL
                                                                               : REPORT_EVENT_TEXT;
    if (action == ACTION_LIST)
        return show(invocation, path, NULL, err);
    TRY(flight_open(path, &reader, err));
    enum status status = action == ACTION_SHOW ? show(invocation, path, reader, err)
                         : settings->output ? write_events(reader, &filter, format, settings, err)
                                            : print_events(reader, &filter, format, err);
    flight_reader_close(reader);
    return status;
}

static enum cli_exit run_flight(const struct cli_invocation *invocation)
{
    struct error err;
    cli_catch_interrupts();
    return run(invocation, &err) ? cli_fail(invocation, &err) : CLI_EXIT_OK;
}

const struct cli_command cli_flight = {
    .name = "flight",
    .operands = "show|events|export FILE, or list [FOLDER]",
    .actions = "show list events export",
    .operand_least = 1,
    .operand_most = 2,
    .summary = "read a recording of a device's events",
    .description =
        "Reads a flight file, which a run leaves with --audit and which is whole however the run "
        "ended: after a crash or kill -9, and while it still runs. A recording that was compressed "
        "with zstd (FILE.flight.zst of an audit) is read as it is.\n\n"
        "show: which command made it and how it ended, the calls that did not return, what the "
        "analysis finds, where every stream stopped, index traps.\n\n"
        "list: the recordings in FOLDER (default: here), the oldest first: when and on what device "
        "they were made, how they ended, how many findings, by which command. list FILE is the "
        "same as events FILE.\n\n"
        "events: one line per event, in order: time, id, call, stream, layer, step, tensor, the "
        "ranges of memory it may touch (r: read, w: write, rw: both), outcome, duration, call "
        "site.\n\n"
        "export: the same as text, as JSON lines, or as a timeline for Perfetto or "
        "chrome://tracing, with streams as tracks.",
    .examples = "  greta flight show run.flight                        # what happened, in short\n"
                "  greta flight list                                   # the recordings here\n"
                "  greta flight events run.flight --failures           # where it went wrong\n"
                "  greta flight events run.flight --layer 17 --step 3  # one layer of one token\n"
                "  greta flight export run.flight --format chrome -o timeline.json\n",
    .options = options,
    .option_count = COUNT_OF(options),
    .settings_bytes = sizeof(defaults),
    .defaults = &defaults,
    .run = run_flight,
};
