/* report_documents_test.c - reports for people: everything that is known is in them, in both
 * languages, and each has words of its own language alone. */
#include "report_documents.h"

#include <ctype.h>
#include <stdlib.h>

/* ---- Everything is there -------------------------------------------------------------------- */

/* Values that stand in the facts once each: a report without one of them has forgotten a field. */
static const char *const values[] = {
    "20261115-093012-4f2a",
    "2026-11-15T09:30:12Z",
    "Leandro Emanuel Timberini",
    "0.1.0",
    "303b634",
    "5a5a5a",
    "c3c3c3",
    "models/greta-v1.gguf",
    "AMD EPYC 9B14",
    "host 1",
    "151.00 GiB",
    "18446744073709551615",
    "HIP_LAUNCH_BLOCKING=1",
    "AMD_SERIALIZE_KERNEL",
    /* verdicts */
    "kernel-fault",
    "98765",
    "1.49 %",
    "ticket",
    /* the finding */
    "rope",
    "blk.17.q",
    "0x7f0000300010",
    "rope.positions",
    "engine/forward.c:120",
    "kv_append",
    "kv.keys",
    "kv.values",
    "983056",
    " 1048560 bytes",
    "logits",
    /* rows */
    "50/50",
    "6/400",
    "run/A.log",
    "run/B.flight",
    "21.2",
    "846.86 MiB",
    "4321",
    "83.59 MiB",
    "13579",
    "Generation error: D2H logits failed",
    "no space left on device",
    "delay_us",
    "123456",
    /* reruns */
    "serialised",
    "9/10",
    "8/11",
    "13/13",
    "plain",
    "29",
    "wrong-position",
    "lost-wakeup",
    "timeout 30 s",
    "d2h pinned async",
    "3000",
    "117.74 MiB",
    "11.50",
    "4095 + 1",
    /* history */
    "20260206-101112-b362",
    "46.25",
    "+14.2 %",
    "x-y-z",
};

static const char *const sentences[REPORT_LANGUAGE_COUNT][7] = {
    { "nothing: the fault stays", "that it is the only one", "earlier cause in one language",
      "came in one", "went in one", "differs in one", "stays in one" },
    { "nada: el fallo permanece", "que sea la única", "causa anterior en otro idioma",
      "apareció en otro", "se fue en otro", "difiere en otro", "queda en otro" },
};

static void check_complete(print_function printer, enum report_language language)
{
    struct report_specimen *specimen = specimen_create(false);
    struct text text;
    print_report(printer, &specimen->facts, language, &text);
    for (size_t i = 0; i < COUNT_OF(values); i++)
        check_contains("rich facts", text_get(&text), values[i]);
    for (size_t i = 0; i < COUNT_OF(sentences[0]); i++) {
        check_contains("rich facts", text_get(&text), sentences[language][i]);
        assert_null(strstr(text_get(&text), sentences[1 - language][i]));
    }
    for (int i = 0; i < HYPOTHESIS_COUNT; i++) {
        const struct hypothesis_info *info = hypothesis_info((enum hypothesis)i);
        const struct report_hypothesis_words *words = report_hypothesis_words((enum hypothesis)i);
        struct text title;
        text_init(&title);
        (printer == report_html ? escape_markup : escape_markdown)(&title, words->title[language]);
        check_contains("slug", text_get(&text), info->slug);
        check_contains("title", text_get(&text), text_get(&title));
        text_release(&title);
    }
    for (int i = 1; i < VERDICT_MISSING_COUNT; i++)
        check_contains("missing", text_get(&text),
                       report_missing_words((enum verdict_missing)i, language));
    text_release(&text);
    free(specimen);
}

static void test_markdown_complete(void **state)
{
    (void)state;
    check_complete(report_markdown, REPORT_ENGLISH);
    check_complete(report_markdown, REPORT_SPANISH);
}

