/* section_history.c - earlier audits, the baseline, the files, and what binds them to what was run.
 */
#include "report/sections.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- Evolution ------------------------------------------------------------------------------ */

static void print_step(struct doc *doc, const char *date, const char *id,
                       enum audit_outcome outcome, const char *cause)
{
    doc_row_begin(doc);
    doc_cell_text(doc, date);
    doc_cell_code(doc, id);
    doc_cell_text(doc, words_outcome(doc->language, outcome));
    doc_cell_text(doc, cause);
    doc_row_end(doc);
}

void section_evolution(struct doc *doc, const struct report_facts *facts)
{
    static const struct doc_column columns[] = { { WORD_DATE, false, false },
                                                 { WORD_AUDIT, false, false },
                                                 { WORD_OUTCOME, false, false },
                                                 { WORD_ROOT_CAUSE, false, true } };
    const struct finding *root = facts_root(facts);
    struct text words;
    doc_heading(doc, 2, "evolution", WORD_SECTION_EVOLUTION);
    if (facts->earlier_count == 0) {
        doc_sentence(doc, WORD_EVOLUTION_NONE, NULL);
        return;
    }
    text_init(&words);
    if (root)
        report_finding_describe(root, doc->language, &words);
    doc_table_begin(doc, columns, COUNT_OF(columns));
    for (size_t i = 0; i < facts->earlier_count; i++) {
        const struct report_earlier *one = &facts->earlier[i];
        bool spanish = doc->language == REPORT_SPANISH && one->root_cause_es;
        print_step(doc, one->date, one->id, one->outcome,
                   spanish ? one->root_cause_es : one->root_cause);
    }
    print_step(doc, facts->identity.date, facts->identity.id, facts->verdict.outcome,
               text_get(&words));
    doc_table_end(doc);
    doc->out->failed = doc->out->failed || words.failed;
    text_release(&words);
}

/* ---- Baseline ------------------------------------------------------------------------------- */

static void print_differences(struct doc *doc, const struct report_facts *facts)
{
    static const enum word changes[] = { [REPORT_NEW] = WORD_CHANGE_NEW,
                                         [REPORT_GONE] = WORD_CHANGE_GONE,
                                         [REPORT_CHANGED] = WORD_CHANGE_CHANGED,
                                         [REPORT_SAME] = WORD_CHANGE_SAME };
    static const enum doc_tone tones[] = { [REPORT_NEW] = DOC_BAD,
                                           [REPORT_GONE] = DOC_GOOD,
                                           [REPORT_CHANGED] = DOC_OPEN,
                                           [REPORT_SAME] = DOC_QUIET };
    static const struct doc_column columns[] = { { WORD_CHANGE, false, false },
                                                 { WORD_HYPOTHESIS, false, false },
                                                 { WORD_FINDING, false, true } };
    doc_table_begin(doc, columns, COUNT_OF(columns));
    for (size_t i = 0; i < facts->difference_count; i++) {
        const struct report_difference *one = &facts->differences[i];
        bool spanish = doc->language == REPORT_SPANISH && one->what_es;
        doc_row_begin(doc);
        doc_cell_badge(doc, doc_word(doc, changes[one->change]), tones[one->change]);
        doc_cell_code(doc, one->slug);
        doc_cell_text(doc, spanish ? one->what_es : one->what);
        doc_row_end(doc);
    }
    doc_table_end(doc);
}

/* "A latency_median_ms" as words, where the measure is one of ours. */
static void print_figure(struct doc *doc, const char *what)
{
    static const struct {
        const char *name;
        enum word words;
    } measures[] = { { "latency_median_ms", WORD_MEDIAN_MS },
                     { "tokens_per_second", WORD_TOKENS_PER_SECOND },
                     { "peak_bytes", WORD_PEAK } };
    const char *space = strrchr(what, ' ');
    doc_cell_begin(doc);
    for (size_t i = 0; space && i < COUNT_OF(measures); i++)
        if (strcmp(space + 1, measures[i].name) == 0) {
            char label[64];
            snprintf(label, sizeof(label), "%.*s: ", (int)(space - what), what);
            doc_text(doc, label);
            doc_words(doc, measures[i].words, NULL);
            doc_cell_end(doc);
            return;
        }
    doc_code(doc, what);
    doc_cell_end(doc);
}

static void print_timings(struct doc *doc, const struct report_facts *facts)
{
    static const struct doc_column columns[] = { { WORD_FIGURE, false, false },
                                                 { WORD_BEFORE, true, false },
                                                 { WORD_NOW, true, false },
                                                 { WORD_CHANGE, true, false } };
    doc_table_begin(doc, columns, COUNT_OF(columns));
    for (size_t i = 0; i < facts->timing_count; i++) {
        const struct report_timing *one = &facts->timings[i];
        char percent[384];
        doc_row_begin(doc);
        print_figure(doc, one->what);
        doc_cell_real(doc, one->before, 2);
        doc_cell_real(doc, one->now, 2);
        snprintf(percent, sizeof(percent), "%+.1f %%",
                 (one->now - one->before) / one->before * 100);
        doc_cell_text(doc, one->before > 0 && isfinite(one->now / one->before) ? percent : NULL);
        doc_row_end(doc);
    }
    doc_table_end(doc);
}

