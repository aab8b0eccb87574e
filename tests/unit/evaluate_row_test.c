/* evaluate_row_test.c - a row of logits against what can be worked out by hand; means, errors and
 * percentiles. */
#include "test.h"

#include "evaluate/evaluate_impl.h"

#include <math.h>

static void check_near(const char *what, double found, double wanted, double tolerance)
{
    if (!(fabs(found - wanted) <= tolerance))
        fail_msg("%s: expected %.12g, found %.12g", what, wanted, found);
}

static void test_surprise(void **state)
{
    (void)state;
    struct evaluate_row row;
    const float even[4] = { 7, 7, 7, 7 };
    evaluate_row_score(even, NULL, 4, 2, &row);
    check_near("even", row.nats, log(4), 1e-12);
    assert_true(row.finite);
    /* exp gives 1, 2, 4 and 8 of 15. */
    const float doubling[4] = { 0, 0.69314718f, 1.38629436f, 2.07944154f };
    for (unsigned i = 0; i < 4; i++) {
        evaluate_row_score(doubling, NULL, 4, i, &row);
        check_near("doubling", row.nats, log(15.0 / (double)(1u << i)), 1e-6);
    }
    /* Logits that exp alone could not hold. */
    const float large[3] = { 3e4f, 3e4f, -3e4f };
    evaluate_row_score(large, NULL, 3, 0, &row);
    check_near("large", row.nats, log(2), 1e-9);
    evaluate_row_score(large, NULL, 3, 2, &row);
    check_near("large", row.nats, 6e4 + log(2), 1e-6);
}

static void test_not_finite(void **state)
{
    (void)state;
    struct evaluate_row row;
    const float good[3] = { 1, 2, 3 };
    const float bad[][3] = { { NAN, 1, 2 }, { 1, NAN, 2 }, { 1, 2, INFINITY }, { 1, 2, NAN } };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        evaluate_row_score(bad[i], NULL, 3, 0, &row);
        assert_false(row.finite);
        evaluate_row_score(good, bad[i], 3, 0, &row);
        assert_false(row.finite);
        evaluate_row_score(bad[i], good, 3, 0, &row);
        assert_false(row.finite);
    }
}

static void test_divergence(void **state)
{
    (void)state;
    struct evaluate_row row;
    /* Base 1/4, 3/4 against model 1/2, 1/2. */
    const float base[2] = { 0, 1.0986123f }, model[2] = { 5, 5 };
    evaluate_row_score(model, base, 2, 1, &row);
    check_near("divergence", row.divergence, 0.25 * log(0.5) + 0.75 * log(1.5), 1e-7);
    check_near("base", row.base_nats, log(4.0 / 3), 1e-7);
    check_near("model", row.nats, log(2), 1e-12);
    assert_false(row.same_top); /* of equal logits the first is the top */
    assert_false(row.identical);
    /* The other way round it is another number. */
    evaluate_row_score(base, model, 2, 1, &row);
    check_near("reversed", row.divergence, 0.5 * log(2) + 0.5 * log(2.0 / 3), 1e-7);
    /* A constant added changes bits, not predictions. */
    const float shifted[2] = { 1, 2.0986123f };
    evaluate_row_score(shifted, base, 2, 0, &row);
    check_near("shifted", row.divergence, 0, 1e-7);
    assert_true(row.same_top && !row.identical);
    evaluate_row_score(base, base, 2, 0, &row);
    assert_true(row.divergence == 0 && row.identical && row.same_top);
}

static void test_moments(void **state)
{
    (void)state;
    struct evaluate_moments moments = { 0 };
    evaluate_moments_add(&moments, 1e9 + 2);
    assert_true(evaluate_moments_mean(&moments).error == 0);
    for (int i = 4; i <= 8; i += 2)
        evaluate_moments_add(&moments, 1e9 + i);
    /* 2, 4, 6, 8: variance 20/3, of the mean 5/3. The sum of squares would lose it all. */
    struct evaluate_mean mean = evaluate_moments_mean(&moments);
    check_near("mean", mean.value, 1e9 + 5, 1e-6);
    check_near("error", mean.error, sqrt(5.0 / 3), 1e-6);
}

static void test_percentiles(void **state)
{
    (void)state;
    const float values[5] = { 1, 2, 3, 4, 10 };
    check_near("least", evaluate_percentile(values, 5, 0), 1, 0);
    check_near("median", evaluate_percentile(values, 5, 0.5), 3, 0);
    check_near("between", evaluate_percentile(values, 5, 0.9), 7.6, 1e-9);
    check_near("most", evaluate_percentile(values, 5, 1), 10, 0);
    check_near("one", evaluate_percentile(values, 1, 0.99), 1, 0);
}

static void test_limits(void **state)
{
    (void)state;
    assert_int_equal(evaluate_scored_per_chunk(512), 255);
    assert_int_equal(evaluate_scored_per_chunk(5), 2);
    assert_int_equal(evaluate_scored_per_chunk(EVALUATE_CONTEXT_LEAST), 1);
    assert_int_equal(evaluate_logits_limit(512, 4096), 255);
    assert_int_equal(evaluate_logits_limit(4096, 128256), 130); /* 64 MiB */
    assert_int_equal(evaluate_logits_limit(4096, UINT32_MAX), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_surprise),    cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_divergence),  cmocka_unit_test(test_moments),
        cmocka_unit_test(test_percentiles), cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
