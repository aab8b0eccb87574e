/* machine.c - what the dump says of devices, contexts, loaded modules and their images. */
#include "coredump/coredump_impl.h"

#include <inttypes.h>
#include <stdlib.h>

/* Counts the rows of all tables of a kind and notes at which row each table begins. */
static enum status count_rows(struct coredump *dump, enum table_kind kind, uint64_t limit,
                              size_t **ret_starts, size_t *ret_count, struct error *err)
{
    const struct section_list *list = &dump->sections[kind];
    size_t *starts = calloc(list->count + 1, sizeof(*starts));
    enum status status = STATUS_OK;
    uint64_t count = 0;
    if (!starts)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory for its tables", dump->info.source);
    for (size_t i = 0; i < list->count && !status; i++) {
        struct table table;
        starts[i] = (size_t)count;
        status = table_open(&dump->elf, list->items[i], kind, &table, err);
        if (!status && table.row_count > limit - count)
            status = error_set(err, STATUS_LIMIT,
                               "%s: rows of the %s: greta reads at most %" PRIu64,
                               dump->info.source, table_name(kind), limit);
        count += status ? 0 : table.row_count;
    }
    if (status) {
        free(starts);
        return status;
    }
    *ret_starts = starts;
    *ret_count = (size_t)count;
    return STATUS_OK;
}

static enum status no_memory(const struct coredump *dump, struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "%s: no memory for its tables", dump->info.source);
}

/* ---- Devices -------------------------------------------------------------------------------- */

static void read_device(const struct coredump *dump, struct row row, struct coredump_device *device)
{
    *device = (struct coredump_device){
        .name = elf_string(dump->strings, row_u64(row, 0)),
        .chip = elf_string(dump->strings, row_u64(row, 8)),
        .architecture = elf_string(dump->strings, row_u64(row, 16)),
        .id = row_u32(row, 24),
        .pci_bus = row_u32(row, 28),
        .pci_device = row_u32(row, 32),
        .sm_count = row_u32(row, 36),
        .warps_per_sm = row_u32(row, 40),
        .lanes_per_warp = row_u32(row, 44),
        .sm_major = row_u32(row, 56),
        .sm_minor = row_u32(row, 60),
    };
}

static enum status read_devices(struct coredump *dump, struct error *err)
{
    const struct section_list *list = &dump->sections[TABLE_DEVICES];
    struct table table;
    if (list->count != 1)
        return error_set(err, STATUS_BAD_FILE,
                         "%s: tables of devices: expected 1, found %zu: it is no whole GPU core "
                         "dump",
                         dump->info.source, list->count);
    TRY(dump_table(dump, TABLE_DEVICES, 0, &table, err));
    if (table.row_count > DEVICE_LIMIT)
        return error_set(err, STATUS_LIMIT, "%s: %" PRIu64 " devices: greta reads at most %u",
                         dump->info.source, table.row_count, DEVICE_LIMIT);
    dump->devices = calloc(table.row_count + 1, sizeof(*dump->devices));
    if (!dump->devices)
        return no_memory(dump, err);
    for (uint64_t i = 0; i < table.row_count; i++)
        read_device(dump, table_row(&table, i), &dump->devices[dump->device_count++]);
    return STATUS_OK;
}

/* ---- Contexts ------------------------------------------------------------------------------- */

static enum status read_contexts(struct coredump *dump, struct error *err)
{
    size_t count;
    TRY(count_rows(dump, TABLE_CONTEXTS, CONTEXT_LIMIT, &dump->context_starts, &count, err));
    dump->contexts = calloc(count + 1, sizeof(*dump->contexts));
    if (!dump->contexts)
        return no_memory(dump, err);
    for (size_t i = 0; i < dump->sections[TABLE_CONTEXTS].count; i++) {
        struct table table;
        TRY(dump_table(dump, TABLE_CONTEXTS, i, &table, err));
        for (uint64_t j = 0; j < table.row_count; j++) {
            struct row row = table_row(&table, j);
            struct coredump_context *context = &dump->contexts[dump->context_count++];
            *context = (struct coredump_context){ .id = row_u64(row, 0),
                                                  .device_index = row_u32(row, 32),
                                                  .host_thread = row_u32(row, 36) };
            if (context->device_index >= dump->device_count)
                return error_set(err, STATUS_BAD_FILE,
                                 "%s: context %zu: index of its device: expected below %zu, found "
                                 "%" PRIu32,
                                 dump->info.source, dump->context_count - 1, dump->device_count,
                                 context->device_index);
        }
    }
    return STATUS_OK;
}

size_t dump_find_context(const struct coredump *dump, size_t device_index, uint64_t id)
{
    for (size_t i = 0; i < dump->context_count; i++)
        if (dump->contexts[i].id == id && dump->contexts[i].device_index == device_index)
            return i;
    return COREDUMP_NO_INDEX;
}

/* ---- Modules -------------------------------------------------------------------------------- */

