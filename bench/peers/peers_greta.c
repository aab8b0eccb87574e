/* peers_greta.c - greta behind peers_engine.h: one engine per number of threads, which share the
 * mapped file. */
#include "peers_engine.h"

#include "device/all/all.h"
#include "engine/engine.h"

#include <stdlib.h>

struct crew {
    struct device *device;
    struct ops ops;
    struct engine *engine;
};

struct greta {
    struct gguf_file *file;
    struct model_report report;
    struct crew crews[PEERS_THREAD_LIMIT];
    struct engine_token *tokens;
    float *logits;
};

static void close_greta(void *self)
{
    struct greta *greta = self;
    for (size_t i = 0; i < PEERS_THREAD_LIMIT; i++) {
        engine_close(greta->crews[i].engine);
        device_close(greta->crews[i].device);
    }
    gguf_close(greta->file);
    free(greta->tokens);
    free(greta->logits);
    free(greta);
}

static enum status run_greta(void *self, uint32_t threads, uint32_t count, uint32_t at_once,
                             struct error *err)
{
    struct greta *greta = self;
    struct engine *engine = greta->crews[threads - 1].engine;
    engine_rewind(engine, 0, 0);
    for (uint32_t first = 0; first < count; first += at_once) {
        uint32_t batch = count - first < at_once ? count - first : at_once;
        for (uint32_t i = 0; i < batch; i++)
            greta->tokens[i] = (struct engine_token){
                .id = peers_token(first + i, greta->report.config.vocab_size),
                .wants_logits = i + 1 == batch,
            };
        TRY(engine_forward(engine, greta->tokens, batch, err));
        TRY(engine_logits(engine, 0, greta->logits, err));
    }
    return STATUS_OK;
}

static const float *greta_logits(void *self)
{
    return ((struct greta *)self)->logits;
}

static enum status open_crew(struct greta *greta, uint32_t threads, uint32_t context,
                             struct error *err)
{
    struct crew *crew = &greta->crews[threads - 1];
    struct device_options device_options = { .thread_count = threads };
    struct engine_options engine_options = { .context = context, .kv_dtype = DTYPE_F16 };
    TRY(all_open("host", &device_options, &crew->device, err));
    TRY(ops_load(&crew->ops, crew->device, CPU_PATH_COUNT, err));
    return engine_open(&crew->ops, greta->file, &greta->report, &engine_options, &crew->engine,
                       err);
}

static enum status fill_greta(struct greta *greta, const char *model, uint32_t context,
                              uint32_t least_threads, struct error *err)
{
    TRY(gguf_open(model, &greta->file, err));
    model_check(greta->file, NULL, &greta->report);
    if (model_report_refuses(&greta->report, false))
        return error_set(err, STATUS_REFUSED, "%s: the guard rail refuses it (see greta inspect)",
                         model);
    greta->tokens = calloc(context, sizeof(*greta->tokens));
    greta->logits = calloc(greta->report.config.vocab_size, sizeof(*greta->logits));
    if (!greta->tokens || !greta->logits)
        return error_set(err, STATUS_NO_MEMORY, "no memory for tokens and logits");
    for (uint32_t threads = least_threads; threads <= PEERS_THREAD_LIMIT; threads++)
        TRY(open_crew(greta, threads, context, err));
    return STATUS_OK;
}

enum status peers_open_greta(const char *model, uint32_t context, uint32_t least_threads,
                             struct peers_engine *ret, uint32_t *ret_vocab_size, struct error *err)
{
    struct greta *greta = calloc(1, sizeof(*greta));
    if (!greta)
        return error_set(err, STATUS_NO_MEMORY, "no memory for an engine");
    enum status status = fill_greta(greta, model, context, least_threads, err);
    if (status) {
        close_greta(greta);
        return status;
    }
    *ret_vocab_size = greta->report.config.vocab_size;
    *ret = (struct peers_engine){ "greta", greta, run_greta, greta_logits, close_greta };
    return STATUS_OK;
}
