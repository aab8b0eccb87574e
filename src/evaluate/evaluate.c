/* evaluate.c - see evaluate.h: chunks through the engine, rows through row.c, sums. */
#include "evaluate/evaluate_impl.h"

#include "base/parallel.h"
#include "session/session.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Logits kept at a time: large enough for threads to share the work, small compared with any model.
 */
#define LOGITS_LIMIT_BYTES (64u << 20)
/* Rows a thread takes at a time. */
#define ROWS_PER_PART 8u

uint32_t evaluate_scored_per_chunk(uint32_t context)
{
    return context - context / 2 - 1;
}

uint32_t evaluate_logits_limit(uint32_t context, uint32_t vocab_size)
{
    uint32_t scored = evaluate_scored_per_chunk(context);
    uint32_t fitting = (uint32_t)(LOGITS_LIMIT_BYTES / sizeof(float)) / vocab_size;
    return fitting == 0 ? 1 : fitting < scored ? fitting : scored;
}

struct evaluation {
    struct session *session;
    const struct tokenizer *tokenizer;
    const struct evaluate_options *options;
    uint32_t vocab_size;
    uint64_t chunk_count;
    uint64_t row_at;           /* scored tokens so far */
    uint32_t *chunk;           /* context */
    float *logits;             /* row_limit rows, of which row_count are not scored yet */
    struct evaluate_row *rows; /* row_limit */
    uint32_t row_limit, row_count;
    uint32_t position;  /* in the chunk, of the last of these rows */
    float *divergences; /* of all scored tokens; NULL without a base */
    struct text bytes;  /* of one token */
    struct outfile out;
    struct evaluate_moments nats, divergence, log_ratio, same_top, probability_square;
    struct evaluate_moments base_nats;
    uint64_t scored_bytes, identical;
};

/* ---- Chunks --------------------------------------------------------------------------------- */

/* Chunk number `index` as the model is given it. */
static void take_chunk(struct evaluation *evaluation, const uint32_t *ids, uint64_t index)
{
    uint32_t context = evaluation->options->context;
    memcpy(evaluation->chunk, ids + index * context, context * sizeof(*ids));
    if (tokenizer_info(evaluation->tokenizer)->add_bos)
        evaluation->chunk[0] = tokenizer_special_id(evaluation->tokenizer, TOKENIZER_BOS);
}

static uint64_t hash_chunks(struct evaluation *evaluation, const uint32_t *ids)
{
    uint64_t hash = 0;
    for (uint64_t i = 0; i < evaluation->chunk_count; i++) {
        take_chunk(evaluation, ids, i);
        hash = XXH3_64bits_withSeed(evaluation->chunk, evaluation->options->context * sizeof(*ids),
                                    hash);
    }
    return hash;
}

/* ---- Rows ----------------------------------------------------------------------------------- */

struct row_batch {
    struct evaluation *evaluation;
    const uint32_t *targets;
    uint32_t count;
};

static void score_part(void *context, uint64_t part_index)
{
    const struct row_batch *batch = context;
    struct evaluation *evaluation = batch->evaluation;
    uint32_t first = (uint32_t)part_index * ROWS_PER_PART;
    for (uint32_t i = first; i < batch->count && i < first + ROWS_PER_PART; i++) {
        const float *base = NULL;
        if (evaluation->options->base)
            base = evaluate_recording_row(evaluation->options->base, evaluation->row_at + i);
        evaluate_row_score(evaluation->logits + (size_t)i * evaluation->vocab_size, base,
                           evaluation->vocab_size, batch->targets[i], &evaluation->rows[i]);
    }
}

static void add_comparison(struct evaluation *evaluation, const struct evaluate_row *row)
{
    double change = exp(-row->nats) - exp(-row->base_nats);
    evaluation->divergences[evaluation->row_at] = (float)row->divergence;
    evaluate_moments_add(&evaluation->divergence, row->divergence);
    evaluate_moments_add(&evaluation->log_ratio, row->nats - row->base_nats);
    evaluate_moments_add(&evaluation->base_nats, row->base_nats);
    evaluate_moments_add(&evaluation->same_top, row->same_top);
    evaluate_moments_add(&evaluation->probability_square, change * change);
    evaluation->identical += row->identical;
}

