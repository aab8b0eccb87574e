/* peers_measure.c - runs tests of both engines in turn; see peers_compare.h. */
#include "peers_compare.h"

#include "base/clock.h"

#include <math.h>
#include <stdio.h>

static enum status take_steps(struct peers_bench *bench, const struct peers_engine *engine,
                              const struct peers_test *test, struct error *err)
{
    uint32_t sequences = bench->plan.settings[test->setting].sequences;
    for (uint32_t first = 0; first < test->tokens; first += test->at_once) {
        uint32_t left = test->tokens - first;
        uint32_t count = sequences > 1 ? sequences : left < test->at_once ? left : test->at_once;
        for (uint32_t i = 0; i < count; i++)
            bench->tokens[i] = peers_token(first * sequences + i, engine->vocab_size);
        TRY(engine->step(engine->self, bench->tokens, count, err));
    }
    return STATUS_OK;
}

static enum status run(struct peers_bench *bench, size_t engine_index, size_t test_index,
                       enum peers_way way, double *ret_speed, struct error *err)
{
    const struct peers_engine *engine = &bench->engines[engine_index];
    const struct peers_test *test = &bench->plan.tests[test_index];
    uint32_t sequences = bench->plan.settings[test->setting].sequences;
    TRY(engine->begin(engine->self, test->setting, way, err));
    uint64_t start = clock_ns();
    TRY(take_steps(bench, engine, test, err));
    *ret_speed = (double)test->tokens * sequences * 1e9 / (double)(clock_ns() - start);
    return engine->end(engine->self, err);
}

/* ---- Before anything counts ----------------------------------------------------------------- */

/* Normalised mean square error between the engines' logits of their last step, of one sequence. */
static double logits_error(const struct peers_bench *bench, uint32_t sequence)
{
    const struct peers_engine *greta = &bench->engines[PEERS_GRETA];
    const struct peers_engine *llama = &bench->engines[PEERS_LLAMA];
    const float *ours = greta->logits(greta->self, sequence);
    const float *theirs = llama->logits(llama->self, sequence);
    double square = 0, difference = 0;
    for (uint32_t i = 0; ours && theirs && i < greta->vocab_size; i++) {
        double apart = (double)ours[i] - (double)theirs[i];
        difference += apart * apart;
        square += (double)theirs[i] * (double)theirs[i];
    }
    return square > 0 ? difference / square : NAN;
}

/* Runs a test of both, so that they have touched all they need; the larger error stays. */
static enum status warm_up(struct peers_bench *bench, size_t test, struct error *err)
{
    double speed;
    uint32_t sequences = bench->plan.settings[bench->plan.tests[test].setting].sequences;
    for (size_t engine = 0; engine < PEERS_ENGINE_COUNT; engine++)
        TRY(run(bench, engine, test, PEERS_PLAIN, &speed, err));
    double found = logits_error(bench, sequences - 1);
    if (isnan(found) || found > bench->logits_error)
        bench->logits_error = found;
    return STATUS_OK;
}

/* The better of two runs of llama.cpp, behind one that warms up. */
static enum status try_way(struct peers_bench *bench, size_t test, enum peers_way way,
                           double *ret_speed, struct error *err)
{
    double speed, best = 0;
    for (int turn = 0; turn < 3; turn++) {
        TRY(run(bench, PEERS_LLAMA, test, way, &speed, err));
        best = turn > 0 && speed > best ? speed : best;
    }
    *ret_speed = best;
    return STATUS_OK;
}

/* Of llama.cpp's ways of a test the one that is fastest. One it cannot go is told and left out; it
 * always has the plain one. */
static enum status choose_way(struct peers_bench *bench, size_t test, struct error *err)
{
    const struct peers_engine *llama = &bench->engines[PEERS_LLAMA];
    size_t setting = bench->plan.tests[test].setting;
    uint32_t ways = bench->plan.tests[test].ways;
    double best = 0, speed;
    bench->ways[test] = PEERS_PLAIN;
    if (ways == 1u << PEERS_PLAIN)
        return STATUS_OK;
    TRY(try_way(bench, test, PEERS_PLAIN, &best, err));
    for (int way = PEERS_PLAIN + 1; way < PEERS_WAY_COUNT; way++) {
        struct error why;
        if (!(ways & 1u << way) || !llama->has(llama->self, setting, (enum peers_way)way))
            continue;
        if (try_way(bench, test, (enum peers_way)way, &speed, &why)) {
            fprintf(stderr, "bench_peers: %s: %s\n", peers_way_name((enum peers_way)way), why.text);
        } else if (speed > best) {
            best = speed;
            bench->ways[test] = (enum peers_way)way;
        }
    }
    return STATUS_OK;
}

/* ---- Pairs ---------------------------------------------------------------------------------- */

static void probe(const struct peers_bench *bench, struct probe *ret)
{
    if (bench->plan.probes)
        *ret = probe_take(bench->bytes, bench->byte_count);
}

static enum status measure_pair(struct peers_bench *bench, size_t test, struct error *err)
{
    struct peers_pair *pair = &bench->pairs[bench->pair_count];
    size_t first = bench->pair_count % PEERS_ENGINE_COUNT; /* none is always the first */
    *pair = (struct peers_pair){ .test = test };
    probe(bench, &pair->probes[0]);
    for (size_t i = 0; i < PEERS_ENGINE_COUNT; i++) {
        size_t engine = (first + i) % PEERS_ENGINE_COUNT;
        enum peers_way way = engine == PEERS_LLAMA ? bench->ways[test] : PEERS_PLAIN;
        struct processor_time before = processor_time_now();
        TRY(run(bench, engine, test, way, &pair->speed[engine], err));
        struct processor_time after = processor_time_now();
        pair->disturbed |= bench->plan.probes && was_disturbed(&before, &after);
        probe(bench, &pair->probes[i + 1]);
    }
    bench->pair_count++;
    return STATUS_OK;
}

enum status peers_measure(struct peers_bench *bench, struct error *err)
{
    const struct peers_plan *plan = &bench->plan;
    bench->logits_error = 0;
    for (size_t test = 0; test < plan->test_count; test++) {
        if (!plan->tests[test].once)
            TRY(warm_up(bench, test, err));
        TRY(choose_way(bench, test, err));
    }
    uint64_t start = clock_ns();
    for (size_t i = 0; bench->pair_count < PEERS_PAIR_LIMIT; i++) {
        if (i >= plan->turn_count && (double)(clock_ns() - start) > bench->seconds * 1e9)
            break;
        TRY(measure_pair(bench, plan->turns[i % plan->turn_count], err));
    }
    return STATUS_OK;
}
