/* engine_taps.h - taps set by their names, and what came out of them. */
#ifndef GRETA_TESTS_ENGINE_TAPS_H
#define GRETA_TESTS_ENGINE_TAPS_H

#include "test.h"

#include "engine_scene.h"

#include <stdlib.h>
#include <string.h>

#define KEPT_LIMIT 512

struct kept {
    struct tap_record records[KEPT_LIMIT];
    float *values[KEPT_LIMIT];
    size_t count;
    size_t stop_after; /* the sink says no after this many; 0: never */
};

static inline enum status taps_keep(void *context, const struct tap_record *record,
                                    const float *values, struct error *err)
{
    struct kept *kept = context;
    assert_true(kept->count < KEPT_LIMIT);
    if (kept->stop_after && kept->count == kept->stop_after)
        return error_set(err, STATUS_LIMIT, "enough");
    size_t bytes = (size_t)record->stats.count * sizeof(float);
    kept->records[kept->count] = *record;
    kept->values[kept->count] = malloc(bytes);
    assert_non_null(kept->values[kept->count]);
    memcpy(kept->values[kept->count++], values, bytes);
    return STATUS_OK;
}

static inline void taps_forget(struct kept *kept)
{
    for (size_t i = 0; i < kept->count; i++)
        free(kept->values[i]);
    kept->count = 0;
}

static inline struct engine_tap_choice parse_tap(const char *text)
{
    struct engine_tap_choice choice;
    struct error err;
    CHECK_OK(engine_tap_parse(text, &choice, &err), &err);
    return choice;
}

static inline void set_taps(struct scene *scene, struct kept *kept, size_t count,
                            const char *const *texts)
{
    struct engine_tap_choice choices[4];
    for (size_t i = 0; i < count; i++)
        choices[i] = parse_tap(texts[i]);
    CHECK_OK(engine_tap_set(scene->engine, choices, count, taps_keep, kept, &scene->err),
             &scene->err);
}

static inline void forward_ids(struct scene *scene, uint32_t sequence, const int32_t *ids,
                               size_t count)
{
    struct engine_token tokens[8];
    for (size_t i = 0; i < count; i++)
        tokens[i] = (struct engine_token){ ids[i], sequence, i + 1 == count };
    CHECK_OK(engine_forward(scene->engine, tokens, count, &scene->err), &scene->err);
}

static const int32_t ids[] = { 1, 300, 7, 45, 260 };

#endif
