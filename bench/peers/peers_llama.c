/* peers_llama.c - llama.cpp behind peers_engine.h: one model, and a context for every setting and
 * way, as its own benchmarks have them. */
#include "peers_engine.h"
#include "peers_library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of what the library says: whether everything is on the GPU cannot be asked. */
struct said {
    unsigned layers_there, layers;
    bool without_flash_attention;
};

struct post { /* a context, and what belongs to it */
    void *context;
    void **samplers; /* one for each sequence, where the device chooses */
};

struct llama {
    struct interface call;
    struct said said;
    void *devices[2]; /* of the model, ends with NULL */
    void *model;
    struct peers_setting settings[PEERS_SETTING_LIMIT];
    size_t setting_count;
    struct post posts[PEERS_SETTING_LIMIT][PEERS_WAY_COUNT];
    void *pools[PEERS_SETTING_LIMIT];
    size_t current; /* setting and way that were begun, and steps since */
    enum peers_way way;
    int32_t steps;
    struct batch batch; /* room for a token of every sequence */
    int32_t *sequence_ids;
};

static const uint32_t micro_batches[] = {
    [PEERS_PLAIN] = 512, [PEERS_WIDE] = 2048, [PEERS_CHOOSING] = 512
};
static const char *const way_names[] = {
    [PEERS_PLAIN] = "micro batches of 512",
    [PEERS_WIDE] = "micro batches of 2048",
    [PEERS_CHOOSING] = "sampler on the device",
};
_Static_assert(COUNT_OF(way_names) == PEERS_WAY_COUNT, "every way has a name");

const char *peers_way_name(enum peers_way way)
{
    return way_names[way];
}

static void listen(int level, const char *text, void *data)
{
    struct said *said = data;
    const char *found = strstr(text, "offloaded ");
    if (said && found)
        (void)sscanf(found, "offloaded %u/%u layers to GPU", &said->layers_there, &said->layers);
    if (said && strstr(text, "Flash Attention") && strstr(text, "disabled"))
        said->without_flash_attention = true;
    if (level == 4) /* errors */
        fputs(text, stderr);
}

/* ---- Opening -------------------------------------------------------------------------------- */

static enum status open_model(struct llama *llama, const struct peers_request *request,
                              struct error *err)
{
    const struct interface *call = &llama->call;
    struct model_params params = call->model_default_params();
    if (params.devices || params.overrides || params.gpu_layers != -1)
        return error_set(err, STATUS_UNSUPPORTED,
                         "llama.cpp: expected all layers on a GPU by default (-1), found %d: "
                         "another interface",
                         params.gpu_layers);
    TRY(library_device(call, request->folder, request->device, &llama->devices[0], err));
    params.devices = llama->devices;
    llama->model = call->model_load(request->model, params);
    if (!llama->model)
        return error_set(err, STATUS_UNSUPPORTED, "%s: llama.cpp does not load it", request->model);
    const struct said *said = &llama->said;
    if (llama->devices[0] && (said->layers == 0 || said->layers_there != said->layers))
        return error_set(err, STATUS_UNSUPPORTED,
                         "llama.cpp: expected all layers on the GPU, found %u of %u",
                         said->layers_there, said->layers);
    return STATUS_OK;
}

/* False where the device cannot choose: then the way is not there. */
static enum status give_samplers(struct llama *llama, struct post *post, uint32_t sequences,
                                 bool *ret_taken, struct error *err)
{
    const struct interface *call = &llama->call;
    post->samplers = calloc(sequences, sizeof(*post->samplers));
    if (!post->samplers)
        return error_set(err, STATUS_NO_MEMORY, "no memory for samplers");
    *ret_taken = true;
    for (uint32_t i = 0; i < sequences && *ret_taken; i++) {
        post->samplers[i] = call->chain_create(call->chain_default_params());
        call->chain_take(post->samplers[i], call->greedy_create());
        *ret_taken = call->set_sampler(post->context, (int32_t)i, post->samplers[i]);
    }
    return STATUS_OK;
}

static void close_post(struct llama *llama, struct post *post, uint32_t sequences)
{
    if (post->context)
        llama->call.context_free(post->context);
    for (uint32_t i = 0; post->samplers && i < sequences; i++)
        if (post->samplers[i])
            llama->call.sampler_free(post->samplers[i]);
    free(post->samplers);
    *post = (struct post){ 0 };
}

