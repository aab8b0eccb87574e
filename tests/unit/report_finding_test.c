/* report_finding_test.c - findings in words: who did what, with the numbers, and where it surfaced;
 * in both languages. */
#include "report_finding.h"

#include <stdio.h>

static struct analyze_place copy_place(uint64_t event_id, uint64_t time_ns)
{
    struct analyze_place one = place_of(EVENT_COPY_OUT, "", "logits", "logits", 0);
    one.event_id = event_id;
    one.time_ns = time_ns;
    return one;
}

static void headline_says_who_did_what_and_where_it_surfaced(void **state)
{
    (void)state;
    struct finding finding = { .hypothesis = HYPOTHESIS_BAD_POINTER,
                               .cause = rope_place(),
                               .seen = copy_place(20, 1300000),
                               .expected = 1024,
                               .found = 2139062143,
                               .count = 6 };
    check_headline(
        &finding,
        "rope, layer 2, step 3 read index 2139062143 (bound 1024) from operand positions "
        "(buffer indices); surfaced 0.3 ms later at the D2H copy of logits, step 3",
        "rope, capa 2, paso 3 leyó el índice 2139062143 (límite 1024) del operando "
        "positions (búfer indices); se manifestó 0.3 ms después en la copia D2H de "
        "logits, paso 3");
    struct text text;
    text_init(&text);
    report_finding_describe(&finding, REPORT_ENGLISH, &text);
    assert_string_equal(text_get(&text),
                        "rope, tensor rope_qk, layer 2, step 3 (event 10, stream 1, forward.c:7) "
                        "read index 2139062143 (bound 1024) from operand positions (buffer "
                        "indices); surfaced 0.3 ms later at the D2H copy of logits, step 3 "
                        "(event 20, stream 1, forward.c:7); 6 times");
    text_release(&text);
}

/* Indices are int32 in memory: -1 is the usual mark of a row that is not there. */
static void negative_index_is_shown_as_such(void **state)
{
    (void)state;
    struct finding finding = { .hypothesis = HYPOTHESIS_BAD_POINTER,
                               .cause = rope_place(),
                               .expected = 1024,
                               .found = (uint64_t)-1 };
    check_headline(
        &finding,
        "rope, layer 2, step 3 read index -1 (bound 1024) from operand positions (buffer indices)",
        "rope, capa 2, paso 3 leyó el índice -1 (límite 1024) del operando positions (búfer "
        "indices)");
}

/* A copy is the culprit only where the bytes that it took were the same. */
static void copy_that_is_the_culprit_says_why(void **state)
{
    (void)state;
    struct finding finding = { .hypothesis = HYPOTHESIS_NON_DETERMINISM,
                               .attribution = FINDING_CULPRIT,
                               .cause = copy_place(20, 0),
                               .expected = 0xabc,
                               .found = 0xdef };
    finding.cause.iteration = 3;
    finding.other.iteration = 1;
    check_headline(
        &finding,
        "D2H copy of logits, step 3: hash 0000000000000abc in run 1, 0000000000000def in "
        "run 3; the launch that wrote what it copied gave the same bytes in both",
        "copia D2H de logits, paso 3: hash 0000000000000abc en la ejecución 1, "
        "0000000000000def en la ejecución 3; el lanzamiento que escribió lo copiado dio "
        "los mismos bytes en ambas");
    finding.attribution = FINDING_SEEN_AT;
    check_headline(
        &finding,
        "D2H copy of logits, step 3: hash 0000000000000abc in run 1, 0000000000000def in "
        "run 3",
        "copia D2H de logits, paso 3: hash 0000000000000abc en la ejecución 1, "
        "0000000000000def en la ejecución 3");
}

