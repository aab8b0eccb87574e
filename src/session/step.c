/* step.c - a step of a session: which tokens its batch has, submit, and wait.
 *
 * Submitting a step queues its batch; waiting for it gives its rows of logits, or the ids that the
 * device chose from them. If all requests of a step want nothing but the likeliest token, and it is
 * faster, the next step is submitted before this one is waited for: its ids are still on the device
 * (ENGINE_TOKEN_FROM_DEVICE, engine/argmax.c). Two steps are pending then, with the same rows.
 *
 * The ids of the first may show that the second should not have been submitted. A request that has
 * ended has its token of the second step rewound, and its row is ignored. If no request goes on, or
 * the host had to choose a token, the second step is dropped. What is written therefore does not
 * depend on whether a step was queued ahead. No request begins while a step is pending. */
#include "session/session_impl.h"

#include "base/clock.h"
#include "session/bad_logits.h"

/* ---- The batch ------------------------------------------------------------------------------ */

static bool is_prefilling(const struct sequence *sequence)
{
    return sequence->request && sequence->request->read_count < sequence->prompt_count;
}

static void add_token(struct session *session, uint32_t sequence, uint32_t id, bool wants_logits)
{
    session->tokens[session->token_count++] = (struct engine_token){ (int32_t)id, sequence,
                                                                     wants_logits };
}

/* Adds the next chunk of a prompt, as far as the batch has room for tokens and rows. */
static void add_chunk(struct session *session, uint32_t number)
{
    const struct engine_options *limits = &engine_budget(session->engine)->options;
    const struct sequence *sequence = &session->sequences[number];
    struct request *request = sequence->request;
    uint32_t count = sequence->prompt_count, given = request->settings.prompt_logits;
    uint32_t first_given = given < count ? count - given : 0;
    uint32_t room = limits->batch_limit - session->token_count,
             chunk = session->options.prompt_chunk;
    uint32_t end = chunk && chunk < room ? chunk : room;
    for (uint32_t i = 0; i < end && request->read_count < count; i++) {
        uint32_t position = request->read_count;
        bool is_last = position + 1 == count, wants_logits = is_last || position >= first_given;
        if (wants_logits && session->row_count == limits->logits_limit)
            break;
        if (wants_logits)
            session->rows[session->row_count++] =
                (struct step_row){ number, position, is_last && request->settings.token_limit > 0 };
        add_token(session, number, sequence->prompt[position], wants_logits);
        request->read_count++;
        session->timing.prompt_tokens++;
    }
    session->has_prefill = true;
}

/* Adds a token of each sequence that decodes. */
static void add_decoding(struct session *session)
{
    for (uint32_t i = 0; i < session->sequence_count; i++) {
        const struct request *request = session->sequences[i].request;
        if (!request || is_prefilling(&session->sequences[i]))
            continue;
        session->rows[session->row_count++] =
            (struct step_row){ i, engine_length(session->engine, i), true };
        add_token(session, i, request->last_id, true);
    }
}

/* The policy: unless the two are mixed, a prompt is prefilled before decoding goes on. */
static void fill_batch(struct session *session)
{
    bool mixes = session->options.mix_prompts, prefills = false;
    session->token_count = session->row_count = 0;
    session->has_prefill = false;
    for (uint32_t i = 0; i < session->sequence_count; i++)
        prefills = prefills || is_prefilling(&session->sequences[i]);
    if (mixes || !prefills)
        add_decoding(session);
    for (uint32_t i = 0; i < session->sequence_count; i++)
        if (is_prefilling(&session->sequences[i]) && (mixes || !session->has_prefill))
            add_chunk(session, i);
}

/* ---- Submit --------------------------------------------------------------------------------- */

static bool row_is_live(const struct session *session, uint32_t row)
{
    return session->sequences[session->rows[row].sequence].request != NULL;
}