static enum status open_post(struct llama *llama, size_t index, enum peers_way way,
                             struct error *err)
{
    const struct interface *call = &llama->call;
    const struct peers_setting *setting = &llama->settings[index];
    struct post *post = &llama->posts[index][way];
    struct context_params params = call->context_default_params();
    if (params.context != 512 || params.batch != 2048 || params.micro_batch != 512 ||
        params.sequences != 1)
        return error_set(err, STATUS_UNSUPPORTED,
                         "llama.cpp: expected default lengths 512, 2048, 512, 1, found %u, %u, %u, "
                         "%u: another interface",
                         params.context, params.batch, params.micro_batch, params.sequences);
    params.context = setting->context * setting->sequences;
    params.batch = setting->batch > params.batch ? setting->batch : params.batch;
    params.micro_batch = micro_batches[way];
    params.sequences = setting->sequences;
    post->context = call->context_open(llama->model, params);
    if (!post->context || call->context_length(post->context) < setting->context ||
        call->sequence_limit(post->context) != setting->sequences ||
        call->micro_batch_length(post->context) > params.micro_batch ||
        call->batch_length(post->context) < setting->batch)
        return error_set(err, STATUS_UNSUPPORTED, "llama.cpp: no context of %u x %u tokens",
                         setting->sequences, setting->context);
    if (llama->devices[0] && llama->said.without_flash_attention)
        return error_set(err, STATUS_UNSUPPORTED, "llama.cpp: no flash attention on this GPU");
    if (way == PEERS_CHOOSING) {
        bool taken;
        TRY(give_samplers(llama, post, setting->sequences, &taken, err));
        if (!taken)
            close_post(llama, post, setting->sequences);
    }
    return STATUS_OK;
}

static enum status open_setting(struct llama *llama, size_t index, struct error *err)
{
    const struct interface *call = &llama->call;
    const struct peers_setting *setting = &llama->settings[index];
    for (int way = 0; way < PEERS_WAY_COUNT; way++)
        if (setting->ways & 1u << way)
            TRY(open_post(llama, index, (enum peers_way)way, err));
    struct opaque_params pool = call->pool_default_params((int)setting->threads);
    llama->pools[index] = call->pool_create(&pool);
    if (!llama->pools[index])
        return error_set(err, STATUS_NO_MEMORY, "llama.cpp: no pool of threads");
    call->pool_pause(llama->pools[index]);
    return STATUS_OK;
}

/* A batch of a token for every sequence: only their ids and positions change. */
static enum status make_batch(struct llama *llama, struct error *err)
{
    struct batch *batch = &llama->batch;
    size_t count = 1, tokens = 1;
    for (size_t i = 0; i < llama->setting_count; i++) {
        const struct peers_setting *setting = &llama->settings[i];
        count = setting->sequences > count ? setting->sequences : count;
        tokens = setting->batch > tokens ? setting->batch : tokens;
    }
    llama->sequence_ids = calloc(count, sizeof(*llama->sequence_ids));
    batch->tokens = calloc(tokens > count ? tokens : count, sizeof(*batch->tokens));
    batch->positions = calloc(count, sizeof(*batch->positions));
    batch->sequence_counts = calloc(count, sizeof(*batch->sequence_counts));
    batch->sequences = calloc(count, sizeof(*batch->sequences));
    batch->wants_logits = calloc(count, sizeof(*batch->wants_logits));
    if (!llama->sequence_ids || !batch->tokens || !batch->positions || !batch->sequence_counts ||
        !batch->sequences || !batch->wants_logits)
        return error_set(err, STATUS_NO_MEMORY, "no memory for tokens");
    for (size_t i = 0; i < count; i++) {
        llama->sequence_ids[i] = (int32_t)i;
        batch->sequence_counts[i] = 1;
        batch->sequences[i] = &llama->sequence_ids[i];
        batch->wants_logits[i] = 1;
    }
    return STATUS_OK;
}

static void close_llama(void *self)
{
    struct llama *llama = self;
    struct batch *batch = &llama->batch;
    for (size_t i = 0; i < PEERS_SETTING_LIMIT; i++) {
        for (int way = 0; way < PEERS_WAY_COUNT; way++)
            close_post(llama, &llama->posts[i][way], llama->settings[i].sequences);
        if (llama->pools[i])
            llama->call.pool_free(llama->pools[i]);
    }
    if (llama->model)
        llama->call.model_free(llama->model);
    if (llama->call.log_set)
        llama->call.log_set(listen, NULL); /* it outlives this */
    free(llama->sequence_ids);
    free(batch->tokens);
    free(batch->positions);
    free(batch->sequence_counts);
    free((void *)batch->sequences);
    free(batch->wants_logits);
    free(llama);
}

