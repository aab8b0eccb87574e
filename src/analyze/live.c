/* live.c - a thread that follows the writers through the flight file, so that the ring may forget
 * what was analysed.
 *
 * Events are taken in the order of their ids, each when its call has ended: a wait that lasts holds
 * the analysis up, not the process. If the writers come near to overtaking, a call that is still
 * open is taken as if it had ended, and counted as lost.
 *
 * At every look it also notes whether the device makes progress: crumbs that move, calls that are
 * made. A call that is open for long is a hang only if nothing of that is seen for as long. */
#include "analyze/analyze_impl.h"

#include "base/clock.h"
#include "base/size.h"
#include "event/crumb_watch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Between looks: short while there is work, longer while there is none. */
#define BUSY_SLEEP_NS UINT64_C(2000000)
#define IDLE_SLEEP_NS UINT64_C(20000000)
/* A record missing while later ones are there is given up after so long: on a busy machine a thread
 * that has its number may be kept from writing for a while. */
#define HOLE_NS UINT64_C(5000000000)
#define HOLE_LOOK_AHEAD 64u
#define CHECKPOINT_EVENTS 4096u
#define CHECKPOINT_NS UINT64_C(1000000000)
/* Records ahead of what was analysed that have their pages: what writers need between looks, and
 * the burst of a model being loaded. 4 MiB. */
#define PREPARED_EVENTS 8192u

struct analyze_live {
    struct flight *flight;
    struct analyzer *analyzer; /* of the thread until it has ended */
    char *path;
    pthread_t thread;
    pthread_mutex_t lock; /* guards stopping */
    pthread_cond_t stopped;
    bool stopping;
    uint64_t next_id;
    uint64_t hole_since_ns; /* 0: none */
    uint64_t saved_id, saved_ns;
    uint64_t prepared_id; /* the first that has no page for sure */
    uint64_t newest_id;   /* the last that was seen to have begun, while one before it is open */
    struct crumb_watch watches[EVENT_DEVICE_LIMIT];
    uint64_t (*clock)(void *context); /* NULL: clock_ns */
    void *clock_context;
    size_t saved_findings;
    const struct hardware_evidence *hardware; /* for the analyzer, when the thread has ended */
    uint8_t *bytes;                           /* of a checkpoint */
    enum status status;
    struct error err;
};

static void checkpoint(struct analyze_live *live, uint64_t now_ns)
{
    size_t count = analyzer_save(live->analyzer, live->bytes, FLIGHT_CHECKPOINT_BYTES);
    flight_checkpoint(live->flight, live->next_id - 1, live->bytes, count);
    live->saved_id = live->next_id;
    live->saved_ns = now_ns;
    live->saved_findings = live->analyzer->result.finding_count;
}

/* A page that is written for the first time takes its writer longer than the event does. */
static void prepare(struct analyze_live *live)
{
    uint64_t end = live->next_id + PREPARED_EVENTS;
    if (live->prepared_id < live->next_id)
        live->prepared_id = live->next_id;
    if (end - live->prepared_id < PREPARED_EVENTS / 2)
        return;
    flight_prepare(live->flight, live->prepared_id, (uint32_t)(end - live->prepared_id));
    live->prepared_id = end;
}

static void take(struct analyze_live *live, const struct event *event)
{
    if (!live->status)
        live->status = analyzer_add(live->analyzer, event, &live->err);
    live->next_id = event->id + 1;
    live->hole_since_ns = 0;
    prepare(live);
}

/* True if the writers are more than half a ring ahead. */
static bool is_chased(const struct analyze_live *live)
{
    struct event event;
    uint64_t far = live->next_id + flight_record_count(live->flight) / 2;
    return flight_peek(live->flight, far, &event) != FLIGHT_ABSENT;
}

