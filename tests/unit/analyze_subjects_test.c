/* analyze_subjects_test.c - what was looked at in a foreign program, and what was not. */
#include "analyze_foreign.h"

#include "analyze/analyze_impl.h"
#include "analyze/verdict.h"

#define BIT(name) (1u << SUBJECT_##name)

static struct event event_of(enum event_kind kind, uint32_t flags)
{
    return (struct event){ .kind = (uint8_t)kind, .flags = flags };
}

static void each_event_adds_its_subjects(void **state)
{
    (void)state;
    static const struct {
        enum event_kind kind;
        uint32_t flags, seen, missed;
    } rows[] = {
        { EVENT_BUFFER_CREATE, EVENT_FOREIGN, BIT(LIFETIMES), 0 },
        { EVENT_COPY_WITHIN, EVENT_FOREIGN, BIT(COPIES) | BIT(ORDER), 0 },
        { EVENT_FILL, EVENT_FOREIGN, BIT(COPIES) | BIT(ORDER), 0 },
        { EVENT_COPY_IN, EVENT_FOREIGN, BIT(COPIES) | BIT(ORDER) | BIT(SOURCES), 0 },
        { EVENT_COPY_IN, EVENT_FOREIGN | EVENT_SAMPLED, BIT(COPIES) | BIT(ORDER), BIT(SOURCES) },
        { EVENT_COPY_IN, EVENT_FOREIGN | EVENT_PAGEABLE, BIT(COPIES) | BIT(ORDER), 0 },
        { EVENT_COPY_IN, EVENT_FOREIGN | EVENT_SYNCHRONOUS, BIT(COPIES) | BIT(ORDER), 0 },
        { EVENT_COPY_OUT, EVENT_FOREIGN, BIT(COPIES) | BIT(ORDER), BIT(HOST_READS) },
        { EVENT_COPY_OUT, EVENT_FOREIGN | EVENT_SYNCHRONOUS, BIT(COPIES) | BIT(ORDER), 0 },
        { EVENT_LAUNCH, EVENT_FOREIGN, BIT(ORDER), BIT(KERNELS) },
        { EVENT_LAUNCH, EVENT_FOREIGN | EVENT_MAY_TELL, BIT(ORDER),
          BIT(KERNELS) | BIT(HOST_READS) },
        { EVENT_COPY_OUT, EVENT_FOREIGN | EVENT_WATCHED, BIT(COPIES) | BIT(ORDER) | BIT(HOST_READS),
          0 },
        { EVENT_LAUNCH, EVENT_FOREIGN | EVENT_MAY_TELL | EVENT_WATCHED,
          BIT(ORDER) | BIT(HOST_READS), BIT(KERNELS) },
        { EVENT_GRAPH_REPLAY, EVENT_FOREIGN, BIT(ORDER), BIT(KERNELS) },
        { EVENT_STREAM_SYNC, EVENT_FOREIGN, 0, 0 },
        { EVENT_LAUNCH, 0, 0, 0 }, /* greta's own */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct analyze_subjects subjects = { 0, 0 };
        struct event event = event_of(rows[i].kind, rows[i].flags);
        subjects_note(&subjects, &event);
        if (subjects.seen != rows[i].seen || subjects.missed != rows[i].missed)
            fail_msg("row %zu: found %x and %x", i, subjects.seen, subjects.missed);
    }
}

