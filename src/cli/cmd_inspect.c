/* cmd_inspect.c - greta inspect: what a file is, and whether it can run. */
#include "base/text.h"
#include "cli/cli.h"
#include "cli/file_type.h"
#include "cli/inspect_hash.h"
#include "cli/inspect_metadata.h"
#include "engine/engine.h"
#include "model/model.h"

#include <inttypes.h>
#include <string.h>

struct settings {
    bool json, tensors, metadata, hash;
    const char *check, *expect;
    uint32_t context; /* 0: the model's */
};

static const struct settings defaults = { 0 };

static const struct cli_option options[] = {
    { "--json", NULL, CLI_FLAG, offsetof(struct settings, json), "JSON instead of text", NULL,
      false },
    { "--tensors", NULL, CLI_FLAG, offsetof(struct settings, tensors),
      "list every tensor: name, type, shape, size, offset", NULL, false },
    { "--metadata", NULL, CLI_FLAG, offsetof(struct settings, metadata),
      "list every metadata key with its value", NULL, false },
    { "--ctx|-c|--ctx-size", "N", CLI_U32, offsetof(struct settings, context),
      "context for which memory is computed (default: the model's own)", NULL, false },
    { "--expect", "NAME", CLI_TEXT, offsetof(struct settings, expect),
      "refuse any model but this one, for instance llama2-7b; GRETA_DISABLE_GUARD_RAIL=1 makes it "
      "a "
      "warning",
      NULL, false },
    { "--hash", NULL, CLI_FLAG, offsetof(struct settings, hash),
      "only XXH64 and SHA-256 of every tensor: a manifest", NULL, false },
    { "--check", "MANIFEST", CLI_TEXT, offsetof(struct settings, check),
      "with --hash: compare with a manifest written earlier", NULL, true },
};

/* ---- File and model ------------------------------------------------------------------------- */

static void emit_file(struct emit *emit, const struct gguf_file *file)
{
    emit_text(emit, "file", gguf_path(file));
    emit_bytes(emit, "size", gguf_size_bytes(file));
    emit_count(emit, "gguf_version", gguf_version(file));
    if (gguf_shard_count(file) > 1)
        emit_count(emit, "parts", gguf_shard_count(file));
    emit_count(emit, "metadata_keys", gguf_entry_count(file));
    emit_count(emit, "tensors", gguf_tensor_count(file));
}

static void emit_key_text(struct emit *emit, const char *name, const struct gguf_file *file,
                          const char *key)
{
    struct text_view value;
    struct error absent;
    if (!gguf_get_text(file, key, &value, &absent))
        emit_view(emit, name, value);
}

static void emit_model(struct emit *emit, const struct gguf_file *file,
                       const struct model_report *report)
{
    emit_object_begin(emit, "model");
    emit_key_text(emit, "name", file, "general.name");
    emit_key_text(emit, "architecture", file, "general.architecture");
    bool exact;
    const struct model_shape *shape = report->config_known ? model_shape_of(&report->config, &exact)
                                                           : NULL;
    char count[TEXT_BYTES_CAPACITY];
    if (shape)
        emit_textf(emit, "known_as", "%s%s, %s params", shape->title,
                   exact ? "" : "-like (other vocabulary)",
                   text_count(report->parameter_count, count));
    emit_count(emit, "parameters", report->parameter_count);
    uint64_t type;
    struct error absent;
    if (!gguf_get_u64(file, "general.file_type", &type, &absent))
        emit_text(emit, "file_type", cli_file_type_name(type));
    emit_object_end(emit);
}

static void emit_experts(struct emit *emit, const struct model_experts *experts)
{
    if (experts->count == 0)
        return;
    emit_count(emit, "experts", experts->count);
    emit_count(emit, "experts_used", experts->used);
    emit_count(emit, "expert_feed_forward_length", experts->feed_length);
    if (experts->shared_feed_length)
        emit_count(emit, "shared_expert_feed_forward_length", experts->shared_feed_length);
}

/* What narrows attention or bounds logits, where a model has it. */
static void emit_bounds(struct emit *emit, const struct model_config *config)
{
    if (config->window)
        emit_count(emit, "sliding_window", config->window);
    if (config->attention_cap > 0)
        emit_real(emit, "attention_logit_cap", config->attention_cap);
    if (config->logit_cap > 0)
        emit_real(emit, "logit_cap", config->logit_cap);
}

