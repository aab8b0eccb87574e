/* names.c - names for what the tables give as addresses: the kernels of grids with the layout of
 * their arguments, and the functions and lines of places.
 *
 * A name is given where the image leaves exactly one; otherwise the candidates are. */
#include "base/size.h"
#include "coredump/coredump_impl.h"
#include "coredump/line_targets.h"

#include <stdlib.h>

static void set_names(const struct image *image, const struct function *const *functions,
                      size_t count, enum coredump_naming naming_of_one, struct coredump_name *name)
{
    *name = (struct coredump_name){ .naming = count == 1 ? naming_of_one : COREDUMP_NAME_CANDIDATES,
                                    .candidate_count = count };
    for (size_t i = 0; i < count && i < COREDUMP_CANDIDATE_LIMIT; i++)
        name->candidates[i] = image_function_name(image, functions[i]);
    /* A nameless symbol decides nothing. */
    if (count == 1 && name->candidates[0].length == 0)
        *name = (struct coredump_name){ .naming = COREDUMP_NAME_NOT_FOUND };
}

/* ---- Grids ---------------------------------------------------------------------------------- */

/* Where a grid's kernel was found. */
struct kernel {
    struct image *image;
    const struct function *function; /* NULL unless there is one name */
};

/* The image has no addresses: the kernels that take no more bytes of arguments than the grid has.
 */
static enum status find_fitting(struct coredump *dump, const struct image *image,
                                const struct coredump_grid *grid,
                                const struct function *functions[COREDUMP_CANDIDATE_LIMIT],
                                size_t *ret_count, struct error *err)
{
    *ret_count = 0;
    for (size_t i = 0; i < image->function_count; i++) {
        const struct function *function = &image->functions[i];
        struct kernel_attributes attributes = { 0 };
        bool known;
        if (!function->is_kernel)
            continue;
        TRY(image_attributes(image, function, &dump->work, &attributes, &known, err));
        if (known)
            free(attributes.arguments);
        if (known && attributes.size_known && grid->argument_bytes &&
            attributes.argument_bytes > grid->argument_byte_count)
            continue;
        if (*ret_count < COREDUMP_CANDIDATE_LIMIT)
            functions[*ret_count] = function;
        (*ret_count)++;
    }
    return STATUS_OK;
}

static enum status find_image(struct coredump *dump, const struct coredump_grid *grid,
                              struct image **ret_image, struct error *err)
{
    size_t context = dump_find_context(dump, grid->device_index, grid->context_id);
    size_t module = dump_find_module(dump, grid->module, context);
    *ret_image = NULL;
    return module == COREDUMP_NO_INDEX ? STATUS_OK : dump_image(dump, module, ret_image, err);
}

static enum status find_kernel(struct coredump *dump, const struct coredump_grid *grid,
                               struct coredump_name *ret_name, struct kernel *ret_kernel,
                               struct error *err)
{
    const struct function *functions[COREDUMP_CANDIDATE_LIMIT];
    enum coredump_naming naming = COREDUMP_NAME_BY_ADDRESS;
    struct image *image;
    *ret_kernel = (struct kernel){ NULL, NULL };
    *ret_name = (struct coredump_name){ .naming = COREDUMP_NAME_NO_IMAGE };
    TRY(find_image(dump, grid, &image, err));
    if (!image)
        return STATUS_OK;
    size_t count = image_find_kernel(image, grid->entry, functions);
    if (count == 0)
        count = image_find(image, grid->entry, functions);
    if (count == 0 && image->addressed_count == 0) {
        naming = COREDUMP_NAME_ONLY_FIT;
        TRY(find_fitting(dump, image, grid, functions, &count, err));
    }
    if (count == 0)
        ret_name->naming = COREDUMP_NAME_NOT_FOUND;
    else
        set_names(image, functions, count, naming, ret_name);
    if (coredump_name_is_known(ret_name))
        *ret_kernel = (struct kernel){ image, functions[0] };
    return STATUS_OK;
}

