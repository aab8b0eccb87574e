/* finding_hardware.c - what a GPU core dump shows of a fault, as parts of a finding's sentence and
 * in summary.json. Texts come from the dump: shown printably. */
#include "report/finding_fill.h"
#include "report/json_tools.h"

#include "report/coredump_texts.h"

#include <inttypes.h>

static bool fill_exception(const struct telling *telling, struct text *text)
{
    text_add(text,
             coredump_exception_words(telling->finding->hardware->exception, telling->language));
    return true;
}

static bool fill_failed_kernel(const struct telling *telling, struct text *text)
{
    const struct hardware_grid *grid = telling->finding->hardware;
    if (grid->kernel[0])
        coredump_add_function(text, text_view_of(grid->kernel), true);
    return grid->kernel[0] != '\0';
}

static void add_failed_place(const struct hardware_grid *grid, struct text *text)
{
    if (grid->line) {
        text_add_printable(text, text_view_of(grid->source), sizeof(grid->source));
        text_addf(text, ":%" PRIu32, grid->line);
    } else if (grid->function[0]) {
        coredump_add_function(text, text_view_of(grid->function), true);
        text_addf(text, "+0x%" PRIx64, grid->offset);
    } else {
        text_addf(text, "0x%" PRIx64, grid->pc);
    }
}

static bool fill_failed_at(const struct telling *telling, struct text *text)
{
    const struct hardware_grid *grid = telling->finding->hardware;
    if (grid->pc && !grid->stopped_at)
        add_failed_place(grid, text);
    return grid->pc && !grid->stopped_at;
}

static bool fill_stopped_at(const struct telling *telling, struct text *text)
{
    const struct hardware_grid *grid = telling->finding->hardware;
    if (grid->pc && grid->stopped_at)
        add_failed_place(grid, text);
    return grid->pc && grid->stopped_at;
}

static void add_index(const uint32_t index[3], struct text *text)
{
    coredump_add_index(text, (struct coredump_dim3){ index[0], index[1], index[2] });
}

static bool fill_block(const struct telling *telling, struct text *text)
{
    add_index(telling->finding->hardware->at_block, text);
    return true;
}

static bool fill_thread(const struct telling *telling, struct text *text)
{
    if (telling->finding->hardware->thread_known)
        add_index(telling->finding->hardware->at_thread, text);
    return telling->finding->hardware->thread_known;
}

static bool fill_more_warps(const struct telling *telling, struct text *text)
{
    uint32_t more = telling->finding->hardware->warp_count - 1;
    return more && add_number(text, more);
}

const struct filler hardware_fillers[] = {
    { "exception", fill_exception },   { "failed_kernel", fill_failed_kernel },
    { "failed_at", fill_failed_at },   { "stopped_at", fill_stopped_at },
    { "block", fill_block },           { "thread", fill_thread },
    { "more_warps", fill_more_warps }, { 0 },
};

/* ---- summary.json --------------------------------------------------------------------------- */

static void put_index(struct text *out, json_t *object, const char *key, const uint32_t index[3])
{
    json_t *list = json_array();
    for (int i = 0; i < 3; i++)
        json_add(out, list, json_integer(index[i]));
    json_put(out, object, key, list);
}

static json_t *pointers_json(struct text *out, const struct report_facts *facts, size_t analysis,
                             const struct finding *finding)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < finding->pointer_count; i++) {
        const struct finding_pointer *pointer = &finding->pointers[i];
        json_t *item = json_object();
        json_put_count(out, item, "operand", pointer->operand);
        json_put_address(out, item, "address", pointer->address);
        json_put_text(out, item, "buffer", pointer->created_id ? pointer->buffer : NULL);
        json_put_address(out, item, "buffer_address", pointer->buffer_address);
        json_put_count(out, item, "buffer_bytes", pointer->buffer_bytes);
        json_put_count(out, item, "created", pointer->created_id);
        json_put_count(out, item, "destroyed", pointer->destroyed_id);
        json_put(out, item, "stack", json_frames(out, facts, analysis, pointer->stack_index));
        json_add(out, list, item);
    }
    return list;
}

json_t *json_hardware(struct text *out, const struct report_facts *facts, size_t analysis,
                      const struct finding *finding)
{
    const struct hardware_grid *grid = finding->hardware;
    if (!grid)
        return json_null();
    json_t *item = json_object();
    struct text kernel;
    text_init(&kernel);
    coredump_add_function(&kernel, text_view_of(grid->kernel), false);
    json_put_text(out, item, "exception", coredump_exception_name(grid->exception));
    json_put_text(out, item, "kernel", grid->kernel[0] ? text_get(&kernel) : NULL);
    json_put_count(out, item, "grid_number", grid->number);
    put_index(out, item, "blocks", grid->grid);
    put_index(out, item, "threads", grid->block);
    put_index(out, item, "block", grid->at_block);
    if (grid->thread_known)
        put_index(out, item, "thread", grid->at_thread);
    else
        json_put(out, item, "thread", json_null());
    json_put_count(out, item, "warps", grid->warp_count);
    json_put_address(out, item, "pc", grid->pc);
    json_put_flag(out, item, "pc_is_exact", grid->pc && !grid->stopped_at);
    json_put_text(out, item, "function", grid->function[0] ? grid->function : NULL);
    json_put_count(out, item, "offset", grid->offset);
    json_put_text(out, item, "source", grid->line ? grid->source : NULL);
    json_put_count(out, item, "line", grid->line);
    json_put(out, item, "pointers", pointers_json(out, facts, analysis, finding));
    out->failed = out->failed || kernel.failed;
    text_release(&kernel);
    return item;
}
