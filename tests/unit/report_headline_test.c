/* report_headline_test.c - the first line of a report says who did what, with the numbers; where
 * nothing was found, how much was looked at. The same line is in every document. */
#include "test.h"

#include "base/text.h"
#include "report/earlier.h"
#include "report/escape.h"
#include "report_facts.h"

#include <stdlib.h>

static void check_headline(const struct report_facts *facts, const char *english,
                           const char *spanish)
{
    struct text text;
    text_init(&text);
    report_headline(facts, REPORT_ENGLISH, &text);
    assert_string_equal(text_get(&text), english);
    text_clear(&text);
    report_headline(facts, REPORT_SPANISH, &text);
    assert_string_equal(text_get(&text), spanish);
    text_release(&text);
}

/* Facts with a verdict and no finding that supports it. */
static void settle(struct report_specimen *specimen, enum audit_outcome outcome, double bound)
{
    struct audit_verdict *verdict = &specimen->facts.verdict;
    verdict->outcome = outcome;
    verdict->root_analysis = verdict->root_finding = -1;
    verdict->seen_analysis = verdict->seen_finding = -1;
    verdict->bound = bound;
    verdict->iterations = 1;
}

static void test_without_finding(void **state)
{
    (void)state;
    struct report_specimen *specimen = specimen_create(false);
    specimen->facts.program = NULL;
    settle(specimen, AUDIT_CLEAN, 0.015);
    specimen->facts.verdict.iterations = 200;
    check_headline(&specimen->facts,
                   "Nothing found in 200 recorded iterations; a fault in more than 1.5 % of runs "
                   "would have been seen",
                   "No se encontró nada en 200 iteraciones registradas; se habría visto un fallo "
                   "en más del 1.5 % de las "
                   "ejecuciones");
    settle(specimen, AUDIT_CLEAN, 0);
    check_headline(&specimen->facts,
                   "Nothing found; everything that can be tested was tested and refuted",
                   "No se encontró nada; todo lo comprobable se comprobó y quedó refutado");
    settle(specimen, AUDIT_NOT_SEEN, 1);
    check_headline(
        &specimen->facts,
        "Nothing seen in 1 recorded iteration; at least 20 are needed to call it clean",
        "No se vio nada en 1 iteración registrada; hacen falta al menos 20 para darlo por limpio");
    settle(specimen, AUDIT_ROOT_CAUSE, 0);
    check_headline(
        &specimen->facts,
        "The planted fault is the cause: the runs fail with it and are sound without it",
        "El fallo inyectado es la causa: las ejecuciones fallan con él y son correctas sin él");
    /* Candidates are listed where nothing is certain. */
    settle(specimen, AUDIT_DEFECT_SEEN, 0);
    specimen->facts.verdict.seen_analysis =
        specimen->facts.verdict.hypotheses[HYPOTHESIS_KERNEL_FAULT].analysis;
    specimen->facts.verdict.seen_finding =
        specimen->facts.verdict.hypotheses[HYPOTHESIS_KERNEL_FAULT].finding;
    check_headline(&specimen->facts,
                   "one of 2 launches made an illegal memory access at 0x7f0000300010; surfaced at "
                   "the D2H copy of logits, step 3; candidates: rope, layer 17, step 3; kv_append, "
                   "layer 17, step 3",
                   "uno de 2 lanzamientos hizo un acceso ilegal a memoria en 0x7f0000300010; se "
                   "manifestó en la copia D2H de logits, paso 3; candidatos: rope, capa 17, paso "
                   "3; kv_append, capa 17, paso 3");
    specimen->facts.row_count = 0;
    settle(specimen, AUDIT_DEFECT_SEEN, 0);
    check_headline(&specimen->facts, "A run failed, and no finding says why",
                   "Una ejecución falló y ningún hallazgo dice por qué");
    for (int i = 0; i < HYPOTHESIS_COUNT; i++)
        specimen->facts.verdict.hypotheses[i].verdict = i ? VERDICT_REFUTED : VERDICT_INCONCLUSIVE;
    settle(specimen, AUDIT_INCONCLUSIVE, 0);
    check_headline(&specimen->facts, "Not decided: 1 hypothesis lacks evidence",
                   "Sin decidir: 1 hipótesis carece de evidencia");
    free(specimen);
}

