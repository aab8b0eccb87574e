/* planted_engine.h - an engine with the small model on a host device in which a fault is planted.
 */
#ifndef GRETA_TESTS_PLANTED_ENGINE_H
#define GRETA_TESTS_PLANTED_ENGINE_H

#include "small_model.h"

#include "device/host/host.h"
#include "inject/inject.h"

#define PLANTED_CONTEXT 32u

struct planted_engine {
    struct device *device;
    struct inject *inject; /* NULL: nothing is planted */
    struct ops ops;
    struct engine *engine;
    struct error err;
    float logits[SMALL_MODEL_VOCABULARY];
};

/* spec_text: as inject_parse reads it; "": nothing. */
static inline void planted_open(struct planted_engine *planted,
                                const struct device_options *options, const char *spec_text)
{
    struct engine_options engine_options = { .context = PLANTED_CONTEXT };
    struct inject_spec spec;
    struct error *err = &planted->err;
    memset(planted, 0, sizeof(*planted));
    CHECK_OK(host_device_open(options, &planted->device, err), err);
    if (spec_text[0]) {
        CHECK_OK(inject_parse(spec_text, &spec, err), err);
        CHECK_OK(inject_install(planted->device, &spec, &planted->inject, err), err);
    }
    CHECK_OK(ops_load(&planted->ops, planted->device, CPU_PATH_COUNT, err), err);
    CHECK_OK(engine_open(&planted->ops, model.file, &model.report, &engine_options,
                         &planted->engine, err),
             err);
}

/* One token, and its logits. */
static inline enum status planted_step(struct planted_engine *planted, int32_t id)
{
    struct engine_token token = { id, 0, true };
    enum status status = engine_forward(planted->engine, &token, 1, &planted->err);
    return status ? status : engine_logits(planted->engine, 0, planted->logits, &planted->err);
}

static inline void planted_close(struct planted_engine *planted)
{
    engine_close(planted->engine);
    device_close(planted->device);
}

#endif
