/* session_test.c - what a session promises: a request writes the same tokens whatever other
 * requests run, join, leave or fail. "Alone" is always a session with that request only.
 *
 *     session_test [DEVICE]      the host without; on a GPU steps are queued ahead */
#include "ops_lab.h"

#include "engine_scene.h"
#include "session/session.h"

#define REQUESTS 6u
#define TOKENS 32u
#define SEQUENCES 3u
#define CONTEXT 32u
#define VOCABULARY 1024u /* room for the words of a tokenizer */

/* What a request wrote, by its id. */
struct written {
    uint32_t ids[TOKENS];
    uint32_t count;
    uint32_t read_count, prompt_count; /* of the last progress */
    struct text text;
    enum session_reason reason; /* SESSION_RUNNING until its end */
    struct error error;
};

struct stage {
    struct scene scene;
    struct tokenizer *tokenizer;
    struct session *session;
    struct written written[REQUESTS];
};

static void open_stage(struct stage *stage, const struct engine_options *engine_options)
{
    struct device_options device_options = { .guards = true, .poison = true, .thread_count = 2 };
    struct scene *scene = &stage->scene;
    CHECK_OK(all_open(lab_device, &device_options, &scene->device, &scene->err), &scene->err);
    CHECK_OK(ops_load(&scene->ops, scene->device, CPU_PATH_COUNT, &scene->err), &scene->err);
    CHECK_OK(engine_open(&scene->ops, scene->file, &scene->report, engine_options, &scene->engine,
                         &scene->err),
             &scene->err);
    CHECK_OK(tokenizer_create(scene->file, &stage->tokenizer, &scene->err), &scene->err);
}

static void write_stage(struct stage *stage)
{
    struct model_shape shape = scene_shape(MODEL_ARCH_LLAMA);
    shape.vocab_size = VOCABULARY;
    shape.block_count = lab_is_host() ? 2 : 1; /* an emulated GPU takes its time */
    *stage = (struct stage){ 0 };
    scene_write(&stage->scene, &shape, CONVERT_F32);
}

static void begin(struct stage *stage)
{
    const struct engine_options options = { .kv_dtype = DTYPE_F16,
                                            .context = CONTEXT,
                                            .sequence_limit = SEQUENCES };
    write_stage(stage);
    open_stage(stage, &options);
}

/* Forgets what was written. */
static void clear(struct stage *stage)
{
    for (size_t i = 0; i < REQUESTS; i++)
        text_release(&stage->written[i].text);
    memset(stage->written, 0, sizeof(stage->written));
}

static void end(struct stage *stage)
{
    clear(stage);
    assert_int_equal(device_trap_count(stage->scene.device), 0);
    tokenizer_destroy(stage->tokenizer);
    scene_stop(&stage->scene); /* nothing is left on the device */
    scene_end(&stage->scene);
}

static void open_session(struct stage *stage, const struct session_options *options)
{
    engine_restart(stage->scene.engine);
    clear(stage);
    CHECK_OK(session_create(stage->scene.engine, stage->tokenizer, options, &stage->session,
                            &stage->scene.err),
             &stage->scene.err);
}

/* The engine is free for the next session. */
static void close_session(struct stage *stage)
{
    session_destroy(stage->session);
    assert_int_equal(engine_argmax_pending(stage->scene.engine), 0);
}

static uint64_t add(struct stage *stage, const struct session_request *request)
{
    uint64_t id;
    CHECK_OK(session_add(stage->session, request, &id, &stage->scene.err), &stage->scene.err);
    assert_true(id < REQUESTS);
    return id;
}

