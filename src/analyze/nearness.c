/* nearness.c - how far the address of a fault is from the memory that a call uses, also where an
 * index has wrapped at 2^32. */
#include "analyze/analyze_impl.h"

/* Further away than this an address says nothing of an operand. */
#define NEAR_LIMIT (UINT64_C(1) << 20)

uint64_t access_distance(const struct event_access *access, uint64_t address)
{
    if (address < access->address)
        return access->address - address;
    if (address - access->address >= access->bytes)
        return address - access->address - access->bytes;
    return 0;
}

uint32_t access_wraps(const struct analyzer *analyzer, uint16_t device_index,
                      const struct event_access *access, uint64_t address)
{
    const struct ledger_entry *entry = ledger_find_generation(
        &analyzer->ledger, device_index, access->buffer_index, access->generation);
    if (!entry)
        return 0;
    for (uint32_t wraps = 1; wraps <= FINDING_WRAP_LIMIT; wraps++) {
        uint64_t apart = (uint64_t)wraps << 32;
        if (address + apart - entry->address < entry->bytes ||
            address - apart - entry->address < entry->bytes)
            return wraps;
    }
    return 0;
}

bool access_is_near(const struct event_access *access, uint64_t address)
{
    return access_distance(access, address) <= NEAR_LIMIT;
}