static enum status submit(struct session *session, struct error *err)
{
    session->ids_from_device = false;
    for (uint32_t row = 0; row < session->row_count; row++) {
        const struct step_row *at = &session->rows[row];
        if (at->is_sampled && request_wants_id(session->sequences[at->sequence].request))
            session->ids_from_device = true;
    }
    TRY(engine_forward(session->engine, session->tokens, session->token_count, err));
    session->pending = session->row_count > 0;
    return session->ids_from_device ? engine_argmax_submit(session->engine, err) : STATUS_OK;
}

/* True if the next step should be submitted before this one is waited for. Not if that is no
 * faster, if a request needs whole rows of logits, if one is known to end with this step, or if a
 * request waits for a free sequence. */
static bool may_go_ahead(const struct session *session)
{
    bool waits = false;
    if (!session->ids_from_device || session->has_prefill || !engine_ahead_pays(session->engine))
        return false;
    for (uint32_t i = 0; i < session->sequence_count; i++)
        waits = waits || (session->waiting && !session->sequences[i].request);
    for (uint32_t row = 0; row < session->row_count && !waits; row++) {
        uint32_t sequence = session->rows[row].sequence;
        const struct request *request = session->sequences[sequence].request;
        if (!request || !request_wants_id(request) ||
            request->token_count + 1 >= request->settings.token_limit ||
            engine_length(session->engine, sequence) >=
                engine_budget(session->engine)->options.context)
            return false;
    }
    return !waits;
}

/* If this fails the step may be pending all the same: step_drop. */
static enum status submit_ahead(struct session *session, struct error *err)
{
    session->token_count = 0;
    for (uint32_t row = 0; row < session->row_count; row++)
        session->tokens[session->token_count++] =
            (struct engine_token){ ENGINE_TOKEN_FROM_DEVICE, session->rows[row].sequence, true };
    TRY(engine_forward(session->engine, session->tokens, session->token_count, err));
    session->pending++;
    session->timing.ahead_steps++;
    return engine_argmax_submit(session->engine, err);
}

/* ---- Wait ----------------------------------------------------------------------------------- */

static void rewind_one(struct session *session, uint32_t sequence)
{
    engine_rewind(session->engine, sequence, engine_length(session->engine, sequence) - 1);
}

enum status step_drop(struct session *session, struct error *err)
{
    enum status status = STATUS_OK;
    for (uint32_t row = 0; session->pending && row < session->row_count; row++)
        if (row_is_live(session, row))
            rewind_one(session, session->rows[row].sequence);
    session->pending = 0;
    while (engine_argmax_pending(session->engine) && !status)
        status = engine_argmax_wait(session->engine, session->ids, err);
    return status;
}

/* Uses a row: samples a token, gives its logits away, or ends a request that wants no token. */
static enum status take_row(struct session *session, uint32_t row, struct error *err)
{
    const struct step_row *at = &session->rows[row];
    const struct sequence *sequence = &session->sequences[at->sequence];
    struct request *request = sequence->request;
    if (at->is_sampled)
        return request_sample(session, row, request_wants_id(request) ? session->ids[row] : -1,
                              err);
    if (request->settings.prompt_logits)
        TRY(request_give_logits(session, row, err));
    if (sequence->request && at->position + 1 == sequence->prompt_count) { /* no token is wanted */
        TRY(engine_wait(session->engine, err));
        session_end_request(session, at->sequence, SESSION_LENGTH, NULL);
    }
    return STATUS_OK;
}

/* Ends the requests whose logits are not finite. To find out why, their sequences are run again,
 * which overwrites the logits: so this comes after all rows were used. */
static void end_bad(struct session *session)
{
    for (uint32_t row = 0; row < session->row_count; row++) {
        uint32_t number = session->rows[row].sequence;
        const struct sequence *sequence = &session->sequences[number];
        struct error error;
        if (sequence->request && sequence->request->has_bad &&
            bad_logits_explain(session->engine, number, sequence->prompt, sequence->prompt_count,
                               sequence->request->token_count, &sequence->request->bad_logits,
                               &error))
            session_end_request(session, number, SESSION_FAILED, &error);
    }
}