static void note(struct written *written, const struct session_event *event)
{
    assert_int_equal(written->reason, SESSION_RUNNING); /* the end is the last event */
    switch (event->kind) {
    case SESSION_PROMPT:
        assert_true(event->prompt.done >= written->read_count && written->count == 0);
        written->read_count = event->prompt.done;
        written->prompt_count = event->prompt.total;
        break;
    case SESSION_TOKEN:
        assert_int_equal(event->token.step, written->count);
        assert_true(written->count < TOKENS);
        written->ids[written->count++] = event->token.id;
        text_add_bytes(&written->text, event->token.text.bytes, event->token.text.length);
        break;
    case SESSION_END:
        written->reason = event->end.reason;
        assert_int_equal(event->end.token_count, written->count);
        assert_int_equal(event->end.error != NULL, event->end.reason == SESSION_FAILED);
        if (event->end.error)
            written->error = *event->end.error;
        break;
    }
}

static void take_events(struct stage *stage)
{
    struct session_event event;
    while (session_take(stage->session, &event))
        note(&stage->written[event.request], &event);
}

static void step(struct stage *stage)
{
    CHECK_OK(session_step(stage->session, &stage->scene.err), &stage->scene.err);
    take_events(stage);
}

/* Until the request has written so many tokens. */
static void step_until(struct stage *stage, uint64_t id, uint32_t count)
{
    while (stage->written[id].count < count) {
        assert_int_equal(stage->written[id].reason, SESSION_RUNNING);
        step(stage);
    }
}

static void run_all(struct stage *stage)
{
    while (session_active_count(stage->session))
        step(stage);
}

static const uint32_t prompts[REQUESTS][5] = { { 7, 300, 45, 99, 12 },  { 12, 511, 3, 64, 8 },
                                               { 700, 8, 9, 10, 31 },   { 31, 31, 200, 5, 900 },
                                               { 640, 2, 17, 400, 77 }, { 55, 56, 57, 58, 59 } };

/* Request number i: every setting is another one than its neighbours'. */
static struct session_request request_of(uint32_t i)
{
    static const float temperatures[] = { 0, 0.7f, 0, 1.2f, 0, 0.9f };
    static const float penalties[] = { 1, 1, 1.3f, 1, 1, 1.1f };
    return (struct session_request){ .ids = prompts[i],
                                     .id_count = 3 + i % 3,
                                     .token_limit = 6 + i,
                                     .ignore_end = true,
                                     .sampling = { .temperature = temperatures[i],
                                                   .top_k = i % 2 ? 40 : 0,
                                                   .top_p = 1,
                                                   .repeat_penalty = penalties[i],
                                                   .repeat_last_n = 16,
                                                   .seed = 100 + i } };
}

/* As request_of, but only the likeliest token is wanted: steps can be queued ahead. */
static struct session_request greedy_of(uint32_t i)
{
    struct session_request request = request_of(i);
    request.sampling = (struct sampler_settings){ .top_p = 1, .repeat_penalty = 1 };
    return request;
}

/* What each request writes alone. */
static void write_alone(struct stage *stage, const struct session_request *requests, uint32_t count,
                        struct written *written)
{
    for (uint32_t i = 0; i < count; i++) {
        open_session(stage, NULL);
        add(stage, &requests[i]);
        run_all(stage);
        written[i] = stage->written[0];
        stage->written[0].text = (struct text){ 0 };
        close_session(stage);
        assert_int_equal(written[i].reason, SESSION_LENGTH);
        assert_int_equal(written[i].count, requests[i].token_limit);
    }
}

static void release(struct written *written, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        text_release(&written[i].text);
}

static void check_same(const struct written *found, const struct written *wanted)
{
    assert_int_equal(found->reason, wanted->reason);
    assert_int_equal(found->count, wanted->count);
    assert_memory_equal(found->ids, wanted->ids, wanted->count * sizeof(uint32_t));
    assert_string_equal(text_get(&found->text), text_get(&wanted->text));
}

/* Cut short: as far as it came. */
static void check_begins(const struct written *found, const struct written *wanted)
{
    assert_true(found->count <= wanted->count);
    assert_memory_equal(found->ids, wanted->ids, found->count * sizeof(uint32_t));
}