/* Scores the rows so far; the token after each is the one it should predict. */
static enum status score_rows(struct evaluation *evaluation, struct error *err)
{
    uint32_t count = evaluation->row_count;
    const uint32_t *targets = evaluation->chunk + evaluation->position + 2 - count;
    struct row_batch batch = { evaluation, targets, count };
    evaluation->row_count = 0;
    parallel_run((count + ROWS_PER_PART - 1) / ROWS_PER_PART, evaluation->options->thread_count,
                 score_part, &batch);
    for (uint32_t i = 0; i < count; i++, evaluation->row_at++) {
        const struct evaluate_row *row = &evaluation->rows[i];
        if (!row->finite)
            return error_set(err, STATUS_REFUSED,
                             "scored token %" PRIu64 ": expected logits that are numbers, found "
                             "NaN or infinity%s",
                             evaluation->row_at,
                             evaluation->options->base ? " (in the model's or the base's)" : "");
        text_clear(&evaluation->bytes);
        tokenizer_token_bytes(evaluation->tokenizer, targets[i], TOKENIZER_RAW, &evaluation->bytes);
        if (evaluation->bytes.failed)
            return error_set(err, STATUS_NO_MEMORY, "no memory for a token's text");
        evaluation->scored_bytes += evaluation->bytes.length;
        evaluate_moments_add(&evaluation->nats, row->nats);
        if (evaluation->options->base)
            add_comparison(evaluation, row);
    }
    return STATUS_OK;
}

/* Takes the logits of a position, and scores all rows when there is no room for another. */
static enum status take_logits(void *context, uint64_t request, uint32_t position,
                               const float *logits, struct error *err)
{
    struct evaluation *evaluation = context;
    float *row = evaluation->logits + (size_t)evaluation->row_count * evaluation->vocab_size;
    (void)request;
    memcpy(row, logits, evaluation->vocab_size * sizeof(*row));
    if (evaluation->options->save_path)
        TRY(outfile_write(&evaluation->out, row, evaluation->vocab_size * sizeof(*row), err));
    evaluation->position = position;
    return ++evaluation->row_count == evaluation->row_limit ? score_rows(evaluation, err)
                                                            : STATUS_OK;
}

/* Runs the chunk without its last token, which has nothing to predict. */
static enum status run_chunk(struct evaluation *evaluation, struct error *err)
{
    uint32_t context = evaluation->options->context;
    struct session_request request = { .ids = evaluation->chunk,
                                       .id_count = context - 1,
                                       .sampling = { .top_p = 1, .repeat_penalty = 1 },
                                       .logits = take_logits,
                                       .logits_context = evaluation,
                                       .prompt_logits = evaluate_scored_per_chunk(context) };
    uint64_t unused;
    TRY(session_add(evaluation->session, &request, &unused, err));
    TRY(session_run(evaluation->session, err));
    return evaluation->row_count ? score_rows(evaluation, err) : STATUS_OK;
}

/* ---- Everything ----------------------------------------------------------------------------- */

static enum status check_base(struct evaluation *evaluation, const uint32_t *ids, struct error *err)
{
    const struct evaluate_recording_info *info = evaluate_recording_info(evaluation->options->base);
    if (info->vocab_size != evaluation->vocab_size)
        return error_set(err, STATUS_USAGE,
                         "base: expected a vocabulary of %" PRIu32
                         " as the model's, found %" PRIu32,
                         evaluation->vocab_size, info->vocab_size);
    if (info->context != evaluation->options->context)
        return error_set(err, STATUS_USAGE,
                         "base: expected chunks of %" PRIu32 " tokens, found %" PRIu32,
                         evaluation->options->context, info->context);
    if (info->chunk_count != evaluation->chunk_count)
        return error_set(err, STATUS_USAGE,
                         "base: expected %" PRIu64 " chunks as the text's, found %" PRIu64,
                         evaluation->chunk_count, info->chunk_count);
    if (info->ids_hash != hash_chunks(evaluation, ids))
        return error_set(err, STATUS_USAGE, "base: expected the tokens of this text, found others");
    return STATUS_OK;
}