static enum status find_arguments(struct coredump *dump, const struct kernel *kernel,
                                  struct coredump_grid *grid, struct error *err)
{
    struct kernel_attributes attributes = { 0 };
    bool known;
    if (!kernel->function || !grid->argument_bytes)
        return STATUS_OK;
    TRY(image_attributes(kernel->image, kernel->function, &dump->work, &attributes, &known, err));
    for (size_t i = 0; known && i < attributes.argument_count; i++)
        if (!size_range_inside(attributes.arguments[i].offset, attributes.arguments[i].bytes,
                               grid->argument_byte_count)) {
            free(attributes.arguments);
            known = false;
        }
    if (!known)
        return STATUS_OK;
    grid->arguments_known = true;
    grid->arguments = attributes.arguments;
    grid->argument_count = attributes.argument_count;
    return STATUS_OK;
}

enum status dump_name_grids(struct coredump *dump, struct error *err)
{
    for (size_t i = 0; i < dump->grid_count; i++) {
        struct coredump_grid *grid = &dump->grids[i];
        struct kernel kernel;
        TRY(find_kernel(dump, grid, &grid->name, &kernel, err));
        TRY(find_arguments(dump, &kernel, grid, err));
    }
    return STATUS_OK;
}

/* ---- Places --------------------------------------------------------------------------------- */

/* Where a place was found, by the place's index. */
struct spot {
    struct image *image;
    const struct function *function;
};

/* The function inside the kernel that holds an offset of the kernel: the smallest one. NULL if that
 * cannot be looked up. */
static const struct function *find_inside(struct coredump *dump, const struct kernel *kernel,
                                          uint64_t offset)
{
    const struct function *inner = kernel->function;
    uint64_t at = inner->section_offset + offset;
    struct error ignored;
    if (!inner->offset_known ||
        work_spend(&dump->work, kernel->image->function_count * sizeof(*inner), &ignored))
        return NULL;
    for (size_t i = 0; i < kernel->image->function_count; i++) {
        const struct function *function = &kernel->image->functions[i];
        if (function->offset_known && function->section == inner->section &&
            function->section_offset <= at && at - function->section_offset < function->bytes &&
            function->bytes < inner->bytes)
            inner = function;
    }
    return inner;
}

/* The image has no addresses, but the grid has that of its kernel, and the kernel is known. */
static enum status find_from_entry(struct coredump *dump, struct coredump_place *place,
                                   const struct coredump_grid *grid, struct spot *ret_spot,
                                   struct error *err)
{
    struct coredump_name name;
    struct kernel kernel;
    TRY(find_kernel(dump, grid, &name, &kernel, err));
    uint64_t offset = place->address - grid->entry;
    if (name.naming != COREDUMP_NAME_ONLY_FIT || !kernel.function || place->address < grid->entry ||
        offset >= kernel.function->bytes)
        return STATUS_OK;
    const struct function *function = find_inside(dump, &kernel, offset);
    if (!function)
        return STATUS_OK;
    set_names(kernel.image, &function, 1, COREDUMP_NAME_ONLY_FIT, &place->function);
    place->offset = kernel.function->section_offset + offset - function->section_offset;
    *ret_spot = (struct spot){ kernel.image, function };
    return STATUS_OK;
}

/* In the image of the grid's module. */
static enum status find_in_grid(struct coredump *dump, struct coredump_place *place,
                                const struct coredump_grid *grid, struct spot *ret_spot,
                                struct error *err)
{
    const struct function *functions[COREDUMP_CANDIDATE_LIMIT];
    struct image *image;
    TRY(find_image(dump, grid, &image, err));
    if (!image)
        return STATUS_OK;
    place->function.naming = COREDUMP_NAME_NOT_FOUND;
    size_t count = image_find(image, place->address, functions);
    if (count) {
        set_names(image, functions, count, COREDUMP_NAME_BY_ADDRESS, &place->function);
        *ret_spot = (struct spot){ image, functions[0] };
        place->offset = place->address - functions[0]->address;
        return STATUS_OK;
    }
    return find_from_entry(dump, place, grid, ret_spot, err);
}

