/* section_runs.c - what was run: the matrix, reruns with one thing changed, modes, transfers. */
#include "report/sections.h"

#include "report/figures.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- Matrix --------------------------------------------------------------------------------- */

static void print_result(struct doc *doc, const struct report_row *row)
{
    static const enum word words[] = {
        [FACTS_ROW_PASSED] = WORD_ROW_PASSED,
        [FACTS_ROW_FAILED] = WORD_ROW_FAILED,
        [FACTS_ROW_CRASHED] = WORD_ROW_CRASHED,
        [FACTS_ROW_HUNG] = WORD_ROW_HUNG,
        [FACTS_ROW_FINDINGS] = WORD_ROW_FINDINGS,
        [FACTS_ROW_INTERRUPTED] = WORD_ROW_INTERRUPTED,
        [FACTS_ROW_INCONCLUSIVE] = WORD_ROW_INCONCLUSIVE,
        [FACTS_ROW_INCOMPLETE] = WORD_ROW_INCOMPLETE,
    };
    _Static_assert(COUNT_OF(words) == FACTS_ROW_RESULT_COUNT, "every result has words");
    enum facts_row_result result = facts_row_result(row);
    doc_cell_begin(doc);
    doc_badge(doc, doc_word(doc, words[result]),
              result == FACTS_ROW_PASSED        ? DOC_GOOD
              : result >= FACTS_ROW_INTERRUPTED ? DOC_OPEN
                                                : DOC_BAD);
    if (row->ending.number || row->ending.kind > ENDING_EXITED) {
        struct text ending;
        text_init(&ending);
        text_add(&ending, " ");
        report_ending_words(row->ending, doc->language, &ending);
        doc_text(doc, text_get(&ending));
        doc->out->failed = doc->out->failed || ending.failed;
        text_release(&ending);
    }
    doc_cell_end(doc);
}

static void print_row(struct doc *doc, const struct report_row *row)
{
    char bytes[TEXT_BYTES_CAPACITY], copies[64];
    doc_row_begin(doc);
    doc_cell_text(doc, row->label);
    doc_cell_text(doc, words_mode(doc->language, row->mode));
    doc_cell_code(doc, audit_level_name(row->level));
    doc_cell_of(doc, row->done, row->planned);
    doc_cell_count(doc, row->errors);
    if (row->analysis)
        doc_cell_count(doc, row->analysis->finding_count + row->analysis->findings_dropped);
    else
        doc_cell_text(doc, NULL);
    print_result(doc, row);
    doc_cell_real(doc, facts_median(row->latencies_ms, row->latency_count), 2);
    doc_cell_real(doc, row->tokens_per_second, 1);
    doc_cell_text(doc, row->peak_bytes ? text_bytes(row->peak_bytes, bytes) : NULL);
    doc_cell_count(doc, row->launch_count);
    snprintf(copies, sizeof(copies), "%" PRIu64 " (%s)", row->copy_out_count,
             text_bytes(row->copy_out_bytes, bytes));
    doc_cell_text(doc, row->copy_out_count ? copies : "0");
    doc_row_end(doc);
}

static void print_total(struct doc *doc, const struct report_facts *facts)
{
    struct facts_totals totals = facts_totals(facts);
    uint64_t findings = totals.findings + totals.dropped_findings;
    bool failed = totals.errors + totals.crashed + totals.hung > 0;
    bool passed = !failed && totals.incomplete + findings == 0;
    enum word word = failed     ? WORD_ROW_FAILED
                     : findings ? WORD_ROW_FINDINGS
                     : passed   ? WORD_ROW_PASSED
                                : WORD_ROW_INCOMPLETE;
    doc_row_begin(doc);
    doc_cell_word(doc, WORD_TOTAL);
    doc_cell_text(doc, NULL);
    doc_cell_text(doc, NULL);
    doc_cell_of(doc, totals.done, totals.planned);
    doc_cell_count(doc, totals.errors);
    doc_cell_count(doc, findings);
    doc_cell_badge(doc, doc_word(doc, word),
                   passed                        ? DOC_GOOD
                   : word == WORD_ROW_INCOMPLETE ? DOC_OPEN
                                                 : DOC_BAD);
    for (size_t i = 0; i < 5; i++)
        doc_cell_text(doc, NULL);
    doc_row_end(doc);
}

static void print_note(struct doc *doc, const struct report_row *row, enum word word,
                       const char *text)
{
    if (!text || !text[0])
        return;
    doc_item_begin(doc);
    doc_words(doc, word, row->label, text, NULL);
    doc_item_end(doc);
}

