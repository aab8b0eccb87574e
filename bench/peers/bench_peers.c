/* bench_peers.c - greta beside llama.cpp on the same files, in turn, in one process.
 *
 *     bench_peers --libraries FOLDER [--seconds N] [--decode N] [--prompt N] [--json] FILE...
 *     bench_peers --libraries FOLDER --first-token greta|llama.cpp [--prompt N] FILE
 *
 * Each measurement is a pair: one repetition of either engine, one right after the other, with a
 * probe of the machine before, between and after. A pair counts if nobody else ran meanwhile and,
 * for decoding with two threads, all probes found the cores in the same place. What is compared is
 * the median of the pairs' ratios.
 *
 * --first-token is one cold start of one engine, with two threads: the time from nothing to the
 * logits of a prompt, and the most memory the process had. bench/run starts both in turn. */
#include "peers_engine.h"
#include "bench_probe.h"

#include "base/clock.h"
#include "base/emit.h"
#include "base/mapfile.h"
#include "bench_peaks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Settings ------------------------------------------------------------------------------- */

struct settings {
    const char *libraries, *first_token;
    double seconds;          /* for each file */
    uint32_t decode, prompt; /* tokens of a repetition */
    bool json;
};

enum test { DECODE_TWO, DECODE_ONE, PREFILL, TEST_COUNT };

static const struct {
    const char *name;
    uint32_t threads;
} tests[] = {
    [DECODE_TWO] = { "decode", 2 },
    [DECODE_ONE] = { "decode", 1 },
    [PREFILL] = { "prefill", 2 },
};

/* What is measured in turn, until time is up. */
static const enum test schedule[] = { PREFILL,    DECODE_TWO, DECODE_ONE, DECODE_TWO, DECODE_TWO,
                                      DECODE_ONE, DECODE_TWO, DECODE_TWO, DECODE_ONE, DECODE_TWO };

/* ---- Measuring ------------------------------------------------------------------------------ */

enum { GRETA, LLAMA, ENGINE_COUNT };

struct pair {
    enum test test;
    double speed[ENGINE_COUNT]; /* tokens per second */
    struct probe probes[3];
    bool disturbed;
};

#define PAIR_LIMIT 4096u

struct bench {
    const struct settings *settings;
    struct peers_engine engines[ENGINE_COUNT];
    uint32_t vocab_size;
    const uint8_t *bytes; /* of the file: what the probe reads */
    size_t byte_count;
    struct pair *pairs; /* PAIR_LIMIT */
    size_t pair_count;
};

static enum status run(struct bench *bench, size_t engine, enum test test, double *ret_speed,
                       struct error *err)
{
    uint32_t count = test == PREFILL ? bench->settings->prompt : bench->settings->decode;
    uint64_t start = clock_ns();
    TRY(bench->engines[engine].run(bench->engines[engine].self, tests[test].threads, count,
                                   test == PREFILL ? count : 1, err));
    *ret_speed = (double)count * 1e9 / (double)(clock_ns() - start);
    return STATUS_OK;
}

static enum status measure_pair(struct bench *bench, enum test test, struct error *err)
{
    struct pair *pair = &bench->pairs[bench->pair_count];
    size_t first = bench->pair_count % ENGINE_COUNT; /* none is always the first */
    *pair = (struct pair){ .test = test };
    pair->probes[0] = probe_take(bench->bytes, bench->byte_count);
    for (size_t i = 0; i < ENGINE_COUNT; i++) {
        size_t engine = (first + i) % ENGINE_COUNT;
        struct processor_time before = processor_time_now();
        TRY(run(bench, engine, test, &pair->speed[engine], err));
        struct processor_time after = processor_time_now();
        pair->disturbed |= was_disturbed(&before, &after);
        pair->probes[i + 1] = probe_take(bench->bytes, bench->byte_count);
    }
    bench->pair_count++;
    return STATUS_OK;
}

