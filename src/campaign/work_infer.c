/* work_infer.c - a model on a prompt, again and again: the file is opened and the weights are bound
 * once, then every iteration writes the same number of tokens from an empty context.
 *
 * Under stress an iteration also differs in how the prompt is cut into batches, how long it is,
 * pauses between tokens, memory taken meanwhile, and work of other streams on memory of their own;
 * none of that may change what the model writes. */
#include "campaign/worker.h"

#include "base/clock.h"
#include "base/size.h"
#include "campaign/shadow.h"
#include "session/session.h"

#include <stdlib.h>
#include <string.h>

#define NOISE_STREAM_LIMIT 3u
#define NOISE_BYTES 65536u
#define PRESSURE_BUFFERS 8u
/* Memory for the whole context of a modern model would be tens of gigabytes. */
#define CONTEXT_LIMIT 4096u

struct noise {
    struct device_stream stream;
    struct device_view from, to; /* dense bytes */
};

struct work_infer {
    struct worker *worker;
    struct gguf_file *file;
    struct model_report report;
    struct tokenizer *tokenizer;
    struct tokenizer_ids prompt;
    struct engine *engine;
    struct noise noise[NOISE_STREAM_LIMIT];
    uint32_t noise_count;
    /* For the iteration that runs. */
    struct stress_draw draw;
    uint64_t random;
    uint64_t text_hash;
};

/* ---- Opening -------------------------------------------------------------------------------- */

static enum status open_model(struct work_infer *work, struct error *err)
{
    const struct job *job = work->worker->job;
    if (!job->model || !job->prompt)
        return error_set(err, STATUS_USAGE, "expected a model and a prompt, found none");
    TRY(gguf_open(job->model, &work->file, err));
    model_check(work->file, NULL, &work->report);
    if (model_report_refuses(&work->report, false))
        return error_set(err, STATUS_REFUSED, "%s: the guard rail refuses it: %s", job->model,
                         work->report.problem_count ? work->report.problems[0].text
                                                    : "its configuration cannot be read");
    TRY(tokenizer_create(work->file, &work->tokenizer, err));
    struct text_view text = { job->prompt, strlen(job->prompt) };
    TRY(tokenizer_encode(work->tokenizer, text, TOKENIZER_ADD_SPECIAL | TOKENIZER_PARSE_SPECIAL,
                         &work->prompt, err));
    if (!work->prompt.count)
        return error_set(err, STATUS_USAGE, "prompt: expected at least one token, found none");
    return STATUS_OK;
}

/* Whoever loads a large model is not silent. */
static bool beat(void *context, uint64_t done, uint64_t total)
{
    (void)done;
    (void)total;
    worker_beat(context);
    return true;
}

static enum status open_engine(struct work_infer *work, struct error *err)
{
    const struct job *job = work->worker->job;
    struct progress progress = { beat, work->worker };
    struct engine_options options = { .context = job->context,
                                      .batch_limit = job->batch,
                                      .eager = (job->work & JOB_COMPARE) ||
                                               (job->search.on && !job->search.as_audited),
                                      .progress = &progress };
    if (!dtype_from_name(job->kv_type ? job->kv_type : "f16", &options.kv_dtype))
        return error_set(err, STATUS_USAGE, "cache type: expected f32, f16 or q8_0, found '%s'",
                         job->kv_type);
    if (!options.context)
        options.context = min_u64(work->report.config.context_length, CONTEXT_LIMIT);
    TRY(engine_open(&work->worker->ops, work->file, &work->report, &options, &work->engine, err));
    uint32_t context = engine_budget(work->engine)->options.context;
    if (work->prompt.count >= context)
        return error_set(err, STATUS_LIMIT,
                         "prompt: expected fewer tokens than the context of %u, found %zu", context,
                         work->prompt.count);
    return STATUS_OK;
}

static enum status make_noise_buffer(struct worker *worker, const char *name,
                                     struct device_view *ret_view, struct error *err)
{
    uint64_t bytes = NOISE_BYTES;
    struct device_view view = { .dtype = DTYPE_I8, .shape = shape_make(1, &bytes) };
    TRY(device_buffer_create(worker->device, bytes, name, DEVICE_HERE, &view.buffer, err));
    *ret_view = view;
    return STATUS_OK;
}

