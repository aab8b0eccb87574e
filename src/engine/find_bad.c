/* find_bad.c - runs a sequence again and checks the output of every op, to find where the first NaN
 * or infinity comes from. */
#include "engine/engine_impl.h"

#include <stdlib.h>
#include <string.h>

struct search {
    bool found;
    struct tap_record record;
};

static enum status look(void *context, const struct tap_record *record, const float *values,
                        struct error *err)
{
    struct search *search = context;
    (void)values;
    if (record->stats.first_bad == record->stats.count)
        return STATUS_OK;
    search->found = true;
    search->record = *record;
    return error_set(err, STATUS_BAD_FILE, "found"); /* ends the batch */
}

/* Runs the tokens of the sequence from the first on; *ret_position: where the last batch began. */
static enum status run_again(struct engine *engine, uint32_t sequence, uint32_t length,
                             uint32_t *ret_position, struct error *err)
{
    uint32_t batch_limit = engine->budget.options.batch_limit;
    const int32_t *ids = engine->slot_ids + (size_t)sequence * engine->budget.options.context;
    struct engine_token *tokens = calloc(batch_limit, sizeof(*tokens));
    if (!tokens)
        return error_set(err, STATUS_NO_MEMORY, "no memory to run a sequence again");
    enum status status = STATUS_OK;
    for (uint32_t first = 0; first < length && !status; first += batch_limit) {
        uint32_t count = length - first < batch_limit ? length - first : batch_limit;
        for (uint32_t i = 0; i < count; i++)
            tokens[i] = (struct engine_token){ ids[first + i], sequence, first + i + 1 == length };
        *ret_position = first;
        status = engine_forward(engine, tokens, count, err);
    }
    free(tokens);
    return status;
}

enum status engine_find_bad(struct engine *engine, uint32_t sequence, bool *ret_found,
                            struct tap_record *ret_record, uint32_t *ret_position,
                            struct error *err)
{
    struct engine_tap_choice all = { .kinds = ENGINE_TAP_HIDDEN,
                                     .first_layer = -1,
                                     .last_layer = INT32_MAX,
                                     .last_step = INT32_MAX };
    struct search search = { 0 };
    struct engine_taps *before = engine->taps, *taps;
    uint32_t length = engine_length(engine, sequence), first = 0;
    TRY(engine_argmax_check_none(engine, "search", err));
    TRY(engine_taps_create(engine, &all, 1, look, &search, &taps, err));
    engine->taps = taps;
    engine->lengths[sequence] = 0;
    enum status status = run_again(engine, sequence, length, &first, err);
    engine->lengths[sequence] = length;
    engine->taps = before;
    engine_taps_destroy(taps);
    if (status && !search.found)
        return status;
    *ret_found = search.found;
    *ret_record = search.record;
    if (search.found) {
        /* A row is a token of the batch, or an expert that one uses; logits belong to its last
         * token. */
        uint64_t row = search.record.stats.first_bad / search.record.shape.dims[0];
        if (strncmp(search.record.place.tensor, "ffn_experts_", strlen("ffn_experts_")) == 0)
            row /= engine->config.experts.used;
        bool of_logits = strcmp(search.record.place.tensor, "logits") == 0;
        *ret_position = of_logits ? length - 1 : first + (uint32_t)row;
    }
    return STATUS_OK;
}