/* ---- Running -------------------------------------------------------------------------------- */

static void *current_context(const struct llama *llama)
{
    return llama->posts[llama->current][llama->way].context;
}

static bool has_way(void *self, size_t setting, enum peers_way way)
{
    return ((struct llama *)self)->posts[setting][way].context != NULL;
}

static enum status begin_llama(void *self, size_t setting, enum peers_way way, struct error *err)
{
    struct llama *llama = self;
    const struct interface *call = &llama->call;
    (void)err;
    llama->current = setting;
    llama->way = way;
    llama->steps = 0;
    void *context = current_context(llama), *pool = llama->pools[setting];
    int32_t threads = (int32_t)llama->settings[setting].threads;
    call->pool_resume(pool);
    call->attach_pool(context, pool, pool);
    call->set_threads(context, threads, threads);
    call->memory_clear(call->memory(context), false);
    return STATUS_OK;
}

/* Without positions the library counts itself, for one sequence; only the last wants logits. */
static enum status step_llama(void *self, const int32_t *tokens, uint32_t count, struct error *err)
{
    struct llama *llama = self;
    const struct interface *call = &llama->call;
    void *context = current_context(llama);
    bool several = llama->settings[llama->current].sequences > 1;
    struct batch batch = several ? llama->batch : (struct batch){ .tokens = llama->batch.tokens };
    batch.token_count = (int32_t)count;
    memcpy(batch.tokens, tokens, count * sizeof(*tokens));
    for (uint32_t i = 0; several && i < count; i++)
        batch.positions[i] = llama->steps;
    if (call->decode(context, batch))
        return error_set(err, STATUS_UNSUPPORTED, "llama.cpp: a batch of %u failed", count);
    call->synchronize(context);
    llama->steps++;
    for (uint32_t i = 0; llama->way == PEERS_CHOOSING && i < (several ? count : 1); i++)
        if (call->sampled(context, several ? (int32_t)i : -1) < 0)
            return error_set(err, STATUS_UNSUPPORTED, "llama.cpp: its sampler chose nothing");
    return STATUS_OK;
}

/* Its threads spin between graphs, so they are put to sleep when this is over. */
static enum status end_llama(void *self, struct error *err)
{
    struct llama *llama = self;
    uint32_t threads = llama->settings[llama->current].threads;
    llama->call.pool_pause(llama->pools[llama->current]);
    if (llama->call.threads(current_context(llama)) != (int32_t)threads)
        return error_set(err, STATUS_UNSUPPORTED, "llama.cpp: expected %u threads", threads);
    return STATUS_OK;
}

static const float *llama_logits(void *self, uint32_t sequence)
{
    struct llama *llama = self;
    bool several = llama->settings[llama->current].sequences > 1;
    if (llama->way == PEERS_CHOOSING)
        return NULL;
    return llama->call.logits(current_context(llama), several ? (int32_t)sequence : -1);
}

static enum status fill_llama(struct llama *llama, const struct peers_request *request,
                              struct error *err)
{
    llama->setting_count = request->setting_count;
    memcpy(llama->settings, request->settings, request->setting_count * sizeof(*request->settings));
    TRY(make_batch(llama, err));
    TRY(library_load(request->folder, listen, &llama->said, &llama->call, err));
    TRY(open_model(llama, request, err));
    for (size_t i = 0; i < request->setting_count; i++)
        TRY(open_setting(llama, i, err));
    return STATUS_OK;
}

enum status peers_open_llama(const struct peers_request *request, struct peers_engine *ret,
                             struct error *err)
{
    struct llama *llama = calloc(1, sizeof(*llama));
    if (!llama)
        return error_set(err, STATUS_NO_MEMORY, "no memory for an engine");
    enum status status = fill_llama(llama, request, err);
    if (status) {
        close_llama(llama);
        return status;
    }
    *ret = (struct peers_engine){
        .name = "llama.cpp",
        .self = llama,
        .vocab_size = (uint32_t)llama->call.vocabulary_size(llama->call.vocabulary(llama->model)),
        .has = has_way,
        .begin = begin_llama,
        .step = step_llama,
        .end = end_llama,
        .logits = llama_logits,
        .close = close_llama,
    };
    return STATUS_OK;
}
