/* session_prompt_test.c - what a session does with prompts: it gives their logits where a request
 * wants them, and does not run again what a sequence already holds.
 *
 *     session_prompt_test [DEVICE]      the host without */
#include "session_stage.h"

struct given {
    uint32_t count, first_position;
    float rows[8][VOCABULARY];
};

static enum status keep_logits(void *context, uint64_t request, uint32_t position,
                               const float *logits, struct error *err)
{
    struct given *given = context;
    (void)request;
    (void)err;
    assert_true(given->count < COUNT_OF(given->rows));
    if (given->count == 0)
        given->first_position = position;
    assert_int_equal(position, given->first_position + given->count);
    memcpy(given->rows[given->count++], logits, sizeof(given->rows[0]));
    return STATUS_OK;
}

/* The logits of a prompt, in order, from more batches than one; then those of the text. */
static void test_prompt_logits(void **state)
{
    (void)state;
    static struct given given;
    struct session_request request = greedy_of(2);
    struct engine_token tokens[5];
    float logits[VOCABULARY];
    struct stage stage;
    stage_begin(&stage);
    given = (struct given){ 0 };
    request.logits = keep_logits;
    request.logits_context = &given;
    request.prompt_logits = 4; /* of 5; an engine of 3 sequences gives 3 rows at a time */
    request.token_limit = 0;
    stage_open_session(&stage, NULL);
    stage_add(&stage, &request);
    stage_run(&stage);
    assert_int_equal(stage.written[0].reason, SESSION_LENGTH);
    assert_int_equal(stage.written[0].count, 0);
    assert_int_equal(given.count, 4);
    assert_int_equal(given.first_position, 1);
    stage_close_session(&stage);
    for (uint32_t last = 1; last < 5 && lab_is_host(); last++) {
        engine_restart(stage.scene.engine);
        for (uint32_t i = 0; i <= last; i++)
            tokens[i] = (struct engine_token){ (int32_t)prompts[2][i], 0, i == last };
        CHECK_OK(engine_forward(stage.scene.engine, tokens, last + 1, &stage.scene.err),
                 &stage.scene.err);
        CHECK_OK(engine_logits(stage.scene.engine, 0, logits, &stage.scene.err), &stage.scene.err);
        assert_memory_equal(given.rows[last - 1], logits, sizeof(logits));
    }
    /* Tokens are written after it, and their logits come too. */
    given.count = 0;
    request.token_limit = 3;
    stage_open_session(&stage, NULL);
    stage_add(&stage, &request);
    stage_run(&stage);
    assert_int_equal(stage.written[0].count, 3);
    assert_int_equal(given.count, 4 + 2); /* the prompt's last row chose the first token */
    stage_close_session(&stage);
    stage_end(&stage);
}

/* What a sequence holds of a prompt is not read again, and changes nothing. */
static void test_shared_prompts(void **state)
{
    (void)state;
    const struct session_options options = { .share_from = 3 };
    uint32_t ids[5] = { prompts[2][0], prompts[2][1], prompts[2][2], prompts[2][3], 400 };
    struct session_request requests[3] = { greedy_of(2), greedy_of(2), greedy_of(2) };
    struct written alone[3];
    struct stage stage;
    stage_begin(&stage);
    requests[1].ids = ids; /* the first four are equal */
    write_alone(&stage, requests, 3, alone);
    stage_open_session(&stage, &options);
    for (uint32_t i = 0; i < 3; i++)
        stage_add(&stage, &requests[i]);
    stage_run(&stage);
    assert_int_equal(session_timing(stage.session)->prompt_tokens, 5 + 1 + 1);
    for (uint32_t i = 0; i < 3; i++)
        check_written_same(&stage.written[i], &alone[i]);
    /* Also a sequence whose request has ended, and which the new one takes over. */
    stage_add(&stage, &requests[1]);
    stage_run(&stage);
    assert_int_equal(session_timing(stage.session)->prompt_tokens, 5 + 1 + 1 + 1);
    check_written_same(&stage.written[3], &alone[1]);
    stage_close_session(&stage);
    /* Without it only whole prompts are shared. */
    stage_open_session(&stage, NULL);
    for (uint32_t i = 0; i < 3; i++)
        stage_add(&stage, &requests[i]);
    stage_run(&stage);
    assert_int_equal(session_timing(stage.session)->prompt_tokens, 5 + 5 + 1);
    stage_close_session(&stage);
    written_release(alone, 3);
    stage_end(&stage);
}

int main(int argument_count, char **arguments)
{
    if (!lab_choose(argument_count, arguments))
        return LAB_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prompt_logits),
        cmocka_unit_test(test_shared_prompts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
