/* flight_show.c - see flight_show.h. Memory does not grow with the file: tables have a fixed size,
 * and entries that do not fit are counted. */
#include "cli/flight_show.h"

#include "analyze/analyze.h"
#include "ops/ops.h"
#include "report/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define STREAM_LIMIT CRUMB_STREAM_LIMIT
#define PENDING_LIMIT 16u

struct survey {
    uint64_t kinds[EVENT_KIND_COUNT];
    uint64_t outcomes[EVENT_OUTCOME_COUNT];
    uint64_t stream_calls[EVENT_DEVICE_LIMIT][STREAM_LIMIT];
    struct event stream_last[EVENT_DEVICE_LIMIT][STREAM_LIMIT]; /* id 0: none */
    struct event last;                                          /* of all streams; id 0: none */
    struct event pending[PENDING_LIMIT];
    uint64_t pending_count;
};

static void survey_events(const struct flight_reader *reader, struct survey *survey)
{
    struct event event;
    uint64_t id = 0;
    while (flight_next(reader, &id, &event)) {
        survey->last = event;
        survey->kinds[event.kind]++;
        survey->outcomes[event.outcome]++;
        if (event.stream_index < STREAM_LIMIT && event.kind < EVENT_COMPLETION) {
            survey->stream_calls[event.device_index][event.stream_index]++;
            survey->stream_last[event.device_index][event.stream_index] = event;
        }
        if (event.outcome == EVENT_PENDING) {
            if (survey->pending_count < PENDING_LIMIT)
                survey->pending[survey->pending_count] = event;
            survey->pending_count++;
        }
    }
}

/* The event with exactly this id. */
static bool find_event(const struct flight_reader *reader, uint64_t id, struct event *ret)
{
    uint64_t at = id;
    return id != 0 && flight_next(reader, &at, ret) && ret->id == id;
}

static void emit_outside(struct emit *emit, const char *key, const char *text)
{
    emit_view(emit, key, text_view_of(text));
}

/* ---- Head ----------------------------------------------------------------------------------- */

static void emit_start(struct emit *emit, const struct flight_info *info)
{
    char text[64] = "unknown";
    time_t seconds = (time_t)(info->start_wall_ns / 1000000000u);
    struct tm parts;
    if (gmtime_r(&seconds, &parts))
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
    emit_text(emit, "started", text);
}

static void emit_head(struct emit *emit, const char *path, const struct flight_info *info)
{
    emit_outside(emit, "file", path);
    emit_outside(emit, "device", info->device);
    emit_outside(emit, "command", info->command);
    emit_count(emit, "process", info->pid);
    emit_start(emit, info);
    if (emit_is_json(emit))
        emit_flag(emit, "closed", info->closed);
    emit_count(emit, "first_event", info->first_id);
    emit_count(emit, "last_event", info->last_id);
    emit_count(emit, "analysed_up_to", info->analysed_id);
    emit_count(emit, "lost", info->lost_count);
    emit_count(emit, "left_out", info->left_out_count);
    emit_count(emit, "dropped", info->dropped_count);
    emit_count(emit, "damaged", info->damaged_count);
}

static void emit_allocations(struct emit *emit, const struct flight_reader *reader)
{
    uint64_t alive = 0, alive_bytes = 0, freed = 0;
    for (size_t i = 0; i < flight_allocation_count(reader); i++) {
        const struct flight_allocation *one = flight_allocation_at(reader, i);
        if (one->destroyed_id) {
            freed++;
            continue;
        }
        alive++;
        /* Sizes come from the file: a damaged one must not wrap the sum. */
        alive_bytes = one->bytes > UINT64_MAX - alive_bytes ? UINT64_MAX : alive_bytes + one->bytes;
    }
    emit_object_begin(emit, "buffers");
    emit_count(emit, "alive", alive);
    emit_bytes(emit, "alive_bytes", alive_bytes);
    emit_count(emit, "freed", freed);
    emit_object_end(emit);
}

/* ---- Events --------------------------------------------------------------------------------- */

static void emit_counts(struct emit *emit, const struct survey *survey)
{
    emit_list_begin(emit, "events");
    for (int i = 0; i < EVENT_KIND_COUNT; i++) {
        if (survey->kinds[i] == 0)
            continue;
        emit_object_begin(emit, NULL);
        emit_text(emit, "kind", event_kind_name((enum event_kind)i));
        emit_count(emit, "count", survey->kinds[i]);
        emit_object_end(emit);
    }
    emit_list_end(emit);
    emit_object_begin(emit, "outcomes");
    for (int i = 0; i < EVENT_OUTCOME_COUNT; i++)
        emit_count(emit, event_outcome_name((enum event_outcome)i), survey->outcomes[i]);
    emit_object_end(emit);
}