/* One copy without traps is enough, and so is the end of all traps while some are set. */
static void host_reads_are_seen_while_all_are_watched(void **state)
{
    (void)state;
    static const struct {
        uint64_t traps;
        uint32_t before, after;
        bool seen;
    } rows[] = {
        { EVENT_TRAPS_ON, EVENT_WATCHED, EVENT_WATCHED, true },
        { EVENT_TRAPS_ON, EVENT_WATCHED, 0, false },
        { EVENT_TRAPS_ON, 0, EVENT_WATCHED, false },
        { EVENT_TRAPS_LIMIT, EVENT_WATCHED, EVENT_WATCHED, false },
        { EVENT_TRAPS_SIGNAL, EVENT_WATCHED, EVENT_WATCHED, false },
        { EVENT_TRAPS_REFUSED, 0, 0, false },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct analyze_subjects subjects = { 0, 0 };
        struct event traps = event_of(EVENT_HOST_TRAPS, EVENT_FOREIGN);
        struct event before = event_of(EVENT_COPY_OUT, EVENT_FOREIGN | rows[i].before);
        struct event after = event_of(EVENT_COPY_OUT, EVENT_FOREIGN | rows[i].after);
        traps.host_traps.state = rows[i].traps;
        subjects_note(&subjects, &before);
        subjects_note(&subjects, &traps);
        subjects_note(&subjects, &after);
        if (subject_was_seen(&subjects, SUBJECT_HOST_READS) != rows[i].seen ||
            subject_was_missed(&subjects, SUBJECT_HOST_READS) == rows[i].seen)
            fail_msg("row %zu: found %x and %x", i, subjects.seen, subjects.missed);
    }
    /* Traps that go before anything is read are nothing that was missed. */
    struct analyze_subjects none = { 0, 0 };
    struct event refused = event_of(EVENT_HOST_TRAPS, EVENT_FOREIGN);
    refused.host_traps.state = EVENT_TRAPS_REFUSED;
    subjects_note(&none, &refused);
    assert_false(subject_was_missed(&none, SUBJECT_HOST_READS));
}

/* One copy that was watched in samples is enough: the subject was not looked at. The verdict has
 * what all recordings have. */
static void a_part_is_not_the_whole(void **state)
{
    (void)state;
    struct analysis one = { .root = -1,
                            .defect = -1,
                            .subjects = { BIT(COPIES) | BIT(SOURCES), 0 } };
    struct analysis two = { .root = -1,
                            .defect = -1,
                            .subjects = { BIT(COPIES) | BIT(SOURCES), BIT(SOURCES) } };
    const struct analysis *both[] = { &one, &two };
    struct verdict_input input = { .analyses = both, .analysis_count = 1 };
    struct audit_verdict verdict;
    verdict_decide(&input, &verdict);
    assert_true(subject_was_seen(&verdict.subjects, SUBJECT_SOURCES));
    assert_false(subject_was_missed(&verdict.subjects, SUBJECT_SOURCES));
    input.analysis_count = 2;
    verdict_decide(&input, &verdict);
    assert_false(subject_was_seen(&verdict.subjects, SUBJECT_SOURCES));
    assert_true(subject_was_missed(&verdict.subjects, SUBJECT_SOURCES));
    assert_true(subject_was_seen(&verdict.subjects, SUBJECT_COPIES));
    assert_false(subject_was_seen(&verdict.subjects, SUBJECT_KERNELS));
    assert_false(subject_was_missed(&verdict.subjects, SUBJECT_KERNELS));
}

/* A dead process's checkpoint says what was looked at before the ring. */
static void a_checkpoint_keeps_them(void **state)
{
    (void)state;
    static uint8_t bytes[FLIGHT_CHECKPOINT_BYTES];
    struct script script, second;
    begin(&script);
    kernel(&script, A, B);
    size_t count = analyzer_save(script.analyzer, bytes, sizeof(bytes));
    script_open(&second, AUDIT_LOG);
    assert_true(analyzer_restore(second.analyzer, bytes, count));
    const struct analyze_subjects *before = &analyzer_result(script.analyzer)->subjects;
    const struct analyze_subjects *after = &analyzer_result(second.analyzer)->subjects;
    assert_int_equal(before->seen, BIT(ORDER) | BIT(LIFETIMES));
    assert_int_equal(before->missed, BIT(KERNELS));
    assert_memory_equal(before, after, sizeof(*before));
    /* An older one has none: what stands before them has this size. */
    const size_t at = 99 + 16 * HYPOTHESIS_COUNT;
    assert_int_equal(bytes[3], '8');
    bytes[3] = '7';
    memmove(bytes + at, bytes + at + 8, count - at - 8);
    assert_true(analyzer_restore(second.analyzer, bytes, count - 8));
    assert_int_equal(analyzer_result(second.analyzer)->subjects.missed, 0);
    assert_int_equal(analyzer_result(second.analyzer)->event_count, 4);
    script_finish(&second, NULL);
    script_close(&second);
    script_finish(&script, NULL);
    script_close(&script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_event_adds_its_subjects),
        cmocka_unit_test(host_reads_are_seen_while_all_are_watched),
        cmocka_unit_test(a_part_is_not_the_whole),
        cmocka_unit_test(a_checkpoint_keeps_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
