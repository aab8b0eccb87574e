/* call.c - a call of the device interface and the event it becomes: begin, refusal, end; what a
 * fault and a trap become. */
#include "device/device_core.h"

#include "base/clock.h"
#include "base/parallel.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool device_is_observed(const struct device *device)
{
    return device->options.observer.notify != NULL;
}

/* Which device and process it is of: what every event says. */
static void set_origin(const struct device *device, struct event *event)
{
    event->process_id = device->process_id;
    event->device_index = (uint16_t)device->options.device_index;
    event->thread_index = parallel_thread_index();
}

static void tell(struct device *device, const struct event *event)
{
    if (device_is_observed(device))
        device->options.observer.notify(device->options.observer.context, event);
}

static uint64_t new_id(struct device *device)
{
    return __atomic_add_fetch(device->options.event_ids, 1, __ATOMIC_RELAXED);
}

void device_tell(struct device *device, struct event *event)
{
    if (!device_is_observed(device))
        return;
    event->id = new_id(device);
    event->begin_ns = clock_ns();
    event->end_ns = event->begin_ns;
    set_origin(device, event);
    event->phase = EVENT_END;
    event->outcome = EVENT_DONE;
    tell(device, event);
}

void call_init(struct call *call, struct device *device, enum event_kind kind,
               struct device_site site)
{
    call->device = device;
    call->reported = false;
    call->what = event_kind_name(kind);
    struct event *event = &call->event;
    /* Without an observer only these fields are used, and clearing the rest would cost too much. */
    event->id = 0;
    event->access_count = 0;
    event->kind = (uint8_t)kind;
    if (!device_is_observed(device))
        return;
    *event = (struct event){ .kind = (uint8_t)kind,
                             .begin_ns = clock_ns(),
                             .stream_index = EVENT_NO_STREAM,
                             .line = (uint16_t)site.line,
                             .scope = { -1, -1, "" },
                             .operand = EVENT_NO_OPERAND };
    set_origin(device, event);
    event_set_text(event->file, sizeof(event->file), site.file);
}

void call_scope(struct call *call, const struct stream_slot *stream, uint32_t stream_index)
{
    if (!device_is_observed(call->device))
        return;
    call->event.scope = stream->scope;
    call->event.stream_index = stream_index;
}

void call_again(struct call *call)
{
    call->event.id = 0;
    if (device_is_observed(call->device))
        call->event.begin_ns = clock_ns();
}

void call_begin(struct call *call)
{
    call->event.id = new_id(call->device);
    call->reported = true;
    call->event.phase = EVENT_BEGIN;
    call->event.outcome = EVENT_PENDING;
    tell(call->device, &call->event);
}

static void finish(struct call *call, enum event_outcome outcome)
{
    struct event *event = &call->event;
    if (!device_is_observed(call->device))
        return;
    if (event->id == 0)
        event->id = new_id(call->device);
    event->phase = EVENT_END;
    event->outcome = (uint8_t)outcome;
    event->end_ns = clock_ns();
    tell(call->device, event);
}

/* A host has no runtime: its codes are planted ones, as a GPU's that is not said. */
static enum event_error_domain runtime_domain(const struct device *device)
{
    return device->domain ? device->domain : EVENT_ERROR_RUNTIME;
}

void call_set_code(struct call *call, const struct error *err)
{
    struct event *event = &call->event;
    event->code = err->runtime_code ? err->runtime_code
                  : err->os_code    ? err->os_code
                                    : (int32_t)err->status;
    event->domain = (uint8_t)(err->runtime_code ? runtime_domain(call->device)
                              : err->os_code    ? EVENT_ERROR_ERRNO
                                                : EVENT_ERROR_GRETA);
}

enum status call_end(struct call *call, enum status status, struct error *err)
{
    /* The backend names its own step; the caller knows the call. */
    if (status == STATUS_LOST && device_is_lost(call->device))
        status = call_fail_if_lost(call, call->what, err);
    if (status)
        call_set_code(call, err);
    finish(call, status ? EVENT_FAILED : EVENT_DONE);
    return status;
}

void call_refused(struct call *call, enum event_check check, uint32_t operand, uint64_t expected,
                  uint64_t found)
{
    struct event *event = &call->event;
    event->check = (uint8_t)check;
    event->operand = (uint8_t)operand;
    event->expected = expected;
    event->found = found;
    finish(call, EVENT_REFUSED);
}

/* ---- Lost devices --------------------------------------------------------------------------- */

bool device_is_lost(const struct device *device)
{
    return __atomic_load_n(&device->lost, __ATOMIC_ACQUIRE) != 0;
}

enum status device_set_lost(const struct device *device, const char *what, struct error *err)
{
    error_set_at(err, STATUS_LOST, __FILE__, __LINE__, "%s failed: %s (seen here; first fault: %s)",
                 what, device->lost_words, device->first_fault);
    err->runtime_code = device->first_fault_code;
    return STATUS_LOST;
}

enum status call_check_lost(struct call *call, const char *what, struct error *err)
{
    struct device *device = call->device;
    call->what = what;
    if (!device_is_lost(device))
        return STATUS_OK;
    call->event.cause_id = device->first_fault_id;
    return call_refuse(call, EVENT_CHECK_LOST, EVENT_NO_OPERAND, 0, device->first_fault_id, err,
                       STATUS_LOST, "%s failed: %s (seen here; first fault: %s)", what,
                       device->lost_words, device->first_fault);
}

enum status call_fail_if_lost(struct call *call, const char *what, struct error *err)
{
    const struct device *device = call->device;
    if (!device_is_lost(device))
        return STATUS_OK;
    call->event.cause_id = device->first_fault_id;
    return device_set_lost(device, what, err);
}