static void print_file(struct doc *doc, const struct report_row *row, enum word word,
                       const char *path)
{
    if (!path || !path[0])
        return;
    doc_item_begin(doc);
    doc_words(doc, word, row->label, NULL);
    doc_link(doc, path);
    doc_item_end(doc);
}

static void print_notes(struct doc *doc, const struct report_row *row)
{
    const struct analysis *analysis = row->analysis;
    print_note(doc, row, WORD_ROW_ERROR, row->error);
    print_note(doc, row, WORD_ROW_MISSING, row->missing);
    print_note(doc, row, WORD_ROW_PARAMETERS, row->parameters);
    print_file(doc, row, WORD_ROW_LOG, row->log);
    print_file(doc, row, WORD_ROW_FLIGHT, row->flight);
    doc_item_begin(doc);
    if (analysis) {
        char events[24], lost[24], dropped[24], damaged[24], runs[24];
        snprintf(events, sizeof(events), "%" PRIu64, analysis->event_count);
        snprintf(runs, sizeof(runs), "%" PRIu64, analysis->iteration_count);
        snprintf(lost, sizeof(lost), "%" PRIu64, analysis->lost_count);
        snprintf(dropped, sizeof(dropped), "%" PRIu64, analysis->dropped_count);
        snprintf(damaged, sizeof(damaged), "%" PRIu64, analysis->damaged_count);
        doc_words(doc, WORD_ROW_ANALYSIS, row->label, events, runs, lost, dropped, damaged, NULL);
        if (analysis->iteration_count > row->done && row->done > 0) {
            char own[24], extra[24];
            snprintf(own, sizeof(own), "%" PRIu32, row->done);
            snprintf(extra, sizeof(extra), "%" PRIu64, analysis->iteration_count - row->done);
            doc_words(doc, WORD_ROW_EXTRA, own, extra, NULL);
        }
        if (analysis->device_lost)
            doc_words(doc, WORD_ROW_DEVICE_LOST, NULL);
        if (!analysis->closed)
            doc_words(doc, WORD_ROW_NOT_CLOSED, NULL);
    } else {
        doc_words(doc, WORD_ROW_NO_ANALYSIS, row->label, NULL);
    }
    doc_item_end(doc);
}

void section_matrix(struct doc *doc, const struct report_facts *facts)
{
    static const struct doc_column columns[] = {
        { WORD_ROW, false, false },
        { WORD_MODE, false, false },
        { WORD_LEVEL, false, false },
        { WORD_ITERATIONS, true, false },
        { WORD_ERRORS, true, false },
        { WORD_SECTION_FINDINGS, true, false },
        { WORD_RESULT, false, false },
        { WORD_MEDIAN_MS, true, false },
        { WORD_TOKENS_PER_SECOND, true, false },
        { WORD_PEAK, true, false },
        { WORD_LAUNCHES, true, false },
        { WORD_COPIES_OUT, true, false },
    };
    doc_heading(doc, 2, "matrix", WORD_SECTION_MATRIX);
    if (facts->row_count == 0) {
        doc_sentence(doc, WORD_MATRIX_NONE, NULL);
        return;
    }
    doc_sentence(doc, WORD_MATRIX_WORKLOADS, NULL);
    doc_table_begin(doc, columns, COUNT_OF(columns));
    for (size_t i = 0; i < facts->row_count; i++)
        print_row(doc, &facts->rows[i]);
    print_total(doc, facts);
    doc_table_end(doc);
    doc_list_begin(doc);
    for (size_t i = 0; i < facts->row_count; i++)
        print_notes(doc, &facts->rows[i]);
    doc_list_end(doc);
    if (doc->methods->figures)
        figure_latency(doc, facts);
}

/* ---- Interventions and ablation ------------------------------------------------------------- */

void section_interventions(struct doc *doc, const struct report_facts *facts)
{
    static const struct doc_column columns[] = {
        { WORD_CHANGED, false, false },       { WORD_WITH_CHANGE, true, false },
        { WORD_WITHOUT_CHANGE, true, false }, { WORD_FLIPS, false, false },
        { WORD_PROVES, false, true },         { WORD_DOES_NOT_PROVE, false, true },
    };
    if (facts->intervention_count == 0)
        return;
    doc_heading(doc, 2, "interventions", WORD_SECTION_INTERVENTIONS);
    doc_sentence(doc, WORD_INTERVENTIONS_READING, NULL);
    doc_table_begin(doc, columns, COUNT_OF(columns));
    for (size_t i = 0; i < facts->intervention_count; i++) {
        const struct report_intervention *one = &facts->interventions[i];
        const char *words = words_intervention(doc->language, one->changed);
        doc_row_begin(doc);
        doc_cell_begin(doc);
        if (words)
            doc_text(doc, words);
        doc_text(doc, words ? " " : "");
        doc_code(doc, one->changed);
        doc_cell_end(doc);
        doc_cell_of(doc, one->faults, one->runs);
        doc_cell_of(doc, one->control_faults, one->control_runs);
        doc_cell_badge(doc, doc_word(doc, one->flips ? WORD_YES : WORD_NO),
                       one->flips ? DOC_BAD : DOC_QUIET);
        doc_cell_text(doc, one->proves[doc->language]);
        doc_cell_text(doc, one->does_not_prove[doc->language]);
        doc_row_end(doc);
    }
    doc_table_end(doc);
}