/* Normalised mean square error between the engines' logits. */
static double logits_error(struct bench *bench)
{
    const float *ours = bench->engines[GRETA].logits(bench->engines[GRETA].self);
    const float *theirs = bench->engines[LLAMA].logits(bench->engines[LLAMA].self);
    double square = 0, difference = 0;
    for (uint32_t i = 0; theirs && i < bench->vocab_size; i++) {
        double apart = (double)ours[i] - (double)theirs[i];
        difference += apart * apart;
        square += (double)theirs[i] * (double)theirs[i];
    }
    return square > 0 ? difference / square : NAN;
}

/* Runs every test once, so that both have touched all they need; then in turn until time is up. */
static enum status measure(struct bench *bench, double *ret_logits_error, struct error *err)
{
    double speed;
    for (size_t engine = 0; engine < ENGINE_COUNT; engine++)
        for (int test = 0; test < TEST_COUNT; test++)
            if (test != PREFILL)
                TRY(run(bench, engine, (enum test)test, &speed, err));
    *ret_logits_error = logits_error(bench);
    uint64_t start = clock_ns();
    for (size_t i = 0; bench->pair_count < PAIR_LIMIT; i++) {
        if (i >= COUNT_OF(schedule) &&
            (double)(clock_ns() - start) > bench->settings->seconds * 1e9)
            break;
        TRY(measure_pair(bench, schedule[i % COUNT_OF(schedule)], err));
    }
    return STATUS_OK;
}

/* ---- Results -------------------------------------------------------------------------------- */

/* Instead of a placement: all pairs, disturbed or not. */
#define ANYHOW ((enum placement)(PLACEMENT_COUNT + 1))

/* Where the cores were during a pair; PLACEMENT_COUNT if they moved. */
static enum placement pair_placement(const struct pair *pair)
{
    for (size_t i = 1; i < COUNT_OF(pair->probes); i++)
        if (pair->probes[i].placement != pair->probes[0].placement)
            return PLACEMENT_COUNT;
    return pair->probes[0].placement;
}

/* Pairs of a test that count. Two threads that decode depend on where they are; a prefill is too
 * long to stay in one place and depends less on it. */
static bool counts(const struct pair *pair, enum test test, enum placement placement)
{
    if (pair->test != test || (pair->disturbed && placement != ANYHOW))
        return false;
    if (placement == ANYHOW)
        return true;
    if (test == DECODE_TWO)
        return pair_placement(pair) == placement;
    for (size_t i = 0; i < COUNT_OF(pair->probes); i++)
        if (pair->probes[i].placement == PLACED_ONE_CORE)
            return false;
    return true;
}

struct spread {
    double low, middle, high; /* tenth, median, ninth tenth */
};

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static struct spread spread_of(double *values, size_t count)
{
    qsort(values, count, sizeof(*values), by_value);
    double middle = count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
    return (struct spread){ values[count / 10], middle, values[count - 1 - count / 10] };
}

static void emit_spread(struct emit *emit, const char *key, struct spread spread)
{
    char range_key[48];
    if (!emit_is_json(emit)) {
        emit_textf(emit, key, "%.2f (%.2f to %.2f)", spread.middle, spread.low, spread.high);
        return;
    }
    emit_real(emit, key, spread.middle);
    snprintf(range_key, sizeof(range_key), "%s_low", key);
    emit_real(emit, range_key, spread.low);
    snprintf(range_key, sizeof(range_key), "%s_high", key);
    emit_real(emit, range_key, spread.high);
}