/* ---- Joining -------------------------------------------------------------------------------- */

/* Requests with different temperatures, seeds, penalties and limits in the same batches; each joins
 * when the one before has written two tokens. */
static void test_joining(void **state)
{
    (void)state;
    static const struct session_options options[] = {
        { 0 },
        { .prompt_chunk = 2 },
        { .mix_prompts = true },
        { .mix_prompts = true, .prompt_chunk = 2, .wait_for_chunks = true }
    };
    struct session_request requests[SEQUENCES];
    struct written alone[SEQUENCES];
    struct stage stage;
    begin(&stage);
    for (uint32_t i = 0; i < SEQUENCES; i++) {
        requests[i] = request_of(i);
        requests[i].token_limit = 12 + i;
    }
    write_alone(&stage, requests, SEQUENCES, alone);
    for (size_t o = 0; o < (lab_is_host() ? COUNT_OF(options) : 1); o++) {
        open_session(&stage, &options[o]);
        for (uint32_t i = 0; i < SEQUENCES; i++) {
            assert_int_equal(add(&stage, &requests[i]), i);
            step_until(&stage, i, 2);
        }
        assert_int_equal(session_active_count(stage.session), SEQUENCES); /* side by side */
        run_all(&stage);
        for (uint32_t i = 0; i < SEQUENCES; i++)
            check_same(&stage.written[i], &alone[i]);
        close_session(&stage);
    }
    release(alone, SEQUENCES);
    end(&stage);
}

/* Twice as many requests as sequences: the others wait, and come in the order they were added. */
static void test_waiting(void **state)
{
    (void)state;
    struct session_request requests[REQUESTS];
    struct written alone[REQUESTS];
    struct stage stage;
    begin(&stage);
    for (uint32_t i = 0; i < REQUESTS; i++)
        requests[i] = request_of(i);
    write_alone(&stage, requests, REQUESTS, alone);
    for (int mixes = 0; mixes < (lab_is_host() ? 2 : 1); mixes++) {
        const struct session_options options = { .mix_prompts = mixes };
        open_session(&stage, &options);
        for (uint32_t i = 0; i < REQUESTS; i++)
            add(&stage, &requests[i]);
        step_until(&stage, SEQUENCES - 1, 1);
        assert_int_equal(stage.written[SEQUENCES].prompt_count, 0); /* it was not begun */
        assert_int_equal(session_active_count(stage.session), REQUESTS);
        step_until(&stage, SEQUENCES, 1);
        assert_int_equal(stage.written[0].reason, SESSION_LENGTH); /* whose sequence it has */
        run_all(&stage);
        for (uint32_t i = 0; i < REQUESTS; i++)
            check_same(&stage.written[i], &alone[i]);
        close_session(&stage);
    }
    release(alone, REQUESTS);
    end(&stage);
}

/* ---- Cancelling ----------------------------------------------------------------------------- */

