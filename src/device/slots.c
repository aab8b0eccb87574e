/* slots.c - places for handles. A generation is odd while its slot is alive, so a zero handle and a
 * handle of a destroyed object never match. */
#include "device/device_core.h"

#include <stdlib.h>

enum status slot_table_init(struct device_slot_table *table, size_t slot_bytes, uint32_t capacity,
                            struct error *err)
{
    *table =
        (struct device_slot_table){ .slot_bytes = slot_bytes, .used = 1, .capacity = capacity };
    /* Untouched pages of a large table cost nothing. */
    table->slots = calloc(capacity, slot_bytes);
    if (!table->slots)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a table of %u handles", capacity);
    return STATUS_OK;
}

void slot_table_release(struct device_slot_table *table)
{
    free(table->slots);
    *table = (struct device_slot_table){ 0 };
}

void *slot_at(const struct device_slot_table *table, uint32_t index)
{
    ASSERT(index < table->capacity);
    return (char *)table->slots + index * table->slot_bytes;
}

void slot_fetch(const struct device_slot_table *table, uint32_t index)
{
    if (index >= table->capacity)
        return;
    const char *slot = slot_at(table, index);
    for (size_t at = 0; at < table->slot_bytes; at += 64)
        __builtin_prefetch(slot + at);
}

uint32_t slot_take(struct device_slot_table *table)
{
    uint32_t index = table->free_head;
    if (index) {
        table->free_head = ((struct slot_head *)slot_at(table, index))->next_free;
    } else {
        if (table->used == table->capacity)
            return 0;
        index = table->used++;
    }
    ((struct slot_head *)slot_at(table, index))->generation++;
    return index;
}

void slot_release(struct device_slot_table *table, uint32_t index)
{
    struct slot_head *head = slot_at(table, index);
    ASSERT(head->generation % 2 == 1);
    head->generation++;
    head->next_free = table->free_head;
    table->free_head = index;
}

uint32_t slot_generation(const struct device_slot_table *table, uint32_t index)
{
    if (index == 0 || index >= table->used)
        return 0;
    return ((const struct slot_head *)slot_at(table, index))->generation;
}

bool slot_is_alive(const struct device_slot_table *table, uint32_t index)
{
    return slot_generation(table, index) % 2 == 1;
}

void *slot_find(const struct device_slot_table *table, uint32_t index, uint32_t generation)
{
    if (generation % 2 == 0 || slot_generation(table, index) != generation)
        return NULL;
    return slot_at(table, index);
}

uint32_t slot_generation_locking(struct device *device, const struct device_slot_table *table,
                                 uint32_t index)
{
    pthread_mutex_lock(&device->lock);
    uint32_t generation = slot_generation(table, index);
    pthread_mutex_unlock(&device->lock);
    return generation;
}