/* False if no pair counts. */
static bool emit_row(struct emit *emit, const struct bench *bench, enum test test,
                     enum placement placement)
{
    static double values[5][PAIR_LIMIT]; /* either speed, their ratio, ping-pong, reading */
    struct spread spreads[5];
    size_t count = 0, all = 0;
    for (size_t i = 0; i < bench->pair_count; i++) {
        const struct pair *pair = &bench->pairs[i];
        all += pair->test == test;
        if (!counts(pair, test, placement))
            continue;
        values[0][count] = pair->speed[GRETA];
        values[1][count] = pair->speed[LLAMA];
        values[2][count] = pair->speed[GRETA] / pair->speed[LLAMA];
        values[3][count] = pair->probes[1].ping_pong_ns;
        values[4][count++] = pair->probes[1].read_gb_per_s;
    }
    if (count == 0)
        return false;
    for (size_t i = 0; i < COUNT_OF(values); i++)
        spreads[i] = spread_of(values[i], count);
    emit_object_begin(emit, NULL);
    emit_text(emit, "test", tests[test].name);
    emit_count(emit, "threads", tests[test].threads);
    emit_text(emit, "cores",
              placement == ANYHOW  ? "disturbed"
              : test == DECODE_TWO ? placement_name(placement)
                                   : "any");
    emit_count(emit, "pairs", count);
    emit_count(emit, "of", all);
    emit_spread(emit, "greta", spreads[0]);
    emit_spread(emit, "llama_cpp", spreads[1]);
    emit_spread(emit, "ratio", spreads[2]);
    emit_count(emit, "ping_pong_ns", (uint64_t)(spreads[3].middle + 0.5));
    emit_real(emit, "read_gb_per_s", floor(spreads[4].middle * 10 + 0.5) / 10);
    emit_object_end(emit);
    return true;
}

/* Where no pair of a test counts, all of them are shown, and called what they are. */
static void emit_test(struct emit *emit, const struct bench *bench, enum test test)
{
    bool shown = false;
    for (int placement = 0; test == DECODE_TWO && placement < PLACEMENT_COUNT; placement++)
        shown |= emit_row(emit, bench, test, (enum placement)placement);
    if (test != DECODE_TWO)
        shown = emit_row(emit, bench, test, PLACEMENT_COUNT);
    if (!shown)
        emit_row(emit, bench, test, ANYHOW);
}

static void emit_file(struct emit *emit, const struct bench *bench, const char *path,
                      double logits_error_found)
{
    size_t disturbed = 0, moved = 0;
    for (size_t i = 0; i < bench->pair_count; i++) {
        disturbed += bench->pairs[i].disturbed;
        moved += pair_placement(&bench->pairs[i]) == PLACEMENT_COUNT;
    }
    const char *name = strrchr(path, '/');
    if (emit_is_json(emit))
        emit_object_begin(emit, NULL);
    emit_text(emit, "file", name ? name + 1 : path);
    emit_real(emit, "logits_nmse", logits_error_found);
    emit_count(emit, "pairs", bench->pair_count);
    emit_count(emit, "pairs_disturbed", disturbed);
    emit_count(emit, "pairs_in_which_cores_moved", moved);
    emit_list_begin(emit, "tests");
    for (int test = 0; test < TEST_COUNT; test++)
        emit_test(emit, bench, (enum test)test);
    emit_list_end(emit);
    if (emit_is_json(emit))
        emit_object_end(emit);
}

/* ---- Files ---------------------------------------------------------------------------------- */

static void close_engines(struct bench *bench)
{
    for (size_t i = 0; i < ENGINE_COUNT; i++)
        if (bench->engines[i].self)
            bench->engines[i].close(bench->engines[i].self);
}

static enum status compare(struct bench *bench, struct emit *emit, const char *path,
                           struct error *err)
{
    const struct settings *settings = bench->settings;
    uint32_t context = settings->prompt > settings->decode ? settings->prompt : settings->decode;
    struct mapfile map;
    double logits_error_found = NAN;
    TRY(mapfile_open(&map, path, err));
    bench->bytes = map.data;
    bench->byte_count = map.size;
    bench_read(map.data, map.size); /* into the page cache */
    enum status status = peers_open_greta(path, context, 1, &bench->engines[GRETA],
                                          &bench->vocab_size, err);
    if (!status)
        status = peers_open_llama(settings->libraries, path, context, bench->vocab_size,
                                  &bench->engines[LLAMA], err);
    if (!status)
        status = measure(bench, &logits_error_found, err);
    if (!status)
        emit_file(emit, bench, path, logits_error_found);
    close_engines(bench);
    mapfile_release(&map);
    return status;
}

