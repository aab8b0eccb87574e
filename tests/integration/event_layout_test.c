/* event_layout_test.c - the section "Layout" of docs/recording-format.md is what the structs and
 * the frozen numbers say.
 *
 *     event_layout_test           compares the document below GRETA_SOURCE
 *     event_layout_test --write   writes its section again */
#include "base/text.h"
#include "event/flight_layout.h"
#include "event_layout.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECTION "\n## Layout\n"

/* Fields follow one another with no more between them than alignment asks for: a field that the
 * list forgets is a gap, and fails. */
static bool add_struct(struct text *out, const char *title, const struct layout_field *fields,
                       size_t count, size_t bytes)
{
    size_t end = 0;
    bool complete = true;
    text_addf(out, "\n### %s\n\n%zu bytes.\n\n| byte | bytes | field |\n|---|---|---|\n", title,
              bytes);
    for (size_t i = 0; i < count; i++) {
        const struct layout_field *field = &fields[i];
        text_addf(out, "| %zu | %zu | %s |\n", field->offset, field->bytes, field->name);
        complete = complete && field->offset >= end && field->offset - end < 8;
        end = field->offset + field->bytes;
    }
    complete = complete && end <= bytes && bytes - end < 8;
    if (!complete)
        fprintf(stderr, "%s: the list of its fields is not complete\n", title);
    return complete;
}

#define FIELD(type, name)                                                                          \
    {                                                                                              \
#name, offsetof(struct type, name), sizeof(((struct type *)0)->name)                       \
    }

static bool add_event(struct text *out)
{
    static const struct layout_field scope[] = {
        FIELD(event_scope, step),
        FIELD(event_scope, layer),
        FIELD(event_scope, tensor),
    };
    static const struct layout_field access[] = {
        FIELD(event_access, address),      FIELD(event_access, bytes),
        FIELD(event_access, buffer_index), FIELD(event_access, generation),
        FIELD(event_access, mode),         FIELD(event_access, operand),
    };
    static const struct layout_field event[] = {
        FIELD(event, id),
        FIELD(event, cause_id),
        FIELD(event, begin_ns),
        FIELD(event, process_id),
        FIELD(event, thread_index),
        FIELD(event, stream_index),
        FIELD(event, device_index),
        FIELD(event, kind),
        FIELD(event, access_count),
        FIELD(event, scope),
        FIELD(event, op),
        FIELD(event, file),
        FIELD(event, flags),
        FIELD(event, stack_index),
        FIELD(event, line),
        FIELD(event, check),
        FIELD(event, operand),
        FIELD(event, expected),
        FIELD(event, found),
        { "what only its kind has, below", offsetof(struct event, words),
          sizeof(((struct event *)0)->words) },
        FIELD(event, accesses),
        FIELD(event, end_ns),
        FIELD(event, code),
        FIELD(event, domain),
        FIELD(event, phase),
        FIELD(event, outcome),
        FIELD(event, unused),
    };
    bool complete = add_struct(out, "Event", event, COUNT_OF(event), sizeof(struct event));
    complete &= add_struct(out, "Scope of an event", scope, COUNT_OF(scope),
                           sizeof(struct event_scope));
    complete &= add_struct(out, "Access of an event", access, COUNT_OF(access),
                           sizeof(struct event_access));
    return complete;
}

