/* request.c - a request: checks and copies its settings, and turns a row of its logits into a
 * token, its text, and perhaps the end. */
#include "session/session_impl.h"

#include "base/clock.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Life ----------------------------------------------------------------------------------- */

static enum status check(const struct session *session, const struct session_request *settings,
                         struct error *err)
{
    uint32_t context = engine_budget(session->engine)->options.context;
    TRY(sampler_check(&settings->sampling, err));
    if (settings->id_count == 0)
        return error_set(err, STATUS_USAGE, "prompt: expected at least one token, found none");
    if (settings->id_count > context)
        return error_set(err, STATUS_LIMIT,
                         "prompt: expected at most the %" PRIu32
                         " tokens of the context, found %zu",
                         context, settings->id_count);
    for (size_t i = 0; i < settings->id_count; i++)
        if (settings->ids[i] >= session->vocab_size)
            return error_set(err, STATUS_USAGE,
                             "prompt: expected tokens below the vocabulary of %" PRIu32
                             ", found %" PRIu32,
                             session->vocab_size, settings->ids[i]);
    for (size_t i = 0; i < settings->stop_count; i++)
        if (settings->stops[i][0] == '\0')
            return error_set(err, STATUS_USAGE, "stop string: expected some text, found none");
    return STATUS_OK;
}

static bool copy_stops(struct request *request, const struct session_request *settings)
{
    request->stops = calloc(settings->stop_count + 1, sizeof(*request->stops));
    for (size_t i = 0; request->stops && i < settings->stop_count; i++)
        if (!(request->stops[i] = strdup(settings->stops[i])))
            return false;
    request->settings.stops = (const char *const *)request->stops;
    return request->stops != NULL;
}

enum status request_create(const struct session *session, const struct session_request *settings,
                           struct request **ret_request, struct error *err)
{
    TRY(check(session, settings, err));
    struct request *request = calloc(1, sizeof(*request));
    if (!request)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a request");
    request->settings = *settings;
    request->ids = malloc(settings->id_count * sizeof(*request->ids));
    if (!request->ids || !copy_stops(request, settings)) {
        request_destroy(request);
        return error_set(err, STATUS_NO_MEMORY, "no memory for a request of %zu tokens",
                         settings->id_count);
    }
    memcpy(request->ids, settings->ids, settings->id_count * sizeof(*request->ids));
    request->settings.ids = NULL; /* the caller's */
    *ret_request = request;
    return STATUS_OK;
}

void request_destroy(struct request *request)
{
    if (!request)
        return;
    for (size_t i = 0; request->stops && i < request->settings.stop_count; i++)
        free(request->stops[i]);
    free((void *)request->stops);
    free(request->ids);
    sampler_destroy(request->sampler);
    grammar_matcher_destroy(request->matcher);
    stop_scan_release(&request->stop_scan);
    free(request);
}

enum status request_begin(const struct session *session, struct request *request, struct error *err)
{
    const struct session_request *settings = &request->settings;
    TRY(sampler_create(&settings->sampling, session->vocab_size, &request->sampler, err));
    if (settings->grammar)
        TRY(grammar_matcher_create(settings->grammar, &request->matcher, err));
    stop_scan_init(&request->stop_scan, settings->stops, settings->stop_count);
    if (session->tokenizer)
        tokenizer_decoder_init(&request->decoder, session->tokenizer,
                               settings->show_special ? TOKENIZER_SHOW_SPECIAL : 0);
    /* The text continues the prompt: its first space is part of it. */
    request->decoder.at_start = false;
    for (size_t i = 0; i < settings->id_count; i++)
        sampler_accept(request->sampler, (int32_t)request->ids[i]);
    request->last_ns = clock_ns();
    return STATUS_OK;
}

bool request_wants_id(const struct request *request)
{
    return !request->settings.logits && !request->settings.grammar &&
           sampler_is_greedy(request->sampler);
}

/* ---- A token -------------------------------------------------------------------------------- */

/* Why the request ends with its newest token; SESSION_RUNNING if it goes on. */
static enum session_reason reason_after(const struct session *session, uint32_t sequence)
{
    const struct request *request = session->sequences[sequence].request;
    /* A step that is queued ahead has already added the token after the newest one. */
    uint32_t length = engine_length(session->engine, sequence) - session->pending;
    if (session->tokenizer && (!request->settings.ignore_end || request->matcher) &&
        tokenizer_is_end(session->tokenizer, request->last_id))
        return SESSION_END_TOKEN;
    if (request->matcher && grammar_matcher_must_end(request->matcher))
        return SESSION_COMPLETE;
    if (request->token_count >= request->settings.token_limit)
        return SESSION_LENGTH;
    if (length >= engine_budget(session->engine)->options.context)
        return SESSION_CONTEXT;
    return SESSION_RUNNING;
}

