/* analyze_suspects.h - launches on three streams, the crumbs they left, and a fault that names none
 * of them: what the tests of its candidates share. */
#ifndef GRETA_TESTS_ANALYZE_SUSPECTS_H
#define GRETA_TESTS_ANALYZE_SUSPECTS_H

#include "analyze_fixture.h"

enum { FIRST, SECOND, THIRD }; /* streams */
enum { A = 1, B, C, D };       /* buffers */

struct scene {
    struct script script;
    struct crumb_page crumbs;
    const struct finding *finding;
};

static inline void scene_open(struct scene *scene, enum crumb_order order)
{
    memset(scene, 0, sizeof(*scene));
    script_open(&scene->script, AUDIT_GUARD);
    crumb_set_order(&scene->crumbs, order);
    for (uint32_t i = A; i <= D; i++)
        script_buffer(&scene->script, i, "buffer", true);
}

static inline uint64_t scene_launch(struct scene *scene, uint32_t stream, const char *op)
{
    return script_launch(&scene->script, stream, op, A, B + stream);
}

static inline void scene_enter(struct scene *scene, uint32_t stream, uint64_t id)
{
    crumb_enter(&scene->crumbs.streams[stream], id);
}

/* A fault; address 0: not known. */
static inline const struct analysis *scene_fault_at(struct scene *scene, uint64_t address)
{
    script_remark(&scene->script, EVENT_FAULT, 0, EVENT_NO_OPERAND, 0,
                  address ? EVENT_ADDRESS_KERNEL_LOG : EVENT_ADDRESS_UNKNOWN, address);
    const struct analysis *analysis = script_finish(&scene->script, &scene->crumbs);
    scene->finding = find_finding(analysis, HYPOTHESIS_KERNEL_FAULT);
    assert_non_null(scene->finding);
    return analysis;
}

static inline void check_single(struct scene *scene, uint64_t id)
{
    assert_int_equal(scene->finding->certainty, FINDING_DIRECT);
    assert_int_equal(scene->finding->candidate_count, 1);
    assert_int_equal(scene->finding->cause.event_id, id);
    script_close(&scene->script);
}

/* Ids in their order; ended by 0. */
static inline void check_several(struct scene *scene, const uint64_t *ids)
{
    uint32_t count = 0;
    assert_int_equal(scene->finding->certainty, FINDING_POSSIBLE);
    assert_int_not_equal(scene->finding->reason, REASON_NONE);
    for (; ids[count]; count++)
        assert_int_equal(scene->finding->candidates[count].event_id, ids[count]);
    assert_int_equal(scene->finding->candidate_count, count);
    assert_int_equal(scene->finding->cause.event_id, ids[0]);
    script_close(&scene->script);
}
#define CHECK_SEVERAL(scene, ...) check_several((scene), (const uint64_t[]){ __VA_ARGS__, 0 })

#endif
