/* peers_compare.h - what is measured of two engines side by side, how, and what came out.
 *
 * peers_plan.c says what is measured on a device, peers_measure.c measures it, peers_table.c shows
 * it. A measurement is a pair: one repetition of either engine, one right after the other. */
#ifndef GRETA_BENCH_PEERS_COMPARE_H
#define GRETA_BENCH_PEERS_COMPARE_H

#include "peers_engine.h"

#include "base/emit.h"
#include "bench_probe.h"

/* ---- The plan ------------------------------------------------------------------------------- */

struct peers_test {
    const char *name; /* "decode" or "prefill" */
    size_t setting;   /* of the plan */
    uint32_t ways;    /* a bit for each of llama.cpp's that is tried: the fastest counts */
    uint32_t tokens;  /* of a repetition, for each sequence */
    uint32_t at_once; /* of them in a step, where there is one sequence */
    bool placed;      /* depends on where the processor's cores are: compared place by place */
    bool once;        /* too long to be run once more beforehand */
};

#define PEERS_TEST_LIMIT 4u
#define PEERS_TURN_LIMIT 10u

struct peers_plan {
    struct peers_setting settings[PEERS_SETTING_LIMIT];
    size_t setting_count;
    struct peers_test tests[PEERS_TEST_LIMIT];
    size_t test_count;
    uint8_t turns[PEERS_TURN_LIMIT]; /* tests in the order they are measured, again and again */
    size_t turn_count;
    /* The processor is probed beside each repetition; a GPU does not mind what it sees. */
    bool probes;
};

/* What may be chosen; 0: as the device has it. */
struct peers_lengths {
    uint32_t decode, prompt, sequences;
    bool plain; /* llama.cpp as it is by default: no other way is tried */
};

/* STATUS_USAGE where lengths do not fit. */
MUST_CHECK enum status peers_plan_make(const char *device, const struct peers_lengths *lengths,
                                       struct peers_plan *ret_plan, struct error *err);

/* For one engine alone, of one sequence: the first way with the device's threads. */
struct peers_setting peers_setting_alone(const char *device, uint32_t context);

/* ---- Measuring ------------------------------------------------------------------------------ */

enum { PEERS_GRETA, PEERS_LLAMA, PEERS_ENGINE_COUNT };

struct peers_pair {
    size_t test;
    double speed[PEERS_ENGINE_COUNT]; /* tokens per second, of all sequences together */
    struct probe probes[3];           /* before, between and after, where the plan probes */
    bool disturbed;
};

#define PEERS_PAIR_LIMIT 4096u

struct peers_bench {
    struct peers_plan plan;
    struct peers_engine engines[PEERS_ENGINE_COUNT];
    double seconds;
    const uint8_t *bytes; /* of the file: what a probe reads */
    size_t byte_count;
    int32_t *tokens; /* room for a step */
    /* Found by measure: */
    double logits_error;                   /* normalised mean square error, of the worst setting */
    enum peers_way ways[PEERS_TEST_LIMIT]; /* the fastest of llama.cpp's for each test */
    struct peers_pair *pairs;              /* PEERS_PAIR_LIMIT */
    size_t pair_count;
};

/* Compares logits, finds llama.cpp's best ways, then measures pairs until time is up. */
MUST_CHECK enum status peers_measure(struct peers_bench *bench, struct error *err);

/* The fields of one file: into the innermost object that is open. */
void peers_emit(struct emit *emit, const struct peers_bench *bench);

#endif