/* The new text that the newest token gives; SESSION_STOP in *reason where a stop string is found.
 */
static enum status add_text(struct session *session, struct request *request,
                            enum session_reason *reason, struct text *out, struct error *err)
{
    struct text *piece = &session->piece;
    if (!session->tokenizer)
        return STATUS_OK;
    text_clear(piece);
    if (*reason != SESSION_END_TOKEN || request->settings.show_special)
        TRY(tokenizer_decoder_add(&request->decoder, request->last_id, piece, err));
    if (*reason != SESSION_RUNNING)
        tokenizer_decoder_finish(&request->decoder, piece);
    struct text_view view = { text_get(piece), piece->length };
    if (stop_scan_add(&request->stop_scan, view, out))
        *reason = SESSION_STOP;
    else if (*reason != SESSION_RUNNING)
        stop_scan_finish(&request->stop_scan, out);
    if (!piece->failed && !out->failed && !request->stop_scan.held.failed)
        return STATUS_OK;
    piece->failed = out->failed = false;
    return error_set(err, STATUS_NO_MEMORY, "no memory for text");
}

/* The request in the sequence has written a token. */
static void take_token(struct session *session, uint32_t sequence, int32_t id)
{
    struct request *request = session->sequences[sequence].request;
    struct error error;
    uint64_t now_ns = clock_ns();
    if (!session->timing.first_token_ns)
        session->timing.first_token_ns = now_ns - session->start_ns;
    request->last_id = (uint32_t)id;
    sampler_accept(request->sampler, id);
    struct event_slot *slot = session_push(session, SESSION_TOKEN, request);
    slot->event.token.step = request->token_count++;
    slot->event.token.id = (uint32_t)id;
    slot->event.token.wait_ns = now_ns - request->last_ns;
    request->last_ns = now_ns;
    text_clear(&slot->text);
    if (request->matcher && grammar_matcher_accept(request->matcher, request->last_id, &error)) {
        session_end_request(session, sequence, SESSION_FAILED, &error);
        return;
    }
    enum session_reason reason = reason_after(session, sequence);
    if (add_text(session, request, &reason, &slot->text, &error))
        session_end_request(session, sequence, SESSION_FAILED, &error);
    else if (reason != SESSION_RUNNING)
        session_end_request(session, sequence, reason, NULL);
}

/* ---- Logits --------------------------------------------------------------------------------- */

/* A row whose argmax was waited for may have a step queued after it. */
static enum status read_logits(struct session *session, uint32_t row, const struct request *request,
                               struct error *err)
{
    return session->ids_from_device && request_wants_id(request)
               ? engine_argmax_logits(session->engine, row, session->logits, err)
               : engine_logits(session->engine, row, session->logits, err);
}

enum status request_give_logits(struct session *session, uint32_t row, struct error *err)
{
    const struct step_row *at = &session->rows[row];
    struct request *request = session->sequences[at->sequence].request;
    struct error error;
    if (!request->settings.logits)
        return STATUS_OK;
    TRY(read_logits(session, row, request, err));
    if (request->settings.logits(request->settings.logits_context, request->id, at->position,
                                 session->logits, &error))
        session_end_request(session, at->sequence, SESSION_FAILED, &error);
    return STATUS_OK;
}

/* Notes logits that are not finite, and makes them so where the request allows them. */
static void check_logits(struct session *session, struct request *request)
{
    struct tap_stats stats = tap_stats_of(session->logits, session->vocab_size);
    if (stats.first_bad == stats.count)
        return;
    request->has_bad = !request->settings.allow_bad;
    request->bad_logits = stats;
    for (uint32_t i = 0; request->settings.allow_bad && i < session->vocab_size; i++)
        if (!isfinite(session->logits[i]))
            session->logits[i] = session->logits[i] > 0 ? FLT_MAX : -FLT_MAX; /* NaN: never */
}

enum status request_sample(struct session *session, uint32_t row, int32_t id, struct error *err)
{
    uint32_t sequence = session->rows[row].sequence;
    struct request *request = session->sequences[sequence].request;
    struct error error;
    if (id < 0) {
        TRY(read_logits(session, row, request, err));
        if (request->settings.logits &&
            request->settings.logits(request->settings.logits_context, request->id,
                                     session->rows[row].position, session->logits, &error)) {
            session_end_request(session, sequence, SESSION_FAILED, &error);
            return STATUS_OK;
        }
        check_logits(session, request);
        if (request->has_bad)
            return STATUS_OK;
        if ((request->matcher && grammar_matcher_mask(request->matcher, session->logits,
                                                      session->vocab_size, &error)) ||
            sampler_choose(request->sampler, session->logits, &id, &error)) {
            session_end_request(session, sequence, SESSION_FAILED, &error);
            return STATUS_OK;
        }
    }
    take_token(session, sequence, id);
    return STATUS_OK;
}