static enum status start(struct evaluation *evaluation, struct engine *engine, const uint32_t *ids,
                         size_t count, struct error *err)
{
    const struct evaluate_options *options = evaluation->options;
    const struct engine_options *limits = &engine_budget(engine)->options;
    ASSERT(options->context >= EVALUATE_CONTEXT_LEAST && options->context <= limits->context);
    evaluation->chunk_count = count / options->context;
    if (evaluation->chunk_count == 0)
        return error_set(err, STATUS_USAGE,
                         "text: expected at least a chunk of %" PRIu32 " tokens, found %zu; use a "
                         "longer text or a smaller context",
                         options->context, count);
    if (options->chunk_limit && options->chunk_limit < evaluation->chunk_count)
        evaluation->chunk_count = options->chunk_limit;
    uint64_t scored = evaluation->chunk_count * evaluate_scored_per_chunk(options->context);
    evaluation->chunk = calloc(options->context, sizeof(*evaluation->chunk));
    evaluation->row_limit = limits->logits_limit;
    evaluation->logits = calloc((size_t)evaluation->row_limit * evaluation->vocab_size,
                                sizeof(*evaluation->logits));
    evaluation->rows = calloc(evaluation->row_limit, sizeof(*evaluation->rows));
    if (options->base)
        evaluation->divergences = calloc(scored, sizeof(*evaluation->divergences));
    if (!evaluation->chunk || !evaluation->logits || !evaluation->rows ||
        (options->base && !evaluation->divergences))
        return error_set(err, STATUS_NO_MEMORY, "no memory to evaluate");
    TRY(session_create(engine, evaluation->tokenizer, NULL, &evaluation->session, err));
    if (options->base)
        TRY(check_base(evaluation, ids, err));
    if (!options->save_path)
        return STATUS_OK;
    struct evaluate_recording_info info = { options->context, evaluation->vocab_size,
                                            evaluation->chunk_count, hash_chunks(evaluation, ids) };
    return evaluate_recording_begin(&evaluation->out, options->save_path, options->replace, &info,
                                    err);
}

static int compare_floats(const void *left, const void *right)
{
    float a = *(const float *)left, b = *(const float *)right;
    return (a > b) - (a < b);
}

static struct evaluate_comparison comparison_of(const struct evaluation *evaluation)
{
    float *sorted = evaluation->divergences;
    size_t count = evaluation->divergence.count;
    qsort(sorted, count, sizeof(*sorted), compare_floats);
    return (struct evaluate_comparison){
        .divergence = evaluate_moments_mean(&evaluation->divergence),
        .divergence_max = sorted[count - 1],
        .divergence_median = evaluate_percentile(sorted, count, 0.5),
        .divergence_90 = evaluate_percentile(sorted, count, 0.9),
        .divergence_95 = evaluate_percentile(sorted, count, 0.95),
        .divergence_99 = evaluate_percentile(sorted, count, 0.99),
        .divergence_999 = evaluate_percentile(sorted, count, 0.999),
        .log_ratio = evaluate_moments_mean(&evaluation->log_ratio),
        .same_top = evaluate_moments_mean(&evaluation->same_top),
        .probability_rms = sqrt(evaluation->probability_square.mean),
        .base_perplexity = exp(evaluation->base_nats.mean),
        .identical = evaluation->identical,
    };
}

static struct evaluate_result result_of(const struct evaluation *evaluation)
{
    struct evaluate_mean nats = evaluate_moments_mean(&evaluation->nats);
    double tokens = (double)evaluation->nats.count, bytes = (double)evaluation->scored_bytes;
    double bits = bytes > 0 ? tokens / bytes / log(2) : 0; /* bits per byte of a nat per token */
    return (struct evaluate_result){
        .chunk_count = evaluation->chunk_count,
        .scored_tokens = evaluation->nats.count,
        .scored_bytes = evaluation->scored_bytes,
        .nats = nats,
        .perplexity = { exp(nats.value), exp(nats.value) * nats.error },
        .bits_per_byte = { nats.value * bits, nats.error * bits },
        .compared = evaluation->options->base != NULL,
    };
}

static enum status run(struct evaluation *evaluation, const uint32_t *ids, struct error *err)
{
    const struct evaluate_options *options = evaluation->options;
    for (uint64_t i = 0; i < evaluation->chunk_count; i++) {
        TRY(progress_step(options->progress, i, evaluation->chunk_count, err));
        take_chunk(evaluation, ids, i);
        TRY(run_chunk(evaluation, err));
    }
    return options->save_path ? outfile_commit(&evaluation->out, err) : STATUS_OK;
}

enum status evaluate_run(struct engine *engine, const struct tokenizer *tokenizer,
                         const uint32_t *ids, size_t count, const struct evaluate_options *options,
                         struct evaluate_result *ret_result, struct error *err)
{
    struct evaluation evaluation = { .tokenizer = tokenizer,
                                     .options = options,
                                     .vocab_size = tokenizer_info(tokenizer)->token_count,
                                     .out = { .descriptor = -1 } };
    text_init(&evaluation.bytes);
    enum status status = start(&evaluation, engine, ids, count, err);
    if (!status)
        status = run(&evaluation, ids, err);
    if (!status) {
        *ret_result = result_of(&evaluation);
        if (options->base)
            ret_result->comparison = comparison_of(&evaluation);
    }
    session_destroy(evaluation.session);
    outfile_release(&evaluation.out);
    text_release(&evaluation.bytes);
    free(evaluation.chunk);
    free(evaluation.logits);
    free(evaluation.rows);
    free(evaluation.divergences);
    return status;
}