/* Seen where it was caused: nothing surfaced elsewhere. Without clocks there is no time. */
static void surfacing_is_said_only_where_it_is_known(void **state)
{
    (void)state;
    struct finding finding = { .hypothesis = HYPOTHESIS_KERNEL_FAULT, .cause = rope_place() };
    finding.seen = finding.cause;
    check_headline(&finding, "rope, layer 2, step 3 made an illegal memory access",
                   "rope, capa 2, paso 3 hizo un acceso ilegal a memoria");
    finding.seen = copy_place(20, 0);
    check_headline(&finding,
                   "rope, layer 2, step 3 made an illegal memory access; surfaced at the D2H copy "
                   "of logits, step 3",
                   "rope, capa 2, paso 3 hizo un acceso ilegal a memoria; se manifestó en la copia "
                   "D2H de logits, paso 3");
}

/* None of several launches is named as the one that did it. */
static void candidates_are_a_set(void **state)
{
    (void)state;
    struct finding finding = { .hypothesis = HYPOTHESIS_KERNEL_FAULT,
                               .certainty = FINDING_POSSIBLE,
                               .cause = rope_place(),
                               .candidate_count = 4,
                               .near = { .known = true, .address = 0x1000 } };
    for (uint32_t i = 0; i < 4; i++) {
        finding.candidates[i] = rope_place();
        finding.candidates[i].scope.layer = (int32_t)i;
    }
    check_headline(&finding,
                   "one of 4 launches made an illegal memory access at 0x1000; candidates: rope, "
                   "layer 0, step 3; rope, layer 1, step 3; rope, layer 2, step 3; and 1 more",
                   "uno de 4 lanzamientos hizo un acceso ilegal a memoria en 0x1000; candidatos: "
                   "rope, capa 0, paso 3; rope, capa 1, paso 3; rope, capa 2, paso 3; y 1 más");
}

struct sentence {
    enum hypothesis hypothesis;
    uint8_t check;
    bool copies; /* the cause is a copy */
    uint64_t expected, found;
    const char *english, *spanish; /* after the place */
};

/* One of a thing is not several. */
static void numbers_agree_with_their_nouns(void **state)
{
    (void)state;
    struct finding finding = { .hypothesis = HYPOTHESIS_SIZE_MISMATCH,
                               .check = EVENT_CHECK_VIEW_END,
                               .cause = copy_place(10, 1),
                               .expected = 1,
                               .found = 2 };
    check_headline(&finding,
                   "D2H copy of logits, step 3 asked for byte 2 of buffer logits, which has 1 byte "
                   "(refused by the check view-end)",
                   "copia D2H de logits, paso 3 pidió el byte 2 del búfer logits, que tiene 1 byte "
                   "(rechazado por la comprobación view-end)");
    finding = (struct finding){
        .hypothesis = HYPOTHESIS_LEAK, .cause = copy_place(10, 1), .expected = 1, .found = 1
    };
    check_headline(&finding,
                   "D2H copy of logits, step 3: 1 allocation of this call, 1 byte, was alive when "
                   "the process ended, and none was ever freed",
                   "copia D2H de logits, paso 3: 1 asignación de esta llamada, 1 byte, seguía viva "
                   "al terminar el proceso, y ninguna se liberó");
}

