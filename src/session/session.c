/* session.c - see session.h: sessions, the requests they hold, and events.
 *
 * There is always a free slot for the end of every active request, and during a step for its other
 * events, so that adding an event cannot fail. Slots are reused when all events have been taken. */
#include "session/session_impl.h"

#include "base/clock.h"
#include "base/size.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* In one step a request can begin, run a chunk and write a token. */
#define EVENTS_PER_SEQUENCE 3u

static const char *const reason_names[] = {
    [SESSION_RUNNING] = "running",     [SESSION_END_TOKEN] = "end", [SESSION_STOP] = "stop",
    [SESSION_COMPLETE] = "complete",   [SESSION_LENGTH] = "length", [SESSION_CONTEXT] = "context",
    [SESSION_CANCELLED] = "cancelled", [SESSION_FAILED] = "error",
};
_Static_assert(COUNT_OF(reason_names) == SESSION_REASON_COUNT, "every reason has a name");

const char *session_reason_name(enum session_reason reason)
{
    ASSERT((unsigned)reason < SESSION_REASON_COUNT);
    return reason_names[reason];
}

/* ---- Events --------------------------------------------------------------------------------- */

/* Starts over with the first slot if all events were taken. */
static void recycle_slots(struct session *session)
{
    if (session->taken_count < session->slot_count)
        return;
    for (size_t i = 0; i < session->slot_count; i++) {
        request_destroy(session->slots[i].request);
        session->slots[i].request = NULL;
    }
    session->slot_count = session->taken_count = 0;
}

/* Makes room for the events of a step and for the ends of `active_count` requests. */
static enum status reserve_slots(struct session *session, size_t active_count, struct error *err)
{
    recycle_slots(session);
    size_t needed = session->slot_count + active_count +
                    (size_t)EVENTS_PER_SEQUENCE * session->sequence_count;
    if (needed <= session->slot_limit)
        return STATUS_OK;
    size_t limit = 2 * needed;
    struct event_slot *slots = realloc(session->slots, limit * sizeof(*slots));
    if (!slots)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the events of %zu requests",
                         active_count);
    memset(slots + session->slot_limit, 0, (limit - session->slot_limit) * sizeof(*slots));
    session->slots = slots;
    session->slot_limit = limit;
    return STATUS_OK;
}

struct event_slot *session_push(struct session *session, enum session_event_kind kind,
                                const struct request *request)
{
    ASSERT(session->slot_count < session->slot_limit);
    struct event_slot *slot = &session->slots[session->slot_count++];
    slot->event = (struct session_event){ .kind = kind, .request = request->id };
    return slot;
}

bool session_take(struct session *session, struct session_event *ret_event)
{
    if (session->taken_count == session->slot_count)
        return false;
    struct event_slot *slot = &session->slots[session->taken_count++];
    *ret_event = slot->event;
    if (slot->event.kind == SESSION_TOKEN)
        ret_event->token.text = (struct text_view){ text_get(&slot->text), slot->text.length };
    return true;
}

/* ---- The ends of requests ------------------------------------------------------------------- */

static void end_request(struct session *session, struct request *request,
                        enum session_reason reason, const struct error *error)
{
    struct event_slot *slot = session_push(session, SESSION_END, request);
    request->reason = reason;
    grammar_matcher_destroy(request->matcher); /* the caller may destroy the grammar now */
    request->matcher = NULL;
    slot->event.end.reason = reason;
    slot->event.end.token_count = request->token_count;
    if (error) {
        request->error = *error;
        slot->event.end.error = &request->error;
    }
    slot->request = request;
    session->active_count--;
}

void session_end_request(struct session *session, uint32_t sequence, enum session_reason reason,
                         const struct error *error)
{
    struct request *request = session->sequences[sequence].request;
    session->sequences[sequence].request = NULL;
    end_request(session, request, reason, error);
}

/* Unlinks the request at a place in the list. */
static struct request *pop_waiting(struct session *session, struct request **place)
{
    struct request *request = *place;
    *place = request->next;
    if (!*place)
        session->waiting_end = place;
    return request;
}

bool session_cancel(struct session *session, uint64_t id)
{
    recycle_slots(session);
    for (struct request **place = &session->waiting; *place; place = &(*place)->next)
        if ((*place)->id == id) {
            end_request(session, pop_waiting(session, place), SESSION_CANCELLED, NULL);
            return true;
        }
    for (uint32_t i = 0; i < session->sequence_count; i++)
        if (session->sequences[i].request && session->sequences[i].request->id == id) {
            if (session->pending) /* takes its token of that step back */
                engine_rewind(session->engine, i, engine_length(session->engine, i) - 1);
            session_end_request(session, i, SESSION_CANCELLED, NULL);
            return true;
        }
    return false;
}

/* ---- Requests ------------------------------------------------------------------------------- */

