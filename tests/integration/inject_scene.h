/* inject_scene.h - for tests of planted faults: a small computation on two streams, a fault planted
 * at one layer and step of it, and what an observer saw. */
#ifndef GRETA_TESTS_INJECT_SCENE_H
#define GRETA_TESTS_INJECT_SCENE_H

#include "device_fixture.h"

#include "inject/inject.h"

#include <stdio.h>

#define WIDTH 10u
#define LAYERS 3
#define STEPS 2
#define PLANTED_LAYER 1
#define PLANTED_STEP 1

/* A small computation on two streams: every layer of every step uploads, gathers, adds on one
 * stream, adds on the other, and copies out. */
struct scene {
    struct fixture fixture;
    struct inject *inject;
    struct device_stream other;
    struct device_mark there, back;
    struct device_view x, index, source;
    struct error first; /* the first call that failed */
    float out[STEPS][LAYERS][WIDTH];
    bool landed[STEPS][LAYERS];
};

static const int32_t good_index[WIDTH] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 };

static inline void scene_open(struct scene *scene, const char *spec_text)
{
    struct device_options options = { .guards = true,
                                      .poison = true,
                                      .quarantine_bytes = 1 << 24,
                                      .staging_slot_count = 4,
                                      .verify = true,
                                      .hash_results = true,
                                      .ask_errors = true,
                                      .copy_completions = true,
                                      .scan_every = 1 };
    struct fixture *fixture = &scene->fixture;
    struct inject_spec spec;
    struct error *err = &fixture->err;
    memset(scene, 0, sizeof(*scene));
    pthread_mutex_init(&fixture->recorder.lock, NULL);
    options.observer = (struct event_observer){ recorder_notify, &fixture->recorder };
    CHECK_OK(host_device_open(&options, &fixture->device, err), err);
    CHECK_OK(inject_parse(spec_text, &spec, err), err);
    CHECK_OK(inject_install(fixture->device, &spec, &scene->inject, err), err);
    CHECK_OK(device_module_load(fixture->device, &test_image, DEVICE_HERE, err), err);
    CHECK_OK(device_stream_create(fixture->device, DEVICE_HERE, &fixture->stream, err), err);
    CHECK_OK(device_stream_create(fixture->device, DEVICE_HERE, &scene->other, err), err);
    CHECK_OK(device_mark_create(fixture->device, &scene->there, err), err);
    CHECK_OK(device_mark_create(fixture->device, &scene->back, err), err);
    scene->x = fixture_floats(fixture, WIDTH, "x");
    scene->index = fixture_floats(fixture, WIDTH, "index");
    scene->index.dtype = DTYPE_I32;
    scene->source = fixture_floats(fixture, WIDTH, "source");
    /* Step 0 comes from nowhere: a fault that shows in what is left from before needs a before. */
    fixture_fill(fixture, &scene->x, 0);
}

/* Remembers the first failure; what follows it is a consequence. */
static inline bool went_wrong(struct scene *scene, enum status status)
{
    if (status && !scene->first.status)
        scene->first = scene->fixture.err;
    return status != STATUS_OK;
}

/* What was destroyed or released in vain, on a device that is not lost. */
static inline void check_refused(struct scene *scene)
{
    enum status status = device_check(scene->fixture.device, &scene->fixture.err);
    if (status != STATUS_LOST)
        went_wrong(scene, status);
}

static inline void read_out(struct scene *scene, int step, int layer)
{
    struct fixture *fixture = &scene->fixture;
    struct error *err = &fixture->err;
    struct device_ticket ticket;
    const void *bytes;
    uint64_t count;
    if (went_wrong(scene, device_copy_out(fixture->device, fixture->stream, &scene->x, DEVICE_HERE,
                                          &ticket, err)))
        return;
    if (!went_wrong(scene, device_ticket_redeem(fixture->device, ticket, DEVICE_HERE, &bytes,
                                                &count, err))) {
        memcpy(scene->out[step][layer], bytes, (size_t)count);
        scene->landed[step][layer] = true;
    }
    device_ticket_release(fixture->device, ticket, DEVICE_HERE);
    check_refused(scene);
}

