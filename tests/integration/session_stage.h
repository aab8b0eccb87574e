/* session_stage.h - what the tests of sessions share: an engine of a small model with a tokenizer,
 * a session over it, and what each request has written so far. "Alone" is always a session with
 * that request only. */
#ifndef GRETA_TESTS_SESSION_STAGE_H
#define GRETA_TESTS_SESSION_STAGE_H

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

static inline void stage_open(struct stage *stage, const struct engine_options *engine_options)
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

static inline void stage_write_model(struct stage *stage)
{
    struct model_shape shape = scene_shape(MODEL_ARCH_LLAMA);
    shape.vocab_size = VOCABULARY;
    shape.block_count = lab_is_host() ? 2 : 1; /* an emulated GPU takes its time */
    *stage = (struct stage){ 0 };
    scene_write(&stage->scene, &shape, CONVERT_F32);
}

static inline void stage_begin(struct stage *stage)
{
    const struct engine_options options = { .kv_dtype = DTYPE_F16,
                                            .context = CONTEXT,
                                            .sequence_limit = SEQUENCES };
    stage_write_model(stage);
    stage_open(stage, &options);
}

/* Forgets what was written. */
static inline void stage_clear(struct stage *stage)
{
    for (size_t i = 0; i < REQUESTS; i++)
        text_release(&stage->written[i].text);
    memset(stage->written, 0, sizeof(stage->written));
}

static inline void stage_end(struct stage *stage)
{
    stage_clear(stage);
    assert_int_equal(device_trap_count(stage->scene.device), 0);
    tokenizer_destroy(stage->tokenizer);
    scene_stop(&stage->scene); /* nothing is left on the device */
    scene_end(&stage->scene);
}

static inline void stage_open_session(struct stage *stage, const struct session_options *options)
{
    engine_restart(stage->scene.engine);
    stage_clear(stage);
    CHECK_OK(session_create(stage->scene.engine, stage->tokenizer, options, &stage->session,
                            &stage->scene.err),
             &stage->scene.err);
}

/* The engine is free for the next session. */
static inline void stage_close_session(struct stage *stage)
{
    session_destroy(stage->session);
    assert_int_equal(engine_argmax_pending(stage->scene.engine), 0);
}

static inline uint64_t stage_add(struct stage *stage, const struct session_request *request)
{
    uint64_t id;
    CHECK_OK(session_add(stage->session, request, &id, &stage->scene.err), &stage->scene.err);
    assert_true(id < REQUESTS);
    return id;
}

static inline void stage_note_event(struct written *written, const struct session_event *event)
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

static inline void stage_take_events(struct stage *stage)
{
    struct session_event event;
    while (session_take(stage->session, &event))
        stage_note_event(&stage->written[event.request], &event);
}

static inline void stage_step(struct stage *stage)
{
    CHECK_OK(session_step(stage->session, &stage->scene.err), &stage->scene.err);
    stage_take_events(stage);
}

/* Until the request has written so many tokens. */
static inline void stage_step_until(struct stage *stage, uint64_t id, uint32_t count)
{
    while (stage->written[id].count < count) {
        assert_int_equal(stage->written[id].reason, SESSION_RUNNING);
        stage_step(stage);
    }
}

static inline void stage_run(struct stage *stage)
{
    while (session_active_count(stage->session))
        stage_step(stage);
}

static const uint32_t prompts[REQUESTS][5] = { { 7, 300, 45, 99, 12 },  { 12, 511, 3, 64, 8 },
                                               { 700, 8, 9, 10, 31 },   { 31, 31, 200, 5, 900 },
                                               { 640, 2, 17, 400, 77 }, { 55, 56, 57, 58, 59 } };

/* Request number i: every setting is another one than its neighbours'. */
static inline struct session_request request_of(uint32_t i)
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
static inline struct session_request greedy_of(uint32_t i)
{
    struct session_request request = request_of(i);
    request.sampling = (struct sampler_settings){ .top_p = 1, .repeat_penalty = 1 };
    return request;
}

/* What each request writes alone. */
static inline void write_alone(struct stage *stage, const struct session_request *requests,
                               uint32_t count, struct written *written)
{
    for (uint32_t i = 0; i < count; i++) {
        stage_open_session(stage, NULL);
        stage_add(stage, &requests[i]);
        stage_run(stage);
        written[i] = stage->written[0];
        stage->written[0].text = (struct text){ 0 };
        stage_close_session(stage);
        assert_int_equal(written[i].reason, SESSION_LENGTH);
        assert_int_equal(written[i].count, requests[i].token_limit);
    }
}

static inline void written_release(struct written *written, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        text_release(&written[i].text);
}

static inline void check_written_same(const struct written *found, const struct written *wanted)
{
    assert_int_equal(found->reason, wanted->reason);
    assert_int_equal(found->count, wanted->count);
    assert_memory_equal(found->ids, wanted->ids, wanted->count * sizeof(uint32_t));
    assert_string_equal(text_get(&found->text), text_get(&wanted->text));
}

/* Cut short: as far as it came. */
static inline void check_written_begins(const struct written *found, const struct written *wanted)
{
    assert_true(found->count <= wanted->count);
    assert_memory_equal(found->ids, wanted->ids, found->count * sizeof(uint32_t));
}

#endif
