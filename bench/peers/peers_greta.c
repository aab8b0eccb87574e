/* peers_greta.c - greta behind peers_engine.h: an engine of its own for every setting; they share
 * the mapped file. */
#include "peers_engine.h"

#include "device/all/all.h"
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

struct crew {
    struct device *device;
    struct ops ops;
    struct engine *engine;
};

struct greta {
    struct gguf_file *file;
    struct model_report report;
    struct crew crews[PEERS_SETTING_LIMIT];
    struct peers_setting settings[PEERS_SETTING_LIMIT];
    size_t current; /* setting that was begun */
    struct engine_token *tokens;
    int32_t *chosen;
    float *logits;
};

static void close_greta(void *self)
{
    struct greta *greta = self;
    for (size_t i = 0; i < PEERS_SETTING_LIMIT; i++) {
        engine_close(greta->crews[i].engine);
        device_close(greta->crews[i].device);
    }
    gguf_close(greta->file);
    free(greta->tokens);
    free(greta->chosen);
    free(greta->logits);
    free(greta);
}

static bool has_way(void *self, size_t setting, enum peers_way way)
{
    (void)self;
    (void)setting;
    return way == PEERS_PLAIN;
}

static enum status begin_greta(void *self, size_t setting, enum peers_way way, struct error *err)
{
    struct greta *greta = self;
    (void)way;
    (void)err;
    greta->current = setting;
    for (uint32_t i = 0; i < greta->settings[setting].sequences; i++)
        engine_rewind(greta->crews[setting].engine, i, 0);
    return STATUS_OK;
}

static enum status step_greta(void *self, const int32_t *tokens, uint32_t count, struct error *err)
{
    struct greta *greta = self;
    const struct peers_setting *setting = &greta->settings[greta->current];
    struct engine *engine = greta->crews[greta->current].engine;
    bool several = setting->sequences > 1;
    for (uint32_t i = 0; i < count; i++)
        greta->tokens[i] = (struct engine_token){
            .id = tokens[i],
            .sequence = several ? i : 0,
            .wants_logits = several || i + 1 == count,
        };
    TRY(engine_forward(engine, greta->tokens, count, err));
    if (setting->chooses)
        return engine_argmax(engine, greta->chosen, err);
    return engine_logits(engine, 0, greta->logits, err);
}

static enum status end_greta(void *self, struct error *err)
{
    (void)self;
    (void)err;
    return STATUS_OK; /* a step has waited for its result */
}

static const float *greta_logits(void *self, uint32_t sequence)
{
    struct greta *greta = self;
    struct error err;
    struct engine *engine = greta->crews[greta->current].engine;
    if (!greta->settings[greta->current].chooses)
        return greta->logits; /* the step has brought them */
    return engine_logits(engine, sequence, greta->logits, &err) ? NULL : greta->logits;
}

static enum status open_crew(struct greta *greta, const char *device, size_t index,
                             struct error *err)
{
    struct crew *crew = &greta->crews[index];
    const struct peers_setting *setting = &greta->settings[index];
    struct device_options device_options = { .thread_count = setting->threads };
    struct engine_options engine_options = {
        .context = setting->context,
        .sequence_limit = setting->sequences,
        .batch_limit = strcmp(device, "host") == 0 ? 0 : setting->batch,
        .kv_dtype = DTYPE_F16,
    };
    TRY(all_open(device, &device_options, &crew->device, err));
    TRY(ops_load(&crew->ops, crew->device, CPU_PATH_COUNT, err));
    return engine_open(&crew->ops, greta->file, &greta->report, &engine_options, &crew->engine,
                       err);
}

static enum status fill_greta(struct greta *greta, const struct peers_request *request,
                              struct error *err)
{
    uint32_t tokens = 0, sequences = 0;
    TRY(gguf_open(request->model, &greta->file, err));
    model_check(greta->file, NULL, &greta->report);
    if (model_report_refuses(&greta->report, false))
        return error_set(err, STATUS_REFUSED, "%s: the guard rail refuses it (see greta inspect)",
                         request->model);
    for (size_t i = 0; i < request->setting_count; i++) {
        const struct peers_setting *setting = &request->settings[i];
        greta->settings[i] = *setting;
        tokens = setting->batch > tokens ? setting->batch : tokens;
        sequences = setting->sequences > sequences ? setting->sequences : sequences;
    }
    greta->tokens = calloc(tokens, sizeof(*greta->tokens));
    greta->chosen = calloc(sequences, sizeof(*greta->chosen));
    greta->logits = calloc(greta->report.config.vocab_size, sizeof(*greta->logits));
    if (!greta->tokens || !greta->chosen || !greta->logits)
        return error_set(err, STATUS_NO_MEMORY, "no memory for tokens and logits");
    for (size_t i = 0; i < request->setting_count; i++)
        TRY(open_crew(greta, request->device, i, err));
    return STATUS_OK;
}

enum status peers_open_greta(const struct peers_request *request, struct peers_engine *ret,
                             struct error *err)
{
    struct greta *greta = calloc(1, sizeof(*greta));
    if (!greta)
        return error_set(err, STATUS_NO_MEMORY, "no memory for an engine");
    enum status status = fill_greta(greta, request, err);
    if (status) {
        close_greta(greta);
        return status;
    }
    *ret = (struct peers_engine){
        .name = "greta",
        .self = greta,
        .vocab_size = greta->report.config.vocab_size,
        .has = has_way,
        .begin = begin_greta,
        .step = step_greta,
        .end = end_greta,
        .logits = greta_logits,
        .close = close_greta,
    };
    return STATUS_OK;
}
