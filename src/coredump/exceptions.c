/* exceptions.c - the exceptions of a dump: what the rows that were hit say, and of which block,
 * grid and threads. */
#include "coredump/hits.h"

#include "base/array.h"

#include <stdlib.h>

/* The rows above a warp. */
struct above {
    size_t device_index;
    uint32_t sm_section, sm_row;
    struct row sm, block, warp;
};

struct teller {
    struct coredump *dump;
    struct hits hits;
    size_t capacity; /* of dump->exceptions */
};

static enum status new_exception(struct teller *teller, struct coredump_exception **ret,
                                 struct error *err)
{
    struct coredump *dump = teller->dump;
    *ret = NULL;
    dump->exception_total++;
    if (dump->exception_count == COREDUMP_EXCEPTION_LIMIT)
        return STATUS_OK;
    struct coredump_exception *grown = array_reserve(dump->exceptions, dump->exception_count,
                                                     &teller->capacity, sizeof(*grown));
    if (!grown)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory for its exceptions",
                         dump->info.source);
    dump->exceptions = grown;
    *ret = &dump->exceptions[dump->exception_count++];
    **ret = (struct coredump_exception){ .grid_index = COREDUMP_NO_INDEX,
                                         .place_index = COREDUMP_NO_INDEX };
    return STATUS_OK;
}

/* ---- One warp ------------------------------------------------------------------------------- */

static enum status find_above(const struct coredump *dump, const struct hit *hit,
                              struct above *above, struct error *err)
{
    struct table warps, blocks, sms;
    TRY(table_open(&dump->elf, hit->warps, TABLE_WARPS, &warps, err));
    TRY(table_open_parent(&dump->elf, &warps, &blocks, err));
    TRY(table_open_parent(&dump->elf, &blocks, &sms, err));
    TRY(dump_device_of(dump, &sms, &above->device_index, err));
    above->sm_section = sms.section.index;
    above->sm_row = blocks.parent_row;
    above->warp = table_row(&warps, hit->row);
    above->block = table_row(&blocks, warps.parent_row);
    above->sm = table_row(&sms, blocks.parent_row);
    return STATUS_OK;
}

static void fill_warp(struct coredump *dump, const struct above *above,
                      struct coredump_exception *exception)
{
    exception->device_index = above->device_index;
    exception->sm = row_u32(above->sm, SM_NUMBER);
    exception->has_warp = true;
    exception->warp = row_u32(above->warp, WARP_NUMBER);
    exception->block = (struct coredump_dim3){ row_u32(above->block, BLOCK_INDEX),
                                               row_u32(above->block, BLOCK_INDEX + 4),
                                               row_u32(above->block, BLOCK_INDEX + 8) };
    exception->grid_number = row_u64(above->block, BLOCK_GRID);
    exception->grid_index = dump_find_grid(dump, above->device_index, exception->grid_number);
    if (row_u32(above->warp, WARP_ERROR_PC_VALID)) {
        exception->pc_origin = COREDUMP_PC_OF_ERROR;
        exception->pc = row_u64(above->warp, WARP_ERROR_PC);
    }
}

static void add_thread(struct coredump_exception *exception, struct row row)
{
    uint32_t lane = row_u32(row, LANE_NUMBER); /* below 32: hits_find has looked at each */
    exception->thread_mask |= 1u << lane;
    exception->threads[lane] = (struct coredump_dim3){ row_u32(row, LANE_THREAD),
                                                       row_u32(row, LANE_THREAD + 4),
                                                       row_u32(row, LANE_THREAD + 8) };
}

/* One exception for each kind that lanes of the table have. */
static enum status tell_lanes(struct teller *teller, const struct hit *hit,
                              const struct above *above, struct error *err)
{
    struct table table;
    uint32_t done = 0; /* rows, at most 32 */
    TRY(table_open(&teller->dump->elf, hit->lanes, TABLE_LANES, &table, err));
    for (uint64_t i = 0; i < table.row_count; i++) {
        struct coredump_exception *exception;
        struct row first = table_row(&table, i);
        uint32_t kind = row_u32(first, LANE_EXCEPTION);
        if (kind == 0 || (done >> i & 1))
            continue;
        TRY(new_exception(teller, &exception, err));
        for (uint64_t j = i; j < table.row_count; j++) {
            struct row row = table_row(&table, j);
            if (row_u32(row, LANE_EXCEPTION) != kind)
                continue;
            done |= 1u << j;
            if (exception)
                add_thread(exception, row);
        }
        if (!exception)
            continue;
        fill_warp(teller->dump, above, exception);
        exception->kind = kind;
        exception->lane_mask = exception->thread_mask;
        if (exception->pc_origin == COREDUMP_PC_NONE) {
            exception->pc_origin = COREDUMP_PC_OF_LANE;
            exception->pc = row_u64(first, LANE_PC);
        }
    }
    return STATUS_OK;
}

/* No lane of the warp has an exception, but the hardware recorded where the warp failed. The kind
 * is then the SM's, if its row has one. Its threads are the active ones. */
static enum status tell_warp(struct teller *teller, const struct hit *group, size_t count,
                             const struct above *above, struct error *err)
{
    uint32_t active = row_u32(above->warp, WARP_ACTIVE_LANES);
    struct coredump_exception *exception;
    TRY(new_exception(teller, &exception, err));
    if (!exception)
        return STATUS_OK;
    fill_warp(teller->dump, above, exception);
    exception->kind = row_u32(above->sm, SM_EXCEPTION);
    exception->kind_of_sm = exception->kind != 0;
    for (size_t i = 0; i < count; i++) {
        struct table table;
        if (group[i].kind != HIT_LANES)
            continue;
        TRY(table_open(&teller->dump->elf, group[i].lanes, TABLE_LANES, &table, err));
        for (uint64_t j = 0; j < table.row_count; j++)
            if (active >> row_u32(table_row(&table, j), LANE_NUMBER) & 1)
                add_thread(exception, table_row(&table, j));
    }
    return STATUS_OK;
}