/* Where no finding says more, the line says how a row's process ended. */
static void test_row_that_ended(void **state)
{
    (void)state;
    struct report_specimen *specimen = specimen_create(false);
    const struct report_row rows[] = {
        { .label = "A", .planned = 50, .done = 50 },
        { .label = "B", .planned = 50, .done = 7, .crashed = true, .ending = { ENDING_KILLED, 9 } },
        { .label = "C", .planned = 1, .hung = true, .ending = { ENDING_HUNG, 0 } }
    };
    specimen->facts.rows = rows;
    specimen->facts.row_count = 2;
    settle(specimen, AUDIT_INCONCLUSIVE, 0);
    check_headline(
        &specimen->facts,
        "Not decided: row B ended after 7 of 50 iterations: killed by signal 9 (SIGKILL)",
        "Sin decidir: la fila B terminó tras 7 de 50 iteraciones: terminado por la señal "
        "9 (SIGKILL)");
    /* Nothing is looked at where the disk is full. */
    const struct report_row full = { .label = "B", .missing = "run/B.flight: no space left" };
    specimen->facts.rows = &full;
    specimen->facts.row_count = 1;
    check_headline(&specimen->facts,
                   "Not decided: row B could not be recorded: run/B.flight: no space left",
                   "Sin decidir: no se pudo grabar la fila B: run/B.flight: no space left");
    specimen->facts.rows = rows + 2;
    settle(specimen, AUDIT_DEFECT_SEEN, 0);
    check_headline(&specimen->facts,
                   "Row C ended after 0 of 1 iteration, and no finding says why: hung: no progress",
                   "La fila C terminó tras 0 de 1 iteración y ningún hallazgo dice por qué: "
                   "colgado: sin avance");
    free(specimen);
}

/* A program of which nothing could be looked at: no hypothesis is at fault. */
static void test_program_unseen(void **state)
{
    (void)state;
    struct report_specimen *specimen = specimen_create(true);
    struct report_program program = specimen_program();
    program.looked_at = REPORT_LOOKED_AT_NOTHING;
    specimen->facts.program = &program;
    check_headline(&specimen->facts, "Not decided: nothing was looked at: there is no CUPTI",
                   "Sin decidir: no se miró nada: falta CUPTI");
    program.looked_at = REPORT_LOOKED_AT_PART;
    check_headline(&specimen->facts, "Not decided: 16 hypotheses lack evidence",
                   "Sin decidir: 16 hipótesis carecen de evidencia");
    struct text text;
    text_init(&text);
    report_markdown(&specimen->facts, REPORT_SPANISH, &text);
    check_contains("report", text_get(&text), "terminado por la señal 15 (SIGTERM)");
    text_release(&text);
    free(specimen);
}

/* A clean program: of what, and of what not. */
static void test_program_clean(void **state)
{
    (void)state;
    struct report_specimen *specimen = specimen_create(true);
    struct report_program program = specimen_program();
    struct audit_verdict *verdict = &specimen->facts.verdict;
    specimen->facts.program = &program;
    specimen->facts.row_count = 0;
    settle(specimen, AUDIT_CLEAN, 0);
    verdict->subjects = (struct analyze_subjects){
        1u << SUBJECT_COPIES | 1u << SUBJECT_ORDER | 1u << SUBJECT_SOURCES,
        1u << SUBJECT_KERNELS | 1u << SUBJECT_HOST_READS
    };
    check_headline(&specimen->facts,
                   "Nothing found: copies, order. Not inside kernels; not host reads",
                   "No se encontró nada: copias, orden. No el interior de los kernels; no las "
                   "lecturas del anfitrión");
    verdict->subjects = (struct analyze_subjects){ 1u << SUBJECT_HOST_READS, 0 };
    check_headline(&specimen->facts, "Nothing found: host reads",
                   "No se encontró nada: lecturas del anfitrión");
    verdict->subjects = (struct analyze_subjects){ 1u << SUBJECT_SOURCES, 1u << SUBJECT_SOURCES };
    check_headline(&specimen->facts,
                   "Nothing found: nothing. Not every byte of the pinned memory that copies read",
                   "No se encontró nada: nada. No cada byte de la memoria fijada que leen las "
                   "copias");
    free(specimen);
}