/* Waits for the step that was submitted first. *ret_goes_on: the step after it, if any, stays. */
static enum status wait_rows(struct session *session, bool *ret_goes_on, struct error *err)
{
    bool goes_on = false, from_device = true, has_bad = false;
    for (uint32_t row = 0; row < session->row_count; row++)
        session->ids[row] = -1;
    session->pending--; /* what is left now is ahead */
    if (session->ids_from_device)
        TRY(engine_argmax_wait(session->engine, session->ids, err));
    for (uint32_t row = 0; row < session->row_count; row++)
        if (row_is_live(session, row) && !session->has_prefill)
            session->timing.decode_tokens++;
    for (uint32_t row = 0; row < session->row_count; row++) {
        uint32_t number = session->rows[row].sequence;
        if (!row_is_live(session, row))
            continue;
        from_device = from_device && session->ids[row] >= 0;
        TRY(take_row(session, row, err));
        const struct request *request = session->sequences[number].request;
        if (!request && session->pending)
            rewind_one(session, number);
        goes_on = goes_on || request;
        has_bad = has_bad || (request && request->has_bad);
    }
    *ret_goes_on = goes_on && from_device && !has_bad;
    if (has_bad) {
        /* If the step ahead cannot be dropped nothing can be run again, as the message will say. */
        struct error unused;
        if (step_drop(session, &unused))
            session->pending = 0;
        end_bad(session);
    }
    return STATUS_OK;
}

/* ---- A step --------------------------------------------------------------------------------- */

static void report_progress(struct session *session)
{
    for (uint32_t i = 0; i < session->sequence_count; i++) {
        if (!is_prefilling(&session->sequences[i]))
            continue;
        struct event_slot *slot = session_push(session, SESSION_PROMPT,
                                               session->sequences[i].request);
        slot->event.prompt.done = session->sequences[i].request->read_count;
        slot->event.prompt.total = session->sequences[i].prompt_count;
    }
}

/* A chunk without rows of logits: it is waited for so that progress is exact. */
static enum status end_chunk(struct session *session, struct error *err)
{
    session->chunk_is_pending = false;
    TRY(engine_wait(session->engine, err));
    report_progress(session);
    return STATUS_OK;
}

/* A step with rows of logits: submits the next one if that is faster, then waits for the first. */
static enum status finish_step(struct session *session, uint64_t begin_ns, struct error *err)
{
    uint64_t *spent_ns = session->has_prefill ? &session->timing.prompt_ns
                                              : &session->timing.decode_ns;
    /* If submitting the next step fails, that is reported after the tokens of this one; and not at
     * all if the next step would have been dropped anyway. */
    struct error second;
    bool goes_on;
    enum status ahead = may_go_ahead(session) ? submit_ahead(session, &second) : STATUS_OK;
    TRY(wait_rows(session, &goes_on, err));
    if (ahead && goes_on) {
        *err = second;
        return ahead;
    }
    *spent_ns += clock_ns() - begin_ns;
    begin_ns = clock_ns();
    if (!goes_on)
        TRY(step_drop(session, err));
    if (session->active_count) /* otherwise dropping delayed no token */
        *spent_ns += clock_ns() - begin_ns;
    if (session->has_prefill)
        report_progress(session);
    return STATUS_OK;
}

enum status step_run(struct session *session, struct error *err)
{
    uint64_t begin_ns = clock_ns();
    if (session->chunk_is_pending) {
        TRY(end_chunk(session, err));
        session->timing.prompt_ns += clock_ns() - begin_ns;
        return STATUS_OK;
    }
    if (!session->pending) {
        TRY(session_admit(session, err));
        fill_batch(session);
        if (!session->token_count)
            return STATUS_OK;
        TRY(submit(session, err));
    }
    if (session->pending)
        return finish_step(session, begin_ns, err);
    if (session->options.wait_for_chunks)
        session->chunk_is_pending = true;
    else
        report_progress(session);
    session->timing.prompt_ns += clock_ns() - begin_ns;
    return STATUS_OK;
}
