/* summary_runs.c - the runs of an audit and its past, as parts of summary.json. */
#include "report/json_tools.h"

#include "report/facts.h"

static json_t *row_json(struct text *out, const struct report_row *row)
{
    json_t *item = json_object(), *latencies = json_array();
    json_put_text(out, item, "label", row->label);
    json_put_text(out, item, "mode", report_row_mode_name(row->mode));
    json_put_text(out, item, "level", audit_level_name(row->level));
    json_put_text(out, item, "result", facts_row_result_name(facts_row_result(row)));
    json_put_count(out, item, "planned", row->planned);
    json_put_count(out, item, "done", row->done);
    json_put_count(out, item, "errors", row->errors);
    json_put_flag(out, item, "crashed", row->crashed);
    json_put_flag(out, item, "hung", row->hung);
    json_put_flag(out, item, "interrupted", row->interrupted);
    json_put_text(out, item, "ending", run_ending_name(row->ending.kind));
    json_put_integer(out, item, "exit_code", row->exit_code);
    json_put_integer(out, item, "signal", row->signal);
    json_put_text(out, item, "error", row->error);
    json_put_text(out, item, "missing", row->missing);
    json_put_text(out, item, "log", row->log);
    json_put_text(out, item, "flight", row->flight);
    json_put_real(out, item, "latency_median_ms",
                  facts_median(row->latencies_ms, row->latency_count));
    json_put_real(out, item, "tokens_per_second", row->tokens_per_second);
    json_put_count(out, item, "peak_bytes", row->peak_bytes);
    json_put_count(out, item, "launches", row->launch_count);
    json_put_count(out, item, "copies_out", row->copy_out_count);
    json_put_count(out, item, "bytes_out", row->copy_out_bytes);
    for (size_t i = 0; i < row->latency_count; i++)
        json_add(out, latencies, json_real(row->latencies_ms[i]));
    json_put(out, item, "latencies_ms", latencies);
    return item;
}

json_t *json_rows(struct text *out, const struct report_facts *facts)
{
    json_t *list = json_array();
    for (size_t i = 0; i < facts->row_count; i++)
        json_add(out, list, row_json(out, &facts->rows[i]));
    return list;
}

/* What `add` says in every language; NULL: it has nothing to say. */
static json_t *program_words(struct text *out, const struct report_program *program, size_t index,
                             bool (*add)(const struct report_program *program, size_t index,
                                         enum report_language language, struct text *text))
{
    json_t *both = json_object();
    bool any = true;
    for (int i = 0; i < REPORT_LANGUAGE_COUNT; i++) {
        struct text words;
        text_init(&words);
        any = add(program, index, (enum report_language)i, &words) && any;
        json_put_text(out, both, json_language_name((enum report_language)i), text_get(&words));
        out->failed = out->failed || words.failed;
        text_release(&words);
    }
    if (any)
        return both;
    json_decref(both);
    return NULL;
}

static bool add_ending(const struct report_program *program, size_t index,
                       enum report_language language, struct text *text)
{
    (void)index;
    report_ending_words(program->ending, language, text);
    return true;
}

static bool add_reason(const struct report_program *program, size_t index,
                       enum report_language language, struct text *text)
{
    return program->add_reason(program->context, index, language, text);
}

static json_t *subjects_json(struct text *out, const struct analyze_subjects *subjects)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < SUBJECT_COUNT; i++) {
        enum analyze_subject subject = (enum analyze_subject)i;
        if (!subject_was_seen(subjects, subject) && !subject_was_missed(subjects, subject))
            continue;
        json_t *item = json_object();
        json_put_text(out, item, "subject", analyze_subject_name(subject));
        json_put_flag(out, item, "looked_at", subject_was_seen(subjects, subject));
        json_add(out, list, item);
    }
    return list;
}

json_t *json_program(struct text *out, const struct report_facts *facts)
{
    const struct report_program *program = facts->program;
    if (!program)
        return json_null();
    json_t *item = json_object(), *reasons = json_array(), *reason;
    json_put_text(out, item, "ending", run_ending_name(program->ending.kind));
    json_put(out, item, "ending_text", program_words(out, program, 0, add_ending));
    json_put_integer(out, item, "exit_code", program->exit_code);
    json_put_integer(out, item, "signal", program->signal);
    json_put_text(out, item, "looked_at", report_looked_at_name(program->looked_at));
    for (size_t i = 0; (reason = program_words(out, program, i, add_reason)) != NULL; i++)
        json_add(out, reasons, reason);
    json_put(out, item, "reasons", reasons);
    json_put(out, item, "subjects", subjects_json(out, &facts->verdict.subjects));
    return item;
}