/* An op that the host computes differently is named, whether or not a fault was planted. */
static void test_op_unlike_the_host(void **state)
{
    (void)state;
    struct report_specimen *specimen = specimen_create(false);
    const struct report_compare_row row = {
        .op = "attention",
        .type = "F32",
        .operand = "out",
        .tensor = "attention",
        .file = "src/engine/forward.c",
        .line = 121,
        .layer = 2,
        .step = 1,
        .launches = 12,
        .outside = 1,
        .tolerance = 1e-4,
        .error = 2,
        .row = 0,
        .column = 3,
        .device_value = 195.5,
        .host_value = -0.5,
    };
    const struct report_compare compare = {
        .rows = &row, .row_count = 1, .first = &row, .launches = 12
    };
    settle(specimen, AUDIT_ROOT_CAUSE, 0);
    specimen->facts.compare = &compare;
    check_headline(&specimen->facts,
                   "attention, layer 2, step 1, tensor attention (src/engine/forward.c:121): "
                   "out[0][3] is 195.5, the host computes -0.5 from the same inputs; error 2, "
                   "tolerance 0.0001",
                   "attention, capa 2, paso 1, tensor attention (src/engine/forward.c:121): "
                   "out[0][3] es 195.5, el anfitrión calcula -0.5 con las mismas entradas; error "
                   "2, tolerancia 0.0001");
    free(specimen);
}

/* The line is the finding's own, and stands first in what people read. */
static void test_is_the_first_line(void **state)
{
    (void)state;
    struct report_specimen *specimen = specimen_create(false);
    struct text headline, words, line;
    text_init(&headline);
    text_init(&words);
    text_init(&line);
    specimen->findings[0].attribution = FINDING_CULPRIT;
    specimen->findings[0].candidate_count = 1;
    report_headline(&specimen->facts, REPORT_ENGLISH, &headline);
    report_finding_headline(&specimen->findings[0], REPORT_ENGLISH, &words);
    assert_string_equal(text_get(&headline), text_get(&words));
    report_markdown(&specimen->facts, REPORT_ENGLISH, &line);
    text_clear(&words);
    text_add(&words, "# ");
    escape_markdown(&words, text_get(&headline));
    assert_memory_equal(text_get(&line), text_get(&words), words.length);
    text_clear(&line);
    text_clear(&words);
    report_html(&specimen->facts, REPORT_ENGLISH, &line);
    text_add(&words, "<main>\n<h1 id=\"top\">");
    escape_markup(&words, text_get(&headline));
    check_contains("html", text_get(&line), text_get(&words));
    text_clear(&line);
    report_verdict_table(&specimen->facts, REPORT_ENGLISH, &line);
    check_contains("terminal", text_get(&line), text_get(&headline));
    text_clear(&line);
    report_summary_json(&specimen->facts, &line);
    check_contains("json", text_get(&line), "\"headline\"");
    check_contains("json", text_get(&line), text_get(&headline));
    text_release(&headline);
    text_release(&words);
    text_release(&line);
    free(specimen);
}

/* A symptom is shown as one, and not called its cause. */
static void test_symptom(void **state)
{
    (void)state;
    struct report_specimen *specimen = specimen_create(false);
    struct audit_verdict *verdict = &specimen->facts.verdict;
    settle(specimen, AUDIT_DEFECT_SEEN, 0);
    verdict->seen_analysis = 1;
    verdict->seen_finding = 1;
    specimen->findings[1].attribution = FINDING_SEEN_AT;
    specimen->findings[1].consequence_of = -1;
    struct text text;
    text_init(&text);
    report_headline(&specimen->facts, REPORT_ENGLISH, &text);
    check_contains("english", text_get(&text), "; it was seen here, but its cause is not known");
    text_clear(&text);
    report_headline(&specimen->facts, REPORT_SPANISH, &text);
    check_contains("spanish", text_get(&text), "; aquí se vio, y no se conoce su causa");
    text_clear(&text);
    verdict->outcome = AUDIT_ROOT_CAUSE; /* by reruns without the planted fault */
    verdict->root_analysis = verdict->root_finding = 1;
    report_headline(&specimen->facts, REPORT_ENGLISH, &text);
    check_contains("proved", text_get(&text), "sound without it; seen: D2H copy of logits");
    assert_null(strstr(text_get(&text), "cause not found"));
    text_clear(&text);
    report_html(&specimen->facts, REPORT_ENGLISH, &text);
    check_contains("html", text_get(&text), "<div class=\"box seen\">");
    assert_null(strstr(text_get(&text), "<div class=\"box culprit\">"));
    text_release(&text);
    free(specimen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_finding),
        cmocka_unit_test(test_program_unseen),
        cmocka_unit_test(test_program_clean),
        cmocka_unit_test(test_row_that_ended),
        cmocka_unit_test(test_op_unlike_the_host),
        cmocka_unit_test(test_is_the_first_line),
        cmocka_unit_test(test_symptom),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
