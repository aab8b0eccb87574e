/* coredump_impl.h - what the files of this folder share: the open dump and its parts. */
#ifndef GRETA_COREDUMP_COREDUMP_IMPL_H
#define GRETA_COREDUMP_COREDUMP_IMPL_H

#include "base/mapfile.h"
#include "coredump/coredump.h"
#include "coredump/elf.h"
#include "coredump/image.h"
#include "coredump/table.h"

/* The driver keeps far fewer; more than this is a damaged or hostile file. */
#define DEVICE_LIMIT 1024u
#define CONTEXT_LIMIT 1024u
#define MODULE_LIMIT (1u << 20)
#define GRID_LIMIT 65536u
#define SM_LIMIT 65536u

struct module {
    uint64_t handle;
    size_t context_index;
    size_t image_index; /* COREDUMP_NO_INDEX: the dump has none */
};

struct section_list {
    uint32_t *items; /* indices of sections, ascending */
    size_t count, capacity;
};

struct coredump {
    struct mapfile map; /* empty if the bytes are the caller's */
    char *path;         /* owned; info.source points here if the file is mapped */
    struct elf elf;
    struct work work;
    struct coredump_info info;
    struct text_view strings; /* names of devices */
    struct section_list sections[TABLE_COUNT];
    struct coredump_device *devices;
    size_t device_count;
    struct coredump_context *contexts;
    size_t *context_starts; /* for each section of contexts: index of its first row */
    size_t context_count;
    struct module *modules; /* in the order of the file */
    size_t *module_starts;  /* for each section of modules */
    size_t *module_order;   /* by handle and context */
    size_t module_count;
    struct image *images;
    size_t image_count, bad_image_count;
    struct error bad_image; /* of the first bad one */
    struct coredump_grid *grids;
    size_t *grid_starts; /* for each section of grids */
    size_t grid_count, grid_capacity;
    struct coredump_exception *exceptions;
    size_t exception_count;
    uint64_t exception_total;
    struct coredump_place *places;
    size_t *place_grids; /* in grids: whose address it is; COREDUMP_NO_INDEX */
    size_t place_count;
};

/* Opens number `index` of the tables of a kind and pays for its bytes. */
MUST_CHECK enum status dump_table(struct coredump *dump, enum table_kind kind, size_t index,
                                  struct table *ret_table, struct error *err);

/* The place of a section in the list of its kind; false: it is not there. */
bool section_list_find(const struct section_list *list, uint32_t section, size_t *ret_index);

/* machine.c: devices, contexts, modules, images. */
MUST_CHECK enum status dump_read_machine(struct coredump *dump, struct error *err);

/* grids.c */
MUST_CHECK enum status dump_read_grids(struct coredump *dump, struct error *err);
/* COREDUMP_NO_INDEX: there is none. */
size_t dump_find_grid(const struct coredump *dump, size_t device_index, uint64_t number);
/* The device of a row of a table that belongs to one. */
MUST_CHECK enum status dump_device_of(const struct coredump *dump, const struct table *table,
                                      size_t *ret_index, struct error *err);

/* exceptions.c */
MUST_CHECK enum status dump_read_exceptions(struct coredump *dump, struct error *err);

/* names.c: kernels of grids, arguments, functions and lines of places. Damage in an image leaves
 * names unknown; only lack of memory fails. */
MUST_CHECK enum status dump_name_grids(struct coredump *dump, struct error *err);
MUST_CHECK enum status dump_name_places(struct coredump *dump, struct error *err);

/* The image of a module, indexed; NULL if the dump has none that can be read. */
MUST_CHECK enum status dump_image(struct coredump *dump, size_t module_index,
                                  struct image **ret_image, struct error *err);
/* The module with that handle in a context; if context_index is COREDUMP_NO_INDEX, the only module
 * with that handle. COREDUMP_NO_INDEX if there is none. */
size_t dump_find_module(const struct coredump *dump, uint64_t handle, size_t context_index);
/* A device's context by its id; COREDUMP_NO_INDEX if there is none. */
size_t dump_find_context(const struct coredump *dump, size_t device_index, uint64_t id);

#endif