/* A record that is not there: later ones are, and it had time enough, or there is no time left. */
static bool is_hole(struct analyze_live *live, uint64_t now_ns, bool ending)
{
    struct event event;
    for (uint64_t id = live->next_id + 1; id <= live->next_id + HOLE_LOOK_AHEAD; id++) {
        if (flight_peek(live->flight, id, &event) == FLIGHT_ABSENT)
            continue;
        if (!live->hole_since_ns)
            live->hole_since_ns = now_ns;
        return ending || now_ns - live->hole_since_ns > HOLE_NS || is_chased(live);
    }
    return false;
}

/* The ring has overtaken: on with what is still there. */
static void skip_gone(struct analyze_live *live)
{
    struct event event;
    uint64_t from = live->next_id;
    while (flight_peek(live->flight, live->next_id, &event) == FLIGHT_GONE)
        live->next_id += flight_record_count(live->flight) / 4 + 1;
    analyze_lost(live->analyzer, live->next_id - from);
}

static uint64_t now_of(const struct analyze_live *live)
{
    return live->clock ? live->clock(live->clock_context) : clock_ns();
}

/* True if a call was begun after the one that is open since the look before: another thread goes
 * on. Numbers may be missing in between. */
static bool makes_calls(struct analyze_live *live)
{
    struct event event;
    uint64_t from = max_u64(live->newest_id, live->next_id);
    for (uint64_t id = from + HOLE_LOOK_AHEAD; id > from; id--)
        if (flight_peek(live->flight, id, &event) != FLIGHT_ABSENT) {
            live->newest_id = id;
            return true;
        }
    return false;
}

/* Takes all events that are available; returns how many. At the end calls that are open are taken
 * as they are. */
static uint64_t drain(struct analyze_live *live, bool ending)
{
    struct event event;
    uint64_t count = 0;
    for (;;) {
        switch (flight_peek(live->flight, live->next_id, &event)) {
        case FLIGHT_WHOLE:
            take(live, &event);
            break;
        case FLIGHT_GONE:
            skip_gone(live);
            break;
        case FLIGHT_OPEN:
            if (!ending) {
                if (!is_chased(live))
                    return count;
                event.outcome = EVENT_DONE;
                event.end_ns = now_of(live);
                if (event.kind == EVENT_TICKET_REDEEM)
                    event.ticket.waited = 1;
                analyze_lost(live->analyzer, 1);
            }
            take(live, &event);
            break;
        case FLIGHT_ABSENT:
            if (!is_hole(live, now_of(live), ending))
                return count;
            analyze_lost(live->analyzer, 1);
            live->next_id++;
            live->hole_since_ns = 0;
            break;
        }
        count++;
        if (live->next_id - live->saved_id >= CHECKPOINT_EVENTS)
            checkpoint(live, now_of(live));
    }
}

/* Does anything go on? If the call that comes next has not returned, and nothing does, it hangs. */
static void watch(struct analyze_live *live, uint64_t taken, uint64_t now_ns)
{
    struct crumb_page *crumbs = flight_crumbs(live->flight);
    struct event event;
    bool open = flight_peek(live->flight, live->next_id, &event) == FLIGHT_OPEN;
    bool calls = taken > 0 || (open && makes_calls(live));
    for (uint32_t i = 0; i < flight_device_count(live->flight); i++) {
        crumb_watch_look(&live->watches[i], &crumbs[i], calls, now_ns);
        crumb_watch_note(&live->watches[i], &crumbs[i]);
    }
    if (open)
        analyze_watch(live->analyzer, crumbs, &event, now_ns);
}

/* Sleeps, or returns at once when asked to stop: true then. */
static bool pause_for(struct analyze_live *live, uint64_t sleep_ns)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + sleep_ns;
    until.tv_sec += (time_t)(ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    pthread_mutex_lock(&live->lock);
    while (!live->stopping && pthread_cond_timedwait(&live->stopped, &live->lock, &until) == 0)
        ;
    bool stopping = live->stopping;
    pthread_mutex_unlock(&live->lock);
    return stopping;
}

