/* interpose.c - the life of a recording, and of a call in it. */
#include "interpose/interpose_impl.h"

#include "base/clock.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* 128 MiB: greta reads while the program writes, and a burst of launches must not overtake it. */
#define RECORDS_DEFAULT 262144u
#define RECORDS_LEAST 1024u
#define RECORDS_MOST (1u << 22)
#define ALLOCATIONS 32768u
#define GRAPH_RECORDS 16384u
/* The cost of one call in this many is measured. */
#define COST_SAMPLE 16u
#define BACKEND_LIMIT 4u
/* How many programs one process may execute one after another. */
#define PROGRAM_LIMIT 64u

/* ---- Life ----------------------------------------------------------------------------------- */

/* A forked child shares its parent's mapping and must not write there. CUDA and HIP do not work in
 * it anyway; a program that it executes has a recording of its own. */
static struct interpose *started[BACKEND_LIMIT];
static unsigned started_count;

static void after_fork(void)
{
    for (unsigned i = 0; i < started_count; i++)
        started[i]->disabled = true;
}

/* A process that cannot be recorded must be known: greta finds this note next to the recordings. */
static void leave_note(const char *folder, const char *backend, const char *slug,
                       const char *detail)
{
    char path[PATH_MAX], text[600];
    int length = snprintf(path, sizeof(path), "%s/%ld.%s.note", folder, (long)getpid(), backend);
    if (length < 0 || (size_t)length >= sizeof(path))
        return;
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0)
        return;
    snprintf(text, sizeof(text), "%.40s %.500s", slug, detail);
    ssize_t unused = write(file, text, strlen(text));
    (void)unused;
    close(file);
}

void interpose_note(const struct interpose_backend *backend, const char *slug, const char *detail)
{
    const char *folder = getenv(INTERPOSE_VARIABLE_FOLDER);
    if (folder && folder[0] == '/')
        leave_note(folder, backend->name, slug, detail);
}

/* The command line, arguments separated by spaces. */
static void read_command(char *text, size_t capacity)
{
    text[0] = '\0';
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    ssize_t count = read(file, text, capacity - 1);
    close(file);
    for (ssize_t i = 0; i + 1 < count; i++)
        if ((unsigned char)text[i] < 0x20)
            text[i] = ' ';
    text[count > 0 ? count : 0] = '\0';
}

static bool make_tables(struct interpose *interpose)
{
    interpose->streams = calloc(STREAM_TRACKED_LIMIT, sizeof(*interpose->streams));
    interpose->marks = calloc(MARK_TRACKED_LIMIT, sizeof(*interpose->marks));
    interpose->graphs = calloc(GRAPH_TRACKED_LIMIT, sizeof(*interpose->graphs));
    interpose->names = calloc(NAME_CACHE, sizeof(*interpose->names));
    return interpose->streams && interpose->marks && interpose->graphs && interpose->names;
}

static void release(struct interpose *interpose)
{
    free(interpose->blocks.list);
    free(interpose->streams);
    free(interpose->marks);
    free(interpose->graphs);
    free(interpose->names);
    free(interpose);
}

static uint32_t record_count(void)
{
    const char *text = getenv(INTERPOSE_VARIABLE_RECORDS);
    unsigned long count = text ? strtoul(text, NULL, 10) : 0;
    return count >= RECORDS_LEAST && count <= RECORDS_MOST ? (uint32_t)count : RECORDS_DEFAULT;
}

static void read_narrow(struct interpose *interpose)
{
    const char *text = getenv(INTERPOSE_VARIABLE_NARROW);
    char *end;
    if (!text)
        return;
    unsigned long long first = strtoull(text, &end, 10);
    if (*end != '-' || first == 0)
        return;
    interpose->narrow_first = first;
    interpose->narrow_last = strtoull(end + 1, NULL, 10);
}

/* A process that executes another program keeps its number; each program has a recording. */
static bool choose_path(char path[PATH_MAX], const char *folder, const char *backend)
{
    for (unsigned i = 1; i <= PROGRAM_LIMIT; i++) {
        char which[16] = "";
        if (i > 1)
            snprintf(which, sizeof(which), "-%u", i);
        int length = snprintf(path, PATH_MAX, "%s/%ld%s.%s.flight", folder, (long)getpid(), which,
                              backend);
        if (length < 0 || length >= PATH_MAX)
            return false;
        if (access(path, F_OK) != 0)
            return true;
    }
    return false;
}