static enum status read_modules(struct coredump *dump, struct error *err)
{
    const struct section_list *contexts = &dump->sections[TABLE_CONTEXTS];
    size_t count;
    TRY(count_rows(dump, TABLE_MODULES, MODULE_LIMIT, &dump->module_starts, &count, err));
    dump->modules = calloc(count + 1, sizeof(*dump->modules));
    if (!dump->modules)
        return no_memory(dump, err);
    for (size_t i = 0; i < dump->sections[TABLE_MODULES].count; i++) {
        struct table table;
        size_t parent = 0;
        TRY(dump_table(dump, TABLE_MODULES, i, &table, err));
        bool listed = section_list_find(contexts, table.parent, &parent);
        ASSERT(listed); /* table_open has seen that it is a table of contexts */
        size_t context = dump->context_starts[parent] + table.parent_row;
        for (uint64_t j = 0; j < table.row_count; j++)
            dump->modules[dump->module_count++] =
                (struct module){ .handle = row_u64(table_row(&table, j), 0),
                                 .context_index = context,
                                 .image_index = COREDUMP_NO_INDEX };
        dump->contexts[context].module_count += table.row_count;
    }
    return STATUS_OK;
}

struct ordered {
    uint64_t handle;
    size_t context_index, index;
};

/* A handle belongs to a context: others may have the same one. */
static int compare_modules(const void *a, const void *b)
{
    const struct ordered *x = a, *y = b;
    if (x->handle != y->handle)
        return x->handle < y->handle ? -1 : 1;
    if (x->context_index != y->context_index)
        return x->context_index < y->context_index ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

static enum status order_modules(struct coredump *dump, struct error *err)
{
    struct ordered *order = calloc(dump->module_count + 1, sizeof(*order));
    dump->module_order = calloc(dump->module_count + 1, sizeof(*dump->module_order));
    if (!order || !dump->module_order) {
        free(order);
        return no_memory(dump, err);
    }
    for (size_t i = 0; i < dump->module_count; i++)
        order[i] = (struct ordered){ dump->modules[i].handle, dump->modules[i].context_index, i };
    qsort(order, dump->module_count, sizeof(*order), compare_modules);
    for (size_t i = 0; i < dump->module_count; i++)
        dump->module_order[i] = order[i].index;
    free(order);
    return STATUS_OK;
}

/* The first module in order that is not before (handle, context_index). */
static size_t find_place(const struct coredump *dump, uint64_t handle, size_t context_index)
{
    size_t low = 0, high = dump->module_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct module *module = &dump->modules[dump->module_order[middle]];
        if (module->handle < handle ||
            (module->handle == handle && module->context_index < context_index))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static const struct module *module_in_order(const struct coredump *dump, size_t place)
{
    return place < dump->module_count ? &dump->modules[dump->module_order[place]] : NULL;
}

size_t dump_find_module(const struct coredump *dump, uint64_t handle, size_t context_index)
{
    bool any = context_index == COREDUMP_NO_INDEX;
    size_t place = find_place(dump, handle, any ? 0 : context_index);
    const struct module *module = module_in_order(dump, place);
    const struct module *next = module_in_order(dump, place + 1);
    if (!module || module->handle != handle || (!any && module->context_index != context_index))
        return COREDUMP_NO_INDEX;
    return any && next && next->handle == handle ? COREDUMP_NO_INDEX : dump->module_order[place];
}

/* ---- Images --------------------------------------------------------------------------------- */

static enum status read_images(struct coredump *dump, struct error *err)
{
    const struct section_list *list = &dump->sections[TABLE_IMAGES];
    dump->images = calloc(list->count + 1, sizeof(*dump->images));
    if (!dump->images)
        return no_memory(dump, err);
    for (size_t i = 0; i < list->count; i++) {
        struct table table;
        size_t parent = 0;
        /* Paid for when the image is used: most modules have no kernel running. */
        TRY(table_open(&dump->elf, list->items[i], TABLE_IMAGES, &table, err));
        bool listed = section_list_find(&dump->sections[TABLE_MODULES], table.parent, &parent);
        ASSERT(listed);
        struct module *module = &dump->modules[dump->module_starts[parent] + table.parent_row];
        if (module->image_index != COREDUMP_NO_INDEX)
            return error_set(err, STATUS_BAD_FILE,
                             "%s: section %" PRIu32 ": module 0x%" PRIx64
                             ": expected one relocated image, found a second",
                             dump->info.source, table.section.index, module->handle);
        module->image_index = dump->image_count;
        dump->contexts[module->context_index].image_count++;
        image_init(&dump->images[dump->image_count++], table.rows, table.section.bytes,
                   dump->info.source);
    }
    return STATUS_OK;
}

enum status dump_image(struct coredump *dump, size_t module_index, struct image **ret_image,
                       struct error *err)
{
    const struct module *module = &dump->modules[module_index];
    *ret_image = NULL;
    if (module->image_index == COREDUMP_NO_INDEX)
        return STATUS_OK;
    struct image *image = &dump->images[module->image_index];
    if (image->state == IMAGE_UNREAD) {
        struct error why;
        enum status status = image_read(image, &dump->work, &why);
        if (status == STATUS_NO_MEMORY) {
            *err = why;
            return status;
        }
        if (status && dump->bad_image_count++ == 0)
            dump->bad_image = why;
    }
    if (image->state == IMAGE_READ)
        *ret_image = image;
    return STATUS_OK;
}

enum status dump_read_machine(struct coredump *dump, struct error *err)
{
    TRY(read_devices(dump, err));
    TRY(read_contexts(dump, err));
    TRY(read_modules(dump, err));
    TRY(order_modules(dump, err));
    return read_images(dump, err);
}