/* "#61 launch rope, layer 17, step 3, tensor q"; the caller releases. */
static void add_call(struct text *text, const struct event *event)
{
    text_addf(text, "#%" PRIu64 " %s", event->id, event_kind_name(event->kind));
    if (event->op[0]) {
        text_add(text, " ");
        text_add_printable(text, text_view_of(event->op), SIZE_MAX);
    }
    if (event->scope.layer >= 0)
        text_addf(text, ", layer %" PRId32, event->scope.layer);
    if (event->scope.step >= 0)
        text_addf(text, ", step %" PRId32, event->scope.step);
    if (event->scope.tensor[0]) {
        text_add(text, ", tensor ");
        text_add_printable(text, text_view_of(event->scope.tensor), SIZE_MAX);
    }
}

static void emit_call(struct emit *emit, const char *key, const struct event *event)
{
    struct text text;
    text_init(&text);
    if (event->id)
        add_call(&text, event);
    emit_text(emit, key, text.failed || !event->id ? "-" : text_get(&text));
    text_release(&text);
}

static void emit_device_streams(struct emit *emit, const struct flight_reader *reader,
                                const struct survey *survey, uint32_t device)
{
    const struct crumb_page *crumbs = flight_reader_device_crumbs(reader, device);
    for (uint32_t i = 0; i < STREAM_LIMIT; i++) {
        uint64_t entered = crumb_entered(&crumbs->streams[i]);
        uint64_t finished = crumb_finished(&crumbs->streams[i]);
        struct event inside = { 0 };
        if (entered == 0 && survey->stream_calls[device][i] == 0)
            continue;
        bool stopped = entered > finished;
        if (stopped && !find_event(reader, entered, &inside))
            inside = (struct event){ .id = entered, .kind = EVENT_LAUNCH, .scope = { -1, -1, "" } };
        emit_object_begin(emit, NULL);
        if (flight_info(reader)->device_count > 1)
            emit_count(emit, "device", device);
        emit_count(emit, "stream", i);
        emit_count(emit, "calls", survey->stream_calls[device][i]);
        emit_count(emit, "entered", entered);
        emit_count(emit, "finished", finished);
        /* If only the next kernel says that one has ended, the last of them may have ended. */
        emit_call(emit, crumb_order(crumbs) == CRUMB_ORDER_EXACT ? "stopped_inside" : "begun_last",
                  &inside);
        emit_call(emit, "last_call", &survey->stream_last[device][i]);
        emit_object_end(emit);
    }
}

static void emit_streams(struct emit *emit, const struct flight_reader *reader,
                         const struct survey *survey)
{
    emit_list_begin(emit, "streams");
    for (uint32_t i = 0; i < flight_info(reader)->device_count; i++)
        emit_device_streams(emit, reader, survey, i);
    emit_list_end(emit);
}

/* Devices that were opened, where the file has room for several. */
static void emit_devices(struct emit *emit, const struct flight_reader *reader)
{
    struct flight_device device;
    if (flight_info(reader)->device_count < 2)
        return;
    emit_list_begin(emit, "devices");
    for (uint32_t i = 0; i < flight_info(reader)->device_count; i++) {
        if (!flight_device_at(reader, i, &device))
            continue;
        emit_object_begin(emit, NULL);
        emit_count(emit, "device", i);
        emit_outside(emit, "kind", device.kind);
        emit_outside(emit, "name", device.name);
        emit_object_end(emit);
    }
    emit_list_end(emit);
}

static bool get_trap(const struct flight_reader *reader, uint64_t place, struct crumb_trap *ret)
{
    const struct crumb_page *page = flight_reader_device_crumbs(
        reader, (uint32_t)(place / CRUMB_TRAP_LIMIT));
    return page && crumb_trap_get(page, place % CRUMB_TRAP_LIMIT, ret);
}

