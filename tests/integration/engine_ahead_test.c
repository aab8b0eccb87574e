/* engine_ahead_test.c - steps that are queued before the ids of the one before are known: the same
 * ids, text, reasons and errors as without; and what is refused.
 *
 *     engine_ahead_test [DEVICE]      the host without */
#include "ops_lab.h"

#include "engine_scene.h"
#include "session/session.h"

#define STEPS 8u
#define SEQUENCES 3u
#define CONTEXT 24u
#define VOCABULARY 1024u /* room for the words of a tokenizer */

static void write_scene(struct scene *scene)
{
    struct model_shape shape = scene_shape(MODEL_ARCH_LLAMA);
    shape.vocab_size = VOCABULARY;
    shape.block_count = lab_is_host() ? 2 : 1; /* an emulated GPU takes its time */
    scene_write(scene, &shape, CONVERT_F32);
}

static void start(struct scene *scene, uint32_t sequences, uint32_t context)
{
    struct device_options device_options = { .guards = true, .poison = true, .thread_count = 2 };
    struct engine_options options = { .kv_dtype = DTYPE_F16,
                                      .context = context,
                                      .sequence_limit = sequences };
    CHECK_OK(all_open(lab_device, &device_options, &scene->device, &scene->err), &scene->err);
    CHECK_OK(ops_load(&scene->ops, scene->device, CPU_PATH_COUNT, &scene->err), &scene->err);
    CHECK_OK(engine_open(&scene->ops, scene->file, &scene->report, &options, &scene->engine,
                         &scene->err),
             &scene->err);
}

/* No index was out of bounds, and nothing is left. */
static void stop(struct scene *scene)
{
    assert_int_equal(device_trap_count(scene->device), 0);
    scene_stop(scene);
}

