/* open.c - opens a dump: what kind of file it is, its sections by kind, then its parts in turn. */
#include "coredump/coredump_impl.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

/* What the known drivers write into the identity of a dump. */
enum { OSABI_AT = 7, OSABI_CUDA = 0x33, ABI_VERSION_AT = 8, ABI_VERSION_KNOWN = 7 };

/* ---- The kind of file ----------------------------------------------------------------------- */

static enum status check_identity(const struct elf *elf, struct error *err)
{
    if (elf->machine != ELF_MACHINE_CUDA)
        return error_set(
            err, STATUS_UNSUPPORTED, "%s: ELF machine: expected %u (an NVIDIA GPU), found %u%s",
            elf->source, ELF_MACHINE_CUDA, elf->machine,
            elf->type == ELF_TYPE_CORE ? ": this is the core dump of a process, not of a GPU" : "");
    if (elf->type != ELF_TYPE_CORE)
        return error_set(err, STATUS_UNSUPPORTED,
                         "%s: ELF type: expected %u (a core dump), found %u: this is an image of "
                         "kernels (cubin)",
                         elf->source, ELF_TYPE_CORE, elf->type);
    if (elf->data[OSABI_AT] != OSABI_CUDA || elf->data[ABI_VERSION_AT] != ABI_VERSION_KNOWN)
        return error_set(err, STATUS_UNSUPPORTED,
                         "%s: ABI and its version: expected 0x%x and %d, found 0x%x and %d: a "
                         "newer driver than greta knows wrote this dump",
                         elf->source, OSABI_CUDA, ABI_VERSION_KNOWN, elf->data[OSABI_AT],
                         elf->data[ABI_VERSION_AT]);
    return STATUS_OK;
}

/* ---- Sections ------------------------------------------------------------------------------- */

static enum status list_section(struct section_list *list, uint32_t section, struct error *err)
{
    uint32_t *items = array_reserve(list->items, list->count, &list->capacity, sizeof(*items));
    if (!items)
        return error_set(err, STATUS_NO_MEMORY, "no memory to list the sections of a dump");
    list->items = items;
    list->items[list->count++] = section;
    return STATUS_OK;
}

/* The device names are in the table of strings that is called .strtab. */
static enum status take_strings(struct coredump *dump, uint32_t index, struct error *err)
{
    struct elf_section section;
    TRY(elf_section_at(&dump->elf, index, &section, err));
    if (text_view_is(elf_section_name(&dump->elf, &section), ".strtab"))
        dump->strings = (struct text_view){ (const char *)dump->elf.data + section.offset,
                                            section.bytes };
    return STATUS_OK;
}

static enum status list_sections(struct coredump *dump, struct error *err)
{
    for (uint32_t i = 0; i < dump->elf.section_count; i++) {
        uint32_t type = elf_section_type(&dump->elf, i);
        enum table_kind kind = table_kind_of(type);
        if (kind < TABLE_COUNT)
            TRY(list_section(&dump->sections[kind], i, err));
        else if (type == ELF_SECTION_STRINGS && dump->strings.length == 0)
            TRY(take_strings(dump, i, err));
    }
    return STATUS_OK;
}

bool section_list_find(const struct section_list *list, uint32_t section, size_t *ret_index)
{
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list->items[middle] < section)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == list->count || list->items[low] != section)
        return false;
    *ret_index = low;
    return true;
}

enum status dump_table(struct coredump *dump, enum table_kind kind, size_t index,
                       struct table *ret_table, struct error *err)
{
    struct table table;
    ASSERT(index < dump->sections[kind].count);
    TRY(table_open(&dump->elf, dump->sections[kind].items[index], kind, &table, err));
    TRY(work_spend(&dump->work, table.section.bytes, err));
    *ret_table = table;
    return STATUS_OK;
}

/* ---- Metadata ------------------------------------------------------------------------------- */

static enum status read_metadata(struct coredump *dump, struct error *err)
{
    struct table table;
    if (dump->sections[TABLE_METADATA].count == 0)
        return STATUS_OK;
    TRY(dump_table(dump, TABLE_METADATA, 0, &table, err));
    if (table.row_count == 0)
        return STATUS_OK;
    struct row row = table_row(&table, 0);
    dump->info.generator_known = true;
    dump->info.generator = elf_string(dump->strings, row_u64(row, 0));
    dump->info.driver_major = row_u32(row, 8);
    dump->info.driver_minor = row_u32(row, 12);
    dump->info.cuda_major = row_u32(row, 16);
    dump->info.cuda_minor = row_u32(row, 20);
    dump->info.timestamp = row_u32(row, 28);
    return STATUS_OK;
}

/* ---- Open and close ------------------------------------------------------------------------- */

static enum status read_all(struct coredump *dump, const void *data, uint64_t bytes,
                            const char *source, struct error *err)
{
    TRY(elf_open(data, bytes, source, &dump->elf, err));
    TRY(check_identity(&dump->elf, err));
    dump->work = work_of(bytes, source);
    dump->info = (struct coredump_info){ .source = source,
                                         .bytes = bytes,
                                         .section_count = dump->elf.section_count };
    TRY(list_sections(dump, err));
    TRY(read_metadata(dump, err));
    TRY(dump_read_machine(dump, err));
    TRY(dump_read_grids(dump, err));
    TRY(dump_read_exceptions(dump, err));
    TRY(dump_name_grids(dump, err));
    return dump_name_places(dump, err);
}

enum status coredump_open_memory(const void *data, uint64_t bytes, const char *source,
                                 struct coredump **ret_dump, struct error *err)
{
    struct coredump *dump = calloc(1, sizeof(*dump));
    if (!dump)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory to read it", source);
    enum status status = read_all(dump, data, bytes, source, err);
    if (status)
        coredump_close(dump);
    else
        *ret_dump = dump;
    return status;
}

enum status coredump_open(const char *path, struct coredump **ret_dump, struct error *err)
{
    struct coredump *dump = calloc(1, sizeof(*dump));
    if (dump)
        dump->path = strdup(path);
    if (!dump || !dump->path) {
        free(dump);
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory to read it", path);
    }
    enum status status = mapfile_open(&dump->map, path, err);
    if (!status) {
        mapfile_watch(&dump->map);
        status = read_all(dump, dump->map.data, dump->map.size, dump->path, err);
    }
    if (status)
        coredump_close(dump);
    else
        *ret_dump = dump;
    return status;
}

enum status coredump_check(const struct coredump *dump, struct error *err)
{
    return dump->path ? mapfile_check(&dump->map, dump->path, err) : STATUS_OK;
}

void coredump_close(struct coredump *dump)
{
    if (!dump)
        return;
    for (size_t i = 0; i < TABLE_COUNT; i++)
        free(dump->sections[i].items);
    for (size_t i = 0; i < dump->image_count; i++)
        image_release(&dump->images[i]);
    for (size_t i = 0; i < dump->grid_count; i++)
        free((void *)dump->grids[i].arguments);
    free(dump->devices);
    free(dump->contexts);
    free(dump->context_starts);
    free(dump->modules);
    free(dump->module_starts);
    free(dump->module_order);
    free(dump->images);
    free(dump->grids);
    free(dump->grid_starts);
    free(dump->exceptions);
    free(dump->places);
    free(dump->place_grids);
    mapfile_release(&dump->map);
    free(dump->path);
    free(dump);
}
