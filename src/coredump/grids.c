/* grids.c - the grids that were alive, and the bytes of their arguments. */
#include "coredump/coredump_impl.h"

#include <inttypes.h>
#include <stdlib.h>

/* Fields of a row of the table of grids. */
enum {
    GRID_NUMBER = 0,
    GRID_CONTEXT = 8,
    GRID_FUNCTION = 16,
    GRID_ENTRY = 24,
    GRID_MODULE = 32,
    GRID_PARENT = 40,
    GRID_TYPE = 56,
    GRID_ORIGIN = 60,
    GRID_STATUS = 64,
    GRID_REGISTERS = 68,
    GRID_BLOCKS = 72,
    GRID_THREADS = 84,
    GRID_BLOCKING = 96,
    GRID_HOST_THREAD = 100,
    GRID_CLUSTER = 104
};

static struct coredump_dim3 read_dim3(struct row row, uint64_t offset)
{
    return (struct coredump_dim3){ row_u32(row, offset), row_u32(row, offset + 4),
                                   row_u32(row, offset + 8) };
}

enum status dump_device_of(const struct coredump *dump, const struct table *table,
                           size_t *ret_index, struct error *err)
{
    /* table_open has checked the row against the one table of devices. */
    if (table->parent_row >= dump->device_count)
        return error_set(err, STATUS_BAD_FILE, "%s: section %" PRIu32 ": no device %" PRIu32,
                         dump->info.source, table->section.index, table->parent_row);
    *ret_index = table->parent_row;
    return STATUS_OK;
}

static void read_grid(struct row row, size_t device_index, struct coredump_grid *grid)
{
    *grid = (struct coredump_grid){ .number = row_u64(row, GRID_NUMBER),
                                    .device_index = device_index,
                                    .context_id = row_u64(row, GRID_CONTEXT),
                                    .module = row_u64(row, GRID_MODULE),
                                    .function_handle = row_u64(row, GRID_FUNCTION),
                                    .entry = row_u64(row, GRID_ENTRY),
                                    .parent = row_u64(row, GRID_PARENT),
                                    .status = row_u32(row, GRID_STATUS),
                                    .type = row_u32(row, GRID_TYPE),
                                    .registers = row_u32(row, GRID_REGISTERS),
                                    .from_gpu = row_u32(row, GRID_ORIGIN) == 1,
                                    .blocking = row_u32(row, GRID_BLOCKING) != 0,
                                    .host_thread = row_u32(row, GRID_HOST_THREAD),
                                    .blocks = read_dim3(row, GRID_BLOCKS),
                                    .threads = read_dim3(row, GRID_THREADS) };
    if (row_has(row, GRID_CLUSTER, 12))
        grid->cluster = read_dim3(row, GRID_CLUSTER);
}

static enum status read_grid_table(struct coredump *dump, size_t index, struct error *err)
{
    struct table table;
    size_t device_index;
    TRY(dump_table(dump, TABLE_GRIDS, index, &table, err));
    TRY(dump_device_of(dump, &table, &device_index, err));
    dump->grid_starts[index] = dump->grid_count;
    if (table.row_count > GRID_LIMIT - dump->grid_count)
        return error_set(err, STATUS_LIMIT, "%s: live grids: greta reads at most %u",
                         dump->info.source, GRID_LIMIT);
    size_t count = dump->grid_count + (size_t)table.row_count;
    struct coredump_grid *grown = realloc(dump->grids, (count + 1) * sizeof(*grown));
    if (!grown)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory for its grids", dump->info.source);
    dump->grids = grown;
    for (uint64_t i = 0; i < table.row_count; i++)
        read_grid(table_row(&table, i), device_index, &dump->grids[dump->grid_count++]);
    return STATUS_OK;
}

static enum status read_arguments(struct coredump *dump, size_t index, struct error *err)
{
    struct table table;
    size_t parent = 0;
    TRY(table_open(&dump->elf, dump->sections[TABLE_PARAMETERS].items[index], TABLE_PARAMETERS,
                   &table, err));
    bool listed = section_list_find(&dump->sections[TABLE_GRIDS], table.parent, &parent);
    ASSERT(listed); /* table_open has seen that it is a table of grids */
    struct coredump_grid *grid = &dump->grids[dump->grid_starts[parent] + table.parent_row];
    if (grid->argument_bytes)
        return error_set(err, STATUS_BAD_FILE,
                         "%s: section %" PRIu32 ": grid %" PRIu64
                         ": expected its arguments once, found them twice",
                         dump->info.source, table.section.index, grid->number);
    grid->argument_bytes = table.rows;
    grid->argument_byte_count = table.section.bytes;
    return STATUS_OK;
}

size_t dump_find_grid(const struct coredump *dump, size_t device_index, uint64_t number)
{
    for (size_t i = 0; i < dump->grid_count; i++)
        if (dump->grids[i].number == number && dump->grids[i].device_index == device_index)
            return i;
    return COREDUMP_NO_INDEX;
}

enum status dump_read_grids(struct coredump *dump, struct error *err)
{
    size_t tables = dump->sections[TABLE_GRIDS].count;
    dump->grid_starts = calloc(tables + 1, sizeof(*dump->grid_starts));
    if (!dump->grid_starts)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory for its grids", dump->info.source);
    for (size_t i = 0; i < tables; i++)
        TRY(read_grid_table(dump, i, err));
    for (size_t i = 0; i < dump->sections[TABLE_PARAMETERS].count; i++)
        TRY(read_arguments(dump, i, err));
    return STATUS_OK;
}
