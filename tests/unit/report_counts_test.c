/* report_counts_test.c - nouns and verbs agree with the numbers in front of them, in both
 * languages; the host's name too is in the language of the report. */
#include "report_documents.h"

#include "report/sections.h"

#include <stdlib.h>

/* What a detector counted, in a verdict of every hypothesis. */
static void test_counts(void **state)
{
    (void)state;
    static const struct {
        uint64_t checked, total;
        const char *exact[REPORT_LANGUAGE_COUNT], *bounded[REPORT_LANGUAGE_COUNT];
    } rows[] = {
        { 1,
          1,
          { "Checked 1 of 1 replay,", "Se comprobó 1 de 1 ejecución de un grafo," },
          { "Looked at 1 of 1 launch.", "Se observó 1 de 1 lanzamiento." } },
        { 1,
          2,
          { "Checked 1 of 2 replays,", "Se comprobó 1 de 2 ejecuciones de grafos," },
          { "Looked at 1 of 2 launches.", "Se observó 1 de 2 lanzamientos." } },
        { 0,
          1,
          { "Checked 0 of 1 replay,", "Se comprobaron 0 de 1 ejecución de un grafo," },
          { "Looked at 0 of 1 launch.", "Se observaron 0 de 1 lanzamiento." } },
        { 155,
          174,
          { "Checked 155 of 174 replays,", "Se comprobaron 155 de 174 ejecuciones de grafos," },
          { "Looked at 155 of 174 launches.", "Se observaron 155 de 174 lanzamientos." } },
    };
    struct report_specimen *specimen = specimen_create(true);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (int j = 0; j < REPORT_LANGUAGE_COUNT; j++) {
            struct audit_verdict *verdict = &specimen->facts.verdict;
            struct hypothesis_verdict one = { .checked = rows[i].checked, .total = rows[i].total };
            verdict->hypotheses[HYPOTHESIS_STALE_GRAPH] = one;
            verdict->hypotheses[HYPOTHESIS_NUMERIC] = one;
            struct text text;
            text_init(&text);
            sections_evidence(&specimen->facts, HYPOTHESIS_STALE_GRAPH, (enum report_language)j,
                              &text);
            check_contains("exact", text_get(&text), rows[i].exact[j]);
            text_clear(&text);
            sections_evidence(&specimen->facts, HYPOTHESIS_NUMERIC, (enum report_language)j, &text);
            check_contains("bounded", text_get(&text), rows[i].bounded[j]);
            text_release(&text);
        }
    free(specimen);
}

static void test_iterations(void **state)
{
    (void)state;
    static const struct {
        const char *done, *planned, *shown[REPORT_LANGUAGE_COUNT];
    } rows[] = {
        { "1", "1", { "1 of 1 iteration was run,", "Se ejecutó 1 de 1 iteración," } },
        { "1", "2", { "1 of 2 iterations was run,", "Se ejecutó 1 de 2 iteraciones," } },
        { "0", "1", { "0 of 1 iteration were run,", "Se ejecutaron 0 de 1 iteración," } },
        { "9", "9", { "9 of 9 iterations were run,", "Se ejecutaron 9 de 9 iteraciones," } },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (int j = 0; j < REPORT_LANGUAGE_COUNT; j++) {
            struct text text;
            text_init(&text);
            words_add(&text, (enum report_language)j, WORD_SUMMARY_COUNTS, rows[i].done,
                      rows[i].planned, "1", "0", "0", NULL);
            check_contains("iterations", text_get(&text), rows[i].shown[j]);
            text_release(&text);
        }
}

/* The host counts its threads; a name that only looks like it stays as it is. */
static void test_device(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *name, *shown[REPORT_LANGUAGE_COUNT];
    } rows[] = {
        { "host", "AMD EPYC, 2 threads", { "AMD EPYC, 2 threads", "AMD EPYC, 2 hilos" } },
        { "host", "AMD EPYC, 1 thread", { "AMD EPYC, 1 thread", "AMD EPYC, 1 hilo" } },
        { "host", "a CPU, of a kind", { "a CPU, of a kind", "a CPU, of a kind" } },
        { "host", "CPU", { "CPU", "CPU" } },
        { "cuda", "GPU, 2 threads", { "GPU, 2 threads", "GPU, 2 threads" } },
        { "foreign", "-", { "seen by interposition", "visto por interposición" } },
        { NULL, NULL, { "", "" } },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (int j = 0; j < REPORT_LANGUAGE_COUNT; j++) {
            const struct report_identity identity = { .device_kind = rows[i].kind,
                                                      .device_name = rows[i].name };
            struct text text;
            text_init(&text);
            sections_device(&identity, (enum report_language)j, &text);
            assert_string_equal(text_get(&text), rows[i].shown[j]);
            text_release(&text);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_iterations),
        cmocka_unit_test(test_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