/* Text comes file by file, JSON in one piece. */
static enum status compare_files(const struct settings *settings, char **paths, int path_count,
                                 struct pair *pairs, struct error *err)
{
    struct emit *emit = NULL;
    enum status status = STATUS_OK;
    if (settings->json) {
        TRY(emit_create(EMIT_JSON, &emit, err));
        emit_list_begin(emit, "files");
    }
    for (int i = 0; i < path_count && !status; i++) {
        struct bench bench = { .settings = settings, .pairs = pairs };
        struct emit *text = NULL;
        fprintf(stderr, "bench_peers: %s, about %.0f s\n", paths[i], settings->seconds);
        if (!emit)
            status = emit_create(EMIT_TEXT, &text, err);
        if (!status)
            status = compare(&bench, emit ? emit : text, paths[i], err);
        if (!status && text)
            status = emit_finish(text, stdout, err);
        emit_destroy(text);
        fflush(stdout);
    }
    if (emit && !status) {
        emit_list_end(emit);
        status = emit_finish(emit, stdout, err);
    }
    emit_destroy(emit);
    return status;
}

static bool is_engine(const char *name)
{
    return strcmp(name, "greta") == 0 || strcmp(name, "llama.cpp") == 0;
}

int main(int count, char **arguments)
{
    struct settings settings = { .seconds = 60, .decode = 16, .prompt = 512 };
    struct error err;
    int i = 1;
    for (; i < count && strncmp(arguments[i], "--", 2) == 0; i++) {
        const char *name = arguments[i], *value = i + 1 < count ? arguments[i + 1] : "";
        if (strcmp(name, "--json") == 0) {
            settings.json = true;
            continue;
        }
        i++;
        if (strcmp(name, "--libraries") == 0)
            settings.libraries = value;
        else if (strcmp(name, "--first-token") == 0 && is_engine(value))
            settings.first_token = value;
        else if (strcmp(name, "--seconds") == 0)
            settings.seconds = strtod(value, NULL);
        else if (strcmp(name, "--decode") == 0)
            settings.decode = (uint32_t)strtoul(value, NULL, 10);
        else if (strcmp(name, "--prompt") == 0)
            settings.prompt = (uint32_t)strtoul(value, NULL, 10);
        else
            i = count; /* not known: usage */
    }
    if (i >= count || !settings.libraries || settings.decode == 0 || settings.prompt == 0 ||
        settings.prompt > 512) {
        fprintf(stderr, "usage: bench_peers --libraries FOLDER [--seconds N] [--decode N] "
                        "[--prompt N (at most 512)] [--json] FILE...\n"
                        "       bench_peers --libraries FOLDER --first-token greta|llama.cpp "
                        "[--prompt N] FILE\n");
        return 2;
    }
    if (settings.first_token) {
        enum status started = peers_start(settings.first_token, settings.libraries, arguments[i],
                                          settings.prompt, &err);
        if (started)
            fprintf(stderr, "bench_peers: %s\n", err.text);
        return started ? 3 : 0;
    }
    struct pair *pairs = calloc(PAIR_LIMIT, sizeof(*pairs));
    enum status status = pairs ? compare_files(&settings, arguments + i, count - i, pairs, &err)
                               : error_set(&err, STATUS_NO_MEMORY, "no memory for measurements");
    free(pairs);
    if (status)
        fprintf(stderr, "bench_peers: %s\n", err.text);
    return status ? 3 : 0;
}