enum status session_add(struct session *session, const struct session_request *settings,
                        uint64_t *ret_id, struct error *err)
{
    struct request *request;
    if (session->failure.status) {
        *err = session->failure;
        return session->failure.status;
    }
    TRY(reserve_slots(session, session->active_count + 1, err));
    TRY(request_create(session, settings, &request, err));
    if (!session->start_ns)
        session->start_ns = clock_ns();
    *ret_id = request->id = session->next_id++;
    *session->waiting_end = request;
    session->waiting_end = &request->next;
    session->active_count++;
    return STATUS_OK;
}

size_t session_active_count(const struct session *session)
{
    return session->active_count;
}

/* ---- Steps ---------------------------------------------------------------------------------- */

/* Finds the first free sequence. False: none is free, or a prompt is prefilled that must not be
 * mixed with another. */
static bool find_free(const struct session *session, uint32_t *ret_sequence)
{
    bool found = false;
    for (uint32_t i = session->sequence_count; i-- > 0;) {
        const struct sequence *sequence = &session->sequences[i];
        if (sequence->request && sequence->request->read_count < sequence->prompt_count &&
            !session->options.mix_prompts)
            return false;
        if (!sequence->request) {
            *ret_sequence = i;
            found = true;
        }
    }
    return found;
}

enum status session_admit(struct session *session, struct error *err)
{
    uint32_t sequence;
    while (session->waiting && find_free(session, &sequence)) {
        struct request *request = pop_waiting(session, &session->waiting);
        session->sequences[sequence].request = request;
        TRY(prefix_admit(session, sequence, err));
    }
    return STATUS_OK;
}

enum status session_step(struct session *session, struct error *err)
{
    enum status status = session->failure.status;
    if (status) {
        *err = session->failure;
        return status;
    }
    TRY(reserve_slots(session, session->active_count, err));
    status = step_run(session, err);
    if (!status)
        return STATUS_OK;
    session->failure = *err;
    struct error unused;
    if (step_drop(session, &unused))
        session->pending = 0; /* nothing runs on a lost device */
    for (uint32_t i = 0; i < session->sequence_count; i++)
        if (session->sequences[i].request)
            session_end_request(session, i, SESSION_FAILED, err);
    while (session->waiting)
        end_request(session, pop_waiting(session, &session->waiting), SESSION_FAILED, err);
    return status;
}

enum status session_run(struct session *session, struct error *err)
{
    struct session_event event;
    while (session->active_count) {
        TRY(session_step(session, err));
        while (session_take(session, &event))
            if (event.kind == SESSION_END && event.end.reason == SESSION_FAILED) {
                *err = *event.end.error;
                return err->status;
            }
    }
    return STATUS_OK;
}

const struct session_timing *session_timing(const struct session *session)
{
    return &session->timing;
}

/* ---- Life ----------------------------------------------------------------------------------- */

static enum status allocate(struct session *session, struct error *err)
{
    const struct engine_options *limits = &engine_budget(session->engine)->options;
    session->sequence_count = min_u64(limits->logits_limit, limits->sequence_limit);
    session->sequences = calloc(session->sequence_count, sizeof(*session->sequences));
    session->tokens = calloc(limits->batch_limit, sizeof(*session->tokens));
    session->rows = calloc(limits->logits_limit, sizeof(*session->rows));
    session->ids = calloc(limits->logits_limit, sizeof(*session->ids));
    session->logits = calloc(session->vocab_size, sizeof(*session->logits));
    if (!session->sequences || !session->tokens || !session->rows || !session->ids ||
        !session->logits)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a session");
    return reserve_slots(session, session->sequence_count, err);
}

enum status session_create(struct engine *engine, const struct tokenizer *tokenizer,
                           const struct session_options *options, struct session **ret_session,
                           struct error *err)
{
    struct session *session = calloc(1, sizeof(*session));
    if (!session)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a session");
    session->engine = engine;
    session->tokenizer = tokenizer;
    session->vocab_size = engine_vocab_size(engine);
    session->waiting_end = &session->waiting;
    if (options)
        session->options = *options;
    enum status status = allocate(session, err);
    if (status)
        session_destroy(session);
    else
        *ret_session = session;
    return status;
}

void session_destroy(struct session *session)
{
    struct error unused;
    if (!session)
        return;
    /* If that fails the device is lost, and nothing is queued any more. */
    if (session->rows && step_drop(session, &unused))
        session->pending = 0;
    for (uint32_t i = 0; session->sequences && i < session->sequence_count; i++) {
        request_destroy(session->sequences[i].request);
        free(session->sequences[i].prompt);
    }
    while (session->waiting)
        request_destroy(pop_waiting(session, &session->waiting));
    for (size_t i = 0; i < session->slot_limit; i++) {
        request_destroy(session->slots[i].request);
        text_release(&session->slots[i].text);
    }
    free(session->slots);
    free(session->sequences);
    free(session->tokens);
    free(session->rows);
    free(session->ids);
    free(session->logits);
    text_release(&session->piece);
    free(session);
}
