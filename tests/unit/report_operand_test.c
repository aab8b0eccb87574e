/* report_operand_test.c - the operands and buffers that a finding names: the operand that a fault
 * missed, the name that a contract gives it, the buffers near the address. */
#include "report_finding.h"

/* ---- Where a fault missed -------------------------------------------------------------------- */

/* One launch of two operands, WEIGHTS and Y, that faults at the address. */
static void check_miss(uint64_t address, const char *buffer, const char *english,
                       const char *spanish)
{
    struct script script;
    struct text text;
    begin(&script, AUDIT_LOG);
    struct event rope = script_launch_event(&script, MAIN, "rope");
    script_operand(&rope, WEIGHTS, 0, BUFFER_BYTES, EVENT_READ);
    script_operand(&rope, Y, 0, 64, EVENT_UPDATE);
    uint64_t launch = script_add(&script, &rope);
    script_remark(&script, EVENT_FAULT, launch, EVENT_NO_OPERAND, 0, 1, address);
    const struct analysis *analysis = script_finish(&script, NULL);
    CHECK_FINDING(analysis, HYPOTHESIS_KERNEL_FAULT, launch);
    const struct finding *finding = find_finding(analysis, HYPOTHESIS_KERNEL_FAULT);
    assert_string_equal(finding->cause.buffer, buffer);
    assert_int_equal(finding->cause.address, address);
    text_init(&text);
    report_finding_describe(finding, REPORT_ENGLISH, &text);
    check_contains("english", text_get(&text), english);
    text_clear(&text);
    report_finding_describe(finding, REPORT_SPANISH, &text);
    check_contains("spanish", text_get(&text), spanish);
    text_release(&text);
    script_close(&script);
}

/* The address is compared with every operand, not against the nearest memory alone. */
static void fault_tells_which_operand_it_missed(void **state)
{
    (void)state;
    check_miss(BUFFER_ADDRESS(Y) + 100 - (UINT64_C(1) << 32), "y",
               "access, 2^32 bytes below operand 1 (buffer y): an offset that wrapped at 32 bits?",
               "2^32 bytes por debajo del operando 1 (búfer y): ¿un desplazamiento");
    check_miss(BUFFER_ADDRESS(WEIGHTS) + BUFFER_BYTES - 1 + (UINT64_C(3) << 32), "blk.weight",
               "access, 3 x 2^32 bytes above operand 0 (buffer blk.weight): an offset that wrapped",
               "3 x 2^32 bytes por encima del operando 0 (búfer blk.weight)");
    check_miss(BUFFER_ADDRESS(Y) + BUFFER_BYTES, "y",
               "access, 1 byte past the end of operand 1 (buffer y);",
               "1 byte más allá del final del operando 1 (búfer y);");
    check_miss(BUFFER_ADDRESS(WEIGHTS) - 5, "blk.weight",
               "access, 5 bytes before the start of operand 0 (buffer blk.weight);",
               "5 bytes antes del inicio del operando 0 (búfer blk.weight);");
    /* Too far for a wrap: no operand is blamed for it. */
    check_miss(BUFFER_ADDRESS(Y) + (UINT64_C(1) << 44), "", "illegal memory access; address",
               "acceso ilegal a memoria; dirección");
}

/* ---- Names of operands ---------------------------------------------------------------------- */

static const char *name_of_operand(const char *op, uint8_t operand)
{
    return strcmp(op, "rope") == 0 && operand == 1 ? "positions" : NULL;
}

/* Contracts name operands; whoever has the events analysed gives the names. */
static void operands_get_their_names(void **state)
{
    (void)state;
    for (int known = 0; known < 2; known++) {
        struct script script = { .layer = 2, .step = 3, .tensor = "", .ns = 1000 };
        struct analyze_options options = { .level = AUDIT_LOG,
                                           .operand_name = known ? name_of_operand : NULL };
        CHECK_OK(analyzer_create(&options, &script.analyzer, &script.err), &script.err);
        script_buffer(&script, 3, "y", true);
        script_call(&script, EVENT_STREAM_CREATE, 1, 0);
        struct event launch = script_launch_event(&script, 1, "rope");
        script_operand(&launch, 3, 0, 64, EVENT_UPDATE);
        script_operand(&launch, 3, 64, 64, EVENT_READ);
        uint64_t id = script_add(&script, &launch);
        script_remark(&script, EVENT_TRAP, id, 1, 1024, 5000, 0);
        const struct analysis *analysis = script_finish(&script, NULL);
        assert_int_equal(analysis->root, 0);
        assert_string_equal(analysis->findings[0].cause.operand_name, known ? "positions" : "");
        check_headline(&analysis->findings[0],
                       known ? "rope, layer 2, step 3 read index 5000 (bound 1024) from operand "
                               "positions (buffer y)"
                             : "rope, layer 2, step 3 read index 5000 (bound 1024) from operand 1 "
                               "(buffer y)",
                       known
                           ? "rope, capa 2, paso 3 leyó el índice 5000 (límite 1024) del operando "
                             "positions (búfer y)"
                           : "rope, capa 2, paso 3 leyó el índice 5000 (límite 1024) del operando "
                             "1 (búfer y)");
        script_close(&script);
    }
}

/* ---- Neighbours ----------------------------------------------------------------------------- */

/* A buffer far from the address says nothing about it. */
static void far_neighbours_are_not_named(void **state)
{
    (void)state;
    struct finding finding = { .hypothesis = HYPOTHESIS_KERNEL_FAULT,
                               .cause = rope_place(),
                               .near = { .known = true,
                                         .address = 4096,
                                         .before = { .bytes = 1, .distance = 1, .name = "close" },
                                         .after = { .bytes = 1,
                                                    .distance = -(int64_t)ANALYZE_NEAR_BYTES - 1,
                                                    .name = "distant" } } };
    struct text text;
    text_init(&text);
    report_finding_describe(&finding, REPORT_ENGLISH, &text);
    check_contains("near", text_get(&text), "past the end of close by 1 byte");
    assert_null(strstr(text_get(&text), "distant"));
    finding.near.after.distance++;
    text_clear(&text);
    report_finding_describe(&finding, REPORT_ENGLISH, &text);
    check_contains("near", text_get(&text), "before the start of distant by 4194304 bytes");
    text_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fault_tells_which_operand_it_missed),
        cmocka_unit_test(operands_get_their_names),
        cmocka_unit_test(far_neighbours_are_not_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