static int compare_sms(const void *key, const void *item)
{
    const struct above *above = key;
    const struct sm_hit *sm = item;
    if (above->sm_section != sm->section)
        return above->sm_section < sm->section ? -1 : 1;
    return (above->sm_row > sm->row) - (above->sm_row < sm->row);
}

/* All that was hit of one warp. */
static enum status tell_group(struct teller *teller, const struct hit *group, size_t count,
                              struct error *err)
{
    struct above above;
    struct hits *hits = &teller->hits;
    if (group[0].kind == HIT_LANES)
        return STATUS_OK; /* the kinds are in order: nothing failed */
    TRY(find_above(teller->dump, &group[0], &above, err));
    struct sm_hit *sm = hits->sm_count ? bsearch(&above, hits->sms, hits->sm_count,
                                                 sizeof(*hits->sms), compare_sms)
                                       : NULL;
    if (sm)
        sm->reported = true;
    if (group[0].kind == HIT_WARP_FAILED)
        return tell_warp(teller, group, count, &above, err);
    for (size_t i = 0; i < count && group[i].kind == HIT_LANES_FAILED; i++)
        TRY(tell_lanes(teller, &group[i], &above, err));
    return STATUS_OK;
}

static enum status tell_warps(struct teller *teller, struct error *err)
{
    const struct hit *hits = teller->hits.items;
    size_t count = teller->hits.count, end;
    for (size_t i = 0; i < count; i = end) {
        for (end = i + 1; end < count; end++)
            if (hits[end].warps != hits[i].warps || hits[end].row != hits[i].row)
                break;
        TRY(tell_group(teller, &hits[i], end - i, err));
    }
    return STATUS_OK;
}

/* ---- SMs ------------------------------------------------------------------------------------ */

/* SMs with an exception that none of their warps tells of. */
static enum status tell_sms(struct teller *teller, struct error *err)
{
    for (size_t i = 0; i < teller->hits.sm_count; i++) {
        const struct sm_hit *hit = &teller->hits.sms[i];
        struct coredump_exception *exception;
        struct table sms;
        if (hit->reported)
            continue;
        TRY(new_exception(teller, &exception, err));
        if (!exception)
            continue;
        TRY(table_open(&teller->dump->elf, hit->section, TABLE_SMS, &sms, err));
        TRY(dump_device_of(teller->dump, &sms, &exception->device_index, err));
        struct row row = table_row(&sms, hit->row);
        exception->sm = row_u32(row, SM_NUMBER);
        exception->kind = row_u32(row, SM_EXCEPTION);
        exception->kind_of_sm = true;
        if (row_u32(row, SM_ERROR_PC_VALID)) {
            exception->pc_origin = COREDUMP_PC_OF_ERROR;
            exception->pc = row_u64(row, SM_ERROR_PC);
        }
    }
    return STATUS_OK;
}

/* ---- Order and places ----------------------------------------------------------------------- */

static int compare_exceptions(const void *a, const void *b)
{
    const struct coredump_exception *x = a, *y = b;
    if ((x->kind == 0) != (y->kind == 0))
        return x->kind == 0 ? 1 : -1;
    if (x->has_warp != y->has_warp)
        return x->has_warp ? -1 : 1;
    if (x->device_index != y->device_index)
        return x->device_index < y->device_index ? -1 : 1;
    if (x->sm != y->sm)
        return x->sm < y->sm ? -1 : 1;
    if (x->warp != y->warp)
        return x->warp < y->warp ? -1 : 1;
    return (x->kind > y->kind) - (x->kind < y->kind);
}

/* The place of an exception's address: the same address in another grid is another place, for it
 * may be of another context. */
static size_t add_place(struct coredump *dump, const struct coredump_exception *exception)
{
    for (size_t i = 0; i < dump->place_count; i++)
        if (dump->places[i].address == exception->pc &&
            dump->place_grids[i] == exception->grid_index)
            return i;
    dump->places[dump->place_count] = (struct coredump_place){ .address = exception->pc };
    dump->place_grids[dump->place_count] = exception->grid_index;
    return dump->place_count++;
}

static enum status add_places(struct coredump *dump, struct error *err)
{
    dump->places = calloc(dump->exception_count + 1, sizeof(*dump->places));
    dump->place_grids = calloc(dump->exception_count + 1, sizeof(*dump->place_grids));
    if (!dump->places || !dump->place_grids)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory for its exceptions",
                         dump->info.source);
    for (size_t i = 0; i < dump->exception_count; i++)
        if (dump->exceptions[i].pc_origin != COREDUMP_PC_NONE)
            dump->exceptions[i].place_index = add_place(dump, &dump->exceptions[i]);
    return STATUS_OK;
}

enum status dump_read_exceptions(struct coredump *dump, struct error *err)
{
    struct teller teller = { .dump = dump };
    enum status status = hits_find(dump, &teller.hits, err);
    if (!status)
        status = tell_warps(&teller, err);
    if (!status)
        status = tell_sms(&teller, err);
    hits_release(&teller.hits);
    if (status)
        return status;
    if (dump->exception_count)
        qsort(dump->exceptions, dump->exception_count, sizeof(*dump->exceptions),
              compare_exceptions);
    return add_places(dump, err);
}
