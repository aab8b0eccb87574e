/* campaign_matrix_test.c - rows as users write them, and draws of stress. */
#include "test.h"

#include "campaign/campaign.h"
#include "campaign/matrix.h"
#include "campaign/stress.h"

#include <string.h>

static void test_default(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        enum report_row_mode mode;
        uint32_t iterations;
    } rows[] = { { "A", REPORT_BARE, 50 }, { "B", REPORT_AUDIT, 50 }, { "C", REPORT_STRESS, 100 } };
    struct matrix matrix;
    struct error err;
    CHECK_OK(matrix_parse(CAMPAIGN_MATRIX_DEFAULT, &matrix, &err), &err);
    assert_int_equal(matrix.count, COUNT_OF(rows));
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_string_equal(matrix.rows[i].label, rows[i].label);
        assert_int_equal(matrix.rows[i].mode, rows[i].mode);
        assert_int_equal(matrix.rows[i].iterations, rows[i].iterations);
    }
}

/* The first audits wrote A:baseline:50. */
static void test_earlier_name(void **state)
{
    (void)state;
    struct matrix matrix;
    struct error err;
    CHECK_OK(matrix_parse("A:baseline:7", &matrix, &err), &err);
    assert_int_equal(matrix.rows[0].mode, REPORT_BARE);
    assert_string_equal(report_row_mode_name(matrix.rows[0].mode), "bare");
    assert_int_equal(matrix_parse("A:baselin:7", &matrix, &err), STATUS_USAGE);
    assert_int_equal(matrix_parse("A:baselines:7", &matrix, &err), STATUS_USAGE);
}

static void test_bad(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "A",
        "A:audit",
        "A:audit:",
        "A:audit:0",
        "A:audit:-1",
        "A:audit:1x",
        "A:audit:1000001",
        "A:audit:99999999999999999999",
        "A:audits:1",
        ":audit:1",
        "-A:audit:1",
        "a/b:audit:1",
        "..:audit:1",
        "a-label-that-is-too-long:audit:1",
        "A:audit:1,",
        ",A:audit:1",
        "A:audit:1,A:stress:1",
        "A:audit:1:2",
        /* What the audit calls its own runs: their files would replace the row's. */
        "narrowed:audit:1",
        "compare-host:audit:1",
        "rerun-01-control:audit:1",
        "search-01-all:audit:1",
        "A:audit:1,transfers-pinned:bare:1",
    };
    struct matrix matrix;
    struct error err;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        if (matrix_parse(bad[i], &matrix, &err) != STATUS_USAGE)
            fail_msg("'%s': expected to be refused", bad[i]);
    char many[512] = "";
    for (uint32_t i = 0; i <= MATRIX_ROW_LIMIT; i++) {
        size_t used = strlen(many);
        snprintf(many + used, sizeof(many) - used, "%sr%u:audit:1", i ? "," : "", i);
    }
    CHECK_FAILS(matrix_parse(many, &matrix, &err), STATUS_USAGE, &err);
    check_contains("too many", err.text, "at most 16 rows");
}

static bool same_draw(const struct stress_draw *a, const struct stress_draw *b)
{
    return a->streams == b->streams && a->chunk == b->chunk && a->delay_us == b->delay_us &&
           a->pressure_bytes == b->pressure_bytes && a->repeat == b->repeat;
}

/* Only the names themselves are taken. */
static void test_near_the_names_of_own_runs(void **state)
{
    (void)state;
    struct matrix matrix;
    struct error err;
    CHECK_OK(matrix_parse("narrowed-2:audit:1,rerun:audit:1,search:bare:1", &matrix, &err), &err);
    assert_int_equal(matrix.count, 3);
    CHECK_FAILS(matrix_parse("narrowed:audit:1", &matrix, &err), STATUS_USAGE, &err);
    check_contains("label", err.text, "one of the audit's own runs, found 'narrowed'");
}

/* The same seed and number give the same draw; without stress there is none. */
static void test_draws(void **state)
{
    (void)state;
    struct job job = { .seed = 7, .iterations = 64, .stress = stress_ranges() };
    struct job calm = { .seed = 7, .chunk = 5 };
    bool differ = false;
    for (uint32_t i = 0; i < 64; i++) {
        struct stress_draw one = stress_of(&job, i), again = stress_of(&job, i);
        assert_true(same_draw(&one, &again));
        assert_in_range(one.streams, job.stress.streams.least, job.stress.streams.most);
        assert_in_range(one.delay_us, job.stress.delay_us.least, job.stress.delay_us.most);
        assert_in_range(one.pressure_bytes, job.stress.pressure_bytes.least,
                        job.stress.pressure_bytes.most);
        assert_in_range(one.repeat, 1, job.stress.repeat.most);
        struct stress_draw next = stress_of(&job, i + 1);
        differ = differ || !same_draw(&one, &next);
        struct stress_draw none = stress_of(&calm, i);
        assert_int_equal(none.streams + none.delay_us + none.pressure_bytes, 0);
        assert_int_equal(none.chunk, 5);
        assert_int_equal(none.repeat, 1);
    }
    assert_true(differ);
    json_t *draws = stress_to_json(&job);
    assert_int_equal(json_array_size(json_object_get(draws, "iterations")), 64);
    assert_int_equal(json_array_size(json_object_get(draws, "columns")), 5);
    json_decref(draws);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default), cmocka_unit_test(test_earlier_name),
        cmocka_unit_test(test_bad),     cmocka_unit_test(test_near_the_names_of_own_runs),
        cmocka_unit_test(test_draws),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