static void emit_traps(struct emit *emit, const struct flight_reader *reader)
{
    uint64_t limit = (uint64_t)flight_info(reader)->device_count * CRUMB_TRAP_LIMIT;
    struct crumb_trap trap;
    bool any = false;
    for (uint64_t i = 0; i < limit; i++) {
        if (!get_trap(reader, i, &trap))
            continue;
        if (!any)
            emit_list_begin(emit, "traps");
        any = true;
        struct event launch = { .scope = { -1, -1, "" } };
        bool known = find_event(reader, trap.launch_id, &launch);
        launch.id = known ? launch.id : trap.launch_id;
        launch.kind = known ? launch.kind : EVENT_LAUNCH;
        emit_object_begin(emit, NULL);
        emit_count(emit, "operand", trap.operand);
        emit_integer(emit, "index", (int64_t)trap.index);
        emit_count(emit, "bound", trap.bound);
        emit_call(emit, "launch", &launch);
        emit_object_end(emit);
    }
    if (any)
        emit_list_end(emit);
}

static void emit_pending(struct emit *emit, const struct survey *survey)
{
    emit_count(emit, "calls_without_end", survey->pending_count);
    if (survey->pending_count == 0)
        return;
    emit_list_begin(emit, "without_end");
    for (size_t i = 0; i < survey->pending_count && i < PENDING_LIMIT; i++)
        emit_call(emit, NULL, &survey->pending[i]);
    emit_list_end(emit);
}

/* ---- Findings ------------------------------------------------------------------------------- */

static void emit_finding(struct emit *emit, const struct analysis *analysis, size_t index)
{
    const struct finding *finding = &analysis->findings[index];
    struct text text;
    text_init(&text);
    report_finding_describe(finding, REPORT_ENGLISH, &text);
    emit_object_begin(emit, NULL);
    emit_count(emit, "number", index + 1);
    emit_text(emit, "hypothesis", hypothesis_info(finding->hypothesis)->slug);
    emit_text(emit, "certainty", finding->certainty == FINDING_DIRECT ? "direct" : "possible");
    emit_text(emit, "attribution", finding_attribution_name(finding->attribution));
    if (finding->consequence_of >= 0)
        emit_textf(emit, "relation", "follows from %" PRId32, finding->consequence_of + 1);
    else
        emit_text(emit, "relation", (int32_t)index == analysis->root ? "root cause" : "-");
    emit_text(emit, "finding", text_get(&text));
    emit_object_end(emit);
    text_release(&text);
}

/* How the recording ended; for a process that was cut off also what it did last. */
static void emit_ending(struct emit *emit, const struct analysis *analysis,
                        const struct survey *survey)
{
    struct text words;
    text_init(&words);
    report_ending_words(analysis->ending, REPORT_ENGLISH, &words);
    if (emit_is_json(emit))
        emit_text(emit, "ending", run_ending_name(analysis->ending.kind));
    emit_text(emit, "ended", text_get(&words));
    if (!analysis->closed)
        emit_call(emit, "last_activity", &survey->last);
    text_release(&words);
}

static enum status emit_findings(struct emit *emit, const char *path, const struct survey *survey,
                                 struct error *err)
{
    const struct analyze_options options = { .level = AUDIT_LEVEL_COUNT,
                                             .operand_name = ops_operand_name };
    struct analyzer *analyzer;
    TRY(analyze_flight(path, &options, &analyzer, err));
    const struct analysis *analysis = analyzer_result(analyzer);
    emit_ending(emit, analysis, survey);
    emit_text(emit, "analysed_at_level", audit_level_name(analysis->level));
    emit_count(emit, "findings_in_all", analysis->finding_count + analysis->findings_dropped);
    if (analysis->finding_count > 0 || emit_is_json(emit)) {
        emit_list_begin(emit, "findings");
        for (size_t i = 0; i < analysis->finding_count; i++)
            emit_finding(emit, analysis, i);
        emit_list_end(emit);
    }
    analyzer_destroy(analyzer);
    return STATUS_OK;
}

enum status flight_show(struct emit *emit, const char *path, const struct flight_reader *reader,
                        struct error *err)
{
    struct survey *survey = calloc(1, sizeof(*survey));
    if (!survey)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory to look through it", path);
    survey_events(reader, survey);
    emit_head(emit, path, flight_info(reader));
    emit_devices(emit, reader);
    emit_pending(emit, survey);
    enum status status = emit_findings(emit, path, survey, err);
    if (!status) {
        emit_allocations(emit, reader);
        emit_counts(emit, survey);
        emit_streams(emit, reader, survey);
        emit_traps(emit, reader);
    }
    free(survey);
    return status;
}