static void test_html_complete(void **state)
{
    (void)state;
    check_complete(report_html, REPORT_ENGLISH);
    check_complete(report_html, REPORT_SPANISH);
}

/* Every outcome has its own words, and with nothing to tell there is still a report. */
static void test_outcomes(void **state)
{
    (void)state;
    struct report_specimen *specimen = specimen_create(true);
    for (int language = 0; language < REPORT_LANGUAGE_COUNT; language++)
        for (int i = 0; i < AUDIT_OUTCOME_COUNT; i++) {
            struct text text;
            specimen->facts.verdict.outcome = (enum audit_outcome)i;
            print_report(report_markdown, &specimen->facts, (enum report_language)language, &text);
            check_contains("outcome", text_get(&text),
                           words_outcome((enum report_language)language, (enum audit_outcome)i));
            text_release(&text);
            print_report(report_html, &specimen->facts, (enum report_language)language, &text);
            check_contains("outcome", text_get(&text),
                           words_outcome((enum report_language)language, (enum audit_outcome)i));
            text_release(&text);
        }
    free(specimen);
}

/* ---- One language --------------------------------------------------------------------------- */

static bool is_letter(char c)
{
    /* A hyphen joins: "use-after-free" is one word, a name. */
    return isalpha((unsigned char)c) || (c & 0x80) || c == '-';
}

/* As whole words. */
static bool occurs(const char *text, const char *words, size_t length)
{
    for (const char *at = text; (at = strstr(at, words)) != NULL; at++) {
        bool starts = at == text || !is_letter(at[-1]) || !is_letter(words[0]);
        bool ends = !is_letter(at[length]) || !is_letter(words[length - 1]);
        if (starts && ends)
            return true;
    }
    return false;
}

/* The parts of an English phrase between its arguments and code; those that Spanish has too (No,
 * Total, Commit, SHA-256) say nothing. */
static void check_absent(const char *text, const char *english, const char *spanish)
{
    char piece[512];
    size_t length = 0;
    for (const char *at = english;; at++) {
        if (*at && *at != '{' && *at != '`' && length + 1 < sizeof(piece)) {
            piece[length++] = *at;
            continue;
        }
        while (length > 0 && strchr(" .,:;()", piece[length - 1]))
            length--;
        piece[length] = '\0';
        char *start = piece + strspn(piece, " .,:;()");
        if (strlen(start) >= 3 && !strstr(spanish, start) && occurs(text, start, strlen(start)))
            fail_msg("English in the Spanish report: '%s'", start);
        length = 0;
        if (!*at)
            return;
        if (words_part(at).index)
            at += words_part(at).length - 1;
    }
}

/* Quotes from outside may be in any language: here there are none. */
static void remove_quotes(struct report_specimen *specimen)
{
    specimen->facts.expected_fault = "xyz";
    for (size_t i = 0; i < specimen->facts.row_count; i++) {
        struct report_row *row = &specimen->rows[i];
        row->error = row->error ? "xyz" : NULL;
        row->missing = row->missing ? "xyz" : NULL;
        row->parameters = row->parameters ? "xyz" : NULL;
        row->label = "R";
    }
    specimen->facts.identity.command = "xyz";
    specimen->facts.identity.model_name = "xyz";
    specimen->facts.identity.device_name = "xyz, 2 threads";
    specimen->planted[1].note = "xyz";
    specimen->interventions[1].changed = "guards";
    event_set_text(specimen->findings[2].cause.op, EVENT_OP_BYTES, "xyz");
}

static void check_kind_absent(const char *text, uint8_t kind)
{
    struct text english, spanish;
    text_init(&english);
    text_init(&spanish);
    report_add_kind(&english, kind, REPORT_ENGLISH, "");
    report_add_kind(&spanish, kind, REPORT_SPANISH, "");
    check_absent(text, text_get(&english), text_get(&spanish));
    text_release(&english);
    text_release(&spanish);
}