static enum status open_noise(struct work_infer *work, struct error *err)
{
    struct worker *worker = work->worker;
    if (!worker->job->stress.on || worker->job->single_stream)
        return STATUS_OK;
    for (uint32_t i = 0; i < NOISE_STREAM_LIMIT; i++) {
        struct noise *noise = &work->noise[work->noise_count];
        TRY(device_stream_create(worker->device, DEVICE_HERE, &noise->stream, err));
        work->noise_count++;
        TRY(make_noise_buffer(worker, "noise.from", &noise->from, err));
        TRY(make_noise_buffer(worker, "noise.to", &noise->to, err));
    }
    return STATUS_OK;
}

enum status work_infer_open(struct worker *worker, struct work_infer **ret_work, struct error *err)
{
    struct work_infer *work = calloc(1, sizeof(*work));
    if (!work)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the infer workload");
    work->worker = worker;
    tokenizer_ids_init(&work->prompt);
    enum status status = open_model(work, err);
    if (!status)
        status = open_engine(work, err);
    if (!status)
        status = open_noise(work, err);
    if (status)
        work_infer_close(work);
    else
        *ret_work = work;
    return status;
}

static void close_noise(struct work_infer *work)
{
    struct device *device = work->worker->device;
    for (uint32_t i = 0; i < work->noise_count; i++) {
        struct noise *noise = &work->noise[i];
        const struct device_buffer buffers[] = { noise->from.buffer, noise->to.buffer };
        device_stream_destroy(device, noise->stream, DEVICE_HERE);
        for (size_t b = 0; b < COUNT_OF(buffers); b++)
            if (buffers[b].index)
                device_buffer_destroy(device, buffers[b], DEVICE_HERE);
    }
}

void work_infer_close(struct work_infer *work)
{
    if (!work)
        return;
    close_noise(work);
    engine_close(work->engine);
    tokenizer_ids_release(&work->prompt);
    tokenizer_destroy(work->tokenizer);
    gguf_close(work->file);
    free(work);
}

/* ---- Stress --------------------------------------------------------------------------------- */

/* A little work on each noise stream, not waited for. */
static enum status make_noise(struct work_infer *work, struct error *err)
{
    struct device *device = work->worker->device;
    uint32_t count = min_u64(work->draw.streams, work->noise_count);
    for (uint32_t i = 0; i < count; i++) {
        const struct noise *noise = &work->noise[i];
        struct event_scope scope = { .step = -1, .layer = -1, .tensor = "noise" };
        device_scope_set(device, noise->stream, &scope);
        TRY(device_fill(device, noise->stream, &noise->from, (uint8_t)i, DEVICE_HERE, err));
        TRY(device_copy_within(device, noise->stream, &noise->to, &noise->from, DEVICE_HERE, err));
    }
    return STATUS_OK;
}

/* All logits are copied to the host, greedy or not: equal runs must have equal logits, and the
 * likeliest id alone would hide a difference. */
static enum status on_logits(void *context, uint64_t request, uint32_t position,
                             const float *logits, struct error *err)
{
    (void)context;
    (void)request;
    (void)position;
    (void)logits;
    (void)err;
    return STATUS_OK;
}

static enum status on_token(struct work_infer *work, uint32_t id, struct error *err)
{
    work->text_hash = work->text_hash * 31 + id + 1;
    worker_beat(work->worker);
    stress_pause(&work->draw, &work->random);
    return make_noise(work, err);
}

/* Takes memory for the time of an iteration; what the device has not is not asked for. */
static uint32_t take_memory(struct work_infer *work, struct device_buffer buffers[PRESSURE_BUFFERS])
{
    struct device *device = work->worker->device;
    uint64_t each = work->draw.pressure_bytes / PRESSURE_BUFFERS;
    uint64_t room = device_info(device)->memory_bytes / 4;
    struct error unused;
    uint32_t count = 0;
    if (!each || work->draw.pressure_bytes > room)
        return 0;
    while (count < PRESSURE_BUFFERS && !device_buffer_create(device, each + count, "pressure",
                                                             DEVICE_HERE, &buffers[count], &unused))
        count++;
    return count;
}

static void give_memory_back(struct work_infer *work, const struct device_buffer *buffers,
                             uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        device_buffer_destroy(work->worker->device, buffers[i], DEVICE_HERE);
}