json_t *json_interventions(struct text *out, const struct report_facts *facts)
{
    json_t *list = json_array();
    for (size_t i = 0; i < facts->intervention_count; i++) {
        const struct report_intervention *one = &facts->interventions[i];
        json_t *item = json_object();
        json_put_text(out, item, "changed", one->changed);
        json_put_count(out, item, "runs", one->runs);
        json_put_count(out, item, "faults", one->faults);
        json_put_count(out, item, "control_runs", one->control_runs);
        json_put_count(out, item, "control_faults", one->control_faults);
        json_put_flag(out, item, "flips", one->flips);
        json_put_text(out, item, "proves", one->proves[REPORT_ENGLISH]);
        json_put_text(out, item, "does_not_prove", one->does_not_prove[REPORT_ENGLISH]);
        json_add(out, list, item);
    }
    return list;
}

json_t *json_search(struct text *out, const struct report_facts *facts)
{
    const struct report_search *search = facts->search;
    if (!search)
        return json_null();
    json_t *item = json_object(), *steps = json_array();
    json_put_text(out, item, "hypothesis", hypothesis_info(search->hypothesis)->slug);
    json_put_text(out, item, "result", report_search_result_name(search->result));
    for (size_t i = 0; i < search->step_count; i++) {
        const struct report_search_step *step = &search->steps[i];
        json_t *one = json_object();
        json_put_text(out, one, "looked_at", step->what);
        json_put_count(out, one, "runs", step->runs);
        json_put_count(out, one, "compared", step->compared);
        json_put_text(out, one, "result", report_search_result_name(step->result));
        json_add(out, steps, one);
    }
    json_put(out, item, "steps", steps);
    return item;
}

json_t *json_ablation(struct text *out, const struct report_facts *facts)
{
    json_t *list = json_array();
    for (size_t i = 0; i < facts->ablation_count; i++) {
        json_t *item = json_object();
        json_put_text(out, item, "mode", facts->ablations[i].mode);
        json_put_count(out, item, "runs", facts->ablations[i].runs);
        json_put_count(out, item, "faults", facts->ablations[i].faults);
        json_add(out, list, item);
    }
    return list;
}

json_t *json_self_test(struct text *out, const struct report_facts *facts)
{
    json_t *item = json_object(), *states = json_object();
    json_put_text(out, item, "key", facts->self_test_key);
    for (int i = 0; i < HYPOTHESIS_COUNT; i++)
        json_put_text(out, states, hypothesis_info((enum hypothesis)i)->slug,
                      json_self_test_name(facts->self_test[i]));
    json_put(out, item, "hypotheses", states);
    json_put(out, item, "planted", json_planted(out, facts));
    return item;
}

json_t *json_transfers(struct text *out, const struct report_facts *facts)
{
    json_t *list = json_array();
    for (size_t i = 0; i < facts->transfer_count; i++) {
        const struct report_transfer *one = &facts->transfers[i];
        json_t *item = json_object();
        json_put_text(out, item, "path", one->path);
        json_put_count(out, item, "copies", one->copies);
        json_put_count(out, item, "bytes", one->bytes);
        json_put_count(out, item, "mismatches", one->mismatches);
        json_put(out, item, "bound",
                 one->mismatches == 0 && one->copies ? json_real(3.0 / (double)one->copies)
                                                     : json_null());
        json_put(out, item, "gigabytes_per_second",
                 one->gigabytes_per_second > 0 ? json_real(one->gigabytes_per_second)
                                               : json_null());
        json_put_text(out, item, "note", one->note);
        json_add(out, list, item);
    }
    return list;
}

json_t *json_earlier(struct text *out, const struct report_facts *facts)
{
    json_t *list = json_array();
    for (size_t i = 0; i < facts->earlier_count; i++) {
        json_t *item = json_object();
        json_put_text(out, item, "id", facts->earlier[i].id);
        json_put_text(out, item, "date", facts->earlier[i].date);
        json_put_text(out, item, "outcome", audit_outcome_name(facts->earlier[i].outcome));
        json_put_text(out, item, "root_cause", facts->earlier[i].root_cause);
        json_add(out, list, item);
    }
    return list;
}

json_t *json_baseline(struct text *out, const struct report_facts *facts)
{
    static const char *const changes[] = { [REPORT_NEW] = "new",
                                           [REPORT_GONE] = "gone",
                                           [REPORT_CHANGED] = "changed",
                                           [REPORT_SAME] = "same" };
    if (!facts->baseline)
        return json_null();
    json_t *item = json_object(), *differences = json_array(), *timings = json_array();
    json_put_text(out, item, "id", facts->baseline);
    for (size_t i = 0; i < facts->difference_count; i++) {
        json_t *one = json_object();
        json_put_text(out, one, "change", changes[facts->differences[i].change]);
        json_put_text(out, one, "hypothesis", facts->differences[i].slug);
        json_put_text(out, one, "what", facts->differences[i].what);
        json_add(out, differences, one);
    }
    for (size_t i = 0; i < facts->timing_count; i++) {
        json_t *one = json_object();
        json_put_text(out, one, "what", facts->timings[i].what);
        json_put_real(out, one, "before", facts->timings[i].before);
        json_put_real(out, one, "now", facts->timings[i].now);
        json_add(out, timings, one);
    }
    json_put(out, item, "differences", differences);
    json_put(out, item, "timings", timings);
    return item;
}
