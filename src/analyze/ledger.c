/* ledger.c - every buffer that is alive, by index and by address, and the ones that went last. */
#include "analyze/analyze_impl.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

bool ledger_init(struct ledger *ledger)
{
    ledger->freed = calloc(LEDGER_FREED_LIMIT, sizeof(*ledger->freed));
    return idmap_init(&ledger->by_index, LEDGER_LIVE_LIMIT) && ledger->freed;
}

void ledger_release(struct ledger *ledger)
{
    for (uint32_t i = 0; ledger->live && i < ledger->used; i++)
        shadow_release(&ledger->live[i].shadow);
    free(ledger->live);
    free(ledger->free_places);
    free(ledger->freed);
    idmap_release(&ledger->by_index);
}

static uint64_t key_of(uint16_t device_index, uint32_t buffer_index)
{
    return (uint64_t)device_index << 32 | buffer_index;
}

struct ledger_entry *ledger_find(const struct ledger *ledger, uint16_t device_index,
                                 uint32_t buffer_index)
{
    uint32_t place = idmap_find(&ledger->by_index, key_of(device_index, buffer_index));
    return place == IDMAP_NONE ? NULL : &ledger->live[place];
}

/* A place that is not in use; IDMAP_NONE if there is no room. All places can be free at once. */
static uint32_t take_place(struct ledger *ledger)
{
    if (ledger->free_count)
        return ledger->free_places[--ledger->free_count];
    if (ledger->used == LEDGER_LIVE_LIMIT)
        return IDMAP_NONE;
    struct ledger_entry *live = array_reserve(ledger->live, ledger->used, &ledger->live_capacity,
                                              sizeof(*live));
    if (!live)
        return IDMAP_NONE;
    ledger->live = live;
    uint32_t *places = array_reserve(ledger->free_places, ledger->used, &ledger->free_capacity,
                                     sizeof(*places));
    if (!places)
        return IDMAP_NONE;
    ledger->free_places = places;
    return ledger->used++;
}

struct ledger_entry *ledger_add(struct ledger *ledger, const struct ledger_entry *entry)
{
    if (ledger_find(ledger, entry->device_index, entry->buffer_index))
        ledger_remove(ledger, entry->device_index, entry->buffer_index, entry->created_id);
    uint32_t place = take_place(ledger);
    if (place == IDMAP_NONE) {
        ledger->forgotten++;
        return NULL;
    }
    ASSERT(ledger->live && ledger->free_places); /* there is a place in them */
    ledger->live[place] = *entry;
    ledger->live[place].losses_known = ledger->losses;
    if (!idmap_set(&ledger->by_index, key_of(entry->device_index, entry->buffer_index), place)) {
        ledger->live[place] = (struct ledger_entry){ 0 };
        ledger->free_places[ledger->free_count++] = place;
        ledger->forgotten++;
        return NULL;
    }
    return &ledger->live[place];
}

void ledger_add_freed(struct ledger *ledger, const struct ledger_entry *entry)
{
    struct ledger_entry *kept = &ledger->freed[ledger->freed_count++ % LEDGER_FREED_LIMIT];
    *kept = *entry;
    kept->shadow = (struct shadow){ 0 };
}

const struct ledger_entry *ledger_remove(struct ledger *ledger, uint16_t device_index,
                                         uint32_t buffer_index, uint64_t destroyed_id)
{
    uint64_t key = key_of(device_index, buffer_index);
    uint32_t place = idmap_find(&ledger->by_index, key);
    if (place == IDMAP_NONE)
        return NULL;
    struct ledger_entry *entry = &ledger->live[place];
    entry->destroyed_id = destroyed_id;
    shadow_release(&entry->shadow);
    ledger_add_freed(ledger, entry);
    *entry = (struct ledger_entry){ 0 };
    ledger->free_places[ledger->free_count++] = place;
    idmap_remove(&ledger->by_index, key);
    return &ledger->freed[(ledger->freed_count - 1) % LEDGER_FREED_LIMIT];
}

/* Freed ones from the newest; NULL past the oldest. */
static const struct ledger_entry *freed_at(const struct ledger *ledger, uint64_t age)
{
    if (age >= ledger->freed_count || age >= LEDGER_FREED_LIMIT)
        return NULL;
    return &ledger->freed[(ledger->freed_count - 1 - age) % LEDGER_FREED_LIMIT];
}

const struct ledger_entry *ledger_find_generation(const struct ledger *ledger,
                                                  uint16_t device_index, uint32_t buffer_index,
                                                  uint16_t generation)
{
    const struct ledger_entry *entry = ledger_find(ledger, device_index, buffer_index);
    if (entry && entry->generation == generation)
        return entry;
    for (uint64_t age = 0; (entry = freed_at(ledger, age)) != NULL; age++)
        if (entry->device_index == device_index && entry->buffer_index == buffer_index &&
            entry->generation == generation)
            return entry;
    return NULL;
}

/* ---- Around an address ---------------------------------------------------------------------- */

/* From the entry's nearest byte to the address: negative before the entry, positive after it, 0
 * inside. */
static int64_t distance_to(const struct ledger_entry *entry, uint64_t address)
{
    uint64_t apart = 0;
    bool before = address < entry->address;
    if (before)
        apart = entry->address - address;
    else if (address - entry->address >= entry->bytes)
        apart = address - entry->address - entry->bytes + 1;
    if (apart > INT64_MAX)
        apart = INT64_MAX;
    return before ? -(int64_t)apart : (int64_t)apart;
}

static struct analyze_neighbour neighbour(const struct ledger_entry *entry, uint64_t address)
{
    struct analyze_neighbour ret = { .address = entry->address,
                                     .bytes = entry->bytes,
                                     .created_id = entry->created_id,
                                     .destroyed_id = entry->destroyed_id,
                                     .distance = distance_to(entry, address) };
    memcpy(ret.name, entry->name, sizeof(ret.name));
    return ret;
}

void ledger_neighbourhood(const struct ledger *ledger, uint16_t device_index, uint64_t address,
                          struct analyze_neighbourhood *ret)
{
    *ret = (struct analyze_neighbourhood){ .known = true, .address = address };
    const struct ledger_entry *before = NULL, *after = NULL, *entry;
    for (uint32_t i = 0; i < ledger->used; i++) {
        entry = &ledger->live[i];
        if (entry->bytes == 0 || entry->device_index != device_index)
            continue;
        int64_t distance = distance_to(entry, address);
        if (distance == 0)
            ret->live = neighbour(entry, address);
        else if (distance > 0 && (!before || entry->address > before->address))
            before = entry;
        else if (distance < 0 && (!after || entry->address < after->address))
            after = entry;
    }
    if (before)
        ret->before = neighbour(before, address);
    if (after)
        ret->after = neighbour(after, address);
    for (uint64_t age = 0; (entry = freed_at(ledger, age)) != NULL; age++)
        if (entry->bytes && entry->device_index == device_index &&
            distance_to(entry, address) == 0) {
            ret->freed = neighbour(entry, address);
            break;
        }
}

uint64_t analyze_apart(const struct analyze_neighbour *neighbour)
{
    return neighbour->distance < 0 ? 0 - (uint64_t)neighbour->distance
                                   : (uint64_t)neighbour->distance;
}