static bool add_file(struct text *out)
{
    static const struct layout_field header[] = {
        FIELD(flight_header, magic),
        FIELD(flight_header, version),
        FIELD(flight_header, header_bytes),
        FIELD(flight_header, record_bytes),
        FIELD(flight_header, event_bytes),
        FIELD(flight_header, allocation_bytes),
        FIELD(flight_header, checkpoint_bytes),
        FIELD(flight_header, record_count),
        FIELD(flight_header, allocation_count),
        FIELD(flight_header, graph_record_count),
        FIELD(flight_header, call_tables),
        FIELD(flight_header, device_count),
        FIELD(flight_header, launch_count),
        FIELD(flight_header, crumb_offset),
        FIELD(flight_header, checkpoint_offset),
        FIELD(flight_header, allocation_offset),
        FIELD(flight_header, graph_offset),
        FIELD(flight_header, ring_offset),
        FIELD(flight_header, file_bytes),
        FIELD(flight_header, pid),
        FIELD(flight_header, start_wall_ns),
        FIELD(flight_header, start_clock_ns),
        FIELD(flight_header, device),
        FIELD(flight_header, command),
        FIELD(flight_header, checksum),
    };
    static const struct layout_field counters[] = {
        FIELD(flight_counters, closed),          FIELD(flight_counters, dropped_count),
        FIELD(flight_counters, allocation_used), FIELD(flight_counters, graph_used),
        FIELD(flight_counters, stack_used),      FIELD(flight_counters, name_used),
        FIELD(flight_counters, module_used),     FIELD(flight_counters, observed_ns),
        FIELD(flight_counters, observed_count),  FIELD(flight_counters, first_kept_id),
    };
    static const struct layout_field record[] = {
        FIELD(flight_record, event),
        FIELD(flight_record, begin_checksum),
        FIELD(flight_record, end_checksum),
    };
    static const struct layout_field entry[] = {
        FIELD(flight_allocation, address),      FIELD(flight_allocation, bytes),
        FIELD(flight_allocation, created_id),   FIELD(flight_allocation, destroyed_id),
        FIELD(flight_allocation, buffer_index), FIELD(flight_allocation, generation),
        FIELD(flight_allocation, device_index), FIELD(flight_allocation, name),
        FIELD(flight_entry, checksum),
    };
    static const struct layout_field device[] = {
        FIELD(flight_device, opened_id),
        FIELD(flight_device, kind),
        FIELD(flight_device, name),
        FIELD(flight_device_entry, checksum),
    };
    bool complete = add_struct(out, "Header", header, COUNT_OF(header),
                               sizeof(struct flight_header));
    complete &= add_struct(out, "Counters, at byte 2,048 of the file", counters, COUNT_OF(counters),
                           sizeof(struct flight_counters));
    complete &= add_struct(out, "Entry of the table of devices, at byte 2,304 of the file", device,
                           COUNT_OF(device), sizeof(struct flight_device_entry));
    complete &= add_struct(out, "Record", record, COUNT_OF(record), sizeof(struct flight_record));
    complete &= add_struct(out, "Entry of the table of allocations", entry, COUNT_OF(entry),
                           sizeof(struct flight_entry));
    return complete;
}

static bool add_tables(struct text *out)
{
    static const struct layout_field stack[] = {
        FIELD(flight_stack, count),
        FIELD(flight_stack, unused),
        FIELD(flight_stack, frames),
        FIELD(flight_stack, checksum),
    };
    static const struct layout_field name[] = {
        FIELD(flight_name, text),
        FIELD(flight_name, checksum),
    };
    static const struct layout_field module[] = {
        FIELD(flight_module, start),          FIELD(flight_module, end),
        FIELD(flight_module, bias),           FIELD(flight_module, path),
        FIELD(flight_module_entry, checksum),
    };
    static const struct layout_field launch[] = {
        FIELD(flight_launch, event_id),      FIELD(flight_launch, context),
        FIELD(flight_launch, number_least),  FIELD(flight_launch, number_most),
        FIELD(flight_launch, grid),          FIELD(flight_launch, block),
        FIELD(flight_launch, argument_hash), FIELD(flight_launch, range_count),
        FIELD(flight_launch, argument_bytes), FIELD(flight_launch, ranges),
        FIELD(flight_launch_entry, checksum),
    };
    static const struct layout_field checkpoint[] = {
        FIELD(flight_checkpoint_slot, sequence), FIELD(flight_checkpoint_slot, analysed_id),
        FIELD(flight_checkpoint_slot, count),    FIELD(flight_checkpoint_slot, checksum),
        FIELD(flight_checkpoint_slot, bytes),
    };
    static const struct layout_field stream[] = {
        FIELD(crumb_stream, entered),
        FIELD(crumb_stream, finished),
        FIELD(crumb_stream, node),
        FIELD(crumb_stream, unused),
    };
    static const struct layout_field trap[] = {
        FIELD(crumb_trap, launch_id), FIELD(crumb_trap, index),   FIELD(crumb_trap, bound),
        FIELD(crumb_trap, operand),   FIELD(crumb_trap, written),
    };
    static const struct layout_field page[] = {
        FIELD(crumb_page, streams),      FIELD(crumb_page, trap_count), FIELD(crumb_page, order),
        FIELD(crumb_page, watched_ns),   FIELD(crumb_page, still_ns),   FIELD(crumb_page, moved_ns),
        FIELD(crumb_page, moved_stream), FIELD(crumb_page, late),       FIELD(crumb_page, unused),
        FIELD(crumb_page, traps),
    };
    bool complete = add_struct(out, "Crumbs", page, COUNT_OF(page), sizeof(struct crumb_page));
    complete &= add_struct(out, "Crumbs of a stream", stream, COUNT_OF(stream),
                           sizeof(struct crumb_stream));
    complete &= add_struct(out, "Trap", trap, COUNT_OF(trap), sizeof(struct crumb_trap));
    complete &= add_struct(out, "Checkpoint", checkpoint, COUNT_OF(checkpoint),
                           sizeof(struct flight_checkpoint_slot));
    complete &= add_struct(out, "Stack", stack, COUNT_OF(stack), sizeof(struct flight_stack));
    complete &= add_struct(out, "Name", name, COUNT_OF(name), sizeof(struct flight_name));
    complete &= add_struct(out, "Module", module, COUNT_OF(module),
                           sizeof(struct flight_module_entry));
    complete &= add_struct(out, "Launch", launch, COUNT_OF(launch),
                           sizeof(struct flight_launch_entry));
    return complete;
}

