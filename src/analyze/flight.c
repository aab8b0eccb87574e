/* flight.c - the analysis of a flight file: its checkpoint, its tables, then its ring.
 *
 * Events up to the checkpoint were analysed by the process itself; those of them the ring still
 * holds are taken in once more to rebuild clocks and ranges, but neither counted nor reported
 * again. Buffers made before the ring begins come from the file's table: what they hold is not
 * known, and no read of theirs is called uninitialised. */
#include "analyze/analyze_impl.h"

#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Tables --------------------------------------------------------------------------------- */

static struct ledger_entry entry_of(const struct flight_allocation *allocation)
{
    struct ledger_entry entry = { .address = allocation->address,
                                  .bytes = allocation->bytes,
                                  .created_id = allocation->created_id,
                                  .destroyed_id = allocation->destroyed_id,
                                  .buffer_index = allocation->buffer_index,
                                  .generation = allocation->generation,
                                  .device_index = allocation->device_index,
                                  .content_unknown = true };
    memcpy(entry.name, allocation->name, sizeof(entry.name));
    return entry;
}

static int compare_destroyed(const void *a, const void *b)
{
    const struct flight_allocation *const *left = a, *const *right = b;
    uint64_t x = (*left)->destroyed_id, y = (*right)->destroyed_id;
    return x < y ? -1 : x > y;
}

/* Buffers of before the ring: the living, and the freed in the order they went. */
static enum status load_allocations(struct analyzer *analyzer, const struct flight_reader *reader,
                                    struct error *err)
{
    uint64_t first_id = flight_info(reader)->first_id;
    size_t count = flight_allocation_count(reader), freed_count = 0;
    const struct flight_allocation **freed = calloc(count + 1, sizeof(*freed));
    if (!freed)
        return error_set(err, STATUS_NO_MEMORY, "no memory for %zu allocations", count);
    for (size_t i = 0; i < count; i++) {
        const struct flight_allocation *allocation = flight_allocation_at(reader, i);
        if (allocation->created_id >= first_id)
            continue; /* its event is in the ring */
        if (allocation->destroyed_id && allocation->destroyed_id < first_id) {
            freed[freed_count++] = allocation;
            continue;
        }
        struct ledger_entry entry = entry_of(allocation);
        entry.destroyed_id = 0;
        struct ledger_entry *old = ledger_find(&analyzer->ledger, entry.device_index,
                                               entry.buffer_index);
        if (old && old->created_id > entry.created_id)
            continue;
        struct ledger_entry *added = ledger_add(&analyzer->ledger, &entry);
        if (added && !shadow_init(&added->shadow, entry.bytes, true))
            analyzer->ledger.forgotten++;
    }
    qsort(freed, freed_count, sizeof(*freed), compare_destroyed);
    for (size_t i = 0; i < freed_count; i++) {
        struct ledger_entry entry = entry_of(freed[i]);
        ledger_add_freed(&analyzer->ledger, &entry);
    }
    free(freed);
    return STATUS_OK;
}

/* Templates of graphs recorded before the ring begins; the others are in it. */
static void load_graphs(struct analyzer *analyzer, const struct flight_reader *reader)
{
    struct event event;
    const struct flight_info *info = flight_info(reader);
    bool whole = info->dropped_count == 0; /* the table had room */
    for (size_t i = 0; i < flight_graph_launch_count(reader); i++) {
        if (!flight_graph_launch(reader, i, &event)) {
            whole = false;
        } else if (event_graph_id(&event) && event_graph_id(&event) < info->first_id) {
            graphs_record(&analyzer->graphs, event_graph_id(&event), &event);
            if (event_graph_id(&event) > analyzer->graphs.last_ended)
                analyzer->graphs.last_ended = event_graph_id(&event);
        }
    }
    if (!whole) /* any of them may lack a launch */
        graphs_lost(&analyzer->graphs, info->first_id);
}

/* ---- All of it ------------------------------------------------------------------------------ */

/* Gone, and not waited for by its parent: it does nothing any more. */
static bool is_zombie(pid_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    FILE *file = fopen(path, "r");
    size_t count = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (file)
        fclose(file);
    text[count] = '\0';
    const char *name_end = strrchr(text, ')'); /* the name may hold anything */
    return name_end && strncmp(name_end, ") Z", 3) == 0;
}

/* Its process may be another user's, or a stranger with the same number; then it counts as alive,
 * which claims less. */
static bool is_alive(const struct flight_info *info)
{
    if (info->pid == 0 || info->pid > INT32_MAX)
        return false;
    if (kill((pid_t)info->pid, 0) != 0)
        return errno == EPERM;
    return !is_zombie((pid_t)info->pid);
}

enum status analyze_reader(struct analyzer *analyzer, const struct flight_reader *reader,
                           struct error *err)
{
    const struct flight_info *info = flight_info(reader);
    const void *saved;
    size_t saved_count;
    uint64_t analysed_id = 0;
    TRY(load_allocations(analyzer, reader, err));
    load_graphs(analyzer, reader);
    if (flight_last_checkpoint(reader, &saved, &saved_count) && saved_count) {
        if (analyzer_restore(analyzer, saved, saved_count))
            analysed_id = info->analysed_id;
        else if (info->first_id > 1)
            analyze_lost(analyzer, 1); /* what it said of events that are gone is not known */
    }
    uint64_t forgotten = analyzer->order.forgotten_accesses;
    struct event event;
    for (uint64_t id = 0; flight_next(reader, &id, &event);) {
        bool warming = event.id <= analysed_id;
        if (analyzer->warming && !warming)
            analyzer->order.forgotten_accesses = forgotten;
        analyzer->warming = warming;
        TRY(analyzer_add(analyzer, &event, err));
    }
    if (analyzer->warming)
        analyzer->order.forgotten_accesses = forgotten;
    analyzer->warming = false;
    bool alive = !info->closed && is_alive(info);
    analyzer->process_dead = !info->closed && !alive;
    uint64_t now_ns = alive ? clock_ns() : analyzer->options.ended_ns;
    return analyzer_finish(analyzer, flight_reader_crumbs(reader), info, now_ns, err);
}

/* "--audit guard" or "--audit=guard" of the command that was run; log, the lowest level that has a
 * file, if it does not say. */
static enum audit_level level_of_command(const char *command)
{
    enum audit_level level = AUDIT_LOG;
    const char *option = strstr(command, "--audit");
    if (!option || (option[7] != ' ' && option[7] != '='))
        return level;
    char word[16];
    size_t length = strcspn(option + 8, " ");
    if (length >= sizeof(word))
        return level;
    memcpy(word, option + 8, length);
    word[length] = '\0';
    if (!audit_level_from_name(word, &level) || level == AUDIT_OFF)
        level = AUDIT_LOG;
    return level;
}

enum status analyze_flight(const char *path, const struct analyze_options *options,
                           struct analyzer **ret_analyzer, struct error *err)
{
    struct flight_reader *reader;
    struct analyzer *analyzer = NULL;
    struct analyze_options filled = *options;
    TRY(flight_open(path, &reader, err));
    if ((unsigned)filled.level >= AUDIT_LEVEL_COUNT)
        filled.level = level_of_command(flight_info(reader)->command);
    enum status status = analyzer_create(&filled, &analyzer, err);
    if (!status)
        status = analyze_reader(analyzer, reader, err);
    flight_reader_close(reader);
    if (status)
        analyzer_destroy(analyzer);
    else
        *ret_analyzer = analyzer;
    return status;
}