static void *run(void *argument)
{
    struct analyze_live *live = argument;
    uint64_t sleep_ns = BUSY_SLEEP_NS;
    prepare(live);
    while (!pause_for(live, sleep_ns)) {
        uint64_t count = drain(live, false);
        uint64_t now_ns = now_of(live);
        watch(live, count, now_ns);
        bool found = live->analyzer->result.finding_count != live->saved_findings;
        bool late = live->next_id != live->saved_id && now_ns - live->saved_ns > CHECKPOINT_NS;
        /* A checkpoint has no findings that are held until the iteration is over. */
        if ((found || late) && !live->analyzer->op_hashes.held_count)
            checkpoint(live, now_ns);
        sleep_ns = count ? BUSY_SLEEP_NS : IDLE_SLEEP_NS;
    }
    return NULL;
}

/* ---- Life ----------------------------------------------------------------------------------- */

static void destroy(struct analyze_live *live)
{
    analyzer_destroy(live->analyzer);
    pthread_cond_destroy(&live->stopped);
    pthread_mutex_destroy(&live->lock);
    free(live->path);
    free(live->bytes);
    free(live);
}

enum status analyze_live_start(struct flight *flight, const char *path,
                               const struct analyze_options *options,
                               struct analyze_live **ret_live, struct error *err)
{
    struct analyze_live *live = calloc(1, sizeof(*live));
    if (!live)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a live analysis");
    live->flight = flight;
    live->next_id = live->saved_id = 1;
    live->clock = options->clock;
    live->clock_context = options->clock_context;
    live->saved_ns = now_of(live);
    live->path = strdup(path);
    live->bytes = malloc(FLIGHT_CHECKPOINT_BYTES);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&live->stopped, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&live->lock, NULL);
    enum status status = STATUS_OK;
    if (!live->path || !live->bytes)
        status = error_set(err, STATUS_NO_MEMORY, "no memory for a live analysis");
    if (!status)
        status = analyzer_create(options, &live->analyzer, err);
    if (!status) {
        live->analyzer->crumb_page_count = flight_device_count(flight);
        int code = pthread_create(&live->thread, NULL, run, live);
        if (code != 0)
            status = error_set_os(err, code, "cannot start the thread of the live analysis");
    }
    if (status)
        destroy(live);
    else
        *ret_live = live;
    return status;
}

/* What the file says of itself, as far as the thread cannot know it; a file that does not say it
 * may have dropped records. */
static void ask_file(const struct analyze_live *live, struct flight_info *info)
{
    struct flight_reader *reader;
    struct error unused;
    bool attached = flight_is_attached(live->flight);
    *info = (struct flight_info){ .closed = !attached,
                                  .device_count = flight_device_count(live->flight) };
    if (flight_open(live->path, &reader, &unused)) {
        analyze_lost(live->analyzer, 1);
        return;
    }
    const struct flight_info *found = flight_info(reader);
    if (attached)
        info->closed = found->closed;
    info->dropped_count = found->dropped_count;
    memcpy(info->device, found->device, sizeof(info->device));
    memcpy(info->command, found->command, sizeof(info->command));
    flight_reader_close(reader);
}

void analyze_live_set_hardware(struct analyze_live *live, const struct hardware_evidence *evidence)
{
    live->hardware = evidence;
}

enum status analyze_live_stop(struct analyze_live *live, struct analyzer **ret_analyzer,
                              struct error *err)
{
    pthread_mutex_lock(&live->lock);
    live->stopping = true;
    pthread_cond_signal(&live->stopped);
    pthread_mutex_unlock(&live->lock);
    pthread_join(live->thread, NULL);
    drain(live, true);
    op_hashes_flush(live->analyzer);
    checkpoint(live, now_of(live));
    struct flight_info info;
    ask_file(live, &info);
    live->analyzer->process_dead = !info.closed;
    analyzer_set_hardware(live->analyzer, live->hardware);
    enum status status = live->status;
    if (status)
        *err = live->err;
    else
        status = analyzer_finish(live->analyzer, flight_crumbs(live->flight), &info, now_of(live),
                                 err);
    if (!status) {
        *ret_analyzer = live->analyzer;
        live->analyzer = NULL;
    }
    destroy(live);
    return status;
}