void section_ablation(struct doc *doc, const struct report_facts *facts)
{
    static const struct doc_column columns[] = { { WORD_D2H_MODE, false, false },
                                                 { WORD_RUNS, true, false },
                                                 { WORD_FAULTS, true, false },
                                                 { WORD_RESULT, false, false } };
    if (facts->ablation_count == 0)
        return;
    doc_heading(doc, 2, "ablation", WORD_SECTION_ABLATION);
    doc_sentence(doc, WORD_ABLATION_READING, NULL);
    doc_table_begin(doc, columns, COUNT_OF(columns));
    for (size_t i = 0; i < facts->ablation_count; i++) {
        const struct report_ablation *one = &facts->ablations[i];
        doc_row_begin(doc);
        doc_cell_code(doc, one->mode);
        doc_cell_count(doc, one->runs);
        doc_cell_count(doc, one->faults);
        doc_cell_badge(doc, doc_word(doc, one->faults ? WORD_FAULT_SEEN : WORD_NO_FAULT_SEEN),
                       one->faults ? DOC_BAD : DOC_GOOD);
        doc_row_end(doc);
    }
    doc_table_end(doc);
}

/* ---- Transfers ------------------------------------------------------------------------------ */

/* All paths in one sentence. */
static void sum_transfers(struct doc *doc, const struct report_facts *facts)
{
    uint64_t copies = 0, bytes = 0, wrong = 0;
    char paths[24], number[24], size[TEXT_BYTES_CAPACITY], mismatches[24];
    for (size_t i = 0; i < facts->transfer_count; i++) {
        copies += facts->transfers[i].copies;
        bytes += facts->transfers[i].bytes;
        wrong += facts->transfers[i].mismatches;
    }
    snprintf(paths, sizeof(paths), "%zu", facts->transfer_count);
    snprintf(number, sizeof(number), "%" PRIu64, copies);
    snprintf(mismatches, sizeof(mismatches), "%" PRIu64, wrong);
    doc_words(doc, WORD_TRANSFERS_SUM, paths, number, text_bytes(bytes, size), mismatches, NULL);
}

void section_transfers(struct doc *doc, const struct report_facts *facts)
{
    static const struct doc_column columns[] = {
        { WORD_COPY_PATH, false, false }, { WORD_COPIES, true, false },
        { WORD_BYTES, true, false },      { WORD_MISMATCHES, true, false },
        { WORD_BOUND, true, false },      { WORD_GIGABYTES, true, false },
        { WORD_NOTE, false, false },
    };
    char bytes[TEXT_BYTES_CAPACITY], bound[SECTIONS_BOUND_BYTES];
    if (facts->transfer_count == 0)
        return;
    doc_heading(doc, 2, "transfers", WORD_SECTION_TRANSFERS);
    doc_sentence(doc, WORD_TRANSFERS_READING, NULL);
    doc_fold_begin(doc);
    sum_transfers(doc, facts);
    doc_fold_body(doc);
    doc_table_begin(doc, columns, COUNT_OF(columns));
    for (size_t i = 0; i < facts->transfer_count; i++) {
        const struct report_transfer *one = &facts->transfers[i];
        bool bounded = one->mismatches == 0 && one->copies > 0;
        doc_row_begin(doc);
        doc_cell_code(doc, one->path);
        doc_cell_count(doc, one->copies);
        doc_cell_text(doc, text_bytes(one->bytes, bytes));
        doc_cell_count(doc, one->mismatches);
        doc_cell_text(doc, bounded ? sections_bound(3.0 / (double)one->copies, bound) : NULL);
        if (one->gigabytes_per_second > 0)
            doc_cell_real(doc, one->gigabytes_per_second, 2);
        else
            doc_cell_text(doc, NULL);
        doc_cell_text(doc, one->note);
        doc_row_end(doc);
    }
    doc_table_end(doc);
    doc_fold_end(doc);
}
