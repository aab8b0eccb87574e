/* hits.c - see hits.h. */
#include "coredump/hits.h"

#include "base/array.h"

#include <inttypes.h>
#include <stdlib.h>

static enum status no_memory(const struct coredump *dump, struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "%s: no memory for its exceptions", dump->info.source);
}

static enum status add_hit(const struct coredump *dump, struct hits *hits, struct hit hit,
                           struct error *err)
{
    struct hit *grown = array_reserve(hits->items, hits->count, &hits->capacity, sizeof(*grown));
    if (!grown)
        return no_memory(dump, err);
    hits->items = grown;
    hits->items[hits->count++] = hit;
    return STATUS_OK;
}

static enum status check_lanes(const struct coredump *dump, const struct table *table,
                               struct error *err)
{
    if (table->row_count > COREDUMP_LANE_COUNT)
        return error_set(err, STATUS_BAD_FILE,
                         "%s: section %" PRIu32 ": lanes of a warp: expected at most %d, found "
                         "%" PRIu64,
                         dump->info.source, table->section.index, COREDUMP_LANE_COUNT,
                         table->row_count);
    for (uint64_t i = 0; i < table->row_count; i++) {
        uint32_t lane = row_u32(table_row(table, i), LANE_NUMBER);
        if (lane >= COREDUMP_LANE_COUNT)
            return error_set(err, STATUS_BAD_FILE,
                             "%s: section %" PRIu32 ": number of a lane: expected below %d, found "
                             "%" PRIu32,
                             dump->info.source, table->section.index, COREDUMP_LANE_COUNT, lane);
    }
    return STATUS_OK;
}

static enum status search_lanes(struct coredump *dump, struct hits *hits, struct error *err)
{
    for (size_t i = 0; i < dump->sections[TABLE_LANES].count; i++) {
        struct table table;
        bool failed = false;
        TRY(dump_table(dump, TABLE_LANES, i, &table, err));
        TRY(check_lanes(dump, &table, err));
        for (uint64_t j = 0; j < table.row_count && !failed; j++)
            failed = row_u32(table_row(&table, j), LANE_EXCEPTION) != 0;
        struct hit hit = { table.parent, table.parent_row, table.section.index,
                           failed ? HIT_LANES_FAILED : HIT_LANES };
        TRY(add_hit(dump, hits, hit, err));
    }
    return STATUS_OK;
}

static enum status search_warps(struct coredump *dump, struct hits *hits, struct error *err)
{
    for (size_t i = 0; i < dump->sections[TABLE_WARPS].count; i++) {
        struct table table;
        TRY(dump_table(dump, TABLE_WARPS, i, &table, err));
        for (uint64_t j = 0; j < table.row_count && j <= UINT32_MAX; j++) {
            struct hit hit = { table.section.index, (uint32_t)j, 0, HIT_WARP_FAILED };
            if (row_u32(table_row(&table, j), WARP_ERROR_PC_VALID))
                TRY(add_hit(dump, hits, hit, err));
        }
    }
    return STATUS_OK;
}

static enum status search_sms(struct coredump *dump, struct hits *hits, struct error *err)
{
    uint64_t rows = 0;
    for (size_t i = 0; i < dump->sections[TABLE_SMS].count; i++) {
        struct table table;
        TRY(dump_table(dump, TABLE_SMS, i, &table, err));
        if (table.row_count > SM_LIMIT - rows)
            return error_set(err, STATUS_LIMIT, "%s: SMs: greta reads at most %u",
                             dump->info.source, SM_LIMIT);
        rows += table.row_count;
        for (uint64_t j = 0; j < table.row_count; j++) {
            if (row_u32(table_row(&table, j), SM_EXCEPTION) == 0)
                continue;
            struct sm_hit *grown = array_reserve(hits->sms, hits->sm_count, &hits->sm_capacity,
                                                 sizeof(*grown));
            if (!grown)
                return no_memory(dump, err);
            hits->sms = grown;
            hits->sms[hits->sm_count++] = (struct sm_hit){ table.section.index, (uint32_t)j,
                                                           false };
        }
    }
    return STATUS_OK;
}

static int compare_hits(const void *a, const void *b)
{
    const struct hit *x = a, *y = b;
    if (x->warps != y->warps)
        return x->warps < y->warps ? -1 : 1;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return (x->lanes > y->lanes) - (x->lanes < y->lanes);
}

enum status hits_find(struct coredump *dump, struct hits *hits, struct error *err)
{
    *hits = (struct hits){ 0 };
    TRY(search_lanes(dump, hits, err));
    TRY(search_warps(dump, hits, err));
    TRY(search_sms(dump, hits, err));
    if (hits->count)
        qsort(hits->items, hits->count, sizeof(*hits->items), compare_hits);
    return STATUS_OK;
}

void hits_release(struct hits *hits)
{
    free(hits->items);
    free(hits->sms);
    *hits = (struct hits){ 0 };
}
