/* table.c - see table.h. */
#include "coredump/table.h"

#include "base/size.h"

#include <inttypes.h>

/* Types of sections count from here. */
#define CUDBG_SECTION_BASE 0x80000000u

static const struct kind {
    const char *name;
    uint32_t type;        /* of the section, from CUDBG_SECTION_BASE */
    uint32_t least_bytes; /* of a row; the oldest layout. 0: no rows */
    bool has_parent;
    enum table_kind parent;
} kinds[] = {
    [TABLE_DEVICES] = { "table of devices", 9, 72, false, 0 },
    [TABLE_CONTEXTS] = { "table of contexts", 10, 40, false, 0 }, /* a field names the device */
    [TABLE_MODULES] = { "table of modules", 16, 8, true, TABLE_CONTEXTS },
    [TABLE_IMAGES] = { "relocated image", 7, 0, true, TABLE_MODULES },
    [TABLE_GRIDS] = { "table of grids", 12, 104, true, TABLE_DEVICES },
    [TABLE_PARAMETERS] = { "arguments of a grid", 18, 0, true, TABLE_GRIDS },
    [TABLE_SMS] = { "table of SMs", 11, 8, true, TABLE_DEVICES },
    [TABLE_BLOCKS] = { "table of blocks", 13, 24, true, TABLE_SMS },
    [TABLE_WARPS] = { "table of warps", 14, 32, true, TABLE_BLOCKS },
    [TABLE_LANES] = { "table of lanes", 15, 48, true, TABLE_WARPS },
    [TABLE_METADATA] = { "metadata", 22, 32, false, 0 },
};
_Static_assert(COUNT_OF(kinds) == TABLE_COUNT, "every kind of table has a row");

enum table_kind table_kind_of(uint32_t section_type)
{
    for (size_t i = 0; i < TABLE_COUNT; i++)
        if (section_type == CUDBG_SECTION_BASE + kinds[i].type)
            return (enum table_kind)i;
    return TABLE_COUNT;
}

const char *table_name(enum table_kind kind)
{
    ASSERT(kind < TABLE_COUNT);
    return kinds[kind].name;
}

/* ---- Work ----------------------------------------------------------------------------------- */

struct work work_of(uint64_t file_bytes, const char *source)
{
    uint64_t all = UINT64_MAX;
    (void)size_mul(file_bytes, WORK_PASSES, &all);
    return (struct work){ .left_bytes = all, .whole_bytes = all, .source = source };
}

enum status work_spend(struct work *work, uint64_t bytes, struct error *err)
{
    if (bytes > work->left_bytes) {
        work->left_bytes = 0;
        return error_set(err, STATUS_LIMIT,
                         "%s: its sections overlap: reading them would take more than %" PRIu64
                         " bytes, %u times the file",
                         work->source, work->whole_bytes, WORK_PASSES);
    }
    work->left_bytes -= bytes;
    return STATUS_OK;
}

/* ---- Tables --------------------------------------------------------------------------------- */

/* "core: section 12 (.cudbg.devtbl): table of devices: ..." */
static enum status table_fail(const struct elf *elf, const struct table *table, enum status status,
                              struct error *err, const char *problem, uint64_t expected,
                              uint64_t found)
{
    char name[128];
    text_printable(elf_section_name(elf, &table->section), name, sizeof(name));
    return error_set(
        err, status, "%s: section %" PRIu32 " (%s): %s: %s: expected %" PRIu64 ", found %" PRIu64,
        elf->source, table->section.index, name, kinds[table->kind].name, problem, expected, found);
}

static enum status find_rows(const struct elf *elf, struct table *table, struct error *err)
{
    const struct kind *kind = &kinds[table->kind];
    const struct elf_section *section = &table->section;
    table->rows = elf->data + section->offset;
    table->row_bytes = kind->least_bytes ? section->row_bytes : 1;
    if (section->bytes == 0) {
        table->row_count = 0;
        return STATUS_OK;
    }
    if (table->row_bytes < (kind->least_bytes ? kind->least_bytes : 1))
        return table_fail(elf, table, STATUS_UNSUPPORTED, err,
                          "bytes of a row that are at least known", kind->least_bytes,
                          table->row_bytes);
    table->row_count = section->bytes / table->row_bytes;
    if (section->bytes % table->row_bytes != 0)
        return table_fail(elf, table, STATUS_BAD_FILE, err, "bytes of whole rows",
                          table->row_count * table->row_bytes, section->bytes);
    return STATUS_OK;
}

/* Reads the parent's header only: its own parent is checked when it is opened itself. */
static enum status check_parent(const struct elf *elf, struct table *table, struct error *err)
{
    const struct kind *kind = &kinds[table->kind];
    struct table parent = { .kind = kind->parent };
    if (!kind->has_parent)
        return STATUS_OK;
    if (table->section.link >= elf->section_count)
        return table_fail(elf, table, STATUS_BAD_FILE, err, "section of its parent, below",
                          elf->section_count, table->section.link);
    uint32_t type = elf_section_type(elf, table->section.link);
    if (type != CUDBG_SECTION_BASE + kinds[kind->parent].type)
        return table_fail(elf, table, STATUS_BAD_FILE, err, "section type of its parent",
                          CUDBG_SECTION_BASE + kinds[kind->parent].type, type);
    TRY(elf_section_at(elf, table->section.link, &parent.section, err));
    TRY(find_rows(elf, &parent, err));
    if (table->section.info >= parent.row_count)
        return table_fail(elf, table, STATUS_BAD_FILE, err, "row of its parent, below",
                          parent.row_count, table->section.info);
    table->parent = table->section.link;
    table->parent_row = table->section.info;
    return STATUS_OK;
}

enum status table_open(const struct elf *elf, uint32_t section, enum table_kind kind,
                       struct table *ret_table, struct error *err)
{
    struct table table = { .kind = kind };
    ASSERT(kind < TABLE_COUNT);
    TRY(elf_section_at(elf, section, &table.section, err));
    TRY(find_rows(elf, &table, err));
    TRY(check_parent(elf, &table, err));
    *ret_table = table;
    return STATUS_OK;
}

enum status table_open_parent(const struct elf *elf, const struct table *table,
                              struct table *ret_parent, struct error *err)
{
    ASSERT(kinds[table->kind].has_parent);
    return table_open(elf, table->parent, kinds[table->kind].parent, ret_parent, err);
}

struct row table_row(const struct table *table, uint64_t index)
{
    ASSERT(index < table->row_count);
    return (struct row){ table->rows + index * table->row_bytes, table->row_bytes };
}

bool row_has(struct row row, uint64_t offset, uint64_t bytes)
{
    return size_range_inside(offset, bytes, row.count);
}

uint32_t row_u32(struct row row, uint64_t offset)
{
    return row_has(row, offset, 4) ? bytes_load_u32(row.bytes + offset) : 0;
}

uint64_t row_u64(struct row row, uint64_t offset)
{
    return row_has(row, offset, 8) ? bytes_load_u64(row.bytes + offset) : 0;
}
