/* job.c - a job as JSON. Written and read by the same program, but checked like any file. */
#include "campaign/job.h"

#include "campaign/files.h"

#include <string.h>

static json_t *range_json(const struct job_range *range)
{
    return json_pack("[I, I]", (json_int_t)range->least, (json_int_t)range->most);
}

static json_t *stress_json(const struct job_stress *stress)
{
    if (!stress->on)
        return json_null();
    return json_pack("{s:o, s:o, s:o, s:o, s:o}", "streams", range_json(&stress->streams), "chunk",
                     range_json(&stress->chunk), "delay_us", range_json(&stress->delay_us),
                     "pressure_bytes", range_json(&stress->pressure_bytes), "repeat",
                     range_json(&stress->repeat));
}

static json_t *search_json(const struct job_search *search)
{
    if (!search->on)
        return json_null();
    return json_pack("{s:I, s:I, s:I, s:b, s:b, s:b}", "every", (json_int_t)search->hash.every,
                     "first", (json_int_t)search->hash.first, "last", (json_int_t)search->hash.last,
                     "plain_outputs", search->hash.plain_outputs, "clear", search->clear,
                     "as_audited", search->as_audited);
}

static json_t *sampling_json(const struct sampler_settings *s)
{
    return json_pack("{s:f, s:I, s:f, s:f, s:f, s:f, s:f, s:I, s:I}", "temperature",
                     (double)s->temperature, "top_k", (json_int_t)s->top_k, "top_p",
                     (double)s->top_p, "min_p", (double)s->min_p, "repeat_penalty",
                     (double)s->repeat_penalty, "presence_penalty", (double)s->presence_penalty,
                     "frequency_penalty", (double)s->frequency_penalty, "repeat_last_n",
                     (json_int_t)s->repeat_last_n, "seed", (json_int_t)s->seed);
}

json_t *job_to_json(const struct job *job)
{
    return json_pack(
        "{s:s, s:s, s:s?, s:s?, s:s?, s:s, s:s?, s:s?, s:s?, s:s, s:s, s:I, s:I, s:I, s:I, s:I, "
        "s:I, "
        "s:I, s:I, s:b, s:o, s:o, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:I, s:I, s:I, s:I, "
        "s:I, "
        "s:b, s:o}",
        "label", job->label, "device", job->device, "model", job->model, "inject", job->inject,
        "flight", job->flight, "results", job->results, "log", job->log, "prompt", job->prompt,
        "kv_type", job->kv_type, "level", audit_level_name(job->level), "d2h_mode",
        device_d2h_mode_name(job->d2h_mode), "work", (json_int_t)job->work, "iterations",
        (json_int_t)job->iterations, "streams_interval", (json_int_t)job->streams_interval,
        "copies", (json_int_t)job->copies, "seed", (json_int_t)job->seed, "hang_limit_ns",
        (json_int_t)job->hang_limit_ns, "auditor_pid", (json_int_t)job->auditor_pid, "busy_streams",
        (json_int_t)job->busy_streams, "busy_replays", job->busy_replays, "stress",
        stress_json(&job->stress), "search", search_json(&job->search), "serialise", job->serialise,
        "single_stream", job->single_stream, "pageable", job->pageable, "large_copies",
        job->large_copies, "no_guards", job->no_guards, "no_live", job->no_live, "coredump",
        job->coredump, "kill_at_end", job->kill_at_end, "check_weights", job->check_weights,
        "chunk", (json_int_t)job->chunk, "token_limit", (json_int_t)job->token_limit, "context",
        (json_int_t)job->context, "batch", (json_int_t)job->batch, "threads",
        (json_int_t)job->threads, "ignore_end", job->ignore_end, "sampling",
        sampling_json(&job->sampling));
}

enum status job_write(const struct job *job, const char *path, struct error *err)
{
    return files_write_json(path, job_to_json(job), err);
}

/* ---- Reading -------------------------------------------------------------------------------- */

