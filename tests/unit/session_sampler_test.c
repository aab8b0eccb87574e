/* session_sampler_test.c - each filter keeps what it should; draws follow the probabilities; equal
 * seeds give equal tokens. */
#include "test.h"

#include "session/sampler.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define VOCAB 6
static const float base_logits[VOCAB] = { 1, 4, 2, 4, 0, 3 }; /* ids by rank: 1 3 5 2 0 4 */

static const struct sampler_settings plain = {
    .temperature = 1, .top_p = 1, .repeat_penalty = 1, .repeat_last_n = 64, .seed = 1
};

static int32_t choose(struct sampler *sampler)
{
    float logits[VOCAB];
    int32_t id;
    struct error err;
    memcpy(logits, base_logits, sizeof(logits));
    CHECK_OK(sampler_choose(sampler, logits, &id, &err), &err);
    return id;
}

/* Ids that ever come out, as bits. */
static uint32_t reachable(struct sampler_settings settings)
{
    struct sampler *sampler;
    struct error err;
    uint32_t seen = 0;
    CHECK_OK(sampler_create(&settings, VOCAB, &sampler, &err), &err);
    for (int i = 0; i < 3000; i++)
        seen |= 1u << choose(sampler);
    sampler_destroy(sampler);
    return seen;
}

#define BITS(a, b, c, d, e, f) (a | b << 1 | c << 2 | d << 3 | e << 4 | f << 5)

