/* event_layout_payloads.c - the table of what only events of some kinds have; places count from the
 * start of the event. */
#include "event_layout.h"

#include "event/flight_layout.h"

#include <stddef.h>

#define PAYLOAD(type, name)                                                                        \
    {                                                                                              \
#name, offsetof(struct event, words) + offsetof(struct event_##type, name),                \
            sizeof(((struct event_##type *)0)->name)                                               \
    }

static const struct layout_field device[] = { PAYLOAD(device, domain) };
static const struct layout_field buffer[] = {
    PAYLOAD(buffer, bytes), PAYLOAD(buffer, imported_address), PAYLOAD(buffer, graph_id),
    PAYLOAD(buffer, buffer_index), PAYLOAD(buffer, fill_byte)
};
static const struct layout_field mark[] = { PAYLOAD(mark, mark) };
static const struct layout_field copy[] = { PAYLOAD(copy, bytes),      PAYLOAD(copy, host_address),
                                            PAYLOAD(copy, graph_id),   PAYLOAD(copy, ticket),
                                            PAYLOAD(copy, generation), PAYLOAD(copy, state_before),
                                            PAYLOAD(copy, state_after) };
static const struct layout_field module[] = { PAYLOAD(module, kernel_count) };
static const struct layout_field launch[] = { PAYLOAD(launch, graph_id), PAYLOAD(launch, ordinal),
                                              PAYLOAD(launch, name_index),
                                              PAYLOAD(launch, facts_index) };
static const struct layout_field graph[] = { PAYLOAD(graph, handle), PAYLOAD(graph, ordinal),
                                             PAYLOAD(graph, epoch) };
static const struct layout_field ticket[] = {
    PAYLOAD(ticket, bytes),  PAYLOAD(ticket, host_address), PAYLOAD(ticket, hash),
    PAYLOAD(ticket, ticket), PAYLOAD(ticket, generation),   PAYLOAD(ticket, waited)
};
static const struct layout_field trap[] = { PAYLOAD(trap, index), PAYLOAD(trap, bound) };
static const struct layout_field fault[] = { PAYLOAD(fault, address), PAYLOAD(fault, node_id),
                                             PAYLOAD(fault, address_known) };
static const struct layout_field canary[] = { PAYLOAD(canary, address), PAYLOAD(canary, offset),
                                              PAYLOAD(canary, damaged_bytes),
                                              PAYLOAD(canary, buffer_bytes) };
static const struct layout_field run[] = { PAYLOAD(run, iteration), PAYLOAD(run, key) };
static const struct layout_field transfer_hash[] = { PAYLOAD(transfer_hash, source_before),
                                                     PAYLOAD(transfer_hash, source_after),
                                                     PAYLOAD(transfer_hash, destination),
                                                     PAYLOAD(transfer_hash, bytes) };
static const struct layout_field scan[] = { PAYLOAD(scan, value_count), PAYLOAD(scan, bad_count),
                                            PAYLOAD(scan, first_bad) };
static const struct layout_field source_change[] = { PAYLOAD(source_change, address),
                                                     PAYLOAD(source_change, bytes),
                                                     PAYLOAD(source_change, digest_before),
                                                     PAYLOAD(source_change, digest_now) };
static const struct layout_field call[] = { PAYLOAD(call, handle) };
static const struct layout_field host_access[] = {
    PAYLOAD(host_access, address),
    PAYLOAD(host_access, bytes),
    PAYLOAD(host_access, copy_address),
    PAYLOAD(host_access, copy_bytes),
};
static const struct layout_field host_traps[] = { PAYLOAD(host_traps, state) };
static const struct layout_field op_hash[] = { PAYLOAD(op_hash, digest), PAYLOAD(op_hash, when) };

static const struct {
    const char *kinds;
    const struct layout_field *fields;
    size_t count;
} payloads[] = {
#define ROW(kinds, fields)                                                                         \
    {                                                                                              \
        kinds, fields, COUNT_OF(fields)                                                            \
    }
    ROW("device-open", device),
    ROW("buffer-create, buffer-destroy", buffer),
    ROW("mark-record, mark-wait, mark-sync", mark),
    ROW("copy-in, copy-out, copy-within, fill", copy),
    ROW("module-load", module),
    ROW("launch", launch),
    ROW("graph-begin, graph-end, graph-replay, graph-destroy", graph),
    ROW("ticket-redeem, ticket-release", ticket),
    ROW("trap", trap),
    ROW("fault", fault),
    ROW("canary", canary),
    ROW("run", run),
    ROW("transfer-hash", transfer_hash),
    ROW("scan", scan),
    ROW("source-changed", source_change),
    ROW("call", call),
    ROW("op-hash", op_hash),
    ROW("host-access", host_access),
    ROW("host-traps", host_traps),
#undef ROW
};

void event_layout_add_payloads(struct text *out)
{
    text_add(out, "\n### What only events of some kinds have\n\n"
                  "Other kinds have zeros there.\n\n"
                  "| kinds | byte | bytes | field |\n|---|---|---|---|\n");
    for (size_t i = 0; i < COUNT_OF(payloads); i++)
        for (size_t j = 0; j < payloads[i].count; j++) {
            const struct layout_field *field = &payloads[i].fields[j];
            text_addf(out, "| %s | %zu | %zu | %s |\n", j ? "" : payloads[i].kinds, field->offset,
                      field->bytes, field->name);
        }
}
