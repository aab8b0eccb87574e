/* analyze_hardware_test.c - which launch of a foreign program a GPU core dump is about: one that
 * agrees in name, shape, arguments and number, or several, or none. */
#include "analyze_foreign.h"

#include <string.h>

/* ---- One launch ----------------------------------------------------------------------------- */

static const uint8_t arguments[24] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0xEE, 0xEE };

static struct hardware_grid grid_of(void)
{
    return (struct hardware_grid){ .kernel = "kernel",
                                   .number = 5,
                                   .grid = { 4, 2, 1 },
                                   .block = { 64, 1, 1 },
                                   .arguments = arguments,
                                   .argument_bytes = sizeof(arguments) };
}

static struct flight_launch launch_of(uint64_t least, uint64_t most)
{
    const struct flight_piece pieces[] = { { arguments, 12 }, { arguments + 16, 8 } };
    return (struct flight_launch){ .context = 1,
                                   .number_least = least,
                                   .number_most = most,
                                   .grid = { 4, 2, 1 },
                                   .block = { 64, 1, 1 },
                                   .argument_hash = flight_hash_pieces(pieces, 2),
                                   .range_count = 2,
                                   .argument_bytes = 24,
                                   .ranges = { { 0, 12 }, { 16, 8 } } };
}

enum change {
    UNCHANGED,
    OTHER_NAME,
    UNNAMED_DUMP,
    UNNAMED_LAUNCH,
    OTHER_GRID,
    OTHER_BLOCK,
    OTHER_BYTES,
    OTHER_GAP,
    NO_BYTES,
    FEWER_BYTES,
    NO_RANGES,
    NO_ARGUMENTS, /* the kernel takes none, and the dump has none */
    NUMBER_BEFORE,
    NUMBER_AFTER,
    NUMBER_IN_RANGE,
    NO_NUMBER,
    IN_GRAPH,
    BY_DEVICE
};

static void one_launch_is_compared(void **state)
{
    (void)state;
    static const struct {
        enum change change;
        enum hardware_match match;
    } rows[] = {
        { UNCHANGED, HARDWARE_SAME },         { OTHER_NAME, HARDWARE_DIFFERS },
        { UNNAMED_DUMP, HARDWARE_PARTLY },    { UNNAMED_LAUNCH, HARDWARE_PARTLY },
        { OTHER_GRID, HARDWARE_DIFFERS },     { OTHER_BLOCK, HARDWARE_DIFFERS },
        { OTHER_BYTES, HARDWARE_DIFFERS },    { OTHER_GAP, HARDWARE_SAME },
        { NO_BYTES, HARDWARE_PARTLY },        { FEWER_BYTES, HARDWARE_DIFFERS },
        { NO_RANGES, HARDWARE_PARTLY },       { NO_ARGUMENTS, HARDWARE_SAME },
        { NUMBER_BEFORE, HARDWARE_DIFFERS },  { NUMBER_AFTER, HARDWARE_DIFFERS },
        { NUMBER_IN_RANGE, HARDWARE_AGREES }, { NO_NUMBER, HARDWARE_PARTLY },
        { IN_GRAPH, HARDWARE_AGREES },        { BY_DEVICE, HARDWARE_DIFFERS },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        enum change change = rows[i].change;
        struct hardware_grid grid = grid_of();
        uint64_t least = change == NUMBER_BEFORE ? 6 : change == NUMBER_AFTER ? 3 : 5;
        uint64_t most = change == NUMBER_AFTER ? 4 : change == NUMBER_IN_RANGE ? 9 : least;
        struct flight_launch launch = launch_of(least, most);
        uint8_t bytes[sizeof(arguments)];
        memcpy(bytes, arguments, sizeof(bytes));
        bytes[17] ^= change == OTHER_BYTES;
        bytes[13] ^= change == OTHER_GAP;
        grid.arguments = change == NO_BYTES || change == NO_ARGUMENTS ? NULL : bytes;
        grid.argument_bytes = change == FEWER_BYTES ? 20 : grid.arguments ? sizeof(bytes) : 0;
        grid.kernel[0] = change == UNNAMED_DUMP ? '\0' : 'k';
        grid.grid[1] += change == OTHER_GRID;
        grid.block[0] += change == OTHER_BLOCK;
        grid.by_device = change == BY_DEVICE;
        if (change == NO_RANGES)
            launch.range_count = FLIGHT_RANGES_UNKNOWN;
        if (change == NO_ARGUMENTS) {
            launch.range_count = 0;
            launch.argument_hash = flight_hash_pieces(NULL, 0);
        }
        if (change == NO_NUMBER)
            launch.number_least = launch.number_most = 0;
        const char *name = change == OTHER_NAME       ? "kernel_of_another"
                           : change == UNNAMED_LAUNCH ? ""
                                                      : "kernel";
        enum hardware_match match = hardware_compare(&grid, &launch, name, change == IN_GRAPH);
        if (match != rows[i].match)
            fail_msg("row %zu: expected %d, found %d", i, (int)rows[i].match, (int)match);
    }
}