/* x = 1 + 2 + layer, then 1 more on the other stream. */
static inline void run_layer(struct scene *scene, int step, int layer)
{
    struct fixture *fixture = &scene->fixture;
    struct device *device = fixture->device;
    struct device_stream main = fixture->stream, other = scene->other;
    struct error *err = &fixture->err;
    float ones[WIDTH];
    for (size_t i = 0; i < WIDTH; i++)
        ones[i] = (float)(1 + layer);
    struct event_scope scope = { .step = step, .layer = layer, .tensor = "x" };
    device_scope_set(device, main, &scope);
    device_scope_set(device, other, &scope);
    struct add_params two = { 2 }, one = { 1 };
    struct device_launch add = launch_add(scene->x, &two), more = launch_add(scene->x, &one);
    struct device_launch gather = {
        &gather_contract, NULL, { scene->x, scene->index, scene->source }, 3, 1
    };
    if (went_wrong(scene, device_copy_in(device, main, &scene->index, good_index,
                                         sizeof(good_index), DEVICE_HERE, err)) ||
        went_wrong(scene, device_copy_in(device, main, &scene->source, ones, sizeof(ones),
                                         DEVICE_HERE, err)) ||
        went_wrong(scene, device_launch(device, main, &gather, DEVICE_HERE, err)) ||
        went_wrong(scene, device_launch(device, main, &add, DEVICE_HERE, err)) ||
        went_wrong(scene, device_mark_record(device, main, scene->there, DEVICE_HERE, err)) ||
        went_wrong(scene, device_mark_wait(device, other, scene->there, DEVICE_HERE, err)) ||
        went_wrong(scene, device_launch(device, other, &more, DEVICE_HERE, err)) ||
        went_wrong(scene, device_mark_record(device, other, scene->back, DEVICE_HERE, err)) ||
        went_wrong(scene, device_mark_wait(device, main, scene->back, DEVICE_HERE, err)))
        return;
    read_out(scene, step, layer);
}

static inline void scene_run(struct scene *scene)
{
    for (int step = 0; step < STEPS; step++)
        for (int layer = 0; layer < LAYERS; layer++)
            run_layer(scene, step, layer);
}

/* Gives the buffers back, so that canaries are looked at. */
static inline void scene_close(struct scene *scene)
{
    const struct device_view views[] = { scene->x, scene->index, scene->source };
    went_wrong(scene, device_stream_sync(scene->fixture.device, scene->fixture.stream, DEVICE_HERE,
                                         &scene->fixture.err));
    for (size_t i = 0; i < COUNT_OF(views); i++)
        device_buffer_destroy(scene->fixture.device, views[i].buffer, DEVICE_HERE);
    check_refused(scene);
}

/* True if all bytes of a layer's result are right. */
static inline bool is_right(const struct scene *scene, int step, int layer)
{
    for (size_t i = 0; i < WIDTH; i++)
        if (!(scene->out[step][layer][i] == (float)(4 + layer)))
            return false;
    return scene->landed[step][layer];
}

/* ---- Events --------------------------------------------------------------------------------- */

static inline const struct event *event_by_id(struct recorder *recorder, uint64_t id)
{
    for (size_t i = 0, kept = recorder_kept(recorder); id && i < kept; i++)
        if (recorder->events[i].id == id)
            return &recorder->events[i];
    return NULL;
}

static inline size_t count_kind(struct recorder *recorder, enum event_kind kind)
{
    size_t count = 0;
    for (size_t i = 0, kept = recorder_kept(recorder); i < kept; i++)
        count += recorder->events[i].kind == kind;
    return count;
}

static inline const struct event *first_refusal(struct recorder *recorder)
{
    for (size_t i = 0, kept = recorder_kept(recorder); i < kept; i++)
        if (recorder->events[i].outcome == EVENT_REFUSED)
            return &recorder->events[i];
    return NULL;
}

/* An event of a kind with that cause, or NULL. */
static inline const struct event *caused_by(struct recorder *recorder, enum event_kind kind,
                                            uint64_t id)
{
    for (size_t i = 0, kept = recorder_kept(recorder); id && i < kept; i++)
        if (recorder->events[i].kind == kind && recorder->events[i].cause_id == id)
            return &recorder->events[i];
    return NULL;
}

static inline bool is_whole(const struct event *hash)
{
    return hash->transfer.source_before == hash->transfer.source_after &&
           hash->transfer.source_before == hash->transfer.destination;
}

/* Plants at the one layer and step, runs, and gives back what was there to be given back. */
static inline void scene_plant(struct scene *scene, const char *spec_text)
{
    char spec[128];
    snprintf(spec, sizeof(spec), "%s%clayer=%d,step=%d", spec_text,
             strchr(spec_text, '@') ? ',' : '@', PLANTED_LAYER, PLANTED_STEP);
    scene_open(scene, spec);
    scene_run(scene);
    scene_close(scene);
}

/* Everything before the fault is right, whatever it is. */
static inline void check_before(const struct scene *scene, const char *name)
{
    for (int step = 0; step < STEPS; step++)
        for (int layer = 0; layer < LAYERS; layer++)
            if ((step < PLANTED_STEP || (step == PLANTED_STEP && layer < PLANTED_LAYER)) &&
                !is_right(scene, step, layer))
                fail_msg("%s: layer %d of step %d is wrong too", name, layer, step);
}

static inline void check_planted(const struct inject_record *record, const char *name,
                                 const char *op)
{
    const struct inject_place *place = &record->place;
    if (!record->planted || place->scope.layer != PLANTED_LAYER ||
        place->scope.step != PLANTED_STEP || strcmp(place->op, op) != 0)
        fail_msg("%s: planted %d in %s at layer %d, step %d", name, record->planted, place->op,
                 place->scope.layer, place->scope.step);
}

#endif