/* ---- An iteration --------------------------------------------------------------------------- */

/* What decides the result: not pauses, noise or pressure. */
static uint64_t key_of(const struct work_infer *work, size_t prompt_count)
{
    const struct job *job = work->worker->job;
    uint64_t state = job->seed + prompt_count * 1000003u + work->draw.chunk * 31u +
                     job->token_limit * 7u;
    return stress_random(&state);
}

/* The prompt, written as often as the draw says and the context allows; the caller's. */
static uint32_t *repeat_prompt(const struct work_infer *work, size_t *ret_count)
{
    size_t room = engine_budget(work->engine)->options.context / 2;
    size_t times = work->draw.repeat;
    while (times > 1 && times * work->prompt.count > room)
        times--;
    size_t count = times * work->prompt.count;
    uint32_t *ids = malloc(count * sizeof(*ids));
    for (size_t i = 0; ids && i < times; i++)
        memcpy(ids + i * work->prompt.count, work->prompt.ids, work->prompt.count * sizeof(*ids));
    *ret_count = count;
    return ids;
}

/* Takes the events of a step; a request that failed fails the iteration. */
static enum status take_events(struct work_infer *work, struct session *session,
                               struct worker_run *run, struct error *err)
{
    struct session_event event;
    while (session_take(session, &event)) {
        if (event.kind == SESSION_TOKEN) {
            run->tokens++;
            TRY(on_token(work, event.token.id, err));
        } else if (event.kind == SESSION_END && event.end.reason == SESSION_FAILED) {
            *err = *event.end.error;
            return err->status;
        }
    }
    return STATUS_OK;
}

static enum status run_session(struct work_infer *work, struct session *session,
                               const uint32_t *ids, size_t count, struct worker_run *run,
                               struct error *err)
{
    const struct job *job = work->worker->job;
    struct session_request request = { .ids = ids,
                                       .id_count = count,
                                       .sampling = job->sampling,
                                       .token_limit = job->token_limit,
                                       .ignore_end = job->ignore_end,
                                       .logits = on_logits };
    uint64_t unused;
    TRY(session_add(session, &request, &unused, err));
    while (session_active_count(session)) {
        enum status status = session_step(session, err);
        TRY(status ? status : take_events(work, session, run, err));
    }
    return STATUS_OK;
}

static enum status generate(struct work_infer *work, const uint32_t *ids, size_t count,
                            struct worker_run *run, struct error *err)
{
    const struct session_options options = { .prompt_chunk = work->draw.chunk };
    struct session *session;
    engine_restart(work->engine);
    if (work->worker->job->search.clear)
        TRY(engine_clear(work->engine, err));
    work->text_hash = 0;
    TRY(session_create(work->engine, work->tokenizer, &options, &session, err));
    enum status status = run_session(work, session, ids, count, run, err);
    run->prompt_tokens = session_timing(session)->prompt_tokens;
    run->prompt_ns = session_timing(session)->prompt_ns;
    run->decode_ns = session_timing(session)->decode_ns;
    run->result = work->text_hash;
    session_destroy(session);
    return status;
}

enum status work_infer_run(struct work_infer *work, uint32_t iteration, struct error *err)
{
    struct device_buffer pressure[PRESSURE_BUFFERS];
    size_t count;
    work->draw = stress_of(work->worker->job, iteration);
    work->random = work->worker->job->seed + iteration;
    uint32_t *ids = repeat_prompt(work, &count);
    if (!ids)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the prompt");
    struct worker_run run = { .work = "infer", .key = key_of(work, count) };
    enum status status = worker_run_begin(work->worker, &run, err);
    if (!status) {
        uint32_t taken = take_memory(work, pressure);
        status = generate(work, ids, count, &run, err);
        give_memory_back(work, pressure, taken);
    }
    worker_run_end(work->worker, &run, status, err);
    free(ids);
    return status;
}

enum status work_infer_mirror(struct work_infer *work, struct shadow *shadow, struct error *err)
{
    return shadow_set_weights(shadow, work->engine, work->file, err);
}

enum status work_infer_check_weights(struct work_infer *work, struct error *err)
{
    return work_tensors_check(work->worker, work->engine, work->file, err);
}
