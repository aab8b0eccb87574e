/* bench_grammar.c - what a mask costs, next to a decode step in the same run.
 *
 *     bench_grammar MODEL VOCABULARY [--fields N] [--rounds N] [--threads N]
 *
 * MODEL is run for the time of a step, VOCABULARY (a GGUF file, its tokenizer counts) is masked: so
 * a small model can stand next to a large vocabulary. A round decodes some tokens and writes one
 * text for a schema of N fields with random logits. Counted are the mask and what follows the
 * choice, not the choice itself. The first text finds nothing computed yet. */
#include "base/clock.h"
#include "device/all/all.h"
#include "engine/engine.h"
#include "grammar/grammar.h"
#include "session/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 24u
#define TEXT_TOKENS 2000u
#define ROUND_LIMIT 200u

#define MUST(call)                                                                                 \
    do {                                                                                           \
        struct error err;                                                                          \
        if (call) {                                                                                \
            fprintf(stderr, "bench_grammar: %s\n", err.text);                                      \
            exit(3);                                                                               \
        }                                                                                          \
    } while (0)

struct bench {
    struct gguf_file *model, *words;
    struct model_report report;
    struct device *device;
    struct ops ops;
    struct engine *engine;
    struct session *session;
    struct tokenizer *tokenizer;
    struct grammar_vocabulary *vocabulary;
    struct grammar *grammar;
    float *logits;
    uint32_t vocab_size;
    uint64_t random;
};

static uint32_t draw(struct bench *bench)
{
    bench->random = bench->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(bench->random >> 33);
}

/* ---- What is measured ----------------------------------------------------------------------- */

/* Milliseconds for each of STEPS tokens that are decoded. */
static double decode(struct bench *bench)
{
    const uint32_t prompt = 7;
    const struct session_request request = { .ids = &prompt,
                                             .id_count = 1,
                                             .token_limit = STEPS,
                                             .allow_bad = true,
                                             .sampling = { .top_p = 1, .repeat_penalty = 1 } };
    uint64_t id, start_ns = clock_ns();
    MUST(session_add(bench->session, &request, &id, &err));
    MUST(session_run(bench->session, &err));
    return (double)(clock_ns() - start_ns) / 1e6 / STEPS;
}

struct text_cost {
    double total_ms, worst_ms;
    uint32_t count;
};

/* Random logits; one time in six a token that ends a string or a list is preferred, as otherwise no
 * text would end. */
static uint32_t choose(struct bench *bench, const uint8_t *is_end)
{
    bool prefers_ends = draw(bench) % 6 == 0;
    uint32_t best = 0;
    float best_logit = -INFINITY;
    for (uint32_t i = 0; i < bench->vocab_size; i++) {
        float logit = bench->logits[i] + (prefers_ends && is_end[i] ? 10 : 0);
        if (logit > best_logit) {
            best_logit = logit;
            best = i;
        }
    }
    return best;
}

static struct text_cost write_text(struct bench *bench, const uint8_t *is_end)
{
    struct text_cost cost = { 0 };
    struct grammar_matcher *matcher;
    MUST(grammar_matcher_create(bench->grammar, &matcher, &err));
    while (cost.count < TEXT_TOKENS && !grammar_matcher_must_end(matcher)) {
        for (uint32_t i = 0; i < bench->vocab_size; i++)
            bench->logits[i] = (float)(draw(bench) % 65536) / 65536;
        uint64_t start_ns = clock_ns();
        MUST(grammar_matcher_mask(matcher, bench->logits, bench->vocab_size, &err));
        uint64_t spent_ns = clock_ns() - start_ns;
        uint32_t id = choose(bench, is_end);
        start_ns = clock_ns();
        MUST(grammar_matcher_accept(matcher, id, &err));
        double spent_ms = (double)(spent_ns + clock_ns() - start_ns) / 1e6;
        cost.total_ms += spent_ms;
        cost.worst_ms = fmax(cost.worst_ms, spent_ms);
        cost.count++;
    }
    grammar_matcher_destroy(matcher);
    return cost;
}

/* ---- The schema ----------------------------------------------------------------------------- */

static void make_schema(struct text *text, size_t fields)
{
    static const char *const kinds[] = {
        "{\"type\":\"string\"}",
        "{\"type\":\"integer\",\"minimum\":0,\"maximum\":150}",
        "{\"type\":\"number\"}",
        "{\"type\":\"boolean\"}",
        "{\"enum\":[\"red\",\"green\",\"blue\"]}",
        "{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"maxItems\":5}",
        "{\"type\":\"string\",\"maxLength\":200}",
        "{\"type\":\"string\",\"pattern\":\"^[A-Z]{2}[0-9]{4}$\"}",
        "{\"type\":[\"string\",\"null\"]}",
        "{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"number\"},\"y\":{\"type\":"
        "\"string\"}},\"required\":[\"x\",\"y\"]}",
    };
    text_add(text, "{\"type\":\"object\",\"properties\":{");
    for (size_t i = 0; i < fields; i++)
        text_addf(text, "%s\"field_%zu\":%s", i ? "," : "", i, kinds[i % COUNT_OF(kinds)]);
    text_add(text, "},\"required\":[");
    for (size_t i = 0; i < fields; i += 2)
        text_addf(text, "%s\"field_%zu\"", i ? "," : "", i);
    text_add(text, "]}");
}

