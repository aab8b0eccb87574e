/* call.c - a call of a foreign program, from its beginning to its end: see interpose.h. */
#include "interpose/interpose_impl.h"

#include "base/clock.h"
#include "base/parallel.h"

#include <string.h>

/* The cost of one call in this many is measured. */
#define COST_SAMPLE 16u

/* The runtime's name of the function, without version suffixes. */
static void set_function(struct event *event, const char *name)
{
    size_t length = strlen(name);
    static const char *const suffixes[] = { "_ptsz", "_ptds", "_v2", "_v3" };
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes); i++) {
        size_t cut = strlen(suffixes[i]);
        if (length > cut && strncmp(name + length - cut, suffixes[i], cut) == 0)
            length -= cut;
    }
    if (length >= sizeof(event->op))
        length = sizeof(event->op) - 1;
    memcpy(event->op, name, length);
}

bool translate_open_without_stack(struct interpose *interpose, struct interpose_call *call,
                                  enum event_kind kind)
{
    call->open = interpose && !interpose->disabled;
    if (!call->open)
        return false;
    memset(&call->event, 0, sizeof(call->event));
    call->watched = call->partly_watched = false;
    call->launch_ordinal = 0;
    call->argument[0] = call->argument[1] = 0;
    struct event *event = &call->event;
    event->begin_ns = clock_ns();
    event->id = __atomic_add_fetch(&interpose->last_id, 1, __ATOMIC_RELAXED);
    event->kind = (uint8_t)kind;
    event->flags = EVENT_FOREIGN;
    event->process_id = interpose->process_id;
    event->thread_index = parallel_thread_index();
    event->stream_index = EVENT_NO_STREAM;
    event->scope = (struct event_scope){ -1, -1, "" };
    ranges_name(event);
    event->operand = EVENT_NO_OPERAND;
    return true;
}

bool translate_open(struct interpose *interpose, struct interpose_call *call, enum event_kind kind,
                    const char *name, uint64_t site)
{
    if (!translate_open_without_stack(interpose, call, kind))
        return false;
    set_function(&call->event, name);
    call->event.stack_index = stack_capture(interpose, site);
    return true;
}

/* Measures one call in COST_SAMPLE and counts it for all of them. */
static void count_cost(struct interpose *interpose, const struct event *event, uint64_t since_ns,
                       bool first)
{
    if (event->id % COST_SAMPLE == 0)
        flight_add_cost(interpose->flight, (clock_ns() - since_ns) * COST_SAMPLE,
                        first ? COST_SAMPLE : 0);
}

void translate_tell(struct interpose *interpose, struct interpose_call *call)
{
    struct event *event = &call->event;
    event->phase = EVENT_BEGIN;
    event->outcome = EVENT_PENDING;
    launch_facts_other(interpose, event);
    interpose->observer.notify(interpose->observer.context, event);
    count_cost(interpose, event, event->begin_ns, true);
}

void translate_tell_done(struct interpose *interpose, struct interpose_call *call)
{
    struct event *event = &call->event;
    event->end_ns = clock_ns();
    event->phase = EVENT_END;
    event->outcome = EVENT_DONE;
    call->open = false;
    interpose->observer.notify(interpose->observer.context, event);
}

void translate_check(struct interpose_call *call, enum event_check check, uint8_t operand,
                     uint64_t expected, uint64_t found)
{
    struct event *event = &call->event;
    if (event->check != EVENT_CHECK_NONE)
        return;
    event->check = (uint8_t)check;
    event->operand = operand;
    event->expected = expected;
    event->found = found;
}

static uint8_t runtime_domain(const struct interpose *interpose)
{
    return interpose->backend->runtime == INTERPOSE_HIP ? EVENT_ERROR_HIP : EVENT_ERROR_CUDA;
}

/* Reports once that the device is lost, with the launch if it is known. */
static void tell_fault(struct interpose *interpose, uint64_t cause_id, int32_t code)
{
    struct interpose_call fault;
    if (__atomic_exchange_n(&interpose->fault_reported, true, __ATOMIC_RELAXED))
        return;
    if (!translate_open(interpose, &fault, EVENT_FAULT, "", 0))
        return;
    fault.event.cause_id = cause_id;
    if (cause_id)
        fault.event.flags |= EVENT_CAUGHT;
    fault.event.code = code;
    fault.event.domain = runtime_domain(interpose);
    translate_tell_done(interpose, &fault);
}

/* A rerun with --narrow waits for the launch before the program goes on. */
static void narrow(struct interpose *interpose, const struct interpose_call *call)
{
    if (!interpose->narrow_first || call->launch_ordinal < interpose->narrow_first ||
        call->launch_ordinal > interpose->narrow_last || call->event.kind != EVENT_LAUNCH ||
        call->event.launch.graph_id)
        return;
    uint64_t waited = __atomic_load_n(&interpose->narrow_waited, __ATOMIC_RELAXED);
    int32_t code = interpose->backend->synchronise();
    if (!code)
        __atomic_store_n(&interpose->narrow_waited, call->launch_ordinal, __ATOMIC_RELAXED);
    if (!code || !interpose->backend->is_fatal(code))
        return;
    /* It is this launch if the one before was done and no other thread has launched since. */
    bool first = call->launch_ordinal == interpose->narrow_first;
    uint64_t launches = __atomic_load_n(&interpose->launches, __ATOMIC_RELAXED);
    bool alone = launches == call->launch_ordinal && (first || waited + 1 == launches);
    tell_fault(interpose, alone ? call->event.id : 0, code);
}

void interpose_end(struct interpose *interpose, struct interpose_call *call, int32_t code)
{
    if (!interpose || !call->open)
        return;
    struct event *event = &call->event;
    event->end_ns = clock_ns();
    event->code = code;
    event->domain = code ? runtime_domain(interpose) : EVENT_ERROR_NONE;
    event->phase = EVENT_END;
    event->outcome = code ? EVENT_FAILED : EVENT_DONE;
    call->open = false;
    bool fatal = code && interpose->backend->is_fatal(code);
    if (fatal) {
        event->check = EVENT_CHECK_LOST;
        event->operand = EVENT_NO_OPERAND;
    }
    translate_settle(interpose, call);
    launch_facts_end(interpose, call);
    interpose->observer.notify(interpose->observer.context, event);
    if (fatal)
        tell_fault(interpose, 0, code);
    count_cost(interpose, event, event->end_ns, false);
    if (!code && call->launch_ordinal)
        narrow(interpose, call);
}

void interpose_failed(struct interpose *interpose, const char *name, int32_t code)
{
    struct interpose_call call;
    if (!code || !translate_open(interpose, &call, EVENT_CALL, name, 0))
        return;
    translate_tell(interpose, &call);
    interpose_end(interpose, &call, code);
}
