/* campaign_defects_test.c - one small file per planted defect, with the report it must get.
 *
 * tests/defects/NAME.defect says what is planted where:
 *
 *     fault: rope-position@layer=2,step=3
 *     work: infer              (or streams)
 *     level: log
 *     iterations: 2            (optional)
 *     hang-limit-ms: 700       (optional: no progress for longer is a hang)
 *     end: kill                (optional: the worker ends by SIGKILL; only the flight file is left)
 *     attempts: 5              (optional, see below)
 *
 * NAME.expect is what must come out, addresses, hashes, event numbers and lines of source masked:
 * hypothesis, cause, where it was seen, and the sentence people read. Live analysis must say the
 * same as the file of the dead process. After a fault the next checked call sees it, and which one
 * that is depends on who is faster: where it was seen is left out of those reports, but for defects
 * with attempts, where one of them must have the expected report as a whole. With GRETA_BLESS=1 the
 * expected reports are written again: read the difference before you believe it. */
#include "test.h"

#include "campaign/self_test.h"
#include "convert/convert.h"
#include "ops/ops.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

struct defect {
    char fault[160], work[16], level[16], end[16];
    uint32_t iterations, hang_limit_ms, attempts;
};

struct bench {
    const char *folder; /* of the defects */
    char work[4096];    /* for the workers */
    char model[4200];
    struct child_setup setup;
    bool bless;
    size_t count, failed;
};

/* ---- Files ---------------------------------------------------------------------------------- */

static void read_file(const char *path, char *text, size_t capacity)
{
    FILE *file = fopen(path, "r");
    size_t count = file ? fread(text, 1, capacity - 1, file) : 0;
    text[count] = '\0';
    if (file)
        fclose(file);
}

/* The value of "key: value" in a file of such lines; "" if it is not there. */
static void read_key(const char *text, const char *key, char *value, size_t capacity)
{
    size_t length = strlen(key);
    value[0] = '\0';
    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) != 0 || line[length] != ':')
            continue;
        const char *start = line + length + 1;
        start += strspn(start, " ");
        snprintf(value, capacity, "%.*s", (int)strcspn(start, "\n"), start);
        return;
    }
}

static void read_defect(const char *path, struct defect *defect)
{
    char text[1024], number[16];
    read_file(path, text, sizeof(text));
    read_key(text, "fault", defect->fault, sizeof(defect->fault));
    read_key(text, "work", defect->work, sizeof(defect->work));
    read_key(text, "level", defect->level, sizeof(defect->level));
    read_key(text, "end", defect->end, sizeof(defect->end));
    read_key(text, "iterations", number, sizeof(number));
    defect->iterations = (uint32_t)strtoul(number, NULL, 10);
    read_key(text, "hang-limit-ms", number, sizeof(number));
    defect->hang_limit_ms = (uint32_t)strtoul(number, NULL, 10);
    read_key(text, "attempts", number, sizeof(number));
    defect->attempts = (uint32_t)strtoul(number, NULL, 10);
    if (!defect->fault[0] || !defect->work[0] || !defect->level[0])
        fail_msg("%s: expected fault, work and level", path);
}

/* ---- Reports -------------------------------------------------------------------------------- */

static size_t hex_digits(const char *at)
{
    return strspn(at, "0123456789abcdef");
}

static bool ends_with(const struct text *text, const char *words)
{
    size_t length = strlen(words);
    return text->length >= length && strcmp(text_get(text) + text->length - length, words) == 0;
}

/* Copies with what differs from run to run replaced by #: event numbers, places in the source,
 * hashes, waits. What lies next to a faulting address is up to the system, and left out. */