/* ---- Opening -------------------------------------------------------------------------------- */

static void open_model(struct bench *bench, const char *path, uint32_t threads)
{
    const struct device_options device_options = { .thread_count = threads };
    const struct engine_options engine_options = { .kv_dtype = DTYPE_F16, .context = 256 };
    MUST(gguf_open(path, &bench->model, &err));
    model_check(bench->model, NULL, &bench->report);
    MUST(all_open("host", &device_options, &bench->device, &err));
    MUST(ops_load(&bench->ops, bench->device, CPU_PATH_COUNT, &err));
    MUST(engine_open(&bench->ops, bench->model, &bench->report, &engine_options, &bench->engine,
                     &err));
    MUST(session_create(bench->engine, NULL, NULL, &bench->session, &err));
}

static void open_grammar(struct bench *bench, const char *path, size_t fields)
{
    struct text text;
    text_init(&text);
    make_schema(&text, fields);
    MUST(gguf_open(path, &bench->words, &err));
    MUST(tokenizer_create(bench->words, &bench->tokenizer, &err));
    uint64_t start_ns = clock_ns();
    MUST(grammar_vocabulary_create(bench->tokenizer, &bench->vocabulary, &err));
    double vocabulary_ms = (double)(clock_ns() - start_ns) / 1e6;
    start_ns = clock_ns();
    MUST(grammar_create_schema(bench->vocabulary,
                               (struct text_view){ text_get(&text), text.length }, "schema",
                               &bench->grammar, &err));
    bench->vocab_size = tokenizer_info(bench->tokenizer)->token_count;
    printf("schema of %zu fields, vocabulary of %u: once %.0f ms for the vocabulary, %.1f ms for "
           "the schema\n",
           fields, bench->vocab_size, vocabulary_ms, (double)(clock_ns() - start_ns) / 1e6);
    text_release(&text);
}

static void close_all(struct bench *bench)
{
    grammar_destroy(bench->grammar);
    grammar_vocabulary_destroy(bench->vocabulary);
    tokenizer_destroy(bench->tokenizer);
    gguf_close(bench->words);
    session_destroy(bench->session);
    engine_close(bench->engine);
    device_close(bench->device);
    gguf_close(bench->model);
    free(bench->logits);
}

/* ---- The run -------------------------------------------------------------------------------- */

static uint32_t option(int count, char **arguments, const char *name, uint32_t fallback)
{
    for (int i = 1; i + 1 < count; i++)
        if (strcmp(arguments[i], name) == 0)
            return (uint32_t)strtoul(arguments[i + 1], NULL, 10);
    return fallback;
}

static int by_value(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static void run(struct bench *bench, uint32_t rounds, const uint8_t *is_end)
{
    double shares[ROUND_LIMIT], steps[ROUND_LIMIT], worst_ms = 0, all_ms = 0, all_steps_ms = 0;
    uint32_t tokens = 0;
    decode(bench); /* to warm up */
    for (uint32_t i = 0; i < rounds; i++) {
        steps[i] = decode(bench);
        struct text_cost cost = write_text(bench, is_end);
        shares[i] = cost.total_ms / cost.count / steps[i];
        worst_ms = fmax(worst_ms, cost.worst_ms);
        all_ms += cost.total_ms;
        all_steps_ms += cost.count * steps[i];
        tokens += cost.count;
        if (i == 0)
            printf("first text: %.3f ms of %.1f ms a token, %.2f %%\n", cost.total_ms / cost.count,
                   steps[i], 100 * shares[i]);
    }
    qsort(shares, rounds, sizeof(*shares), by_value);
    qsort(steps, rounds, sizeof(*steps), by_value);
    printf("%u texts, %u tokens: a mask takes %.3f ms, a decode step %.1f ms\n", rounds, tokens,
           all_ms / tokens, steps[rounds / 2]);
    printf("share of a step: %.2f %% over all, %.2f %% in the median text (%.2f to %.2f); longest "
           "mask %.1f ms\n",
           100 * all_ms / all_steps_ms, 100 * shares[rounds / 2], 100 * shares[0],
           100 * shares[rounds - 1], worst_ms);
}

int main(int count, char **arguments)
{
    struct bench bench = { .random = 1 };
    uint32_t rounds = option(count, arguments, "--rounds", 20);
    if (count < 3 || rounds < 1 || rounds > ROUND_LIMIT) {
        fprintf(stderr, "usage: bench_grammar MODEL VOCABULARY [--fields N] [--rounds N] "
                        "[--threads N]\n");
        return 2;
    }
    open_model(&bench, arguments[1], option(count, arguments, "--threads", 0));
    open_grammar(&bench, arguments[2], option(count, arguments, "--fields", 50));
    bench.logits = calloc(bench.vocab_size, sizeof(*bench.logits));
    uint8_t *is_end = calloc(bench.vocab_size, 1);
    struct text bytes;
    text_init(&bytes);
    for (uint32_t id = 0; bench.logits && is_end && id < bench.vocab_size; id++) {
        text_clear(&bytes);
        tokenizer_token_bytes(bench.tokenizer, id, 0, &bytes);
        is_end[id] = bytes.length && strchr("\"]},", text_get(&bytes)[0]) != NULL;
    }
    if (bench.logits && is_end)
        run(&bench, rounds, is_end);
    text_release(&bytes);
    free(is_end);
    close_all(&bench);
    return 0;
}
