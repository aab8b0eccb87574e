/* peers_table.c - medians of pairs and their spread; see peers_compare.h.
 *
 * On a processor a pair counts if nobody else ran meanwhile and, where it matters, all probes found
 * the cores in the same place. Where no pair of a test counts, all of them are shown, and called
 * what they are. On a GPU all pairs count. */
#include "peers_compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Instead of a placement: all pairs that count wherever they were, or simply all pairs. */
#define ANYWHERE PLACEMENT_COUNT
#define ANYHOW ((enum placement)(PLACEMENT_COUNT + 1))

/* Where the cores were during a pair; PLACEMENT_COUNT if they moved. */
static enum placement pair_placement(const struct peers_pair *pair)
{
    for (size_t i = 1; i < COUNT_OF(pair->probes); i++)
        if (pair->probes[i].placement != pair->probes[0].placement)
            return PLACEMENT_COUNT;
    return pair->probes[0].placement;
}

/* Two threads that decode depend on where they are; a prefill is too long to stay in one place and
 * depends less on it. */
static bool counts(const struct peers_bench *bench, const struct peers_pair *pair, size_t test,
                   enum placement placement)
{
    if (pair->test != test)
        return false;
    if (!bench->plan.probes || placement == ANYHOW)
        return true;
    if (pair->disturbed)
        return false;
    if (bench->plan.tests[test].placed)
        return pair_placement(pair) == placement;
    for (size_t i = 0; i < COUNT_OF(pair->probes); i++)
        if (pair->probes[i].placement == PLACED_ONE_CORE)
            return false;
    return true;
}

/* ---- Numbers -------------------------------------------------------------------------------- */

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

/* ---- Rows ----------------------------------------------------------------------------------- */

static void emit_what(struct emit *emit, const struct peers_bench *bench, size_t index,
                      enum placement placement)
{
    const struct peers_test *test = &bench->plan.tests[index];
    const struct peers_setting *setting = &bench->plan.settings[test->setting];
    emit_text(emit, "test", test->name);
    if (bench->plan.probes) {
        emit_count(emit, "threads", setting->threads);
        emit_text(emit, "cores",
                  placement == ANYHOW ? "disturbed"
                  : test->placed      ? placement_name(placement)
                                      : "any");
    } else {
        emit_count(emit, "sequences", setting->sequences);
        emit_count(emit, "tokens", test->tokens);
        emit_text(emit, "llama_cpp_way", peers_way_name(bench->ways[index]));
    }
}

/* False if no pair counts. */
static bool emit_row(struct emit *emit, const struct peers_bench *bench, size_t test,
                     enum placement placement)
{
    static double values[5][PEERS_PAIR_LIMIT]; /* either speed, ratio, ping-pong, reading */
    struct spread spreads[5];
    size_t count = 0, all = 0;
    for (size_t i = 0; i < bench->pair_count; i++) {
        const struct peers_pair *pair = &bench->pairs[i];
        all += pair->test == test;
        if (!counts(bench, pair, test, placement))
            continue;
        values[0][count] = pair->speed[PEERS_GRETA];
        values[1][count] = pair->speed[PEERS_LLAMA];
        values[2][count] = pair->speed[PEERS_GRETA] / pair->speed[PEERS_LLAMA];
        values[3][count] = pair->probes[1].ping_pong_ns;
        values[4][count++] = pair->probes[1].read_gb_per_s;
    }
    if (count == 0)
        return false;
    for (size_t i = 0; i < COUNT_OF(values); i++)
        spreads[i] = spread_of(values[i], count);
    emit_object_begin(emit, NULL);
    emit_what(emit, bench, test, placement);
    emit_count(emit, "pairs", count);
    emit_count(emit, "of", all);
    emit_spread(emit, "greta", spreads[0]);
    emit_spread(emit, "llama_cpp", spreads[1]);
    emit_spread(emit, "ratio", spreads[2]);
    if (bench->plan.probes) {
        emit_count(emit, "ping_pong_ns", (uint64_t)(spreads[3].middle + 0.5));
        emit_real(emit, "read_gb_per_s", floor(spreads[4].middle * 10 + 0.5) / 10);
    }
    emit_object_end(emit);
    return true;
}

static void emit_test(struct emit *emit, const struct peers_bench *bench, size_t test)
{
    bool shown = false, placed = bench->plan.tests[test].placed;
    for (int placement = 0; placed && placement < PLACEMENT_COUNT; placement++)
        shown |= emit_row(emit, bench, test, (enum placement)placement);
    if (!placed)
        shown = emit_row(emit, bench, test, ANYWHERE);
    if (!shown)
        emit_row(emit, bench, test, ANYHOW);
}

void peers_emit(struct emit *emit, const struct peers_bench *bench)
{
    size_t disturbed = 0, moved = 0;
    for (size_t i = 0; i < bench->pair_count; i++) {
        disturbed += bench->pairs[i].disturbed;
        moved += pair_placement(&bench->pairs[i]) == PLACEMENT_COUNT;
    }
    emit_real(emit, "logits_nmse", bench->logits_error);
    emit_count(emit, "pairs", bench->pair_count);
    if (bench->plan.probes) {
        emit_count(emit, "pairs_disturbed", disturbed);
        emit_count(emit, "pairs_in_which_cores_moved", moved);
    }
    emit_list_begin(emit, "tests");
    for (size_t test = 0; test < bench->plan.test_count; test++)
        emit_test(emit, bench, test);
    emit_list_end(emit);
}