void section_baseline(struct doc *doc, const struct report_facts *facts)
{
    if (!facts->baseline)
        return;
    doc_heading(doc, 2, "baseline", WORD_SECTION_BASELINE);
    doc_sentence(doc, WORD_BASELINE_READING, facts->baseline, NULL);
    if (facts->difference_count)
        print_differences(doc, facts);
    else
        doc_sentence(doc, WORD_BASELINE_EQUAL, NULL);
    if (facts->timing_count)
        print_timings(doc, facts);
}

/* ---- Files and evidence --------------------------------------------------------------------- */

static void print_file(struct doc *doc, const char *name, enum word word)
{
    doc_item_begin(doc);
    doc_link(doc, name);
    doc_text(doc, ": ");
    doc_words(doc, word, NULL);
    doc_item_end(doc);
}

void section_artifacts(struct doc *doc, const struct report_facts *facts)
{
    doc_heading(doc, 2, "artifacts", WORD_SECTION_ARTIFACTS);
    doc_list_begin(doc);
    print_file(doc, "manifest.json", WORD_FILE_MANIFEST);
    print_file(doc, "summary.json", WORD_FILE_SUMMARY);
    print_file(doc, "report.en.md", WORD_FILE_ENGLISH);
    print_file(doc, "report.es.md", WORD_FILE_SPANISH);
    print_file(doc, "report.html", WORD_FILE_HTML);
    print_file(doc, "timeline.json", WORD_FILE_TIMELINE);
    print_file(doc, "findings.sarif", WORD_FILE_SARIF);
    print_file(doc, "junit.xml", WORD_FILE_JUNIT);
    for (size_t i = 0; i < facts->row_count; i++) {
        if (facts->rows[i].log)
            print_file(doc, facts->rows[i].log, WORD_FILE_LOG);
        if (facts->rows[i].flight)
            print_file(doc, facts->rows[i].flight, WORD_FILE_FLIGHT);
    }
    doc_list_end(doc);
}

static void evidence_row(struct doc *doc, enum word label, const char *value)
{
    doc_row_begin(doc);
    doc_cell_word(doc, label);
    doc_cell_code(doc, value);
    doc_row_end(doc);
}

static void print_environment(struct doc *doc, const struct report_identity *identity)
{
    if (identity->environment_count == 0)
        return;
    doc_sentence(doc, WORD_ENVIRONMENT, NULL);
    doc_list_begin(doc);
    for (size_t i = 0; i < identity->environment_count; i++) {
        doc_item_begin(doc);
        doc_code(doc, identity->environment[i]);
        doc_item_end(doc);
    }
    doc_list_end(doc);
}

void section_evidence(struct doc *doc, const struct report_facts *facts)
{
    static const struct doc_column columns[] = { { WORD_WHAT, false, false },
                                                 { WORD_VALUE, false, false } };
    const struct report_identity *identity = &facts->identity;
    char bytes[TEXT_BYTES_CAPACITY], seed[24];
    struct text device;
    text_init(&device);
    sections_device(identity, doc->language, &device);
    snprintf(seed, sizeof(seed), "%" PRIu64, identity->seed);
    doc_heading(doc, 2, "evidence", WORD_SECTION_EVIDENCE);
    doc_sentence(doc, WORD_EVIDENCE_READING, NULL);
    doc_table_begin(doc, columns, COUNT_OF(columns));
    evidence_row(doc, WORD_AUDIT, identity->id);
    evidence_row(doc, WORD_VERSION, identity->version);
    evidence_row(doc, WORD_COMMIT, identity->commit);
    evidence_row(doc, WORD_BINARY_HASH, identity->binary_sha256);
    evidence_row(doc, WORD_MODEL_FILE, identity->model_path);
    evidence_row(doc, WORD_MODEL_HASH, identity->model_sha256);
    evidence_row(doc, WORD_DEVICE_KIND, identity->device_kind);
    evidence_row(doc, WORD_DEVICE, text_get(&device));
    evidence_row(doc, WORD_DRIVER, identity->device_driver);
    evidence_row(doc, WORD_DEVICE_MEMORY, text_bytes(identity->device_memory_bytes, bytes));
    evidence_row(doc, WORD_COMMAND, identity->command);
    evidence_row(doc, WORD_SEED, seed);
    evidence_row(doc, WORD_LOCKED, doc_word(doc, identity->locked ? WORD_YES : WORD_NO));
    doc_table_end(doc);
    doc->out->failed = doc->out->failed || device.failed;
    text_release(&device);
    print_environment(doc, identity);
}
