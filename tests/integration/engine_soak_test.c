/* engine_soak_test.c - twenty sequences that grow, fork, are rewound, end and begin again at
 * random, and prompts that run side by side: results stay the same bits, memory stays what it was.
 *
 * usage: engine_soak_test [SECONDS]   without it, a few rounds */
#include "test.h"

#include "base/clock.h"
#include "engine_scene.h"
#include "session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEQUENCES 20u
#define CONTEXT 48u
#define BATCH 32u
#define ROUNDS_SHORT 12u
#define STEPS 60u /* batches of a round */

static uint64_t soak_seconds;

struct soak {
    struct scene scene;
    struct tokenizer *tokenizer;
    uint64_t random;
    size_t vocab;
    int32_t ids[SEQUENCES][CONTEXT]; /* what each sequence should hold */
    uint32_t lengths[SEQUENCES];
    float *logits, *other; /* vocab each */
    uint64_t batches, tokens, checked;
};

static uint32_t draw(struct soak *soak, uint32_t below)
{
    soak->random ^= soak->random << 13;
    soak->random ^= soak->random >> 7;
    soak->random ^= soak->random << 17;
    return (uint32_t)(soak->random >> 32) % below;
}

/* Pages this process has in memory. */
static uint64_t resident_bytes(void)
{
    unsigned long all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    /* NOLINTNEXTLINE(cert-err34-c): the kernel's own numbers, as many as are asked for */
    if (file && fscanf(file, "%lu %lu", &all, &resident) != 2)
        resident = 0;
    if (file)
        fclose(file);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* ---- Sequences ------------------------------------------------------------------------------ */

static void note(struct soak *soak, uint32_t sequence, int32_t id)
{
    soak->ids[sequence][soak->lengths[sequence]++] = id;
}

/* A batch with tokens of many sequences, as many as fit. */
static void grow(struct soak *soak)
{
    struct engine_token tokens[BATCH];
    size_t count = 0;
    uint32_t wants = 0;
    for (uint32_t i = 0; i < BATCH; i++) {
        uint32_t sequence = draw(soak, SEQUENCES);
        if (soak->lengths[sequence] == CONTEXT)
            continue;
        bool logits = wants < SEQUENCES && draw(soak, 2);
        int32_t id = (int32_t)draw(soak, (uint32_t)soak->vocab);
        tokens[count++] = (struct engine_token){ id, sequence, logits };
        wants += logits;
        note(soak, sequence, id);
    }
    if (count == 0)
        return;
    CHECK_OK(engine_forward(soak->scene.engine, tokens, count, &soak->scene.err), &soak->scene.err);
    assert_int_equal(engine_logits_count(soak->scene.engine), wants);
    soak->batches++;
    soak->tokens += count;
    if (wants) {
        int32_t best[SEQUENCES];
        CHECK_OK(engine_argmax(soak->scene.engine, best, &soak->scene.err), &soak->scene.err);
        for (uint32_t i = 0; i < wants; i++)
            assert_true(best[i] >= 0 && (size_t)best[i] < soak->vocab);
    }
}

static void fork_one(struct soak *soak)
{
    uint32_t source = draw(soak, SEQUENCES), target = draw(soak, SEQUENCES);
    CHECK_OK(engine_fork(soak->scene.engine, source, target, &soak->scene.err), &soak->scene.err);
    soak->lengths[target] = soak->lengths[source];
    memmove(soak->ids[target], soak->ids[source], sizeof(soak->ids[source]));
}

static void rewind_one(struct soak *soak, bool to_nothing)
{
    uint32_t sequence = draw(soak, SEQUENCES);
    uint32_t length = to_nothing ? 0 : draw(soak, soak->lengths[sequence] + 1);
    engine_rewind(soak->scene.engine, sequence, length);
    soak->lengths[sequence] = length;
}

static void run_one(struct soak *soak, uint32_t sequence, int32_t id, float *logits)
{
    struct engine_token token = { id, sequence, true };
    CHECK_OK(engine_forward(soak->scene.engine, &token, 1, &soak->scene.err), &soak->scene.err);
    CHECK_OK(engine_logits(soak->scene.engine, 0, logits, &soak->scene.err), &soak->scene.err);
}

/* Whatever a sequence went through, one more token gives the bits that its tokens give in an empty
 * sequence, in one go. */
static void check_one(struct soak *soak)
{
    uint32_t sequence = draw(soak, SEQUENCES);
    uint32_t fresh = (sequence + 1 + draw(soak, SEQUENCES - 1)) % SEQUENCES;
    uint32_t length = soak->lengths[sequence];
    if (length == CONTEXT)
        return;
    int32_t id = (int32_t)draw(soak, (uint32_t)soak->vocab);
    run_one(soak, sequence, id, soak->logits);
    engine_rewind(soak->scene.engine, fresh, 0);
    struct engine_token tokens[BATCH];
    for (uint32_t first = 0; first < length; first += BATCH) {
        uint32_t count = length - first < BATCH ? length - first : BATCH;
        for (uint32_t i = 0; i < count; i++)
            tokens[i] = (struct engine_token){ soak->ids[sequence][first + i], fresh, false };
        CHECK_OK(engine_forward(soak->scene.engine, tokens, count, &soak->scene.err),
                 &soak->scene.err);
    }
    run_one(soak, fresh, id, soak->other);
    assert_memory_equal(soak->logits, soak->other, soak->vocab * sizeof(float));
    note(soak, sequence, id);
    memcpy(soak->ids[fresh], soak->ids[sequence], sizeof(soak->ids[fresh]));
    soak->lengths[fresh] = soak->lengths[sequence];
    soak->checked++;
}

/* ---- Prompts -------------------------------------------------------------------------------- */

/* Twice as many requests as sequences, with settings of their own, some with equal prompts; some
 * are cancelled on the way. */
static void generate(struct soak *soak)
{
    static const char *const stops[] = { "zq" };
    uint32_t ids[8], count = 0;
    struct session_options options = { .mix_prompts = draw(soak, 2) > 0 };
    uint64_t written = 0, ended = 0, id;
    struct session *session;
    struct session_event event;
    CHECK_OK(
        session_create(soak->scene.engine, soak->tokenizer, &options, &session, &soak->scene.err),
        &soak->scene.err);
    for (size_t i = 0; i < (size_t)2 * SEQUENCES; i++) {
        if (i == 0 || draw(soak, 3)) {
            count = 1 + draw(soak, 8);
            for (uint32_t j = 0; j < count; j++)
                ids[j] = draw(soak, (uint32_t)soak->vocab);
        }
        struct session_request request = { .ids = ids,
                                           .id_count = count,
                                           .token_limit = 3 + draw(soak, 9),
                                           .ignore_end = true,
                                           .sampling = { .temperature = (float)draw(soak, 2),
                                                         .top_k = 40,
                                                         .top_p = 1,
                                                         .repeat_penalty = 1,
                                                         .seed = soak->random },
                                           .stops = stops,
                                           .stop_count = draw(soak, 2) };
        CHECK_OK(session_add(session, &request, &id, &soak->scene.err), &soak->scene.err);
    }
    while (session_active_count(session)) {
        CHECK_OK(session_step(session, &soak->scene.err), &soak->scene.err);
        if (draw(soak, 8) == 0)
            session_cancel(session, draw(soak, 2 * SEQUENCES));
        while (session_take(session, &event)) {
            written += event.kind == SESSION_TOKEN;
            if (event.kind != SESSION_END)
                continue;
            assert_true(event.end.reason == SESSION_LENGTH || event.end.reason == SESSION_STOP ||
                        event.end.reason == SESSION_CANCELLED);
            assert_true(event.end.token_count <= written);
            ended++;
        }
    }
    assert_int_equal(ended, 2 * SEQUENCES);
    session_destroy(session);
    for (uint32_t s = 0; s < SEQUENCES; s++)
        engine_rewind(soak->scene.engine, s, 0);
    memset(soak->lengths, 0, sizeof(soak->lengths));
    soak->tokens += written;
}

/* ---- Rounds --------------------------------------------------------------------------------- */

static void start(struct soak *soak)
{
    struct engine_options options = {
        .kv_dtype = DTYPE_F16, .context = CONTEXT, .batch_limit = BATCH, .sequence_limit = SEQUENCES
    };
    scene_start(&soak->scene, CPU_PATH_COUNT, 2, options);
    memset(soak->lengths, 0, sizeof(soak->lengths));
}

static void run_round(struct soak *soak)
{
    uint64_t used = device_used_bytes(soak->scene.device);
    for (uint32_t i = 0; i < STEPS; i++) {
        grow(soak);
        switch (draw(soak, 6)) {
        case 0:
        case 1:
            fork_one(soak);
            break;
        case 2:
            rewind_one(soak, false);
            break;
        case 3:
            rewind_one(soak, true);
            break;
        default:
            check_one(soak);
            break;
        }
        for (uint32_t s = 0; s < SEQUENCES; s++)
            assert_int_equal(engine_length(soak->scene.engine, s), soak->lengths[s]);
    }
    generate(soak);
    assert_int_equal(device_used_bytes(soak->scene.device), used);
    if (draw(soak, 8) == 0) {
        scene_stop(&soak->scene); /* nothing is left on the device */
        start(soak);
        assert_int_equal(device_used_bytes(soak->scene.device), used);
    }
}

/* What is still allowed to come: pages of pools and allocators that were not touched before. */
#define GROWTH_LIMIT_BYTES ((uint64_t)24 << 20)

static void test_soak(void **state)
{
    (void)state;
    static struct soak soak;
    soak.random = 0x9E3779B97F4A7C15u;
    struct model_shape shape = scene_shape(MODEL_ARCH_LLAMA);
    shape.vocab_size = 1024; /* room for the words of a tokenizer */
    scene_write(&soak.scene, &shape, CONVERT_Q4_K_M);
    soak.vocab = shape.vocab_size;
    soak.logits = malloc(soak.vocab * sizeof(float));
    soak.other = malloc(soak.vocab * sizeof(float));
    assert_true(soak.logits && soak.other);
    CHECK_OK(tokenizer_create(soak.scene.file, &soak.tokenizer, &soak.scene.err), &soak.scene.err);
    start(&soak);
    uint64_t begin_ns = clock_ns(), limit_ns = soak_seconds * 1000000000u, resident = 0;
    for (uint64_t round = 0; soak_seconds ? clock_ns() - begin_ns < limit_ns : round < ROUNDS_SHORT;
         round++) {
        run_round(&soak);
        /* By then everything was touched once. */
        if (clock_ns() - begin_ns < limit_ns / 4)
            resident = resident_bytes();
    }
    uint64_t now = resident_bytes();
    print_message(
        "%llu batches, %llu tokens, %llu sequences compared; resident %llu KiB, then %llu "
        "KiB\n",
        (unsigned long long)soak.batches, (unsigned long long)soak.tokens,
        (unsigned long long)soak.checked, (unsigned long long)resident / 1024,
        (unsigned long long)now / 1024);
    assert_true(soak.checked > 0);
    if (soak_seconds && now > resident + GROWTH_LIMIT_BYTES)
        fail_msg("memory has grown");
    tokenizer_destroy(soak.tokenizer);
    free(soak.logits);
    free(soak.other);
    scene_stop(&soak.scene);
    scene_end(&soak.scene);
}

int main(int argument_count, char **arguments)
{
    if (argument_count > 1)
        soak_seconds = strtoull(arguments[1], NULL, 10);
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_soak) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