static void mask(const char *text, struct text *out)
{
    for (const char *at = text; *at;) {
        size_t digits = strspn(at, "0123456789"), number = strspn(at, "0123456789.");
        if (strncmp(at, "; address 0x", 12) == 0) {
            at += strcspn(at + 1, ";") + 1;
            continue;
        }
        if (strncmp(at, "src/", 4) == 0 || strncmp(at, "../", 3) == 0) {
            text_add(out, "#"); /* where in the source; how that is written is up to the build */
            at += strcspn(at, ")");
        } else if (digits && ends_with(out, "event ")) {
            text_add(out, "#");
            at += digits;
        } else if (hex_digits(at) == 16 && ends_with(out, " ")) {
            text_add(out, "#");
            at += 16;
        } else if (strncmp(at, "0x", 2) == 0) {
            text_add(out, "#");
            at += 2 + hex_digits(at + 2);
        } else if (number && (ends_with(out, "no progress for ") || ends_with(out, "surfaced ") ||
                              ends_with(out, "last moved "))) {
            text_add(out, "#");
            at += number;
        } else {
            text_add_bytes(out, at, 1);
            at++;
        }
    }
}

static void add_place(struct text *out, const char *key, const struct analyze_place *place)
{
    if (!place->event_id)
        return;
    text_addf(out, "%s: %s, layer %d, step %d, tensor %s\n", key, place_op(place),
              (int)place->scope.layer, (int)place->scope.step, place->scope.tensor);
}

/* Where a fault surfaces on a device that is lost may differ from run to run. */
static void add_masked(struct text *out, const char *key, struct text *words, bool with_seen)
{
    char *surfaced = strstr(words->bytes, "; surfaced ");
    if (surfaced && !with_seen)
        *surfaced = '\0';
    text_add(out, key);
    mask(text_get(words), out);
    text_add(out, "\n");
}

/* The root cause, or where that is not known what was seen; NULL: nothing. */
static const struct finding *first_of(const struct analysis *analysis)
{
    int32_t index = analysis->root >= 0 ? analysis->root : analysis->defect;
    return index >= 0 ? &analysis->findings[index] : NULL;
}

static void add_report(struct text *out, const struct analysis *analysis, bool with_seen)
{
    struct text words;
    const struct finding *root = first_of(analysis);
    if (!root) {
        text_add(out, "nothing was found\n");
        return;
    }
    text_addf(out, "hypothesis: %s\n", hypothesis_info(root->hypothesis)->slug);
    text_addf(out, "attribution: %s\n", finding_attribution_name(root->attribution));
    add_place(out, "cause", &root->cause);
    if (with_seen)
        add_place(out, "seen", &root->seen);
    text_init(&words);
    report_finding_describe(root, REPORT_ENGLISH, &words);
    add_masked(out, "report: ", &words, with_seen);
    text_clear(&words);
    report_finding_headline(root, REPORT_ENGLISH, &words);
    add_masked(out, "headline: ", &words, with_seen);
    text_release(&words);
}

/* ---- One defect ----------------------------------------------------------------------------- */

static void complain(struct bench *bench, const char *name, const char *what, const char *expected,
                     const char *found)
{
    print_error("%s: %s\n  expected: %s\n  found:    %s\n", name, what, expected, found);
    bench->failed++;
}

static void write_report(const struct bench *bench, const char *name, const struct text *report)
{
    char path[4608];
    snprintf(path, sizeof(path), "%s/%s.expect", bench->folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text_get(report), file);
    fclose(file);
}

/* True if it is as expected; complains otherwise, if it is the last chance. */
static bool check_report(struct bench *bench, const char *name, const struct text *report,
                         bool last)
{
    char path[4608], expected[4096];
    snprintf(path, sizeof(path), "%s/%s.expect", bench->folder, name);
    read_file(path, expected, sizeof(expected));
    if (strcmp(expected, text_get(report)) == 0)
        return true;
    if (last)
        complain(bench, name, "another report", expected, text_get(report));
    return false;
}

/* What live analysis called the root cause is what the file says. */
static void check_live(struct bench *bench, const char *name, const struct child_outcome *outcome,
                       const struct analysis *analysis)
{
    struct text words;
    text_init(&words);
    if (first_of(analysis))
        report_finding_describe(first_of(analysis), REPORT_ENGLISH, &words);
    /* Lines of JSON are cut to what an outcome keeps. */
    if (!outcome->live_ended ||
        strncmp(outcome->live_root, text_get(&words), sizeof(outcome->live_root) - 1) != 0)
        complain(bench, name, "live analysis says something else", text_get(&words),
                 outcome->live_ended ? outcome->live_root : "nothing: it did not end");
    text_release(&words);
}