static void test_cancelling(void **state)
{
    (void)state;
    struct session_request requests[REQUESTS];
    struct written alone[REQUESTS];
    struct stage stage;
    begin(&stage);
    for (uint32_t i = 0; i < REQUESTS; i++)
        requests[i] = request_of(i);
    write_alone(&stage, requests, 4, alone);
    open_session(&stage, NULL);
    for (uint32_t i = 0; i < 5; i++)
        add(&stage, &requests[i]);
    step_until(&stage, 1, 3);
    assert_true(session_cancel(stage.session, 1)); /* it runs */
    assert_true(session_cancel(stage.session, 4)); /* it waits */
    assert_false(session_cancel(stage.session, 1));
    assert_false(session_cancel(stage.session, 77));
    assert_int_equal(session_active_count(stage.session), 3);
    run_all(&stage);
    assert_int_equal(stage.written[1].reason, SESSION_CANCELLED);
    assert_int_equal(stage.written[1].count, 3);
    check_begins(&stage.written[1], &alone[1]);
    assert_int_equal(stage.written[4].reason, SESSION_CANCELLED);
    assert_int_equal(stage.written[4].count, 0);
    for (uint32_t i = 0; i < 4; i++)
        if (i != 1)
            check_same(&stage.written[i], &alone[i]);
    close_session(&stage);
    /* In the middle of its prompt; its sequence goes to the next one. */
    const struct session_options chunks = { .prompt_chunk = 2, .wait_for_chunks = true };
    open_session(&stage, &chunks);
    add(&stage, &requests[2]);
    step(&stage);
    step(&stage);
    assert_int_equal(stage.written[0].read_count, 2);
    assert_true(session_cancel(stage.session, 0));
    add(&stage, &requests[0]);
    run_all(&stage);
    assert_int_equal(stage.written[0].reason, SESSION_CANCELLED);
    check_same(&stage.written[1], &alone[0]);
    close_session(&stage);
    release(alone, 4);
    end(&stage);
}

/* ---- With a step queued ahead --------------------------------------------------------------- */

/* All are greedy, so that on a GPU there is a step ahead of the tokens that were taken; requests
 * leave and join while it is. */
static void test_ahead(void **state)
{
    (void)state;
    struct session_request requests[4];
    struct written alone[4];
    struct stage stage;
    begin(&stage);
    for (uint32_t i = 0; i < 4; i++)
        requests[i] = greedy_of(i);
    write_alone(&stage, requests, 4, alone);
    open_session(&stage, NULL);
    for (uint32_t i = 0; i < 2; i++)
        add(&stage, &requests[i]);
    step_until(&stage, 1, 3);
    assert_int_equal(engine_argmax_pending(stage.scene.engine), lab_is_host() ? 0 : 1);
    add(&stage, &requests[2]); /* the step is taken first, then the prompt is read */
    step_until(&stage, 2, 2);
    assert_int_equal(engine_argmax_pending(stage.scene.engine), lab_is_host() ? 0 : 1);
    uint32_t length = engine_length(stage.scene.engine, 1);
    assert_true(session_cancel(stage.session, 1));
    assert_int_equal(engine_length(stage.scene.engine, 1), lab_is_host() ? length : length - 1);
    add(&stage, &requests[3]); /* waits for the step, then has the sequence */
    run_all(&stage);
    assert_int_equal(stage.written[1].reason, SESSION_CANCELLED);
    check_begins(&stage.written[1], &alone[1]);
    check_same(&stage.written[0], &alone[0]);
    check_same(&stage.written[2], &alone[2]);
    check_same(&stage.written[3], &alone[3]);
    close_session(&stage);
    /* All leave, and the session ends: nothing stays queued. */
    open_session(&stage, NULL);
    add(&stage, &requests[0]);
    step_until(&stage, 0, 3);
    assert_int_equal(engine_argmax_pending(stage.scene.engine), lab_is_host() ? 0 : 1);
    close_session(&stage);
    assert_int_equal(engine_length(stage.scene.engine, 0), requests[0].id_count + 2);
    release(alone, 4);
    end(&stage);
}

/* ---- Failing -------------------------------------------------------------------------------- */

static void check_refused(struct stage *stage, const struct session_request *request,
                          enum status status, const char *words)
{
    uint64_t id;
    size_t count = session_active_count(stage->session);
    CHECK_FAILS(session_add(stage->session, request, &id, &stage->scene.err), status,
                &stage->scene.err);
    check_contains("a refused request", stage->scene.err.text, words);
    assert_int_equal(session_active_count(stage->session), count);
}