/* In any image of the grid's context; without a grid, in any image. */
static enum status find_anywhere(struct coredump *dump, struct coredump_place *place,
                                 size_t context, struct spot *ret_spot, struct error *err)
{
    size_t total = 0;
    for (size_t i = 0; i < dump->module_count; i++) {
        const struct function *functions[COREDUMP_CANDIDATE_LIMIT];
        struct image *image;
        if (context != COREDUMP_NO_INDEX && dump->modules[i].context_index != context)
            continue;
        TRY(dump_image(dump, i, &image, err));
        size_t count = image ? image_find(image, place->address, functions) : 0;
        for (size_t j = 0; j < count && j < COREDUMP_CANDIDATE_LIMIT; j++)
            if (total + j < COREDUMP_CANDIDATE_LIMIT)
                place->function.candidates[total + j] = image_function_name(image, functions[j]);
        total += count;
        if (count && total == count) {
            *ret_spot = (struct spot){ image, functions[0] };
            place->offset = place->address - functions[0]->address;
        }
    }
    if (total == 0)
        return STATUS_OK;
    place->function.candidate_count = total;
    place->function.naming = total == 1 ? COREDUMP_NAME_BY_ADDRESS : COREDUMP_NAME_CANDIDATES;
    return STATUS_OK;
}

static enum status find_spot(struct coredump *dump, size_t index, struct spot *ret_spot,
                             struct error *err)
{
    struct coredump_place *place = &dump->places[index];
    size_t grid_index = dump->place_grids[index], context = COREDUMP_NO_INDEX;
    place->lines = COREDUMP_LINES_NO_FUNCTION;
    *ret_spot = (struct spot){ NULL, NULL };
    if (grid_index != COREDUMP_NO_INDEX) {
        const struct coredump_grid *grid = &dump->grids[grid_index];
        TRY(find_in_grid(dump, place, grid, ret_spot, err));
        context = dump_find_context(dump, grid->device_index, grid->context_id);
    }
    if (!ret_spot->function)
        TRY(find_anywhere(dump, place, context, ret_spot, err));
    if (!coredump_name_is_known(&place->function)) {
        *ret_spot = (struct spot){ NULL, NULL };
        place->offset = 0;
    }
    return STATUS_OK;
}

/* Lines of all places in the image of place `first`, which are then done. */
static enum status find_lines(struct coredump *dump, struct spot *spots, size_t first,
                              size_t *looked_up, struct error *err)
{
    struct line_target targets[LINE_TARGET_LIMIT] = { { NULL, NULL } };
    const struct image *image = spots[first].image;
    size_t count = 0;
    for (size_t i = first; i < dump->place_count; i++) {
        if (spots[i].image != image)
            continue;
        spots[i].image = NULL;
        dump->places[i].lines = COREDUMP_LINES_LIMIT;
        if (*looked_up < LINE_TARGET_LIMIT) {
            targets[count++] = (struct line_target){ spots[i].function, &dump->places[i] };
            (*looked_up)++;
        }
    }
    TRY(line_targets_find(image, &dump->work, targets, count, err));
    /* What is not inlined belongs to the function itself. */
    for (size_t i = 0; i < count; i++) {
        struct coredump_place *place = targets[i].place;
        struct coredump_frame *last = place->frame_count ? &place->frames[place->frame_count - 1]
                                                         : NULL;
        if (last && !place->frames_cut)
            last->function = place->function.candidates[0];
    }
    return STATUS_OK;
}

enum status dump_name_places(struct coredump *dump, struct error *err)
{
    struct spot *spots = calloc(dump->place_count + 1, sizeof(*spots));
    enum status status = STATUS_OK;
    size_t looked_up = 0;
    if (!spots)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory for names", dump->info.source);
    for (size_t i = 0; i < dump->place_count && !status; i++)
        status = find_spot(dump, i, &spots[i], err);
    for (size_t i = 0; i < dump->place_count && !status; i++)
        if (spots[i].image)
            status = find_lines(dump, spots, i, &looked_up, err);
    free(spots);
    return status;
}
