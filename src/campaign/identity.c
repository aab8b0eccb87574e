/* identity.c - see identity.h. */
#include "campaign/identity.h"

#include "convert/convert.h"
#include "device/all/all.h"
#include "ops/ops.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROMPT_DEFAULT "Once upon a time there was a small machine that counted every byte."
/* The shape of the model that is made where none is given. */
#define MODEL_SHAPE "tiny"
#define MODEL_SEED 1u
#define MODEL_EXPERTS 8u /* in that with experts */

enum status identity_find(const struct campaign_options *options, struct identity *ret_identity,
                          struct error *err)
{
    struct device_options device_options = { .guards = true, /* so that it says what they are */
                                             .staging_slot_count = 1,
                                             .staging_slot_bytes = 4096,
                                             .gpu_image = ops_gpu_image() };
    struct identity identity = { 0 };
    struct device *device;
    TRY(all_open(options->device, &device_options, &device, err));
    identity.device = *device_info(device);
    device_close(device);
    TRY(files_sha256(options->program, identity.binary_sha256, err));
    char text[512];
    int length = snprintf(text, sizeof(text), "%s\n%s\n%s\n%s\n", identity.binary_sha256,
                          identity.device.kind, identity.device.name, identity.device.driver);
    TRY(files_sha256_of(text, (size_t)length, identity.key, err));
    *ret_identity = identity;
    return STATUS_OK;
}

/* ---- The model ------------------------------------------------------------------------------ */

static enum status make_model(const struct campaign_options *options, bool has_experts,
                              struct audit_model *model, struct error *err)
{
    const struct model_shape *tiny = model_shape_find(MODEL_SHAPE);
    ASSERT(tiny);
    struct model_shape shape = *tiny;
    if (has_experts)
        shape.experts.count = MODEL_EXPERTS;
    TRY(files_join(model->path, err, options->temporary_folder, "greta-audit-%ld%s.gguf",
                   (long)getpid(), has_experts ? "-experts" : ""));
    struct convert_synth request = { .shape = shape,
                                     .type = CONVERT_Q8_0,
                                     .seed = MODEL_SEED,
                                     .path = model->path,
                                     .replace = true };
    uint64_t bytes;
    TRY(convert_synth(&request, NULL, &bytes, err));
    model->made = true;
    return STATUS_OK;
}

enum status audit_model_make_experts(const struct campaign_options *options,
                                     struct audit_model *model, struct error *err)
{
    *model = (struct audit_model){ 0 };
    return make_model(options, true, model, err);
}

enum status audit_model_open(const struct campaign_options *options, struct audit_model *model,
                             struct error *err)
{
    *model = (struct audit_model){ 0 };
    if (!options->model) {
        TRY(make_model(options, false, model, err));
    } else {
        int length = snprintf(model->path, sizeof(model->path), "%s", options->model);
        if (length < 0 || (size_t)length >= sizeof(model->path))
            return error_set(err, STATUS_LIMIT, "model: expected a path of fewer than %zu bytes",
                             sizeof(model->path));
    }
    enum status status = files_sha256(model->path, model->sha256, err);
    if (status)
        audit_model_close(model);
    return status;
}

void audit_model_close(struct audit_model *model)
{
    if (model->made)
        unlink(model->path);
    model->made = false;
}

struct job audit_job(const struct campaign_options *options, const struct audit_model *model,
                     const char *label)
{
    return (struct job){ .label = label,
                         .device = options->device,
                         .model = model->path,
                         .prompt = options->prompt ? options->prompt : PROMPT_DEFAULT,
                         .kv_type = options->kv_type,
                         .level = options->level,
                         .d2h_mode = options->d2h_mode,
                         .seed = options->seed,
                         .hang_limit_ns = options->hang_limit_ns,
                         .token_limit = options->token_limit,
                         .context = options->context,
                         .batch = options->batch,
                         .threads = options->threads,
                         .ignore_end = options->ignore_end,
                         .sampling = options->sampling };
}

enum status audit_workload_key(const struct campaign_options *options,
                               const struct audit_model *model, const struct identity *identity,
                               char ret_hex[FILES_SHA256_TEXT_BYTES], struct error *err)
{
    const struct sampler_settings *sampling = &options->sampling;
    /* Named one by one: what is added to a job later must not part an audit from its history. */
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s, s:s?, s:s?, s:s, s:I, s:I, s:I, s:b, s:f, s:I, s:f, s:f, s:f, s:f, "
        "s:f, s:I}",
        "model", model->sha256, "device", identity->device.kind, "device_name",
        identity->device.name, "prompt", options->prompt ? options->prompt : PROMPT_DEFAULT,
        "kv_type", options->kv_type, "inject", options->inject, "d2h_mode",
        device_d2h_mode_name(options->d2h_mode), "token_limit", (json_int_t)options->token_limit,
        "context", (json_int_t)options->context, "batch", (json_int_t)options->batch, "ignore_end",
        options->ignore_end, "temperature", (double)sampling->temperature, "top_k",
        (json_int_t)sampling->top_k, "top_p", (double)sampling->top_p, "min_p",
        (double)sampling->min_p, "repeat_penalty", (double)sampling->repeat_penalty,
        "presence_penalty", (double)sampling->presence_penalty, "frequency_penalty",
        (double)sampling->frequency_penalty, "repeat_last_n", (json_int_t)sampling->repeat_last_n);
    char *text = object ? json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(9))
                        : NULL;
    json_decref(object);
    if (!text)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the workload's key");
    enum status status = files_sha256_of(text, strlen(text), ret_hex, err);
    free(text);
    return status;
}

/* ---- Temporary folders ---------------------------------------------------------------------- */

enum status temporary_open(const struct campaign_options *options,
                           char ret_folder[FILES_PATH_BYTES], struct error *err)
{
    char run[FILES_PATH_BYTES];
    TRY(files_join(ret_folder, err, options->temporary_folder, "greta-audit-XXXXXX"));
    if (!mkdtemp(ret_folder))
        return error_set_os(err, errno, "cannot make a folder in %s", options->temporary_folder);
    TRY(files_join(run, err, ret_folder, "run"));
    return files_make_folder(run, err);
}

/* Files of one folder, and the folder. */
static void remove_flat(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    struct error unused;
    char path[FILES_PATH_BYTES];
    while (dir && (entry = readdir(dir)) != NULL)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            !files_join(path, &unused, folder, "%s", entry->d_name))
            unlink(path);
    if (dir)
        closedir(dir);
    rmdir(folder);
}

void temporary_close(const char *folder)
{
    char run[FILES_PATH_BYTES];
    struct error unused;
    if (!files_join(run, &unused, folder, "run"))
        remove_flat(run);
    remove_flat(folder);
}