/* One run and what is said of it; true if that is as expected. */
static bool try_defect(struct bench *bench, const char *name, const struct defect *defect,
                       bool last)
{
    struct child_outcome outcome;
    struct analyzer *analyzer;
    struct text report;
    struct error err;
    char flight[4608];
    struct job job = self_test_job("host", bench->model, name);
    bool killed = strcmp(defect->end, "kill") == 0;
    snprintf(flight, sizeof(flight), "%s/run/%s.flight", bench->work, name);
    job.flight = flight;
    job.inject = defect->fault;
    job.work = strcmp(defect->work, "streams") == 0 ? JOB_STREAMS : JOB_INFER;
    job.kill_at_end = killed;
    job.hang_limit_ns = (uint64_t)defect->hang_limit_ms * 1000000;
    if (defect->iterations)
        job.iterations = defect->iterations;
    assert_true(audit_level_from_name(defect->level, &job.level));
    CHECK_OK(child_run(&bench->setup, &job, NULL, &outcome, &err), &err);
    struct analyze_options options = { .level = job.level,
                                       .hang_limit_ns = job.hang_limit_ns,
                                       .operand_name = ops_operand_name };
    CHECK_OK(analyze_flight(flight, &options, &analyzer, &err), &err);
    const struct analysis *analysis = analyzer_result(analyzer);
    if (outcome.failed[0])
        complain(bench, name, "it could not run", "a run", outcome.failed);
    if (killed && outcome.signal != 9)
        complain(bench, name, "it was to be killed", "signal 9", "another end");
    text_init(&report);
    add_report(&report, analysis, !analysis->device_lost || defect->attempts);
    if (bench->bless)
        write_report(bench, name, &report);
    bool expected = check_report(bench, name, &report, last);
    if (!killed && !outcome.hung)
        check_live(bench, name, &outcome, analysis);
    text_release(&report);
    analyzer_destroy(analyzer);
    child_outcome_release(&outcome);
    unlink(flight);
    return expected;
}

static void run_defect(struct bench *bench, const char *name)
{
    struct defect defect;
    char path[4608];
    snprintf(path, sizeof(path), "%s/%s.defect", bench->folder, name);
    read_defect(path, &defect);
    uint32_t attempts = defect.attempts ? defect.attempts : 1;
    for (uint32_t i = 0; i < attempts; i++)
        if (try_defect(bench, name, &defect, i + 1 == attempts))
            break;
    bench->count++;
}

/* ---- All of them ---------------------------------------------------------------------------- */

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_defect(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".defect") == 0;
}

static void make_model(struct bench *bench)
{
    struct convert_synth request = { .shape = *model_shape_find("tiny"),
                                     .type = CONVERT_Q8_0,
                                     .seed = 1,
                                     .path = bench->model,
                                     .replace = true };
    uint64_t bytes;
    struct error err;
    CHECK_OK(convert_synth(&request, NULL, &bytes, &err), &err);
}

static void test_defects(void **state)
{
    (void)state;
    const char *program = getenv("GRETA"), *source = getenv("GRETA_SOURCE");
    char folder[4096];
    struct dirent **entries;
    struct bench bench = { .bless = getenv("GRETA_BLESS") != NULL };
    struct error err;
    if (!program || !source)
        skip();
    struct campaign_options options = { .temporary_folder = "/tmp" };
    CHECK_OK(temporary_open(&options, bench.work, &err), &err);
    snprintf(folder, sizeof(folder), "%s/tests/defects", source);
    snprintf(bench.model, sizeof(bench.model), "%s/model.gguf", bench.work);
    bench.folder = folder;
    bench.setup = (struct child_setup){ program, (const char *const *)environ, bench.work, false };
    make_model(&bench);
    int count = scandir(folder, &entries, is_defect, by_name);
    assert_true(count >= 28);
    for (int i = 0; i < count; i++) {
        char name[256];
        snprintf(name, sizeof(name), "%.*s", (int)(strlen(entries[i]->d_name) - 7),
                 entries[i]->d_name);
        run_defect(&bench, name);
        free(entries[i]);
    }
    free(entries);
    temporary_close(bench.work);
    if (bench.failed)
        fail_msg("%zu complaints about %zu defects", bench.failed, bench.count);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_defects) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
