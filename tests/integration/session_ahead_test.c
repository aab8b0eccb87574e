/* session_ahead_test.c - a session that queues steps before the ids of the one before are known:
 * the same ids, text, reasons and errors as a session that waits for every step.
 *
 *     session_ahead_test [DEVICE]      the host without */
#include "engine_ahead.h"

#include "session/session.h"

#define PROMPTS 5u
#define EVENTS 64u

struct written {
    uint32_t ids[PROMPTS][EVENTS];
    uint32_t counts[PROMPTS];
    enum session_reason reasons[PROMPTS];
    struct text texts[PROMPTS];
    struct session_timing timing;
    enum status status; /* of the first request that failed */
    struct error err;
    uint32_t total;              /* tokens of all */
    uint32_t lengths[SEQUENCES]; /* of sequences in the end */
};

/* A session with this sink waits for every step: as if nothing were queued ahead. */
static enum status ignore_logits(void *context, uint64_t request, uint32_t position,
                                 const float *logits, struct error *err)
{
    (void)context;
    (void)request;
    (void)position;
    (void)logits;
    (void)err;
    return STATUS_OK;
}

static void release(struct written *written)
{
    for (size_t i = 0; i < PROMPTS; i++)
        text_release(&written->texts[i]);
}

struct scenario {
    struct session_request request; /* of each prompt */
    size_t prompt_count;
    uint32_t total_limit; /* tokens of all, after which nothing is stepped any more; 0: never */
};

static const uint32_t prompt_ids[PROMPTS][4] = { { 7, 300, 45, 99 },
                                                 { 7, 300, 45, 99 },
                                                 { 12, 511, 3, 64 },
                                                 { 700, 8, 9, 10 },
                                                 { 31, 31, 200, 5 } };
static const size_t prompt_lengths[PROMPTS] = { 4, 4, 3, 2, 4 };

/* False to stop. */
static bool note_event(struct written *written, const struct session_event *event,
                       uint32_t total_limit)
{
    uint64_t prompt = event->request;
    assert_true(prompt < PROMPTS);
    if (event->kind == SESSION_TOKEN) {
        assert_true(event->token.step == written->counts[prompt] && event->token.step < EVENTS);
        written->ids[prompt][written->counts[prompt]++] = event->token.id;
        text_add_bytes(&written->texts[prompt], event->token.text.bytes, event->token.text.length);
        return ++written->total != total_limit;
    }
    if (event->kind != SESSION_END)
        return true;
    assert_int_equal(event->end.token_count, written->counts[prompt]);
    written->reasons[prompt] = event->end.reason;
    if (event->end.reason != SESSION_FAILED)
        return true;
    written->err = *event->end.error;
    written->status = written->err.status;
    return false;
}

static void run_session(struct scene *scene, struct session *session, uint32_t total_limit,
                        struct written *written)
{
    struct session_event event;
    bool more = true;
    while (more && session_active_count(session)) {
        CHECK_OK(session_step(session, &scene->err), &scene->err);
        while (more && session_take(session, &event))
            more = note_event(written, &event, total_limit);
    }
}

static void generate(struct scene *scene, const struct scenario *scenario, bool ahead,
                     struct written *written)
{
    struct session_request request = scenario->request;
    struct tokenizer *tokenizer;
    struct session *session;
    uint64_t id;
    request.sampling = (struct sampler_settings){ .top_k = 40, .top_p = 1, .repeat_penalty = 1 };
    request.logits = ahead ? NULL : ignore_logits;
    *written = (struct written){ 0 };
    CHECK_OK(tokenizer_create(scene->file, &tokenizer, &scene->err), &scene->err);
    engine_restart(scene->engine);
    CHECK_OK(session_create(scene->engine, tokenizer, NULL, &session, &scene->err), &scene->err);
    for (size_t i = 0; i < scenario->prompt_count; i++) {
        request.ids = prompt_ids[i];
        request.id_count = prompt_lengths[i];
        CHECK_OK(session_add(session, &request, &id, &scene->err), &scene->err);
        assert_int_equal(id, i);
    }
    run_session(scene, session, scenario->total_limit, written);
    written->timing = *session_timing(session);
    session_destroy(session);
    assert_int_equal(engine_argmax_pending(scene->engine), 0);
    for (uint32_t i = 0; i < engine_budget(scene->engine)->options.sequence_limit; i++)
        written->lengths[i] = engine_length(scene->engine, i);
    tokenizer_destroy(tokenizer);
}