/* What follows the name of the call, in both languages. */
static const struct sentence number_sentences[] = {
    { HYPOTHESIS_SIZE_MISMATCH, EVENT_CHECK_BYTES, true, 1716, 1780,
      " asked for 1780 bytes of buffer logits, whose view has 1716 (refused by the check "
      "bytes)",
      " pidió 1780 bytes del búfer logits, cuya vista tiene 1716 (rechazado por la "
      "comprobación "
      "bytes)" },
    { HYPOTHESIS_CONTRACT_BREACH, EVENT_CHECK_SHAPE, false, 769, 768,
      " was given operand positions (buffer indices) with extent 768; its contract says 769 "
      "(refused by the check shape)",
      " recibió el operando positions (búfer indices) con extensión 768; su contrato dice 769 "
      "(rechazado por la comprobación shape)" },
    { HYPOTHESIS_USE_AFTER_FREE, EVENT_CHECK_GENERATION, false, 1, 2,
      ": operand positions (buffer indices) was freed before (generation 1, now 2)",
      ": el operando positions (búfer indices) se había liberado antes (generación 1, ahora "
      "2)" },
    { HYPOTHESIS_UNINITIALISED_READ, 0, false, 4096, 1,
      " read 1 byte of operand positions (buffer indices) that nothing had written",
      " leyó 1 byte del operando positions (búfer indices) sin que nada lo hubiera escrito" },
    { HYPOTHESIS_STAGING_REUSE, 0, true, 0, 1, " took a staging slot that was in use",
      " tomó una ranura intermedia que estaba en uso" },
    { HYPOTHESIS_SILENT_CORRUPTION, 0, true, 0xabc, 0xdef,
      ": bytes with the hash 0000000000000abc arrived with the hash 0000000000000def",
      ": bytes con el hash 0000000000000abc llegaron con el hash 0000000000000def" },
    { HYPOTHESIS_RUNTIME_DEFECT, 0, true, 0xabc, 0xdef,
      ": bytes with the hash 0000000000000abc arrived with the hash 0000000000000def",
      ": bytes con el hash 0000000000000abc llegaron con el hash 0000000000000def" },
    { HYPOTHESIS_NON_DETERMINISM, 0, true, 0xabc, 0xdef,
      ": hash 0000000000000abc in run 0, 0000000000000def in run 0",
      ": hash 0000000000000abc en la ejecución 0, 0000000000000def en la ejecución 0" },
    { HYPOTHESIS_HANG, 0, true, 700000000, 1250000000, ": no progress for 1.2 s (limit 0.7 s)",
      ": sin progreso durante 1.2 s (límite 0.7 s)" },
    { HYPOTHESIS_NUMERIC, 0, false, 1536, 1,
      " wrote 1 non-finite value among 1536 to operand positions (buffer indices)",
      " escribió 1 valor no finito entre 1536 en el operando positions (búfer indices)" },
    { HYPOTHESIS_LEAK, 0, true, 10, 10000,
      ": 10 allocations of this call, 10000 bytes, were alive when the process ended, and none "
      "was ever freed",
      ": 10 asignaciones de esta llamada, 10000 bytes, seguían vivas al terminar el proceso, y "
      "ninguna se liberó" },
    { HYPOTHESIS_STALE_GRAPH, 0, false, 0, 0,
      ": operand positions (buffer indices) was destroyed after the graph was recorded",
      ": el operando positions (búfer indices) se destruyó después de grabar el grafo" },
};

static void every_hypothesis_has_its_numbers(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(number_sentences); i++) {
        const struct sentence *row = &number_sentences[i];
        struct finding finding = { .hypothesis = row->hypothesis,
                                   .check = row->check,
                                   .cause = row->copies ? copy_place(10, 1) : rope_place(),
                                   .expected = row->expected,
                                   .found = row->found };
        char english[400], spanish[400];
        snprintf(english, sizeof(english), "%s%s",
                 row->copies ? "D2H copy of logits, step 3" : "rope, layer 2, step 3",
                 row->english);
        snprintf(spanish, sizeof(spanish), "%s%s",
                 row->copies ? "copia D2H de logits, paso 3" : "rope, capa 2, paso 3",
                 row->spanish);
        check_headline(&finding, english, spanish);
    }
    struct finding unordered = { .hypothesis = HYPOTHESIS_MISSING_SYNC,
                                 .cause = rope_place(),
                                 .other = copy_place(9, 1) };
    check_headline(
        &unordered,
        "rope, layer 2, step 3 read 1 byte of operand positions (buffer indices); nothing "
        "orders it after the access by the D2H copy of logits, step 3",
        "rope, capa 2, paso 3 leyó 1 byte del operando positions (búfer indices); nada asegura "
        "que ocurra tras el acceso hecho por la copia D2H de logits, paso 3");
}

