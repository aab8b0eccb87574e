/* campaign_search_test.c - the order in which a search looks, against runs whose difference is
 * known: one op makes it, and it goes away when too many ops are hashed. */
#include "campaign/search.h"
#include "test.h"

#include <string.h>

/* A workload of `launches` ops; the `culprit`-th, from 1, makes the difference (0: none does, and
 * the results differ all the same), in runs with at most `hash_limit` hashed ops. */
struct world {
    uint64_t launches, culprit, hash_limit;
    bool never;     /* the difference does not come at all */
    bool needs_f32; /* numeric: only an F32 cache shows the op */
    uint32_t tries;
};

static bool is_hashed(const struct device_hash_choice *hash, uint64_t launch)
{
    uint64_t number = launch - 1;
    return hash->every && number >= hash->first && (!hash->last || number <= hash->last) &&
           (number - hash->first) % hash->every == 0;
}

static enum status run(void *context, const struct search_try *try, struct search_look *ret_look,
                       struct error *err)
{
    struct world *world = context;
    const struct device_hash_choice *hash = &try->how.hash;
    (void)err;
    world->tries++;
    ret_look->runs = 4;
    ret_look->launches = world->launches;
    for (uint64_t i = 1; i <= world->launches; i++)
        ret_look->compared += is_hashed(hash, i);
    ret_look->seen = !world->never && ret_look->compared <= world->hash_limit;
    if (!ret_look->seen)
        return STATUS_OK;
    for (uint64_t i = 1; i <= world->launches && world->culprit; i++) {
        if (!is_hashed(hash, i))
            continue;
        if (i < world->culprit)
            ret_look->agreed = i;
        else if (!ret_look->differs)
            ret_look->differs = i;
    }
    if (!ret_look->differs)
        ret_look->agreed = 0;
    ret_look->culprit = ret_look->differs == world->culprit && world->culprit && hash->every == 1 &&
                        !hash->plain_outputs;
    return STATUS_OK;
}

static enum status run_numeric(void *context, const struct search_try *try,
                               struct search_look *ret_look, struct error *err)
{
    struct world *world = context;
    (void)err;
    world->tries++;
    ret_look->seen = !world->never;
    ret_look->culprit = ret_look->seen && world->culprit && (!world->needs_f32 || try->kv_f32);
    return STATUS_OK;
}

/* ---- Tests ---------------------------------------------------------------------------------- */

static struct search_record search(struct world *world)
{
    struct search_record record;
    struct error err;
    CHECK_OK(search_ladder(HYPOTHESIS_NON_DETERMINISM, run, world, &record, &err), &err);
    assert_true(record.count <= SEARCH_STEP_LIMIT && record.count == world->tries);
    return record;
}

static void culprit_is_found_at_once(void **state)
{
    (void)state;
    for (uint64_t culprit = 1; culprit <= 200; culprit += 33) {
        struct world world = { .launches = 200, .culprit = culprit, .hash_limit = 1000 };
        struct search_record record = search(&world);
        assert_int_equal(record.result, REPORT_SEARCH_CULPRIT);
        assert_int_equal(record.count, 1);
        assert_int_equal(record.best, 0);
        assert_string_equal(record.steps[0].what, "every-op");
    }
}

/* Hashing every op makes the difference go away: fewer do not, and the two ops on both sides of it
 * are found; that is never called a culprit. */
static void difference_that_disappears_gives_the_narrowest_interval(void **state)
{
    (void)state;
    for (uint64_t culprit = 2; culprit <= 500; culprit += 7) {
        for (uint64_t limit = 2; limit <= 128; limit *= 8) {
            struct world world = { .launches = 500, .culprit = culprit, .hash_limit = limit };
            struct search_record record = search(&world);
            assert_int_equal(record.steps[0].result, REPORT_SEARCH_NOT_SEEN);
            if (limit == 2) { /* not even every 64th: only the results show it */
                assert_int_equal(record.result, REPORT_SEARCH_SEEN);
                continue;
            }
            assert_int_equal(record.result, REPORT_SEARCH_INTERVAL);
            const struct report_search_step *best = &record.steps[record.best];
            /* The first two ops may have nothing before them to halve. */
            if (culprit > 65)
                assert_string_equal(best->what, "two-ops");
            assert_int_equal(best->result, REPORT_SEARCH_INTERVAL);
        }
    }
}

static void difference_that_never_comes_back_is_said(void **state)
{
    (void)state;
    struct world world = { .launches = 100, .culprit = 5, .hash_limit = 1000, .never = true };
    struct search_record record = search(&world);
    assert_int_equal(record.result, REPORT_SEARCH_NOT_SEEN);
    assert_int_equal(record.best, -1);
    assert_int_equal(record.count, 5); /* every rung was tried, down to no hash at all */
}

static void results_that_differ_without_an_op_are_only_seen(void **state)
{
    (void)state;
    struct world world = { .launches = 100, .culprit = 0, .hash_limit = 1000 };
    struct search_record record = search(&world);
    assert_int_equal(record.result, REPORT_SEARCH_SEEN);
    assert_int_equal(record.count, 1);
}

static void numeric_tries_a_cache_that_can_be_scanned(void **state)
{
    (void)state;
    static const struct {
        bool needs_f32, never;
        uint64_t culprit;
        enum report_search_result result;
        uint32_t tries;
    } rows[] = {
        { false, false, 1, REPORT_SEARCH_CULPRIT, 1 },
        { true, false, 1, REPORT_SEARCH_CULPRIT, 2 },
        { false, false, 0, REPORT_SEARCH_SEEN, 2 },
        { false, true, 1, REPORT_SEARCH_NOT_SEEN, 2 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct world world = { .culprit = rows[i].culprit,
                               .needs_f32 = rows[i].needs_f32,
                               .never = rows[i].never };
        struct search_record record;
        struct error err;
        CHECK_OK(search_ladder(HYPOTHESIS_NUMERIC, run_numeric, &world, &record, &err), &err);
        assert_int_equal(record.result, rows[i].result);
        assert_int_equal(world.tries, rows[i].tries);
        if (rows[i].result == REPORT_SEARCH_CULPRIT)
            assert_int_equal(record.best, rows[i].tries - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(culprit_is_found_at_once),
        cmocka_unit_test(difference_that_disappears_gives_the_narrowest_interval),
        cmocka_unit_test(difference_that_never_comes_back_is_said),
        cmocka_unit_test(results_that_differ_without_an_op_are_only_seen),
        cmocka_unit_test(numeric_tries_a_cache_that_can_be_scanned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