static void emit_config(struct emit *emit, const struct model_config *config)
{
    emit_object_begin(emit, "configuration");
    emit_count(emit, "context_length", config->context_length);
    emit_count(emit, "embedding_length", config->embedding_length);
    emit_count(emit, "block_count", config->block_count);
    emit_count(emit, "feed_forward_length", config->feed_forward_length);
    emit_experts(emit, &config->experts);
    emit_count(emit, "head_count", config->head_count);
    emit_count(emit, "head_count_kv", config->head_count_kv);
    emit_count(emit, "head_dimension", config->head_dim);
    emit_bounds(emit, config);
    emit_count(emit, "vocab_size", config->vocab_size);
    emit_flag(emit, "tied_embeddings", config->tied_embeddings);
    emit_real(emit, "rms_epsilon", config->rms_epsilon);
    emit_text(emit, "rope_pairs",
              config->rope.kind == MODEL_ROPE_ADJACENT ? "adjacent" : "split halves");
    emit_count(emit, "rope_dimensions", config->rope.dimension_count);
    emit_real(emit, "rope_base", config->rope.base);
    emit_text(emit, "rope_scaling", model_rope_scaling_name(config->rope.scaling));
    if (config->rope.scaling != MODEL_ROPE_SCALING_NONE)
        emit_real(emit, "rope_scaling_factor", config->rope.scaling_factor);
    emit_flag(emit, "rope_frequency_factors", config->has_rope_freqs);
    emit_object_end(emit);
}

static void emit_tokenizer(struct emit *emit, const struct gguf_file *file)
{
    const struct gguf_value *tokens = gguf_find(file, "tokenizer.ggml.tokens");
    if (!tokens)
        return;
    emit_object_begin(emit, "tokenizer");
    emit_key_text(emit, "kind", file, "tokenizer.ggml.model");
    emit_key_text(emit, "pre_tokenizer", file, "tokenizer.ggml.pre");
    emit_count(emit, "tokens", tokens->count);
    uint64_t id;
    struct error absent;
    if (!gguf_get_u64(file, "tokenizer.ggml.bos_token_id", &id, &absent))
        emit_count(emit, "bos_id", id);
    if (!gguf_get_u64(file, "tokenizer.ggml.eos_token_id", &id, &absent))
        emit_count(emit, "eos_id", id);
    emit_flag(emit, "chat_template", gguf_find(file, "tokenizer.chat_template") != NULL);
    emit_object_end(emit);
}

/* ---- Tensors -------------------------------------------------------------------------------- */

static void emit_types(struct emit *emit, const struct gguf_file *file)
{
    struct {
        uint64_t tensors, elements, bytes;
    } sums[DTYPE_COUNT] = { { 0 } };
    for (size_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *tensor = gguf_tensor_at(file, i);
        uint64_t elements = 0;
        if (shape_element_count(&tensor->shape, &elements))
            sums[tensor->dtype].elements += elements;
        sums[tensor->dtype].tensors++;
        sums[tensor->dtype].bytes += tensor->bytes;
    }
    emit_list_begin(emit, "types");
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        if (!sums[dtype].tensors)
            continue;
        emit_object_begin(emit, NULL);
        emit_text(emit, "type", dtype_name((enum dtype)dtype));
        emit_count(emit, "tensors", sums[dtype].tensors);
        emit_count(emit, "elements", sums[dtype].elements);
        emit_bytes(emit, "size", sums[dtype].bytes);
        emit_object_end(emit);
    }
    emit_list_end(emit);
}

static void emit_tensors(struct emit *emit, const struct gguf_file *file)
{
    emit_list_begin(emit, "tensor_list");
    for (size_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *tensor = gguf_tensor_at(file, i);
        char shape[SHAPE_TEXT_BYTES];
        emit_object_begin(emit, NULL);
        emit_view(emit, "name", tensor->name);
        emit_text(emit, "type", dtype_name(tensor->dtype));
        if (emit_is_json(emit)) {
            emit_list_begin(emit, "shape");
            for (uint32_t d = 0; d < tensor->shape.rank; d++)
                emit_count(emit, NULL, tensor->shape.dims[d]);
            emit_list_end(emit);
        } else {
            emit_text(emit, "shape", shape_text(&tensor->shape, shape));
        }
        emit_bytes(emit, "size", tensor->bytes);
        if (gguf_shard_count(file) > 1)
            emit_count(emit, "part", tensor->shard_index + 1u);
        emit_count(emit, "offset", tensor->offset_bytes);
        emit_object_end(emit);
    }
    emit_list_end(emit);
}

/* ---- Memory and verdict --------------------------------------------------------------------- */

/* The memory that greta infer would take on the host, for one sequence. */
static void emit_memory(struct emit *emit, const struct model_report *report, uint32_t context)
{
    struct ops ops = ops_for_budget(cpu_path_best());
    struct engine_options engine_options = { .context = context, .kv_dtype = DTYPE_F16 };
    struct engine_budget budget;
    struct error err;
    emit_object_begin(emit, "memory");
    if (engine_budget_make(report, &ops, &engine_options, &budget, &err)) {
        emit_text(emit, "refused", err.text);
    } else {
        emit_count(emit, "context", budget.options.context);
        emit_bytes(emit, "weights", budget.weight_bytes);
        emit_bytes(emit, "kv_cache_f16", budget.kv_bytes);
        emit_bytes(emit, "scratch", budget.scratch_bytes);
        emit_bytes(emit, "total", budget.total_bytes);
    }
    emit_object_end(emit);
}