/* Every hypothesis has all its words, and no sentence of one language has words of the other. */
static void words_are_complete(void **state)
{
    (void)state;
    for (unsigned i = 0; i < HYPOTHESIS_COUNT; i++) {
        const char *slug = hypothesis_info((enum hypothesis)i)->slug;
        const struct report_hypothesis_words *words = report_hypothesis_words((enum hypothesis)i);
        for (unsigned j = 0; j < REPORT_LANGUAGE_COUNT; j++) {
            assert_true(words->title[j][0] && words->detector[j][0]);
            assert_true(words->unit[j][0] && words->units[j][0] && words->advice[j][0]);
        }
        assert_string_not_equal(words->title[0], words->title[1]);
        struct finding finding = { .hypothesis = (enum hypothesis)i,
                                   .seen = { .event_id = 9, .kind = EVENT_COPY_OUT },
                                   .other = { .event_id = 8, .kind = EVENT_FILL },
                                   .near = { .known = true, .address = 4096 },
                                   .candidate_count = 2,
                                   .count = 3 };
        static const char *const english[] = { " was ",    " the ", " is ", " with ", " by ",
                                               "surfaced", "layer", "step", "copy" };
        for (unsigned direct = 0; direct < 2; direct++) {
            finding.certainty = direct ? FINDING_DIRECT : FINDING_POSSIBLE;
            finding.check = (uint8_t)direct;
            struct text text;
            text_init(&text);
            report_finding_describe(&finding, REPORT_SPANISH, &text);
            report_finding_headline(&finding, REPORT_SPANISH, &text);
            for (size_t j = 0; j < COUNT_OF(english); j++)
                if (strstr(text_get(&text), english[j]))
                    fail_msg("%s: English in Spanish: %s", slug, text_get(&text));
            text_release(&text);
        }
    }
}

static void every_reason_has_words(void **state)
{
    (void)state;
    for (unsigned j = 0; j < REPORT_LANGUAGE_COUNT; j++) {
        enum report_language language = (enum report_language)j;
        for (unsigned i = REASON_NONE + 1; i < REASON_COUNT; i++)
            assert_true(report_reason_words((enum finding_reason)i, language)[0]);
        for (unsigned i = 0; i < VERDICT_MISSING_COUNT; i++)
            assert_true(report_missing_words((enum verdict_missing)i, language)[0]);
    }
}

/* A hang says what moved last and when; one that is only possible claims no lack of progress. */
static void hang_says_what_moved_last(void **state)
{
    (void)state;
    struct text text;
    struct finding finding = { .hypothesis = HYPOTHESIS_HANG,
                               .cause = copy_place(10, 1),
                               .moved = rope_place(),
                               .moved_ago_ns = 31500000000,
                               .expected = 30000000000,
                               .found = 30250000000,
                               .consequence_of = -1 };
    text_init(&text);
    report_finding_describe(&finding, REPORT_ENGLISH, &text);
    check_contains("hang", text_get(&text),
                   ": no progress for 30.2 s (limit 30.0 s); the device last moved 31.5 s earlier, "
                   "in rope, ");
    text_clear(&text);
    report_finding_describe(&finding, REPORT_SPANISH, &text);
    check_contains("hang", text_get(&text),
                   "; el dispositivo avanzó por última vez 31.5 s antes, en rope, ");
    finding.moved = (struct analyze_place){ 0 };
    finding.certainty = FINDING_POSSIBLE;
    finding.reason = REASON_UNWATCHED;
    text_clear(&text);
    report_finding_describe(&finding, REPORT_ENGLISH, &text);
    check_contains("possible", text_get(&text), ": has not returned for 30.2 s (limit 30.0 s)");
    check_contains("possible", text_get(&text), "a long wait looks the same");
    text_clear(&text);
    report_finding_describe(&finding, REPORT_SPANISH, &text);
    check_contains("possible", text_get(&text), ": no ha vuelto en 30.2 s (límite 30.0 s)");
    text_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headline_says_who_did_what_and_where_it_surfaced),
        cmocka_unit_test(negative_index_is_shown_as_such),
        cmocka_unit_test(copy_that_is_the_culprit_says_why),
        cmocka_unit_test(surfacing_is_said_only_where_it_is_known),
        cmocka_unit_test(candidates_are_a_set),
        cmocka_unit_test(every_hypothesis_has_its_numbers),
        cmocka_unit_test(numbers_agree_with_their_nouns),
        cmocka_unit_test(words_are_complete),
        cmocka_unit_test(every_reason_has_words),
        cmocka_unit_test(hang_says_what_moved_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
