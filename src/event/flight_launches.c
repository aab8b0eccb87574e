/* flight_launches.c - the shape and the arguments of a foreign program's launches: a table of a
 * flight file, writer and reader side by side.
 *
 * Those that ran are a ring: a newer launch takes the place of an old one, whose event then finds
 * another's id there and knows that its facts are gone. Those recorded into graphs keep their
 * places, since each replay means them again. */
#include "event/flight_reader.h"

#include <string.h>
#define XXH_STATIC_LINKING_ONLY /* the state of a hash, on the stack */
#include <xxhash.h>

uint32_t flight_launch_place(struct flight *flight, uint64_t ordinal, bool in_graph)
{
    if (!flight->launch_count)
        return 0;
    if (!in_graph)
        return (uint32_t)(ordinal % flight->launch_count) + 1;
    uint32_t given = __atomic_load_n(&flight->graph_launches, __ATOMIC_RELAXED);
    do {
        if (given >= flight->graph_record_count)
            return 0;
    } while (!__atomic_compare_exchange_n(&flight->graph_launches, &given, given + 1, false,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return flight->launch_count + given + 1;
}

void flight_set_launch(struct flight *flight, uint32_t place, const struct flight_launch *launch)
{
    if (place == 0 || place - 1 >= flight->launch_count + flight->graph_record_count)
        return;
    struct flight_launch_entry *entry = &flight->launches[place - 1];
    entry->launch = *launch;
    entry->checksum = flight_table_checksum(launch, sizeof(*launch));
}

bool flight_launch_at(const struct flight_reader *reader, uint32_t place, uint64_t event_id,
                      struct flight_launch *ret_launch)
{
    struct flight_launch_entry entry;
    uint64_t count = reader->header.launch_count
                         ? (uint64_t)reader->header.launch_count + reader->header.graph_record_count
                         : 0;
    if (place == 0 || place > count)
        return false;
    memcpy(&entry, reader->data + reader->layout.launch_offset + (place - 1) * sizeof(entry),
           sizeof(entry));
    if (entry.checksum == 0 || entry.launch.event_id != event_id ||
        entry.checksum != flight_table_checksum(&entry.launch, sizeof(entry.launch)) ||
        (entry.launch.range_count > FLIGHT_RANGE_LIMIT &&
         entry.launch.range_count != FLIGHT_RANGES_UNKNOWN))
        return false;
    *ret_launch = entry.launch;
    return true;
}

uint64_t flight_hash_pieces(const struct flight_piece *pieces, size_t count)
{
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    for (size_t i = 0; i < count; i++)
        XXH3_64bits_update(&state, pieces[i].bytes, pieces[i].count);
    return XXH3_64bits_digest(&state);
}
