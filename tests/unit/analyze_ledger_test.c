/* The ledger: what lies at an address and around it, alive or freed; and the map it stands on. */
#include "test.h"

#include "analyze/analyze_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct ledger_entry entry_at(uint32_t index, uint64_t address, uint64_t bytes,
                                    const char *name)
{
    struct ledger_entry entry = { .address = address,
                                  .bytes = bytes,
                                  .created_id = index,
                                  .buffer_index = index,
                                  .generation = 1 };
    event_set_text(entry.name, sizeof(entry.name), name);
    return entry;
}

static void add(struct ledger *ledger, uint32_t index, uint64_t address, uint64_t bytes,
                const char *name)
{
    struct ledger_entry entry = entry_at(index, address, bytes, name);
    assert_non_null(ledger_add(ledger, &entry));
}

static void neighbourhood_of_an_address(void **state)
{
    (void)state;
    struct ledger ledger = { 0 };
    assert_true(ledger_init(&ledger));
    add(&ledger, 1, 0x1000, 0x100, "low");
    add(&ledger, 2, 0x2000, 0x100, "middle");
    add(&ledger, 3, 0x3000, 0x100, "high");
    add(&ledger, 4, 0x2800, 0x100, "gone");
    assert_non_null(ledger_remove(&ledger, 0, 4, 99));
    static const struct {
        uint64_t address;
        const char *live, *before, *after, *freed;
        int64_t before_distance, after_distance;
    } rows[] = {
        { 0x2000, "middle", "low", "high", "", 0xF01, -0x1000 },
        { 0x20FF, "middle", "low", "high", "", 0x1000, -0xF01 },
        { 0x2100, "", "middle", "high", "", 1, -0xF00 },
        { 0x1FFF, "", "low", "middle", "", 0xF00, -1 },
        { 0x2810, "", "middle", "high", "gone", 0x711, -0x7F0 },
        { 0, "", "", "low", "", 0, -0x1000 },
        { UINT64_MAX, "", "high", "", "", INT64_MAX, 0 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct analyze_neighbourhood near;
        ledger_neighbourhood(&ledger, 0, rows[i].address, &near);
        assert_true(near.known);
        assert_string_equal(near.live.name, rows[i].live);
        assert_string_equal(near.before.name, rows[i].before);
        assert_string_equal(near.after.name, rows[i].after);
        assert_string_equal(near.freed.name, rows[i].freed);
        assert_int_equal(near.before.distance, rows[i].before_distance);
        assert_int_equal(near.after.distance, rows[i].after_distance);
    }
    assert_int_equal(ledger_find_generation(&ledger, 0, 4, 1)->destroyed_id, 99);
    assert_null(ledger_find_generation(&ledger, 0, 4, 3));
    ledger_release(&ledger);
}

/* The one that went last is named, if several were there. */
static void newest_freed_is_named(void **state)
{
    (void)state;
    struct ledger ledger = { 0 };
    assert_true(ledger_init(&ledger));
    char name[16];
    for (uint32_t i = 1; i <= 3 * LEDGER_FREED_LIMIT; i++) {
        snprintf(name, sizeof(name), "b%u", i);
        add(&ledger, 1, 0x1000, 0x100, name);
        ledger_remove(&ledger, 0, 1, i);
    }
    struct analyze_neighbourhood near;
    ledger_neighbourhood(&ledger, 0, 0x1010, &near);
    assert_string_equal(near.freed.name, name);
    assert_int_equal(near.live.bytes, 0);
    ledger_release(&ledger);
}

static void full_ledger_counts(void **state)
{
    (void)state;
    struct ledger ledger = { 0 };
    assert_true(ledger_init(&ledger));
    for (uint32_t i = 0; i < LEDGER_LIVE_LIMIT + 5; i++) {
        struct ledger_entry entry = entry_at(i, 0x1000 + i, 1, "b");
        ledger_add(&ledger, &entry);
    }
    assert_int_equal(ledger.forgotten, 5);
    for (uint32_t i = 0; i < LEDGER_LIVE_LIMIT; i++)
        assert_non_null(ledger_remove(&ledger, 0, i, 1));
    assert_null(ledger_remove(&ledger, 0, 0, 1));
    add(&ledger, 7, 0x1000, 1, "again");
    assert_string_equal(ledger_find(&ledger, 0, 7)->name, "again");
    ledger_release(&ledger);
}

/* Against a plain array, with keys that meet in the same places. */
static void map_adds_finds_removes(void **state)
{
    (void)state;
    struct idmap map;
    enum { LIMIT = 64, KEYS = 200 };
    assert_true(idmap_init(&map, LIMIT));
    uint32_t plain[KEYS];
    memset(plain, 0xFF, sizeof(plain));
    uint32_t used = 0;
    srand(1);
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t key = (uint32_t)rand() % KEYS;
        if (rand() % 2) {
            bool had = plain[key] != IDMAP_NONE;
            bool added = idmap_set(&map, key * UINT64_C(0x100000000), i);
            assert_true(added || (!had && used >= LIMIT));
            used += added && !had;
            if (added)
                plain[key] = i;
        } else {
            idmap_remove(&map, key * UINT64_C(0x100000000));
            used -= plain[key] != IDMAP_NONE;
            plain[key] = IDMAP_NONE;
        }
        uint32_t asked = (uint32_t)rand() % KEYS;
        assert_int_equal(idmap_find(&map, asked * UINT64_C(0x100000000)), plain[asked]);
    }
    idmap_clear(&map);
    assert_int_equal(idmap_find(&map, 0), IDMAP_NONE);
    idmap_release(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbourhood_of_an_address),
        cmocka_unit_test(newest_freed_is_named),
        cmocka_unit_test(full_ledger_counts),
        cmocka_unit_test(map_adds_finds_removes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
