/* write.c - the files of an audit, each whole or not at all. */
#include "report/report.h"

#include "base/outfile.h"
#include "base/text.h"
#include "report/export.h"

#include <stdlib.h>

static enum status open_file(struct outfile *file, const char *folder, const char *name,
                             struct error *err)
{
    struct text path;
    text_init(&path);
    text_addf(&path, "%s/%s", folder, name);
    enum status status = path.failed ? error_set(err, STATUS_NO_MEMORY, "no memory for a path")
                                     : outfile_open_private(file, text_get(&path), true, err);
    text_release(&path);
    return status;
}

static enum status write_text(const char *folder, const char *name, const struct text *text,
                              struct error *err)
{
    struct outfile file;
    if (text->failed)
        return error_set(err, STATUS_NO_MEMORY, "%s/%s: no memory to write it", folder, name);
    TRY(open_file(&file, folder, name, err));
    enum status status = outfile_write(&file, text_get(text), text->length, err);
    if (!status)
        status = outfile_commit(&file, err);
    outfile_release(&file);
    return status;
}

static enum status to_file(void *context, const char *bytes, size_t count, struct error *err)
{
    return outfile_write(context, bytes, count, err);
}

/* Without a recording, or with one that cannot be read, the timeline is empty: the report says what
 * is missing, and the other files are not held up. */
static enum status write_timeline(const struct report_facts *facts, const char *folder,
                                  struct error *err)
{
    static const char empty[] = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[]}\n";
    const struct report_filter everything = { .stream = -1, .layer = -1, .step = -1 };
    struct flight_reader *reader = NULL;
    struct outfile file;
    struct error ignored;
    struct report_sink sink = { to_file, &file };
    TRY(open_file(&file, folder, "timeline.json", err));
    enum status status;
    if (facts->flight_path && flight_open(facts->flight_path, &reader, &ignored) == STATUS_OK)
        status = report_events(reader, &everything, REPORT_EVENT_CHROME, &sink, err);
    else
        status = outfile_write(&file, empty, sizeof(empty) - 1, err);
    if (!status)
        status = outfile_commit(&file, err);
    outfile_release(&file);
    flight_reader_close(reader);
    return status;
}

static void print_english(const struct report_facts *facts, struct text *text)
{
    report_markdown(facts, REPORT_ENGLISH, text);
}

static void print_spanish(const struct report_facts *facts, struct text *text)
{
    report_markdown(facts, REPORT_SPANISH, text);
}

enum status report_write(const struct report_facts *facts, const char *folder,
                         enum report_language language, struct error *err)
{
    static const struct {
        const char *name;
        void (*print)(const struct report_facts *facts, struct text *text);
    } files[] = {
        { "manifest.json", report_manifest_json },
        { "report.en.md", print_english },
        { "report.es.md", print_spanish },
        { "findings.sarif", report_sarif },
        { "junit.xml", report_junit },
        { "summary.json", report_summary_json },
    };
    enum status status = STATUS_OK;
    struct text text;
    text_init(&text);
    report_html(facts, language, &text);
    status = write_text(folder, "report.html", &text, err);
    if (!status)
        status = write_timeline(facts, folder, err);
    /* summary.json last: who finds it finds the rest. */
    for (size_t i = 0; !status && i < COUNT_OF(files); i++) {
        text_release(&text);
        files[i].print(facts, &text);
        status = write_text(folder, files[i].name, &text, err);
    }
    text_release(&text);
    return status;
}