/* Writes into the model's file and reads it again. */
static void poke(struct scene *scene, uint64_t at, const void *bytes, size_t count)
{
    struct temp_path path = temp_folder_path(&scene->folder, "model.gguf");
    gguf_close(scene->file);
    FILE *file = fopen(path.text, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, (long)at, SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
    CHECK_OK(gguf_open(path.text, &scene->file, &scene->err), &scene->err);
    model_check(scene->file, NULL, &scene->report);
}

/* In token_embd.weight: makes the logits of a token and of all tokens after it NaN; in
 * output.weight: the token's own logit, always. */
static void poke_nan(struct scene *scene, const char *name, uint32_t id)
{
    const struct gguf_tensor *table = gguf_tensor_find(scene->file, name);
    float value = NAN;
    assert_non_null(table);
    poke(scene, table->offset_bytes + id * (table->bytes / VOCABULARY), &value, sizeof(value));
}

static const int32_t first_ids[SEQUENCES] = { 7, 300, 45 };

static void forward(struct scene *scene, const int32_t *ids, uint32_t count)
{
    struct engine_token tokens[SEQUENCES];
    for (uint32_t i = 0; i < count; i++)
        tokens[i] = (struct engine_token){ ids ? ids[i] : ENGINE_TOKEN_FROM_DEVICE, i, true };
    CHECK_OK(engine_forward(scene->engine, tokens, count, &scene->err), &scene->err);
}

static void choose(struct scene *scene)
{
    CHECK_OK(engine_argmax_submit(scene->engine, &scene->err), &scene->err);
}

static void chosen(struct scene *scene, int32_t *ids)
{
    CHECK_OK(engine_argmax_wait(scene->engine, ids, &scene->err), &scene->err);
}

/* ---- The engine ----------------------------------------------------------------------------- */

struct decoded {
    int32_t ids[STEPS][SEQUENCES];
    float logits[STEPS][SEQUENCES][VOCABULARY];
};

static void decode_one_by_one(struct scene *scene, uint32_t count, struct decoded *decoded)
{
    engine_restart(scene->engine);
    for (uint32_t step = 0; step < STEPS; step++) {
        forward(scene, step ? decoded->ids[step - 1] : first_ids, count);
        for (uint32_t row = 0; row < count; row++)
            CHECK_OK(engine_logits(scene->engine, row, decoded->logits[step][row], &scene->err),
                     &scene->err);
        CHECK_OK(engine_argmax(scene->engine, decoded->ids[step], &scene->err), &scene->err);
    }
}

/* The logits of every step are read when the step after it is queued. */
static void decode_ahead(struct scene *scene, uint32_t count, struct decoded *decoded)
{
    engine_restart(scene->engine);
    forward(scene, first_ids, count);
    choose(scene);
    for (uint32_t step = 0; step < STEPS; step++) {
        if (step + 1 < STEPS) {
            forward(scene, NULL, count);
            choose(scene);
            assert_int_equal(engine_argmax_pending(scene->engine), 2);
        }
        chosen(scene, decoded->ids[step]);
        for (uint32_t row = 0; row < count; row++)
            CHECK_OK(
                engine_argmax_logits(scene->engine, row, decoded->logits[step][row], &scene->err),
                &scene->err);
    }
    assert_int_equal(engine_argmax_pending(scene->engine), 0);
}

static void test_same_ids(void **state)
{
    (void)state;
    static struct decoded wanted, found;
    struct scene scene;
    write_scene(&scene);
    start(&scene, SEQUENCES, CONTEXT);
    for (uint32_t count = 1; count <= SEQUENCES; count += 2) {
        decode_one_by_one(&scene, count, &wanted);
        decode_ahead(&scene, count, &found);
        for (uint32_t step = 0; step < STEPS; step++) {
            assert_memory_equal(found.ids[step], wanted.ids[step], count * sizeof(int32_t));
            assert_memory_equal(found.logits[step], wanted.logits[step],
                                count * sizeof(wanted.logits[step][0]));
        }
        for (uint32_t i = 0; i < count; i++)
            assert_int_equal(engine_length(scene.engine, i), STEPS);
        /* It also goes on from an id that was waited for before. */
        forward(&scene, NULL, count);
        CHECK_OK(engine_argmax(scene.engine, found.ids[0], &scene.err), &scene.err);
        for (uint32_t i = 0; i < count; i++)
            engine_rewind(scene.engine, i, STEPS);
        forward(&scene, wanted.ids[STEPS - 1], count);
        CHECK_OK(engine_argmax(scene.engine, wanted.ids[0], &scene.err), &scene.err);
        assert_memory_equal(found.ids[0], wanted.ids[0], count * sizeof(int32_t));
    }
    stop(&scene);
    scene_end(&scene);
}

static void check_refused(struct scene *scene, const struct engine_token *tokens, size_t count,
                          enum status status, const char *words)
{
    uint32_t length = engine_length(scene->engine, 0);
    CHECK_FAILS(engine_forward(scene->engine, tokens, count, &scene->err), status, &scene->err);
    check_contains("a refused batch", scene->err.text, words);
    assert_int_equal(engine_length(scene->engine, 0), length);
}

static void test_refusals(void **state)
{
    (void)state;
    struct scene scene;
    int32_t ids[SEQUENCES];
    float logits[VOCABULARY];
    struct tap_record record;
    uint32_t position;
    bool was_found;
    const struct engine_token best[SEQUENCES] = { { ENGINE_TOKEN_FROM_DEVICE, 0, true },
                                                  { ENGINE_TOKEN_FROM_DEVICE, 1, true },
                                                  { ENGINE_TOKEN_FROM_DEVICE, 2, true } };
    const struct engine_token mixed[2] = { { ENGINE_TOKEN_FROM_DEVICE, 0, true }, { 5, 1, true } };
    write_scene(&scene);
    start(&scene, SEQUENCES, 4);
    check_refused(&scene, best, 1, STATUS_USAGE, "each of the 0 ids");
    forward(&scene, first_ids, 2);
    check_refused(&scene, best, 2, STATUS_USAGE, "each of the 0 ids"); /* nothing was chosen */
    CHECK_FAILS(engine_argmax_wait(scene.engine, ids, &scene.err), STATUS_USAGE, &scene.err);
    choose(&scene);
    check_refused(&scene, best, 1, STATUS_USAGE, "each of the 2 ids");
    check_refused(&scene, best, 3, STATUS_USAGE, "each of the 2 ids");
    check_refused(&scene, mixed, 2, STATUS_USAGE, "found 1 of 2 tokens");
    CHECK_FAILS(engine_argmax(scene.engine, ids, &scene.err), STATUS_USAGE, &scene.err);
    CHECK_FAILS(engine_fork(scene.engine, 0, 2, &scene.err), STATUS_USAGE, &scene.err);
    CHECK_FAILS(engine_find_bad(scene.engine, 0, &was_found, &record, &position, &scene.err),
                STATUS_USAGE, &scene.err);
    forward(&scene, NULL, 2); /* what was refused has not spoiled it */
    choose(&scene);
    CHECK_FAILS(engine_argmax_submit(scene.engine, &scene.err), STATUS_LIMIT, &scene.err);
    chosen(&scene, ids);
    CHECK_OK(engine_argmax_logits(scene.engine, 1, logits, &scene.err), &scene.err);
    forward(&scene, NULL, 2);
    CHECK_FAILS(engine_argmax_logits(scene.engine, 1, logits, &scene.err), STATUS_USAGE,
                &scene.err);
    check_contains("logits that are gone", scene.err.text, "overwritten");
    choose(&scene);
    chosen(&scene, ids);
    forward(&scene, NULL, 2);
    choose(&scene);
    check_refused(&scene, best, 2, STATUS_LIMIT, "at most the 4 tokens of the context");
    chosen(&scene, ids);
    chosen(&scene, ids);
    CHECK_FAILS(engine_argmax_wait(scene.engine, ids, &scene.err), STATUS_USAGE, &scene.err);
    /* A known id writes over those that were chosen. */
    engine_restart(scene.engine);
    forward(&scene, first_ids, 1);
    choose(&scene);
    forward(&scene, first_ids, 1);
    check_refused(&scene, best, 1, STATUS_USAGE, "each of the 0 ids");
    stop(&scene); /* with an argmax that was never waited for */
    scene_end(&scene);
}

static void find_bad(struct scene *scene, bool wanted, uint32_t wanted_position)
{
    struct tap_record record;
    uint32_t position;
    bool was_found;
    CHECK_OK(engine_find_bad(scene->engine, 0, &was_found, &record, &position, &scene->err),
             &scene->err);
    assert_int_equal(was_found, wanted);
    if (wanted)
        assert_int_equal(position, wanted_position);
}

/* A sequence that is run again is run with the ids it had, also with those the host learned later;
 * and not with those of a step that was rewound over. */
static void test_sequences_run_again(void **state)
{
    (void)state;
    static struct decoded wanted;
    struct scene scene;
    int32_t ids[SEQUENCES];
    write_scene(&scene);
    start(&scene, 1, CONTEXT);
    decode_one_by_one(&scene, 1, &wanted);
    stop(&scene);
    int32_t bad = wanted.ids[0][0];
    poke_nan(&scene, "token_embd.weight", (uint32_t)bad);
    start(&scene, 1, CONTEXT);
    forward(&scene, first_ids, 1); /* its logits say `bad` */
    choose(&scene);
    forward(&scene, NULL, 1);
    choose(&scene);
    forward(&scene, NULL, 1); /* of logits that are NaN: runs token 0 */
    chosen(&scene, ids);
    assert_int_equal(ids[0], bad);
    chosen(&scene, ids);
    assert_int_equal(ids[0], -1);
    find_bad(&scene, true, 1);
    /* Rewound while it is queued, and another token put in its place. */
    engine_restart(scene.engine);
    forward(&scene, first_ids, 1);
    choose(&scene);
    forward(&scene, NULL, 1);
    engine_rewind(scene.engine, 0, 1);
    forward(&scene, (int32_t[]){ first_ids[1] }, 1);
    chosen(&scene, ids);
    assert_int_equal(ids[0], bad);
    assert_int_equal(engine_length(scene.engine, 0), 2);
    find_bad(&scene, false, 0);
    stop(&scene);
    scene_end(&scene);
}

/* ---- Generating ----------------------------------------------------------------------------- */

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
    for (uint32_t i = 0; i < engine_plan(scene->engine)->options.sequence_limit; i++)
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
    if (scenario->prompt_count <= engine_plan(scene->engine)->options.sequence_limit)
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
    write_scene(&scene);
    for (uint32_t sequences = lab_is_host() ? 1 : 2; sequences <= (lab_is_host() ? SEQUENCES : 2);
         sequences++) {
        start(&scene, sequences, CONTEXT);
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
        stop(&scene);
    }
    scene_end(&scene);
}

