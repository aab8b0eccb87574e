/* peers_alone.c - one engine alone: a cold start, or a text; see peers_engine.h. */
#include "peers_compare.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define START_CONTEXT 512u /* room for the longest prompt either takes at once */

bool peers_is_engine(const char *name)
{
    return strcmp(name, "greta") == 0 || strcmp(name, "llama.cpp") == 0;
}

static enum status open_alone(const struct peers_alone *alone, uint32_t context,
                              struct peers_engine *ret, struct error *err)
{
    struct peers_setting setting = peers_setting_alone(alone->device, context);
    struct peers_request request = { .model = alone->model,
                                     .device = alone->device,
                                     .folder = alone->folder,
                                     .settings = &setting,
                                     .setting_count = 1 };
    if (strcmp(alone->name, "greta") == 0)
        return peers_open_greta(&request, ret, err);
    return peers_open_llama(&request, ret, err);
}

/* Begins anew and reads the prompt at once. */
static enum status read_prompt(const struct peers_engine *engine, uint32_t count, int32_t *tokens,
                               struct error *err)
{
    TRY(engine->begin(engine->self, 0, PEERS_PLAIN, err));
    for (uint32_t i = 0; i < count; i++)
        tokens[i] = peers_token(i, engine->vocab_size);
    return engine->step(engine->self, tokens, count, err);
}

/* ---- A cold start --------------------------------------------------------------------------- */

/* Of all threads, since the program began: other processes disturb it less than the time. */
static double processor_ms(const struct rusage *usage)
{
    return 1e3 * (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
           (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e3;
}

enum status peers_start(const struct peers_alone *alone, struct error *err)
{
    static int32_t tokens[START_CONTEXT];
    struct peers_engine engine;
    struct rusage usage;
    if (alone->prompt > START_CONTEXT)
        return error_set(err, STATUS_USAGE, "--prompt: expected at most %u, found %u",
                         START_CONTEXT, alone->prompt);
    uint64_t start_ns = clock_ns();
    TRY(open_alone(alone, START_CONTEXT, &engine, err));
    uint64_t opened_ns = clock_ns();
    enum status status = read_prompt(&engine, alone->prompt, tokens, err);
    uint64_t end_ns = clock_ns();
    if (!status)
        status = engine.end(engine.self, err);
    getrusage(RUSAGE_SELF, &usage);
    if (!status)
        printf("{\"engine\": \"%s\", \"prompt_tokens\": %u, \"open_ms\": %.3f, "
               "\"first_token_ms\": %.3f, \"processor_ms\": %.3f, \"peak_resident_bytes\": %llu}\n",
               engine.name, alone->prompt, (double)(opened_ns - start_ns) / 1e6,
               (double)(end_ns - start_ns) / 1e6, processor_ms(&usage),
               1024ull * (unsigned long long)usage.ru_maxrss);
    engine.close(engine.self);
    return status;
}

/* ---- A text --------------------------------------------------------------------------------- */

static enum status likeliest(const struct peers_engine *engine, int32_t *ret_token,
                             struct error *err)
{
    const float *logits = engine->logits(engine->self, 0);
    uint32_t best = 0;
    if (!logits)
        return error_set(err, STATUS_UNSUPPORTED, "%s: no logits", engine->name);
    for (uint32_t i = 1; i < engine->vocab_size; i++)
        if (logits[i] > logits[best])
            best = i;
    *ret_token = (int32_t)best;
    return STATUS_OK;
}

static enum status generate_once(const struct peers_engine *engine, const struct peers_alone *alone,
                                 int32_t *tokens, struct error *err)
{
    TRY(read_prompt(engine, alone->prompt, tokens, err));
    for (uint32_t i = 0; i < alone->tokens; i++) {
        TRY(likeliest(engine, &tokens[i], err));
        if (i + 1 < alone->tokens)
            TRY(engine->step(engine->self, &tokens[i], 1, err));
    }
    return engine->end(engine->self, err);
}

static enum status generate_all(const struct peers_engine *engine, const struct peers_alone *alone,
                                int32_t *tokens, struct error *err)
{
    TRY(generate_once(engine, alone, tokens, err)); /* loads every kernel that will be used */
    for (uint32_t repeat = 0; repeat < alone->repeats; repeat++) {
        uint64_t start = clock_ns();
        TRY(generate_once(engine, alone, tokens, err));
        fprintf(stderr, "%.1f tokens/s\n", alone->tokens * 1e9 / (double)(clock_ns() - start));
        for (uint32_t i = 0; i < alone->tokens; i++)
            printf("%d%c", tokens[i], i + 1 < alone->tokens ? ' ' : '\n');
        fflush(stdout);
    }
    return STATUS_OK;
}

enum status peers_generate(const struct peers_alone *alone, struct error *err)
{
    struct peers_engine engine;
    uint32_t room = alone->prompt > alone->tokens ? alone->prompt : alone->tokens;
    int32_t *tokens = calloc(room, sizeof(*tokens));
    if (!tokens)
        return error_set(err, STATUS_NO_MEMORY, "no memory for tokens");
    enum status status = open_alone(alone, alone->prompt + alone->tokens, &engine, err);
    if (!status) {
        status = generate_all(&engine, alone, tokens, err);
        engine.close(engine.self);
    }
    free(tokens);
    return status;
}