/* A request that makes no sense is refused alone. */
static void test_refusals(void **state)
{
    (void)state;
    static uint32_t ids[CONTEXT + 1];
    static const char *const empty[] = { "" };
    struct session_request requests[2] = { request_of(0), request_of(1) }, wrong = requests[1];
    struct written alone[2];
    struct stage stage;
    begin(&stage);
    write_alone(&stage, requests, 2, alone);
    open_session(&stage, NULL);
    add(&stage, &requests[0]);
    step(&stage);
    wrong.ids = ids;
    wrong.id_count = CONTEXT + 1;
    check_refused(&stage, &wrong, STATUS_LIMIT, "at most the 32 tokens of the context, found 33");
    wrong.id_count = 0;
    check_refused(&stage, &wrong, STATUS_USAGE, "at least one token");
    wrong.ids = (const uint32_t[]){ 5, VOCABULARY };
    wrong.id_count = 2;
    check_refused(&stage, &wrong, STATUS_USAGE, "below the vocabulary of 1024, found 1024");
    wrong = requests[1];
    wrong.stops = empty;
    wrong.stop_count = 1;
    check_refused(&stage, &wrong, STATUS_USAGE, "stop string");
    wrong = requests[1];
    wrong.sampling.top_p = 2;
    check_refused(&stage, &wrong, STATUS_USAGE, "top-p");
    assert_int_equal(add(&stage, &requests[1]), 1); /* refusals have no number */
    /* As long as the context: one token follows. */
    wrong = greedy_of(2);
    wrong.ids = ids;
    wrong.id_count = CONTEXT;
    add(&stage, &wrong);
    run_all(&stage);
    check_same(&stage.written[0], &alone[0]);
    check_same(&stage.written[1], &alone[1]);
    assert_int_equal(stage.written[2].reason, SESSION_CONTEXT);
    assert_int_equal(stage.written[2].count, 1);
    close_session(&stage);
    release(alone, 2);
    end(&stage);
}

/* Writes into the model's file: a token after which logits are NaN. */
static void poke_nan(struct stage *stage, uint32_t id)
{
    struct scene *scene = &stage->scene;
    const struct gguf_tensor *table = gguf_tensor_find(scene->file, "token_embd.weight");
    struct temp_path path = temp_folder_path(&scene->folder, "model.gguf");
    float value = NAN;
    assert_non_null(table);
    uint64_t at = table->offset_bytes + id * (table->bytes / VOCABULARY);
    gguf_close(scene->file);
    FILE *file = fopen(path.text, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, (long)at, SEEK_SET), 0);
    assert_int_equal(fwrite(&value, sizeof(value), 1, file), 1);
    assert_int_equal(fclose(file), 0);
    CHECK_OK(gguf_open(path.text, &scene->file, &scene->err), &scene->err);
    model_check(scene->file, NULL, &scene->report);
}

/* Logits that are not finite end the request whose they are, and say why; the others go on. */
static void test_one_fails(void **state)
{
    (void)state;
    const struct engine_options options = { .kv_dtype = DTYPE_F16,
                                            .context = CONTEXT,
                                            .sequence_limit = SEQUENCES };
    struct session_request requests[3] = { greedy_of(0), greedy_of(1), greedy_of(2) };
    struct written alone[2];
    struct stage stage;
    write_stage(&stage);
    poke_nan(&stage, 8); /* in the prompt of request 2 */
    open_stage(&stage, &options);
    write_alone(&stage, requests, 2, alone);
    open_session(&stage, NULL);
    add(&stage, &requests[0]);
    add(&stage, &requests[1]);
    step_until(&stage, 1, 2);
    add(&stage, &requests[2]);
    run_all(&stage);
    check_same(&stage.written[0], &alone[0]);
    check_same(&stage.written[1], &alone[1]);
    assert_int_equal(stage.written[2].reason, SESSION_FAILED);
    assert_int_equal(stage.written[2].error.status, STATUS_BAD_FILE);
    check_contains("the error", stage.written[2].error.text, "logits of token 0: expected finite");
    check_contains("the error", stage.written[2].error.text, "token_embd, position 1 (token 8)");
    close_session(&stage);
    /* A request that allows them goes on. */
    open_session(&stage, NULL);
    requests[2].allow_bad = true;
    add(&stage, &requests[2]);
    run_all(&stage);
    assert_int_equal(stage.written[0].reason, SESSION_LENGTH);
    close_session(&stage);
    release(alone, 2);
    end(&stage);
}