static struct flight *make_flight(const char *folder, const struct interpose_backend *backend,
                                  const char *device, uint32_t records)
{
    char path[PATH_MAX], command[FLIGHT_TEXT_BYTES];
    struct flight *flight = NULL;
    struct error err;
    if (!choose_path(path, folder, backend->name))
        return NULL;
    read_command(command, sizeof(command));
    struct flight_options options = { .record_count = records ? records : record_count(),
                                      .allocation_count = ALLOCATIONS,
                                      .graph_record_count = GRAPH_RECORDS,
                                      .device = device,
                                      .command = command,
                                      .call_tables = true };
    if (flight_create(path, &options, &flight, &err)) {
        leave_note(folder, backend->name, INTERPOSE_NOTE_NO_RECORDING, err.text);
        return NULL;
    }
    return flight;
}

struct interpose *interpose_open(const struct interpose_backend *backend, const char *folder,
                                 const char *device, uint32_t records)
{
    struct interpose *interpose = calloc(1, sizeof(*interpose));
    if (!interpose)
        return NULL;
    interpose->backend = backend;
    interpose->lowest = UINT64_MAX;
    interpose->process_id = (uint32_t)getpid();
    pthread_mutex_init(&interpose->lock, NULL);
    read_narrow(interpose);
    if (make_tables(interpose))
        interpose->flight = make_flight(folder, backend, device, records);
    if (!interpose->flight) {
        release(interpose);
        return NULL;
    }
    interpose->observer = flight_observer(interpose->flight);
    return interpose;
}

void interpose_close(struct interpose *interpose)
{
    if (!interpose)
        return;
    stack_forget(interpose->flight);
    flight_close(interpose->flight);
    pthread_mutex_destroy(&interpose->lock);
    release(interpose);
}

struct interpose *interpose_start(const struct interpose_backend *backend, const char *device)
{
    const char *folder = getenv(INTERPOSE_VARIABLE_FOLDER);
    if (!folder || folder[0] != '/' || started_count == BACKEND_LIMIT)
        return NULL;
    struct interpose *interpose = interpose_open(backend, folder, device, 0);
    if (!interpose)
        return NULL;
    if (started_count == 0)
        pthread_atfork(NULL, NULL, after_fork);
    started[started_count++] = interpose;
    return interpose;
}

/* The mapping and the tables stay: other threads may still be in a call. */
void interpose_stop(struct interpose *interpose)
{
    if (interpose && !interpose->disabled)
        flight_mark_closed(interpose->flight);
}

/* ---- A call --------------------------------------------------------------------------------- */

/* In the order of first appearance. */
static uint32_t thread_number(void)
{
    static uint32_t last;
    static _Thread_local uint32_t number;
    if (number == 0)
        number = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    return number - 1;
}

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

bool translate_open(struct interpose *interpose, struct interpose_call *call, enum event_kind kind,
                    const char *name, uint64_t site)
{
    call->open = interpose && !interpose->disabled;
    if (!call->open)
        return false;
    memset(&call->event, 0, sizeof(call->event));
    call->launch_ordinal = 0;
    call->argument[0] = call->argument[1] = 0;
    struct event *event = &call->event;
    event->begin_ns = clock_ns();
    event->id = __atomic_add_fetch(&interpose->last_id, 1, __ATOMIC_RELAXED);
    event->kind = (uint8_t)kind;
    event->flags = EVENT_FOREIGN;
    event->process_id = interpose->process_id;
    event->thread_index = thread_number();
    event->stream_index = EVENT_NO_STREAM;
    event->scope = (struct event_scope){ -1, -1, "" };
    event->operand = EVENT_NO_OPERAND;
    set_function(event, name);
    event->stack_index = stack_capture(interpose, site);
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
    if (__atomic_exchange_n(&interpose->fault_told, true, __ATOMIC_RELAXED))
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