/* As the runtime calls it, where that is something else than an illegal access. */
static void describe_loss(const struct device_fault *fault, char *words, size_t bytes)
{
    if (fault->code && fault->code != DEVICE_ILLEGAL_ADDRESS)
        snprintf(words, bytes, "%s (%d)", fault->code_name, fault->code);
    else
        snprintf(words, bytes, "an illegal memory access was encountered");
}

static void describe_fault(const struct device_fault *fault, char *words, size_t bytes)
{
    char layer[32] = "", step[32] = "", address[200];
    if (fault->scope.layer >= 0)
        snprintf(layer, sizeof(layer), ", layer %" PRId32, fault->scope.layer);
    if (fault->scope.step >= 0)
        snprintf(step, sizeof(step), ", step %" PRId32, fault->scope.step);
    if (fault->address_known)
        snprintf(address, sizeof(address), "address 0x%" PRIx64 "%s%s%s", fault->address,
                 fault->note ? " (" : "", fault->note ? fault->note : "", fault->note ? ")" : "");
    else
        snprintf(address, sizeof(address), "address not known: %s",
                 fault->note ? fault->note : "the processor gives none");
    if (fault->caught)
        snprintf(words, bytes, "%s%s%s%s%s, stream %" PRIu32 ", event %" PRIu64 ", %s", fault->op,
                 layer, step, fault->scope.tensor[0] ? ", tensor " : "", fault->scope.tensor,
                 fault->stream_index, fault->event_id, address);
    else
        snprintf(words, bytes, "%s, %s", fault->running, address);
}

void device_report_fault(struct device *device, const struct device_fault *fault)
{
    struct event event = { .kind = EVENT_FAULT,
                           .id = new_id(device),
                           .begin_ns = clock_ns(),
                           .flags = fault->by_copy ? EVENT_COPY_ENGINE : 0,
                           .fault = { .address = fault->address_known ? fault->address : 0,
                                      .address_known = (uint8_t)fault->address_known },
                           .stream_index = EVENT_NO_STREAM,
                           .scope = { -1, -1, "" },
                           .operand = EVENT_NO_OPERAND,
                           .code = fault->code,
                           .domain = (uint8_t)(fault->code ? runtime_domain(device)
                                                           : EVENT_ERROR_NONE),
                           .phase = EVENT_END,
                           .outcome = EVENT_FAILED };
    event.end_ns = event.begin_ns;
    set_origin(device, &event);
    if (fault->caught) {
        event.flags |= EVENT_CAUGHT;
        event.cause_id = fault->event_id;
        event.fault.node_id = fault->node_id;
        event.stream_index = fault->stream_index;
        event.scope = fault->scope;
        event_set_text(event.op, sizeof(event.op), fault->op);
    }
    pthread_mutex_lock(&device->fault_lock);
    if (!device_is_lost(device)) {
        describe_fault(fault, device->first_fault, sizeof(device->first_fault));
        describe_loss(fault, device->lost_words, sizeof(device->lost_words));
        device->first_fault_id = event.id;
        device->first_fault_code = fault->code;
        __atomic_store_n(&device->lost, 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&device->fault_lock);
    tell(device, &event);
}

bool device_wants_completion(const struct device *device, const struct device_command *command)
{
    const struct device_options *options = &device->options;
    if (command->kind == DEVICE_COMMAND_INSPECT ||
        (command->kind == DEVICE_COMMAND_COPY_IN && device->completions_lag))
        return false;
    return options->completions ||
           (options->copy_completions && !device->completions_lag &&
            (command->kind == DEVICE_COMMAND_COPY_IN || command->kind == DEVICE_COMMAND_COPY_OUT));
}

void device_report_completion(struct device *device, uint32_t stream_index, uint64_t event_id)
{
    struct event event = { .kind = EVENT_COMPLETION,
                           .cause_id = event_id,
                           .stream_index = stream_index,
                           .scope = { -1, -1, "" },
                           .operand = EVENT_NO_OPERAND };
    device_tell(device, &event);
}

void device_run_begin(struct device *device, uint64_t iteration, uint64_t key)
{
    __atomic_store_n(&device->iteration, iteration, __ATOMIC_RELAXED);
    __atomic_store_n(&device->run_launches, 0, __ATOMIC_RELAXED);
    struct event event = { .kind = EVENT_RUN,
                           .run = { iteration, key },
                           .stream_index = EVENT_NO_STREAM,
                           .scope = { -1, -1, "" },
                           .operand = EVENT_NO_OPERAND };
    device_tell(device, &event);
}

/* ---- Traps ---------------------------------------------------------------------------------- */

bool device_index_ok(const struct device_host_call *call, uint32_t operand, uint64_t index,
                     uint64_t bound)
{
    if (index < bound)
        return true;
    crumb_trap_add(call->crumbs, call->launch_id, operand, index, bound);
    return false;
}

uint64_t device_trap_count(const struct device *device)
{
    return crumb_trap_total(device->crumbs);
}

void device_tell_traps(struct device *device)
{
    struct crumb_trap trap;
    pthread_mutex_lock(&device->lock);
    while (crumb_trap_get(device->crumbs, device->traps_reported, &trap)) {
        device->traps_reported++;
        struct event event = { .kind = EVENT_TRAP,
                               .cause_id = trap.launch_id,
                               .stream_index = EVENT_NO_STREAM,
                               .scope = { -1, -1, "" },
                               .trap = { .index = trap.index, .bound = trap.bound },
                               .operand = (uint8_t)trap.operand };
        inspect_find_launch(device, trap.launch_id, &event);
        device_tell(device, &event);
    }
    pthread_mutex_unlock(&device->lock);
}