static enum status fail_after(void *context, uint64_t request, uint32_t position,
                              const float *logits, struct error *err)
{
    uint32_t *left = context;
    (void)request;
    (void)position;
    (void)logits;
    return (*left)-- ? STATUS_OK : error_set(err, STATUS_IO, "the sink is full");
}

static void test_sink_fails(void **state)
{
    (void)state;
    struct session_request requests[2] = { request_of(0), request_of(1) };
    struct written alone[2];
    struct stage stage;
    uint32_t left = 3;
    begin(&stage);
    write_alone(&stage, requests, 2, alone);
    open_session(&stage, NULL);
    requests[1].logits = fail_after;
    requests[1].logits_context = &left;
    add(&stage, &requests[1]);
    CHECK_FAILS(session_run(stage.session, &stage.scene.err), STATUS_IO, &stage.scene.err);
    assert_string_equal(stage.scene.err.text, "the sink is full");
    close_session(&stage);
    left = 3;
    open_session(&stage, NULL);
    add(&stage, &requests[0]);
    add(&stage, &requests[1]);
    run_all(&stage);
    check_same(&stage.written[0], &alone[0]);
    check_begins(&stage.written[1], &alone[1]);
    assert_int_equal(stage.written[1].count, 3);
    assert_int_equal(stage.written[1].reason, SESSION_FAILED);
    assert_string_equal(stage.written[1].error.text, "the sink is full");
    close_session(&stage);
    release(alone, 2);
    end(&stage);
}

static enum status refuse_tap(void *context, const struct tap_record *record, const float *values,
                              struct error *err)
{
    (void)context;
    (void)record;
    (void)values;
    return error_set(err, STATUS_LOST, "the engine is broken");
}

/* What fails in the engine fails all requests, those that wait too, and whatever comes later. */
static void test_all_fail(void **state)
{
    (void)state;
    struct session_request request = greedy_of(0);
    struct engine_tap_choice choice;
    struct stage stage;
    uint64_t id;
    begin(&stage);
    CHECK_OK(engine_tap_parse("wo", &choice, &stage.scene.err), &stage.scene.err);
    open_session(&stage, NULL);
    for (uint32_t i = 0; i < SEQUENCES + 1; i++)
        add(&stage, &request);
    step_until(&stage, SEQUENCES - 1, 2);
    CHECK_OK(engine_tap_set(stage.scene.engine, &choice, 1, refuse_tap, NULL, &stage.scene.err),
             &stage.scene.err);
    enum status status = STATUS_OK;
    while (!status)
        status = session_step(stage.session, &stage.scene.err);
    assert_int_equal(status, STATUS_LOST);
    take_events(&stage);
    assert_int_equal(session_active_count(stage.session), 0);
    for (uint32_t i = 0; i < SEQUENCES + 1; i++) {
        assert_int_equal(stage.written[i].reason, SESSION_FAILED);
        assert_string_equal(stage.written[i].error.text, "the engine is broken");
    }
    CHECK_FAILS(session_step(stage.session, &stage.scene.err), STATUS_LOST, &stage.scene.err);
    CHECK_FAILS(session_add(stage.session, &request, &id, &stage.scene.err), STATUS_LOST,
                &stage.scene.err);
    close_session(&stage);
    end(&stage);
}