/* Runs both ways and checks that they write the same. Returns what was written ahead. */
static struct written check_same(struct scene *scene, const struct scenario *scenario)
{
    struct written wanted, found;
    generate(scene, scenario, false, &wanted);
    generate(scene, scenario, true, &found);
    assert_int_equal(wanted.timing.ahead_steps, 0);
    assert_int_equal(found.timing.ahead_steps > 0, !lab_is_host()); /* where that is faster */
    assert_int_equal(found.status, wanted.status);
    if (found.status)
        assert_string_equal(found.err.text, wanted.err.text);
    for (size_t i = 0; i < scenario->prompt_count; i++) {
        assert_int_equal(found.counts[i], wanted.counts[i]);
        assert_memory_equal(found.ids[i], wanted.ids[i], wanted.counts[i] * sizeof(uint32_t));
        assert_int_equal(found.reasons[i], wanted.reasons[i]);
        assert_string_equal(text_get(&found.texts[i]), text_get(&wanted.texts[i]));
    }
    assert_int_equal(found.timing.decode_tokens, wanted.timing.decode_tokens);
    /* Each in a sequence of its own: nothing is left of steps that should not have been. */
    if (scenario->prompt_count <= engine_budget(scene->engine)->options.sequence_limit)
        assert_memory_equal(found.lengths, wanted.lengths, sizeof(found.lengths));
    release(&wanted);
    return found;
}

/* Place of a token, in what a prompt wrote alone, that did not occur before and has a few after it.
 */
static uint32_t middle_of(const struct written *written)
{
    for (uint32_t at = 3; at + 3 < written->counts[0]; at++) {
        bool seen = false;
        for (uint32_t i = 0; i < at; i++)
            seen = seen || written->ids[0][i] == written->ids[0][at];
        if (!seen)
            return at;
    }
    fail_msg("every token was written before");
    return 0;
}

static void test_lengths(void **state)
{
    (void)state;
    struct scene scene;
    ahead_write_model(&scene);
    for (uint32_t sequences = lab_is_host() ? 1 : 2; sequences <= (lab_is_host() ? SEQUENCES : 2);
         sequences++) {
        ahead_start(&scene, sequences, CONTEXT);
        for (size_t prompts = 1; prompts <= PROMPTS; prompts += 4) {
            struct scenario scenario = { .request = { .token_limit = 9, .ignore_end = true },
                                         .prompt_count = prompts };
            struct written written = check_same(&scene, &scenario);
            assert_int_equal(written.reasons[0], SESSION_LENGTH);
            assert_int_equal(written.counts[prompts - 1], 9);
            /* All but that of the prompt and the last one, after which none can come. */
            if (prompts == 1 && !lab_is_host())
                assert_int_equal(written.timing.ahead_steps, 9 - 2);
            release(&written);
            /* Until the context is full: as many as go into it, and one more is chosen. */
            scenario.request.token_limit = SESSION_NO_LIMIT;
            written = check_same(&scene, &scenario);
            assert_int_equal(written.reasons[0], SESSION_CONTEXT);
            assert_int_equal(written.counts[0], CONTEXT - prompt_lengths[0] + 1);
            if (prompts == 1 && !lab_is_host())
                assert_int_equal(written.timing.ahead_steps, written.counts[0] - 2);
            release(&written);
        }
        ahead_stop(&scene);
    }
    scene_end(&scene);
}