/* ---- All that may have run ------------------------------------------------------------------ */

/* What was recorded of the launches, by their event. */
struct recorded {
    uint64_t event_id;
    struct flight_launch launch;
};
static struct recorded recorded[16];
static size_t recorded_count;
static struct hardware_evidence evidence;

static bool find_launch(void *context, const struct event *event, struct flight_launch *ret_launch,
                        char ret_name[FLIGHT_NAME_BYTES])
{
    (void)context;
    for (size_t i = 0; i < recorded_count; i++)
        if (recorded[i].event_id == event->id) {
            *ret_launch = recorded[i].launch;
            memcpy(ret_name, "kernel", sizeof("kernel"));
            return true;
        }
    return false;
}

static uint64_t launch(struct script *script, const struct flight_launch *facts)
{
    uint64_t id = kernel(script, A, A);
    recorded[recorded_count++] = (struct recorded){ id, *facts };
    return id;
}

static void open_dump(struct script *script, size_t grids)
{
    begin(script);
    recorded_count = 0;
    evidence = (struct hardware_evidence){ .grid_count = grids, .launch = find_launch };
    for (size_t i = 0; i < grids; i++) {
        evidence.grids[i] = grid_of();
        evidence.grids[i].number += i;
    }
}

/* The fault is reported, or the program ends before it is. */
static const struct finding *the_fault(struct script *script, bool reported)
{
    if (reported)
        call(script, EVENT_FAULT, EVENT_NO_STREAM, 0, 0);
    analyzer_set_hardware(script->analyzer, &evidence);
    const struct analysis *analysis = script_finish(script, NULL);
    assert_int_equal(analysis->finding_count, 1);
    assert_int_equal(analysis->findings[0].hypothesis, HYPOTHESIS_KERNEL_FAULT);
    assert_non_null(analysis->findings[0].hardware);
    return &analysis->findings[0];
}

static void one_is_named(void **state)
{
    (void)state;
    for (int reported = 0; reported < 2; reported++) {
        struct script script;
        open_dump(&script, 1);
        struct flight_launch other = launch_of(4, 4), right = launch_of(5, 9);
        other.grid[0] = 77;
        launch(&script, &other);
        uint64_t id = launch(&script, &right);
        launch(&script, &other);
        const struct finding *finding = the_fault(&script, reported);
        assert_int_equal(finding->certainty, FINDING_DIRECT);
        assert_true(finding_is_culprit(finding));
        assert_int_equal(finding->cause.event_id, id);
        assert_int_equal(finding->pointer_count, 1);
        assert_int_equal(finding->pointers[0].buffer_bytes, BUFFER_BYTES);
        assert_true(finding->pointers[0].created_id != 0);
        script_close(&script);
    }
}