static void test_filters(void **state)
{
    (void)state;
    struct sampler_settings greedy = plain, two = plain, nucleus = plain, floor_p = plain;
    struct sampler_settings cold = plain;
    greedy.temperature = 0;
    two.top_k = 3;
    nucleus.top_p = 0.7f; /* e^4 twice is 0.77 of all */
    floor_p.min_p = 0.3f; /* e^-1 = 0.37 stays, e^-2 = 0.14 does not */
    cold.temperature = 0.01f;
    const struct {
        const char *name;
        struct sampler_settings settings;
        uint32_t wanted;
    } rows[] = {
        { "everything", plain, BITS(1, 1, 1, 1, 1, 1) },
        { "greedy: the first of equals", greedy, BITS(0, 1, 0, 0, 0, 0) },
        { "top-k 3", two, BITS(0, 1, 0, 1, 0, 1) },
        { "top-p 0.7", nucleus, BITS(0, 1, 0, 1, 0, 0) },
        { "min-p 0.3", floor_p, BITS(0, 1, 0, 1, 0, 1) },
        { "cold", cold, BITS(0, 1, 0, 1, 0, 0) },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (reachable(rows[i].settings) != rows[i].wanted)
            fail_msg("%s: expected 0x%x, found 0x%x", rows[i].name, rows[i].wanted,
                     reachable(rows[i].settings));
}

static void test_frequencies(void **state)
{
    (void)state;
    enum { DRAWS = 200000 };
    struct sampler_settings settings = plain;
    struct sampler *sampler;
    struct error err;
    double counts[VOCAB] = { 0 }, sum = 0;
    settings.temperature = 1.5f;
    CHECK_OK(sampler_create(&settings, VOCAB, &sampler, &err), &err);
    for (int i = 0; i < DRAWS; i++)
        counts[choose(sampler)]++;
    for (int i = 0; i < VOCAB; i++)
        sum += exp((double)base_logits[i] / 1.5);
    for (int i = 0; i < VOCAB; i++) {
        double wanted = exp((double)base_logits[i] / 1.5) / sum;
        /* Five standard deviations. */
        if (fabs(counts[i] / DRAWS - wanted) > 5 * sqrt(wanted / DRAWS))
            fail_msg("token %d: expected %g, found %g", i, wanted, counts[i] / DRAWS);
    }
    sampler_destroy(sampler);
}

static void test_penalties(void **state)
{
    (void)state;
    struct sampler_settings settings = plain;
    struct sampler *sampler;
    struct error err;
    settings.temperature = 0;
    settings.repeat_penalty = 2; /* 4 becomes 2 */
    settings.repeat_last_n = 2;
    CHECK_OK(sampler_create(&settings, VOCAB, &sampler, &err), &err);
    assert_false(sampler_is_greedy(sampler));
    assert_int_equal(choose(sampler), 1);
    sampler_accept(sampler, 1);
    assert_int_equal(choose(sampler), 3);
    sampler_accept(sampler, 3);
    assert_int_equal(choose(sampler), 5);
    sampler_accept(sampler, 5); /* 1 is forgotten */
    assert_int_equal(choose(sampler), 1);
    sampler_accept(sampler, -7); /* not a token: ignored */
    sampler_accept(sampler, 99);
    sampler_destroy(sampler);
    settings.repeat_penalty = 1;
    settings.frequency_penalty = 0.6f; /* once: 3.4, twice: 2.8 */
    settings.repeat_last_n = 8;
    CHECK_OK(sampler_create(&settings, VOCAB, &sampler, &err), &err);
    sampler_accept(sampler, 1);
    sampler_accept(sampler, 3);
    assert_int_equal(choose(sampler), 1);
    sampler_accept(sampler, 1);
    sampler_accept(sampler, 3);
    assert_int_equal(choose(sampler), 5);
    sampler_destroy(sampler);
}

static void test_seeds(void **state)
{
    (void)state;
    struct sampler_settings settings = plain;
    struct error err;
    int32_t first[64];
    for (int run = 0; run < 3; run++) {
        struct sampler *sampler;
        settings.seed = run == 2 ? 2 : 1;
        CHECK_OK(sampler_create(&settings, VOCAB, &sampler, &err), &err);
        bool same = true;
        for (int i = 0; i < 64; i++) {
            int32_t id = choose(sampler);
            if (run == 0)
                first[i] = id;
            same = same && first[i] == id;
        }
        assert_int_equal(same, run < 2);
        sampler_destroy(sampler);
    }
}

/* The same tokens as when all of a large vocabulary is kept and the rest made impossible: the k
 * likeliest, the first of equals. */
static void test_large_vocabulary(void **state)
{
    (void)state;
    enum { LARGE = 2000, DRAWS = 10 };
    static float logits[LARGE], masked[LARGE];
    static const uint32_t tops[] = { 1, 2, 7, 40, 1999 };
    struct error err;
    uint32_t random = 1;
    for (size_t t = 0; t < COUNT_OF(tops); t++) {
        struct sampler_settings settings = plain;
        struct sampler *some, *all;
        CHECK_OK(sampler_create(&settings, LARGE, &all, &err), &err);
        settings.top_k = tops[t];
        CHECK_OK(sampler_create(&settings, LARGE, &some, &err), &err);
        for (int draw = 0; draw < DRAWS; draw++) {
            for (size_t i = 0; i < LARGE; i++) {
                random = random * 1664525u + 1013904223u;
                logits[i] = (float)(random >> 22) / 100; /* 1024 values: many are equal */
            }
            for (size_t i = 0; i < LARGE; i++) {
                uint32_t before = 0;
                for (size_t j = 0; j < LARGE; j++)
                    before += logits[j] > logits[i] || (logits[j] == logits[i] && j < i);
                masked[i] = before < tops[t] ? logits[i] : -INFINITY;
            }
            int32_t one, other;
            CHECK_OK(sampler_choose(some, logits, &one, &err), &err);
            CHECK_OK(sampler_choose(all, masked, &other, &err), &err);
            assert_int_equal(one, other);
        }
        sampler_destroy(some);
        sampler_destroy(all);
    }
}

static void test_bad_input(void **state)
{
    (void)state;
    struct sampler_settings settings = plain;
    struct sampler *sampler;
    struct error err;
    int32_t id;
    float logits[VOCAB] = { 1, 2, NAN, 3, 4, 5 };
    CHECK_OK(sampler_create(&settings, VOCAB, &sampler, &err), &err);
    CHECK_FAILS(sampler_choose(sampler, logits, &id, &err), STATUS_BAD_FILE, &err);
    check_contains("NaN", err.text, "token 2");
    for (int i = 0; i < VOCAB; i++)
        logits[i] = -INFINITY;
    CHECK_FAILS(sampler_choose(sampler, logits, &id, &err), STATUS_BAD_FILE, &err);
    sampler_destroy(sampler);
    settings.temperature = NAN;
    CHECK_FAILS(sampler_create(&settings, VOCAB, &sampler, &err), STATUS_USAGE, &err);
    settings = plain;
    settings.top_p = 1.5f;
    CHECK_FAILS(sampler_create(&settings, VOCAB, &sampler, &err), STATUS_USAGE, &err);
    check_contains("top-p", err.text, "expected 0 to 1, found 1.5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filters),   cmocka_unit_test(test_frequencies),
        cmocka_unit_test(test_penalties), cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_bad_input), cmocka_unit_test(test_large_vocabulary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