/* ---- Prompts -------------------------------------------------------------------------------- */

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
    begin(&stage);
    given = (struct given){ 0 };
    request.logits = keep_logits;
    request.logits_context = &given;
    request.prompt_logits = 4; /* of 5; an engine of 3 sequences gives 3 rows at a time */
    request.token_limit = 0;
    open_session(&stage, NULL);
    add(&stage, &request);
    run_all(&stage);
    assert_int_equal(stage.written[0].reason, SESSION_LENGTH);
    assert_int_equal(stage.written[0].count, 0);
    assert_int_equal(given.count, 4);
    assert_int_equal(given.first_position, 1);
    close_session(&stage);
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
    open_session(&stage, NULL);
    add(&stage, &request);
    run_all(&stage);
    assert_int_equal(stage.written[0].count, 3);
    assert_int_equal(given.count, 4 + 2); /* the prompt's last row chose the first token */
    close_session(&stage);
    end(&stage);
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
    begin(&stage);
    requests[1].ids = ids; /* the first four are equal */
    write_alone(&stage, requests, 3, alone);
    open_session(&stage, &options);
    for (uint32_t i = 0; i < 3; i++)
        add(&stage, &requests[i]);
    run_all(&stage);
    assert_int_equal(session_timing(stage.session)->prompt_tokens, 5 + 1 + 1);
    for (uint32_t i = 0; i < 3; i++)
        check_same(&stage.written[i], &alone[i]);
    /* Also a sequence whose request has ended, and which the new one takes over. */
    add(&stage, &requests[1]);
    run_all(&stage);
    assert_int_equal(session_timing(stage.session)->prompt_tokens, 5 + 1 + 1 + 1);
    check_same(&stage.written[3], &alone[1]);
    close_session(&stage);
    /* Without it only whole prompts are shared. */
    open_session(&stage, NULL);
    for (uint32_t i = 0; i < 3; i++)
        add(&stage, &requests[i]);
    run_all(&stage);
    assert_int_equal(session_timing(stage.session)->prompt_tokens, 5 + 5 + 1);
    close_session(&stage);
    release(alone, 3);
    end(&stage);
}

/* ---- Events --------------------------------------------------------------------------------- */

/* Events that are not taken stay, in order. */
static void test_late_events(void **state)
{
    (void)state;
    struct session_request requests[REQUESTS];
    struct written alone[REQUESTS];
    struct stage stage;
    begin(&stage);
    for (uint32_t i = 0; i < REQUESTS; i++)
        requests[i] = request_of(i);
    write_alone(&stage, requests, REQUESTS, alone);
    open_session(&stage, NULL);
    for (uint32_t i = 0; i < REQUESTS; i++)
        add(&stage, &requests[i]);
    while (session_active_count(stage.session))
        CHECK_OK(session_step(stage.session, &stage.scene.err), &stage.scene.err);
    CHECK_OK(session_step(stage.session, &stage.scene.err), &stage.scene.err); /* does nothing */
    take_events(&stage);
    for (uint32_t i = 0; i < REQUESTS; i++)
        check_same(&stage.written[i], &alone[i]);
    close_session(&stage);
    /* Never taken at all. */
    open_session(&stage, NULL);
    for (uint32_t i = 0; i < REQUESTS; i++)
        add(&stage, &requests[i]);
    for (uint32_t i = 0; i < 8; i++)
        CHECK_OK(session_step(stage.session, &stage.scene.err), &stage.scene.err);
    assert_true(session_cancel(stage.session, REQUESTS - 1));
    close_session(&stage);
    release(alone, REQUESTS);
    end(&stage);
}

int main(int argument_count, char **arguments)
{
    if (!lab_choose(argument_count, arguments))
        return LAB_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_joining),       cmocka_unit_test(test_waiting),
        cmocka_unit_test(test_cancelling),    cmocka_unit_test(test_ahead),
        cmocka_unit_test(test_refusals),      cmocka_unit_test(test_one_fails),
        cmocka_unit_test(test_sink_fails),    cmocka_unit_test(test_all_fail),
        cmocka_unit_test(test_prompt_logits), cmocka_unit_test(test_shared_prompts),
        cmocka_unit_test(test_late_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
