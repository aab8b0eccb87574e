/* self_test.c - all runs of a self-test, and what follows from them; see self_test.h. */
#include "campaign/self_test.h"

#include "campaign/self_test_plant.h"
#include "report/words.h"

#include <stdlib.h>
#include <string.h>

static void judge(struct self_test *test)
{
    bool any = false;
    test->passed = test->clean_findings == 0;
    for (size_t i = 0; i < test->planted_count; i++) {
        const struct report_planted *planted = &test->planted[i];
        if (planted->absent)
            continue;
        any = true;
        bool ok = planted->detected && planted->culprit_ok && test->clean_findings == 0;
        enum self_test_state *state = &test->states[planted->hypothesis];
        if (*state != SELF_TEST_FAILED)
            *state = ok ? SELF_TEST_PASSED : SELF_TEST_FAILED;
        test->passed = test->passed && ok;
    }
    test->passed = test->passed && any; /* what planted nothing shows nothing */
}

/* Whether the first name of a list NAME,NAME is this one. */
static bool is_first(const char *list, const char *name)
{
    size_t length = strcspn(list, ",");
    return strlen(name) == length && strncmp(list, name, length) == 0;
}

/* The list without its first name; NULL: that was the last. */
static const char *without_first(const char *list)
{
    const char *comma = strchr(list, ',');
    return comma ? comma + 1 : NULL;
}

static bool is_wanted(const char *faults, const char *name)
{
    bool wanted = !faults;
    for (const char *at = faults; at && !wanted; at = without_first(at))
        wanted = is_first(at, name);
    return wanted;
}

enum status campaign_check_faults(const char *faults, struct error *err)
{
    for (const char *at = faults; at; at = without_first(at)) {
        size_t i = 0;
        while (i < self_test_row_count && !is_first(at, self_test_rows[i].fault))
            i++;
        if (i == self_test_row_count)
            return error_set(err, STATUS_USAGE,
                             "faults: expected names as --self-test prints them, NAME,NAME, found "
                             "'%.64s'",
                             at);
    }
    return STATUS_OK;
}

static void note_absent(struct report_planted *planted)
{
    planted->absent = true;
    planted->note = "not planted: without address ranges to map memory into, guards of this device "
                    "are canaries, and nothing would fault";
}

static enum status run_all(struct self_test_bench *bench, struct self_test *test, struct error *err)
{
    const char *faults = bench->options->faults;
    bench->step = (struct child_step){ &bench->options->watcher, "self-test", 0,
                                       self_test_row_count };
    if (!faults) {
        TRY(self_test_run_clean(bench, SELF_TEST_CLEAN_PLAIN, &test->clean_findings, err));
        TRY(self_test_run_clean(bench, SELF_TEST_CLEAN_STRESS, &test->clean_findings, err));
        TRY(self_test_run_clean(bench, SELF_TEST_CLEAN_SEARCHED, &test->clean_findings, err));
    }
    for (size_t i = 0; i < self_test_row_count; i++) {
        const struct self_test_row *row = &self_test_rows[i];
        if (!is_wanted(faults, row->fault))
            continue;
        bench->step.done = i;
        size_t place = test->planted_count++;
        struct report_planted *planted = &test->planted[place];
        *planted = (struct report_planted){ .fault = row->fault,
                                            .hypothesis = row->hypothesis,
                                            .only_seen = (row->needs & SELF_TEST_ONLY_SEEN) != 0,
                                            .found_hypothesis = HYPOTHESIS_COUNT };
        if (self_test_is_absent(bench, row))
            note_absent(planted);
        else
            TRY(self_test_plant(bench, row, planted, test->notes[place], sizeof(test->notes[place]),
                                err));
    }
    judge(test);
    return STATUS_OK;
}

enum status self_test_run(const struct campaign_options *options, const struct identity *identity,
                          struct self_test *ret_test, struct error *err)
{
    struct self_test_bench bench = { .options = options,
                                     .guards_fault = identity->device.guards_fault };
    struct self_test test = { 0 };
    struct campaign_options plain = *options;
    plain.model = NULL; /* the faults' places are those of the small model */
    test.planted = calloc(self_test_row_count, sizeof(*test.planted));
    test.notes = calloc(self_test_row_count, sizeof(*test.notes));
    if (!test.planted || !test.notes) {
        self_test_release(&test);
        return error_set(err, STATUS_NO_MEMORY, "no memory for the self-test");
    }
    enum status status = temporary_open(options, bench.folder, err);
    if (!status) {
        bench.setup = (struct child_setup){ options->program, options->environment, bench.folder,
                                            false };
        status = audit_model_open(&plain, &bench.model, err);
        if (!status)
            status = audit_model_make_experts(&plain, &bench.experts, err);
        if (!status)
            status = run_all(&bench, &test, err);
        audit_model_close(&bench.model);
        audit_model_close(&bench.experts);
        temporary_close(bench.folder);
    }
    if (status)
        self_test_release(&test);
    else
        *ret_test = test;
    return status;
}

void self_test_release(struct self_test *test)
{
    free(test->planted);
    free(test->notes);
    *test = (struct self_test){ 0 };
}

enum status campaign_self_test(const struct campaign_options *options, bool json, struct text *text,
                               bool *ret_passed, struct error *err)
{
    struct identity identity;
    struct self_test test;
    TRY(identity_find(options, &identity, err));
    TRY(self_test_run(options, &identity, &test, err));
    if (!options->faults)
        self_test_save(options, &identity, &test);
    struct report_facts facts = { .planted = test.planted,
                                  .planted_count = test.planted_count,
                                  .self_test_key = identity.key };
    facts.identity.version = options->version;
    facts.identity.device_kind = identity.device.kind;
    facts.identity.device_name = identity.device.name;
    facts.identity.device_driver = identity.device.driver;
    facts.identity.binary_sha256 = identity.binary_sha256;
    memcpy(facts.self_test, test.states, sizeof(test.states));
    if (json)
        report_self_test_json(&facts, text);
    else
        report_self_test_table(&facts, options->language, text);
    for (size_t i = 0; !json && i < test.planted_count; i++)
        if (!(test.planted[i].detected && test.planted[i].culprit_ok) && test.planted[i].note)
            text_addf(text, "%s: %s\n", test.planted[i].fault, test.planted[i].note);
    if (!json && test.clean_findings) {
        char count[WORDS_NUMBER_BYTES];
        text_add(text, "\n");
        words_add_line(text, options->language, WORD_CLEAN_RUNS_FOUND,
                       words_number(test.clean_findings, count), NULL);
    }
    *ret_passed = test.passed;
    self_test_release(&test);
    return STATUS_OK;
}