static void check_spanish(const char *text)
{
    for (size_t i = 0; i < WORD_COUNT; i++)
        check_absent(text, words_get(REPORT_ENGLISH, (enum word)i),
                     words_get(REPORT_SPANISH, (enum word)i));
    for (size_t i = 0; i < EVENT_KIND_COUNT; i++)
        check_kind_absent(text, (uint8_t)i);
    for (size_t i = 0; i < AUDIT_OUTCOME_COUNT; i++)
        check_absent(text, words_outcome(REPORT_ENGLISH, (enum audit_outcome)i),
                     words_outcome(REPORT_SPANISH, (enum audit_outcome)i));
    for (size_t i = 0; i < VERDICT_COUNT; i++)
        check_absent(text, words_verdict(REPORT_ENGLISH, (enum verdict)i),
                     words_verdict(REPORT_SPANISH, (enum verdict)i));
    for (size_t i = 0; i < REPORT_SEVERITY_COUNT; i++)
        check_absent(text, words_severity(REPORT_ENGLISH, (enum report_severity)i),
                     words_severity(REPORT_SPANISH, (enum report_severity)i));
    for (int i = 0; i < HYPOTHESIS_COUNT; i++) {
        const struct report_hypothesis_words *info = report_hypothesis_words((enum hypothesis)i);
        check_absent(text, info->title[REPORT_ENGLISH], info->title[REPORT_SPANISH]);
        check_absent(text, info->detector[REPORT_ENGLISH], info->detector[REPORT_SPANISH]);
        check_absent(text, info->unit[REPORT_ENGLISH], info->unit[REPORT_SPANISH]);
        check_absent(text, info->units[REPORT_ENGLISH], info->units[REPORT_SPANISH]);
        check_absent(text, info->advice[REPORT_ENGLISH], info->advice[REPORT_SPANISH]);
    }
    for (int i = 1; i < VERDICT_MISSING_COUNT; i++)
        check_absent(text, report_missing_words((enum verdict_missing)i, REPORT_ENGLISH),
                     report_missing_words((enum verdict_missing)i, REPORT_SPANISH));
}

static void test_spanish_only(void **state)
{
    (void)state;
    for (int outcome = 0; outcome < AUDIT_OUTCOME_COUNT; outcome++) {
        struct report_specimen *specimen = specimen_create(false);
        struct text text;
        remove_quotes(specimen);
        specimen->facts.verdict.outcome = (enum audit_outcome)outcome;
        print_report(report_markdown, &specimen->facts, REPORT_SPANISH, &text);
        remove_code(&text);
        check_spanish(text_get(&text));
        text_release(&text);
        print_report(report_verdict_table, &specimen->facts, REPORT_SPANISH, &text);
        check_contains("terminal", text_get(&text),
                       words_verdict(REPORT_SPANISH, VERDICT_CONFIRMED));
        check_absent(text_get(&text), words_get(REPORT_ENGLISH, WORD_EVIDENCE_EXACT),
                     words_get(REPORT_SPANISH, WORD_EVIDENCE_EXACT));
        text_release(&text);
        free(specimen);
    }
}

/* The check above must be able to fail. */
static void test_english_is_noticed(void **state)
{
    (void)state;
    assert_true(occurs("dice: Next steps.", "Next steps", 10));
    assert_false(occurs("informes", "form", 4));
    struct report_specimen *specimen = specimen_create(false);
    struct text text;
    print_report(report_markdown, &specimen->facts, REPORT_ENGLISH, &text);
    size_t present = 0;
    for (size_t i = 0; i < WORD_COUNT; i++)
        present += strstr(text_get(&text), words_get(REPORT_ENGLISH, (enum word)i)) != NULL;
    assert_true(present > WORD_COUNT / 3);
    text_release(&text);
    free(specimen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_markdown_complete),  cmocka_unit_test(test_html_complete),
        cmocka_unit_test(test_outcomes),           cmocka_unit_test(test_spanish_only),
        cmocka_unit_test(test_english_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