static void emit_verdict(struct emit *emit, const struct model_report *report, bool refused)
{
    emit_object_begin(emit, "guard_rail");
    emit_text(emit, "verdict",
              refused                 ? "refused"
              : report->problem_count ? "can run, but is not the expected model"
                                      : "can run");
    if (report->problem_count) {
        emit_list_begin(emit, "problems");
        for (size_t i = 0; i < report->problem_count; i++)
            emit_text(emit, NULL, report->problems[i].text);
        if (report->unkept_count)
            emit_textf(emit, NULL, "and %zu more", report->unkept_count);
        emit_list_end(emit);
    }
    emit_object_end(emit);
}

static enum status show(const struct cli_invocation *invocation, const struct gguf_file *file,
                        const struct model_shape *expected, bool *ret_refused, struct error *err)
{
    const struct settings *settings = invocation->settings;
    struct model_report report;
    model_check(file, expected, &report);
    bool refused = model_report_refuses(&report, invocation->environment->guard_rail_disabled);
    struct emit *emit;
    TRY(emit_create(settings->json ? EMIT_JSON : EMIT_TEXT, &emit, err));
    emit_file(emit, file);
    emit_model(emit, file, &report);
    if (report.config_known)
        emit_config(emit, &report.config);
    emit_tokenizer(emit, file);
    emit_types(emit, file);
    if (report.config_known)
        emit_memory(emit, &report, settings->context);
    if (settings->metadata)
        inspect_metadata(emit, file);
    if (settings->tensors)
        emit_tensors(emit, file);
    emit_verdict(emit, &report, refused);
    enum status status = emit_finish(emit, stdout, err);
    emit_destroy(emit);
    for (size_t i = 0; !refused && i < report.problem_count; i++)
        cli_warn(invocation, "%s", report.problems[i].text);
    *ret_refused = refused;
    return status;
}

static enum status check_settings(const struct settings *settings,
                                  const struct model_shape **ret_expected, struct error *err)
{
    *ret_expected = NULL;
    if (settings->check && !settings->hash)
        return error_set(err, STATUS_USAGE, "--check: expected together with --hash, found alone");
    if (!settings->expect)
        return STATUS_OK;
    *ret_expected = model_shape_find(settings->expect);
    if (*ret_expected)
        return STATUS_OK;
    char list[512] = "";
    for (size_t i = 0; i < model_shape_count(); i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof(list) - used, " %s", model_shape_at(i)->slug);
    }
    return error_set(err, STATUS_USAGE, "--expect: expected one of:%s; found '%s'", list,
                     settings->expect);
}

static enum cli_exit run_inspect(const struct cli_invocation *invocation)
{
    const struct settings *settings = invocation->settings;
    const struct model_shape *expected;
    struct gguf_file *file;
    struct error err;
    if (check_settings(settings, &expected, &err))
        return cli_fail(invocation, &err);
    if (gguf_open(invocation->operands[0], &file, &err))
        return cli_fail(invocation, &err);
    bool negative = false;
    enum status status;
    if (settings->hash)
        status = inspect_hash(invocation, file, settings->check, settings->json, &negative, &err);
    else
        status = show(invocation, file, expected, &negative, &err);
    if (!status)
        status = gguf_check_whole(file, &err);
    gguf_close(file);
    if (status)
        return cli_fail(invocation, &err);
    return negative ? CLI_EXIT_FAILED : CLI_EXIT_OK;
}

const struct cli_command cli_inspect = {
    .name = "inspect",
    .operands = "FILE",
    .operand_least = 1,
    .operand_most = 1,
    .summary = "say what a GGUF file is and whether it can run",
    .description =
        "Reads the header of a GGUF file (any part of a split one) without touching the weights, "
        "and "
        "prints what it is: model, configuration, size by type, memory needed, and the verdict of "
        "the guard rail: every reason why greta could not run it, with what was expected, what was "
        "found and what to do. Exit status 1 if it cannot run, 3 if the file cannot be read.\n\n"
        "With --hash it prints XXH64 and SHA-256 of every tensor instead, a line each: a manifest "
        "that --check compares with later. Exit status 1 if anything differs, is missing or is not "
        "listed.",
    .examples = "  greta inspect model.gguf\n"
                "  greta inspect --json --tensors model.gguf\n"
                "  greta inspect --expect llama2-7b model.gguf || echo another model\n"
                "  greta inspect --hash model.gguf > model.manifest\n"
                "  greta inspect --hash --check model.manifest model.gguf\n",
    .options = options,
    .option_count = COUNT_OF(options),
    .settings_bytes = sizeof(defaults),
    .defaults = &defaults,
    .run = run_inspect,
};
