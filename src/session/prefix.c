/* prefix.c - begins a request in a sequence: copies the part of its prompt that some sequence
 * already holds. The last token of a prompt is always run, for its logits.
 *
 * A sequence keeps its tokens after its request has ended, until the next request begins in it. */
#include "session/session_impl.h"

#include "base/size.h"

#include <stdlib.h>

static uint32_t count_common(const uint32_t *a, uint32_t a_count, const uint32_t *b,
                             uint32_t b_count)
{
    uint32_t common = 0, least = min_u64(a_count, b_count);
    while (common < least && a[common] == b[common])
        common++;
    return common;
}

/* How many tokens of the prompt can be copied from the source. */
static uint32_t count_shared(const struct session *session, uint32_t source, const uint32_t *ids,
                             uint32_t count)
{
    const struct sequence *sequence = &session->sequences[source];
    uint32_t held = engine_length(session->engine, source),
             share_from = session->options.share_from;
    uint32_t common = count_common(sequence->prompt, sequence->prompt_count, ids, count);
    if (!sequence->prompt ||
        (share_from == 0 && (common < count || sequence->prompt_count != count)))
        return 0;
    if (common > held)
        common = held;
    if (common < share_from || (share_from == 0 && common < count))
        return 0;
    return common < count ? common : count - 1;
}

/* The sequence takes over the prompt of its new request. */
static void replace_prompt(struct sequence *sequence)
{
    free(sequence->prompt);
    sequence->prompt = sequence->request->ids;
    sequence->prompt_count = (uint32_t)sequence->request->settings.id_count;
    sequence->request->ids = NULL;
}

enum status prefix_admit(struct session *session, uint32_t target, struct error *err)
{
    struct sequence *sequence = &session->sequences[target];
    struct request *request = sequence->request;
    uint32_t count = (uint32_t)request->settings.id_count, source = target, shared = 0;
    struct error error;
    if (request_begin(session, request, &error)) {
        session_end_request(session, target, SESSION_FAILED, &error);
        return STATUS_OK;
    }
    /* First the target itself, which needs no copy; then whichever holds more. */
    for (uint32_t i = 0; i <= session->sequence_count && shared + 1 < count; i++) {
        uint32_t candidate = i ? i - 1 : target;
        uint32_t there = count_shared(session, candidate, request->ids, count);
        if (there > shared && !request->settings.prompt_logits) {
            source = candidate;
            shared = there;
        }
    }
    replace_prompt(sequence);
    if (shared)
        TRY(engine_fork(session->engine, source, target, err));
    engine_rewind(session->engine, target, shared);
    request->read_count = shared;
    struct event_slot *slot = session_push(session, SESSION_PROMPT, request);
    slot->event.prompt.done = shared;
    slot->event.prompt.total = count;
    return STATUS_OK;
}