/* One line for each list of numbers. */
struct numbers {
    struct text *out;
    const char *list; /* whose line it is now */
};

static void add_number(struct numbers *numbers, const char *list, unsigned number, const char *name)
{
    if (numbers->list && strcmp(numbers->list, list) == 0)
        text_add(numbers->out, ", ");
    else
        text_addf(numbers->out, "%s| %s | ", numbers->list ? " |\n" : "", list);
    numbers->list = list;
    text_addf(numbers->out, "%u %s", number, name);
}

static void add_numbers(struct text *out)
{
    struct numbers numbers = { out, NULL };
    text_add(out, "\n### Numbers\n\nFrozen: what a number means never changes, and no number is "
                  "used again.\n\n| list | numbers |\n|---|---|\n");
#define KIND(value, number, name) add_number(&numbers, "kind", value, name);
#define PHASE(value, number, name) add_number(&numbers, "phase", value, name);
#define OUTCOME(value, number, name) add_number(&numbers, "outcome", value, name);
#define CHECK(value, number, name) add_number(&numbers, "check", value, name);
#define DOMAIN(value, number, name) add_number(&numbers, "domain", value, name);
#define FLAG(value, number, name) add_number(&numbers, "flags (bits)", value, name);
#define MODE(value, number, name) add_number(&numbers, "mode of an access (bits)", value, name);
#define ADDRESS(value, number, name) add_number(&numbers, "address of a fault", value, name);
#define STATE(value, number, name) add_number(&numbers, "error state", value, name);
#define SIDE(value, number, name) add_number(&numbers, "side of an address", value, name);
#define TRAPS(value, number, name) add_number(&numbers, "state of page traps", value, name);
#define ORDER(value, number, name) add_number(&numbers, "order of crumbs", value, name);
#include "event/numbers.def"
    text_add(out, " |\n");
}

static bool render(struct text *out)
{
    text_add(out, SECTION "\nWritten by `event_layout_test --write` from the structs of "
                          "`src/event/`; a test compares.\n");
    bool complete = add_file(out);
    complete &= add_event(out);
    event_layout_add_payloads(out);
    complete &= add_tables(out);
    add_numbers(out);
    return complete;
}

/* The whole file, ended; NULL if it cannot be read. */
static char *read_all(const char *path)
{
    FILE *file = fopen(path, "r");
    struct text text;
    char chunk[4096];
    size_t count;
    text_init(&text);
    while (file && (count = fread(chunk, 1, sizeof(chunk), file)) > 0)
        text_add_bytes(&text, chunk, count);
    if (file)
        fclose(file);
    return text.bytes;
}

static int write_anew(const char *path, const char *document, size_t kept, const char *wanted)
{
    FILE *file = fopen(path, "w");
    if (!file || fwrite(document, 1, kept, file) != kept || fputs(wanted, file) < 0 ||
        fclose(file) != 0)
        return 3;
    return 0;
}

int main(int argument_count, char **arguments)
{
    const char *source = getenv("GRETA_SOURCE");
    bool write = argument_count == 2 && strcmp(arguments[1], "--write") == 0;
    char path[4096];
    struct text wanted;
    if (!source || (argument_count != 1 && !write)) {
        fprintf(stderr, "usage: GRETA_SOURCE=FOLDER event_layout_test [--write]\n");
        return 2;
    }
    snprintf(path, sizeof(path), "%s/docs/recording-format.md", source);
    text_init(&wanted);
    bool complete = render(&wanted);
    char *document = read_all(path);
    int status = document && complete ? 0 : 3;
    const char *section = document ? strstr(document, SECTION) : NULL;
    size_t kept = section ? (size_t)(section - document) : document ? strlen(document) : 0;
    if (!status && write) {
        status = write_anew(path, document, kept, text_get(&wanted));
    } else if (!status) {
        status = !section || strcmp(section, text_get(&wanted)) != 0;
        printf("%s: the layout %s\n", path,
               status ? "is not what the code says; run event_layout_test --write" : "is true");
    }
    free(document);
    text_release(&wanted);
    return status;
}