/* Ends that only the token tells: with a step queued that goes on from it. */
static void test_ends(void **state)
{
    (void)state;
    struct scene scene;
    write_scene(&scene);
    start(&scene, SEQUENCES, CONTEXT);
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
    stop(&scene);
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
    poke(&scene, found + sizeof(key) - 1 + 4, &whole.ids[0][at],
         4); /* after the type of the value */
    start(&scene, SEQUENCES, CONTEXT);
    scenario.request.ignore_end = false;
    scenario.prompt_count = lab_is_host() ? 1 : SEQUENCES;
    for (; scenario.prompt_count <= PROMPTS; scenario.prompt_count += 2) {
        written = check_same(&scene, &scenario);
        assert_int_equal(written.reasons[0], SESSION_END_TOKEN);
        assert_int_equal(written.counts[0], at + 1);
        release(&written);
    }
    stop(&scene);
    release(&whole);
    scene_end(&scene);
}

/* Logits that are not finite: the same words, which say where they come from; and going on. */
static void test_bad_logits(void **state)
{
    (void)state;
    struct scene scene;
    write_scene(&scene);
    start(&scene, 1, CONTEXT);
    struct scenario scenario = { .request = { .token_limit = 12, .ignore_end = true },
                                 .prompt_count = 1 };
    struct written whole = check_same(&scene, &scenario);
    uint32_t at = middle_of(&whole);
    stop(&scene);
    poke_nan(&scene, "token_embd.weight", whole.ids[0][at]);
    char words[64];
    snprintf(words, sizeof(words), "logits of token %u: expected finite", at + 1);
    for (uint32_t sequences = lab_is_host() ? 1 : SEQUENCES; sequences <= SEQUENCES;
         sequences += 2) {
        start(&scene, sequences, CONTEXT);
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
        stop(&scene);
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
    write_scene(&scene);
    poke_nan(&scene, "output.weight", 77);
    for (uint32_t sequences = lab_is_host() ? 1 : 2; sequences <= 2; sequences++) {
        start(&scene, sequences, CONTEXT);
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
        stop(&scene);
    }
    scene_end(&scene);
}

int main(int argument_count, char **arguments)
{
    if (!lab_choose(argument_count, arguments))
        return LAB_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_ids),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_sequences_run_again),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_bad_logits),
        cmocka_unit_test(test_other_choices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