/* Equal launches: the number decides if one can have no other, and all are of one context. */
static void equal_launches(void **state)
{
    (void)state;
    static const struct {
        uint64_t least[3], most[3];
        uint64_t contexts[3];
        uint32_t candidates, first;
    } rows[] = {
        { { 4, 5, 6 }, { 4, 5, 6 }, { 1, 1, 1 }, 1, 1 },
        { { 4, 5, 6 }, { 5, 6, 7 }, { 1, 1, 1 }, 2, 0 },
        { { 4, 5, 6 }, { 9, 5, 9 }, { 1, 1, 1 }, 1, 1 },
        { { 4, 5, 4 }, { 4, 5, 5 }, { 1, 1, 2 }, 2, 1 },
        { { 5, 9, 5 }, { 5, 9, 5 }, { 1, 1, 2 }, 2, 0 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct script script;
        uint64_t ids[3];
        open_dump(&script, 1);
        for (size_t j = 0; j < 3; j++) {
            struct flight_launch facts = launch_of(rows[i].least[j], rows[i].most[j]);
            facts.context = rows[i].contexts[j];
            ids[j] = launch(&script, &facts);
        }
        const struct finding *finding = the_fault(&script, true);
        assert_int_equal(finding->certainty, FINDING_DIRECT);
        assert_int_equal(finding->candidate_count, rows[i].candidates);
        assert_int_equal(finding->cause.event_id, ids[rows[i].first]);
        assert_int_equal(finding_is_culprit(finding), rows[i].candidates == 1);
        assert_int_equal(finding->reason,
                         rows[i].candidates == 1 ? REASON_NONE : REASON_DUMP_SEVERAL);
        script_close(&script);
    }
}

static void nothing_agrees(void **state)
{
    (void)state;
    struct script script;
    open_dump(&script, 1);
    struct flight_launch other = launch_of(5, 5);
    other.argument_hash++;
    launch(&script, &other);
    const struct finding *finding = the_fault(&script, true);
    /* Alone in the window, and still not what the dump shows. */
    assert_int_equal(finding->certainty, FINDING_POSSIBLE);
    assert_int_equal(finding->candidate_count, 1);
    assert_int_equal(finding->reason, REASON_DUMP_DIFFERS);
    assert_int_equal(finding->pointer_count, 0);
    script_close(&script);
}

static void not_all_is_known(void **state)
{
    (void)state;
    struct script script;
    open_dump(&script, 1);
    struct flight_launch partly = launch_of(5, 5);
    partly.range_count = FLIGHT_RANGES_UNKNOWN;
    launch(&script, &partly);
    kernel(&script, B, B); /* of which nothing was kept */
    const struct finding *finding = the_fault(&script, true);
    assert_int_equal(finding->certainty, FINDING_POSSIBLE);
    assert_int_equal(finding->candidate_count, 2);
    assert_int_equal(finding->reason, REASON_DUMP_PARTLY);
    script_close(&script);
}

/* What was waited for did not fault, whatever it looks like. */
static void what_was_waited_for(void **state)
{
    (void)state;
    struct script script;
    open_dump(&script, 1);
    struct flight_launch facts = launch_of(1, UINT64_MAX);
    launch(&script, &facts);
    call(&script, EVENT_STREAM_SYNC, A, 0, 0);
    uint64_t id = launch(&script, &facts);
    const struct finding *finding = the_fault(&script, true);
    assert_true(finding_is_culprit(finding));
    assert_int_equal(finding->cause.event_id, id);
    script_close(&script);
}

/* Two grids failed: both launches are named, neither is the culprit. */
static void two_grids(void **state)
{
    (void)state;
    struct script script;
    open_dump(&script, 2);
    struct flight_launch first = launch_of(5, 5), second = launch_of(6, 6);
    uint64_t ids[] = { launch(&script, &first), launch(&script, &second) };
    const struct finding *finding = the_fault(&script, true);
    assert_int_equal(finding->certainty, FINDING_DIRECT);
    assert_false(finding_is_culprit(finding));
    assert_int_equal(finding->candidate_count, 2);
    assert_int_equal(finding->candidates[0].event_id, ids[0]);
    assert_int_equal(finding->candidates[1].event_id, ids[1]);
    assert_int_equal(finding->reason, REASON_DUMP_GRIDS);
    script_close(&script);
}

/* Records are missing: another launch may agree too, unless the number is one launch's alone. */
static void records_are_missing(void **state)
{
    (void)state;
    for (int exact = 0; exact < 2; exact++) {
        struct script script;
        open_dump(&script, 1);
        script.id += 3;
        struct flight_launch facts = launch_of(5, exact ? 5 : 6);
        uint64_t id = launch(&script, &facts);
        const struct finding *finding = the_fault(&script, true);
        assert_int_equal(finding->cause.event_id, id);
        assert_int_equal(finding->certainty, exact ? FINDING_DIRECT : FINDING_POSSIBLE);
        assert_int_equal(finding->reason, exact ? REASON_NONE : REASON_GAPS);
        script_close(&script);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_launch_is_compared),
        cmocka_unit_test(one_is_named),
        cmocka_unit_test(equal_launches),
        cmocka_unit_test(nothing_agrees),
        cmocka_unit_test(not_all_is_known),
        cmocka_unit_test(what_was_waited_for),
        cmocka_unit_test(two_grids),
        cmocka_unit_test(records_are_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
