/* coredump_json.c - a GPU core dump as JSON: everything, and no words. docs/coredump.md has the
 * schema. */
#include "report/coredump_texts.h"
#include "report/json_tools.h"

#include <inttypes.h>

/* Bytes of one argument, or of all if their layout is not known. */
#define ARGUMENT_BYTES 4096u

static void put_view(struct text *out, json_t *object, const char *key, struct text_view view)
{
    struct text text;
    text_init(&text);
    text_add_printable(&text, view, SIZE_MAX);
    json_put_text(out, object, key, view.length ? text_get(&text) : NULL);
    out->failed = out->failed || text.failed;
    text_release(&text);
}

static json_t *dim3_json(struct text *out, struct coredump_dim3 dim3)
{
    json_t *list = json_array();
    json_add(out, list, json_integer(dim3.x));
    json_add(out, list, json_integer(dim3.y));
    json_add(out, list, json_integer(dim3.z));
    return list;
}

static void put_function(struct text *out, json_t *object, const char *key, struct text_view name)
{
    struct text text;
    text_init(&text);
    coredump_add_function(&text, name, false);
    json_put_text(out, object, key, name.length ? text_get(&text) : NULL);
    out->failed = out->failed || text.failed;
    text_release(&text);
}

/* "name" and "mangled" are null unless there is exactly one. */
static void put_name(struct text *out, json_t *object, const struct coredump_name *name)
{
    static const struct text_view none = { "", 0 };
    bool known = coredump_name_is_known(name);
    json_put_text(out, object, "naming", coredump_naming_name(name->naming));
    put_function(out, object, "name", known ? name->candidates[0] : none);
    put_view(out, object, "mangled", known ? name->candidates[0] : none);
    json_t *list = json_array();
    for (size_t i = 0; !known && i < name->candidate_count && i < COREDUMP_CANDIDATE_LIMIT; i++) {
        json_t *item = json_object();
        put_function(out, item, "name", name->candidates[i]);
        put_view(out, item, "mangled", name->candidates[i]);
        json_add(out, list, item);
    }
    json_put(out, object, "candidates", list);
    json_put_count(out, object, "candidate_count", known ? 0 : name->candidate_count);
}

/* ---- The dump, devices, contexts --------------------------------------------------------------
 */

static json_t *file_json(struct text *out, const struct coredump_info *info)
{
    json_t *item = json_object();
    json_put_text(out, item, "path", info->source);
    json_put_count(out, item, "bytes", info->bytes);
    json_put_count(out, item, "sections", info->section_count);
    if (!info->generator_known) {
        json_put(out, item, "writer", json_null());
        return item;
    }
    json_t *writer = json_object();
    put_view(out, writer, "name", info->generator);
    json_put_count(out, writer, "driver_major", info->driver_major);
    json_put_count(out, writer, "driver_minor", info->driver_minor);
    json_put_count(out, writer, "cuda_major", info->cuda_major);
    json_put_count(out, writer, "cuda_minor", info->cuda_minor);
    json_put_count(out, writer, "time", info->timestamp);
    json_put(out, item, "writer", writer);
    return item;
}

static json_t *devices_json(struct text *out, const struct coredump *dump)
{
    json_t *list = json_array();
    for (size_t i = 0; i < coredump_device_count(dump); i++) {
        const struct coredump_device *device = coredump_device_at(dump, i);
        json_t *item = json_object();
        put_view(out, item, "name", device->name);
        put_view(out, item, "chip", device->chip);
        put_view(out, item, "architecture", device->architecture);
        json_put_count(out, item, "id", device->id);
        json_put_count(out, item, "pci_bus", device->pci_bus);
        json_put_count(out, item, "pci_device", device->pci_device);
        json_put_count(out, item, "sms", device->sm_count);
        json_put_count(out, item, "warps_per_sm", device->warps_per_sm);
        json_put_count(out, item, "lanes_per_warp", device->lanes_per_warp);
        json_put_count(out, item, "sm_major", device->sm_major);
        json_put_count(out, item, "sm_minor", device->sm_minor);
        json_add(out, list, item);
    }
    return list;
}

static json_t *contexts_json(struct text *out, const struct coredump *dump)
{
    json_t *list = json_array();
    for (size_t i = 0; i < coredump_context_count(dump); i++) {
        const struct coredump_context *context = coredump_context_at(dump, i);
        json_t *item = json_object();
        json_put_address(out, item, "id", context->id);
        json_put_count(out, item, "device", context->device_index);
        json_put_count(out, item, "host_thread", context->host_thread);
        json_put_count(out, item, "modules", context->module_count);
        json_put_count(out, item, "images", context->image_count);
        json_add(out, list, item);
    }
    return list;
}

/* ---- Grids ---------------------------------------------------------------------------------- */

static void put_bytes(struct text *out, json_t *object, const char *key, const uint8_t *bytes,
                      uint64_t count)
{
    struct text text;
    text_init(&text);
    for (uint64_t i = 0; i < count && i < ARGUMENT_BYTES; i++)
        text_addf(&text, "%02x", bytes[i]);
    json_put_text(out, object, key, text_get(&text));
    out->failed = out->failed || text.failed;
    text_release(&text);
}

static json_t *arguments_json(struct text *out, const struct coredump_grid *grid)
{
    if (!grid->arguments_known || !grid->argument_bytes)
        return json_null();
    json_t *list = json_array();
    for (size_t i = 0; i < grid->argument_count; i++) {
        const struct coredump_argument *argument = &grid->arguments[i];
        json_t *item = json_object();
        json_put_count(out, item, "offset", argument->offset);
        json_put_count(out, item, "bytes", argument->bytes);
        put_bytes(out, item, "hex", grid->argument_bytes + argument->offset, argument->bytes);
        json_add(out, list, item);
    }
    return list;
}