static const char *get_text(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static uint64_t get_number(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

static bool get_flag(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

static struct job_range get_range(const json_t *object, const char *key)
{
    const json_t *pair = json_object_get(object, key);
    return (struct job_range){ (uint64_t)json_integer_value(json_array_get(pair, 0)),
                               (uint64_t)json_integer_value(json_array_get(pair, 1)) };
}

static float get_real(const json_t *object, const char *key)
{
    return (float)json_number_value(json_object_get(object, key));
}

static bool find_mode(const char *name, enum device_d2h_mode *ret_mode)
{
    for (int mode = 0; name && mode < DEVICE_D2H_COUNT; mode++)
        if (strcmp(name, device_d2h_mode_name((enum device_d2h_mode)mode)) == 0) {
            *ret_mode = (enum device_d2h_mode)mode;
            return true;
        }
    return false;
}

static struct job_search get_search(const json_t *object)
{
    return (struct job_search){ .on = json_is_object(object),
                                .hash = { .every = (uint32_t)get_number(object, "every"),
                                          .first = (uint32_t)get_number(object, "first"),
                                          .last = (uint32_t)get_number(object, "last"),
                                          .plain_outputs = get_flag(object, "plain_outputs") },
                                .clear = get_flag(object, "clear"),
                                .as_audited = get_flag(object, "as_audited") };
}

static struct sampler_settings get_sampling(const json_t *object)
{
    return (struct sampler_settings){
        .temperature = get_real(object, "temperature"),
        .top_k = (uint32_t)get_number(object, "top_k"),
        .top_p = get_real(object, "top_p"),
        .min_p = get_real(object, "min_p"),
        .repeat_penalty = get_real(object, "repeat_penalty"),
        .presence_penalty = get_real(object, "presence_penalty"),
        .frequency_penalty = get_real(object, "frequency_penalty"),
        .repeat_last_n = (uint32_t)get_number(object, "repeat_last_n"),
        .seed = get_number(object, "seed"),
    };
}

enum status job_from_json(json_t *object, const char *path, struct job *ret_job, struct error *err)
{
    const json_t *stress = json_object_get(object, "stress");
    const char *level = get_text(object, "level");
    struct job job = {
        .label = get_text(object, "label"),
        .device = get_text(object, "device"),
        .model = get_text(object, "model"),
        .inject = get_text(object, "inject"),
        .flight = get_text(object, "flight"),
        .results = get_text(object, "results"),
        .log = get_text(object, "log"),
        .prompt = get_text(object, "prompt"),
        .kv_type = get_text(object, "kv_type"),
        .work = (unsigned)get_number(object, "work"),
        .iterations = (uint32_t)get_number(object, "iterations"),
        .streams_interval = (uint32_t)get_number(object, "streams_interval"),
        .copies = (uint32_t)get_number(object, "copies"),
        .busy_streams = (uint32_t)get_number(object, "busy_streams"),
        .busy_replays = get_flag(object, "busy_replays"),
        .seed = get_number(object, "seed"),
        .hang_limit_ns = get_number(object, "hang_limit_ns"),
        .auditor_pid = get_number(object, "auditor_pid"),
        .stress = { json_is_object(stress), get_range(stress, "streams"),
                    get_range(stress, "chunk"), get_range(stress, "delay_us"),
                    get_range(stress, "pressure_bytes"), get_range(stress, "repeat") },
        .search = get_search(json_object_get(object, "search")),
        .serialise = get_flag(object, "serialise"),
        .single_stream = get_flag(object, "single_stream"),
        .pageable = get_flag(object, "pageable"),
        .large_copies = get_flag(object, "large_copies"),
        .no_guards = get_flag(object, "no_guards"),
        .no_live = get_flag(object, "no_live"),
        .coredump = get_flag(object, "coredump"),
        .kill_at_end = get_flag(object, "kill_at_end"),
        .check_weights = get_flag(object, "check_weights"),
        .chunk = (uint32_t)get_number(object, "chunk"),
        .token_limit = (uint32_t)get_number(object, "token_limit"),
        .context = (uint32_t)get_number(object, "context"),
        .batch = (uint32_t)get_number(object, "batch"),
        .threads = (uint32_t)get_number(object, "threads"),
        .ignore_end = get_flag(object, "ignore_end"),
        .sampling = get_sampling(json_object_get(object, "sampling")),
        .document = object,
    };
    if (!job.label || !job.device || !job.results || !level ||
        !audit_level_from_name(level, &job.level) ||
        !find_mode(get_text(object, "d2h_mode"), &job.d2h_mode))
        return error_set(err, STATUS_BAD_FILE,
                         "%s: expected a job (label, device, results, level, d2h_mode), found "
                         "something else",
                         path);
    json_incref(object);
    *ret_job = job;
    return STATUS_OK;
}

enum status job_read(const char *path, struct job *ret_job, struct error *err)
{
    json_t *object = NULL;
    TRY(files_read_json(path, &object, err));
    enum status status = job_from_json(object, path, ret_job, err);
    json_decref(object);
    return status;
}

void job_release(struct job *job)
{
    json_decref(job->document);
    *job = (struct job){ 0 };
}