/* Ends that only the token tells: with a step queued that goes on from it. */
static void test_ends(void **state)
{
    (void)state;
    struct scene scene;
    ahead_write_model(&scene);
    ahead_start(&scene, SEQUENCES, CONTEXT);
    struct scenario scenario = { .request = { .token_limit = 14, .ignore_end = true },
                                 .prompt_count = 1 };
    struct written whole = check_same(&scene, &scenario);
    uint32_t at = middle_of(&whole);
    /* Stepping ends. */
    scenario.total_limit = at + 1;
    struct written written = check_same(&scene, &scenario);
    assert_int_equal(written.counts[0], at + 1);
    assert_int_equal(written.reasons[0], SESSION_RUNNING);
    release(&written);
    scenario.prompt_count = PROMPTS;
    scenario.total_limit = 0;
    /* A stop string: the text so far, but for its beginning. */
    const char *text = text_get(&whole.texts[0]);
    size_t length = strlen(text);
    const char *stops[] = { text + length / 2 };
    scenario.request.stops = stops;
    scenario.request.stop_count = 1;
    written = check_same(&scene, &scenario);
    assert_int_equal(written.reasons[0], SESSION_STOP);
    release(&written);
    scenario.request.stop_count = 0;
    ahead_stop(&scene);
    /* The end token. */
    static const char key[] = "tokenizer.ggml.eos_token_id";
    struct temp_path path = temp_folder_path(&scene.folder, "model.gguf");
    FILE *file = fopen(path.text, "rb");
    static char bytes[1 << 16];
    size_t count = file ? fread(bytes, 1, sizeof(bytes), file) : 0;
    assert_true(file && fclose(file) == 0);
    size_t found = 0;
    while (found + sizeof(key) + 8 < count && memcmp(bytes + found, key, sizeof(key) - 1) != 0)
        found++;
    assert_true(found + sizeof(key) + 8 < count);
    scene_poke(&scene, found + sizeof(key) - 1 + 4, &whole.ids[0][at],
               4); /* after the type of the value */
    ahead_start(&scene, SEQUENCES, CONTEXT);
    scenario.request.ignore_end = false;
    scenario.prompt_count = lab_is_host() ? 1 : SEQUENCES;
    for (; scenario.prompt_count <= PROMPTS; scenario.prompt_count += 2) {
        written = check_same(&scene, &scenario);
        assert_int_equal(written.reasons[0], SESSION_END_TOKEN);
        assert_int_equal(written.counts[0], at + 1);
        release(&written);
    }
    ahead_stop(&scene);
    release(&whole);
    scene_end(&scene);
}

/* Logits that are not finite: the same words, which say where they come from; and going on. */
static void test_bad_logits(void **state)
{
    (void)state;
    struct scene scene;
    ahead_write_model(&scene);
    ahead_start(&scene, 1, CONTEXT);
    struct scenario scenario = { .request = { .token_limit = 12, .ignore_end = true },
                                 .prompt_count = 1 };
    struct written whole = check_same(&scene, &scenario);
    uint32_t at = middle_of(&whole);
    ahead_stop(&scene);
    scene_poke_nan(&scene, "token_embd.weight", whole.ids[0][at]);
    char words[64];
    snprintf(words, sizeof(words), "logits of token %u: expected finite", at + 1);
    for (uint32_t sequences = lab_is_host() ? 1 : SEQUENCES; sequences <= SEQUENCES;
         sequences += 2) {
        ahead_start(&scene, sequences, CONTEXT);
        scenario.request.allow_bad = false;
        scenario.prompt_count = sequences;
        struct written written = check_same(&scene, &scenario);
        assert_int_equal(written.status, STATUS_BAD_FILE);
        check_contains("the message", written.err.text, words);
        check_contains("the message", written.err.text, "first seen in: token_embd, position");
        assert_int_equal(written.counts[0], at + 1);
        release(&written);
        scenario.request.allow_bad = true;
        written = check_same(&scene, &scenario);
        assert_int_equal(written.status, STATUS_OK);
        assert_int_equal(written.counts[0], 12);
        release(&written);
        ahead_stop(&scene);
    }
    release(&whole);
    scene_end(&scene);
}

/* Every row has a NaN next to numbers: the host chooses, and every step that went ahead is dropped.
 */
static void test_other_choices(void **state)
{
    (void)state;
    struct scene scene;
    ahead_write_model(&scene);
    scene_poke_nan(&scene, "output.weight", 77);
    for (uint32_t sequences = lab_is_host() ? 1 : 2; sequences <= 2; sequences++) {
        ahead_start(&scene, sequences, CONTEXT);
        struct scenario scenario = {
            .request = { .token_limit = 6, .ignore_end = true, .allow_bad = true },
            .prompt_count = sequences + 1
        };
        struct written written = check_same(&scene, &scenario);
        uint32_t others = 0;
        for (uint32_t i = 0; i < written.counts[0]; i++)
            others += written.ids[0][i] != 0;
        assert_true(written.counts[0] == 6 && others > 0);
        release(&written);
        ahead_stop(&scene);
    }
    scene_end(&scene);
}

int main(int argument_count, char **arguments)
{
    if (!lab_choose(argument_count, arguments))
        return LAB_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_bad_logits),
        cmocka_unit_test(test_other_choices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