static json_t *grid_json(struct text *out, const struct coredump_grid *grid)
{
    json_t *item = json_object();
    json_put_count(out, item, "number", grid->number);
    json_put_count(out, item, "device", grid->device_index);
    json_put_address(out, item, "context", grid->context_id);
    json_put_address(out, item, "module", grid->module);
    json_put_address(out, item, "function", grid->function_handle);
    json_put_address(out, item, "entry", grid->entry);
    put_name(out, item, &grid->name);
    json_put_text(out, item, "status", coredump_grid_status_name(grid->status));
    json_put_text(out, item, "type", coredump_kernel_type_name(grid->type));
    json_put_flag(out, item, "launched_on_gpu", grid->from_gpu);
    json_put_count(out, item, "parent", grid->parent);
    json_put_count(out, item, "host_thread", grid->host_thread);
    json_put_flag(out, item, "blocking", grid->blocking);
    json_put(out, item, "blocks", dim3_json(out, grid->blocks));
    json_put(out, item, "threads", dim3_json(out, grid->threads));
    json_put(out, item, "cluster", dim3_json(out, grid->cluster));
    json_put_count(out, item, "registers", grid->registers);
    if (grid->argument_bytes)
        put_bytes(out, item, "argument_bytes", grid->argument_bytes, grid->argument_byte_count);
    else
        json_put(out, item, "argument_bytes", json_null());
    json_put(out, item, "arguments", arguments_json(out, grid));
    return item;
}

/* ---- Exceptions ----------------------------------------------------------------------------- */

static json_t *place_json(struct text *out, const struct coredump_place *place)
{
    json_t *item = json_object(), *frames = json_array();
    json_put_address(out, item, "address", place->address);
    put_name(out, item, &place->function);
    json_put_count(out, item, "offset", place->offset);
    json_put_text(out, item, "lines", coredump_lines_name(place->lines));
    for (size_t i = 0; i < place->frame_count; i++) {
        const struct coredump_frame *frame = &place->frames[i];
        json_t *line = json_object();
        put_function(out, line, "function", frame->function);
        put_view(out, line, "directory", frame->directory);
        put_view(out, line, "file", frame->file);
        json_put_count(out, line, "line", frame->line);
        json_add(out, frames, line);
    }
    json_put(out, item, "frames", frames);
    json_put_flag(out, item, "frames_cut", place->frames_cut);
    return item;
}

static json_t *threads_json(struct text *out, const struct coredump_exception *exception)
{
    json_t *list = json_array();
    for (uint32_t lane = 0; lane < COREDUMP_LANE_COUNT; lane++) {
        if (!(exception->thread_mask >> lane & 1))
            continue;
        json_t *item = json_object();
        json_put_count(out, item, "lane", lane);
        json_put_flag(out, item, "failed", exception->lane_mask >> lane & 1);
        json_put(out, item, "thread", dim3_json(out, exception->threads[lane]));
        json_add(out, list, item);
    }
    return list;
}

static json_t *exception_json(struct text *out, const struct coredump *dump,
                              const struct coredump_exception *exception)
{
    static const char *const origins[] = { NULL, "error", "lane" };
    const struct coredump_place *place = coredump_place_of(dump, exception);
    json_t *item = json_object();
    json_put_text(out, item, "kind", coredump_exception_name(exception->kind));
    json_put_count(out, item, "number", exception->kind);
    json_put_flag(out, item, "kind_of_sm", exception->kind_of_sm);
    json_put_count(out, item, "device", exception->device_index);
    json_put_count(out, item, "sm", exception->sm);
    if (exception->has_warp) {
        json_put_count(out, item, "warp", exception->warp);
        json_put_count(out, item, "grid", exception->grid_number);
        json_put(out, item, "block", dim3_json(out, exception->block));
    } else {
        json_put(out, item, "warp", json_null());
        json_put(out, item, "grid", json_null());
        json_put(out, item, "block", json_null());
    }
    json_put(out, item, "threads", threads_json(out, exception));
    json_put_text(out, item, "pc_origin", origins[exception->pc_origin]);
    json_put(out, item, "place", place ? place_json(out, place) : json_null());
    return item;
}

void report_coredump_json(const struct coredump *dump, struct text *text)
{
    json_t *root = json_object(), *exceptions = json_array(), *grids = json_array();
    uint64_t total;
    size_t count = coredump_exception_count(dump, &total);
    json_put(text, root, "file", file_json(text, coredump_info(dump)));
    json_put_count(text, root, "exception_count", total);
    for (size_t i = 0; i < count; i++)
        json_add(text, exceptions, exception_json(text, dump, coredump_exception_at(dump, i)));
    json_put(text, root, "exceptions", exceptions);
    for (size_t i = 0; i < coredump_grid_count(dump); i++)
        json_add(text, grids, grid_json(text, coredump_grid_at(dump, i)));
    json_put(text, root, "grids", grids);
    json_put(text, root, "devices", devices_json(text, dump));
    json_put(text, root, "contexts", contexts_json(text, dump));
    json_put_count(text, root, "bad_images", coredump_bad_image_count(dump));
    json_put_text(text, root, "bad_image_reason",
                  coredump_bad_image_count(dump) ? coredump_bad_image_reason(dump) : NULL);
    json_print(text, root);
}
