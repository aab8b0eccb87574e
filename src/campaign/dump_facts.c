/* dump_facts.c - see dump_facts.h. */
#include "campaign/dump_facts.h"

#include "campaign/files.h"
#include "device/abi/abi.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Facts ---------------------------------------------------------------------------------- */

static void copy_text(char *field, size_t bytes, struct text_view view)
{
    size_t length = view.length < bytes - 1 ? view.length : bytes - 1;
    const char *end = memchr(view.bytes, '\0', length);
    memcpy(field, view.bytes, length);
    field[end ? (size_t)(end - view.bytes) : length] = '\0';
}

static void copy_shape(uint32_t ret[3], struct coredump_dim3 shape)
{
    ret[0] = shape.x;
    ret[1] = shape.y;
    ret[2] = shape.z;
}

static void take_place(struct hardware_grid *grid, const struct coredump *dump,
                       const struct coredump_exception *exception)
{
    if (exception->place_index == COREDUMP_NO_INDEX)
        return;
    const struct coredump_place *place = coredump_place_at(dump, exception->place_index);
    grid->pc = place->address;
    grid->stopped_at = exception->pc_origin == COREDUMP_PC_OF_LANE;
    if (coredump_name_is_known(&place->function)) {
        copy_text(grid->function, sizeof(grid->function), place->function.candidates[0]);
        grid->offset = place->offset;
    }
    if (place->frame_count == 0)
        return;
    const struct coredump_frame *frame = &place->frames[0];
    struct text path;
    text_init(&path);
    text_add_bytes(&path, frame->directory.bytes, frame->directory.length);
    if (frame->directory.length && frame->directory.bytes[frame->directory.length - 1] != '/')
        text_add(&path, "/");
    text_add_bytes(&path, frame->file.bytes, frame->file.length);
    /* The end of a long path says more than its beginning. */
    size_t most = sizeof(grid->source) - 1;
    struct text_view view = { text_get(&path), path.length };
    if (view.length > most) {
        view.bytes += view.length - most;
        view.length = most;
    }
    copy_text(grid->source, sizeof(grid->source), view);
    grid->line = path.failed ? 0 : frame->line;
    text_release(&path);
}

static void take_exception(struct hardware_grid *grid, const struct coredump *dump,
                           const struct coredump_exception *exception)
{
    grid->exception = exception->kind;
    copy_shape(grid->at_block, exception->block);
    if (exception->thread_mask) {
        grid->thread_known = true;
        copy_shape(grid->at_thread, exception->threads[__builtin_ctz(exception->thread_mask)]);
    }
    take_place(grid, dump, exception);
}

static void take_grid(struct hardware_grid *grid, const struct coredump_grid *found)
{
    *grid = (struct hardware_grid){ .number = found->number,
                                    .by_device = found->parent != 0,
                                    .arguments = found->argument_bytes,
                                    .argument_bytes = found->argument_byte_count };
    if (coredump_name_is_known(&found->name))
        copy_text(grid->kernel, sizeof(grid->kernel), found->name.candidates[0]);
    copy_shape(grid->grid, found->blocks);
    copy_shape(grid->block, found->threads);
}

/* The launches that a kernel of greta's own does, by its arguments: one, or several joined. */
static void take_launches(struct hardware_grid *grid)
{
    struct gpu_call call;
    if (grid->argument_bytes < sizeof(call) || !grid->arguments)
        return;
    memcpy(&call, grid->arguments, sizeof(call));
    grid->launches[0] = call.trap_id;
    grid->launches[1] = call.more_trap_ids[0];
    grid->launches[2] = call.more_trap_ids[1];
}

/* Every grid that has an exception, each with its first one. */
static void take_all(struct dump_facts *facts, bool own)
{
    struct hardware_evidence *evidence = &facts->evidence;
    size_t taken[HARDWARE_GRID_LIMIT] = { 0 };
    uint64_t total;
    size_t count = coredump_exception_count(facts->dump, &total);
    for (size_t i = 0; i < count; i++) {
        const struct coredump_exception *exception = coredump_exception_at(facts->dump, i);
        size_t at = 0;
        if (!exception->has_warp || exception->grid_index == COREDUMP_NO_INDEX)
            continue;
        while (at < evidence->grid_count && taken[at] != exception->grid_index)
            at++;
        if (at == HARDWARE_GRID_LIMIT) {
            evidence->more_grids = true;
            continue;
        }
        struct hardware_grid *grid = &evidence->grids[at];
        if (at == evidence->grid_count) {
            taken[evidence->grid_count++] = exception->grid_index;
            take_grid(grid, coredump_grid_at(facts->dump, exception->grid_index));
            take_exception(grid, facts->dump, exception);
            if (own)
                take_launches(grid);
        }
        grid->warp_count++;
    }
    evidence->more_grids = evidence->more_grids || total > count;
}

enum status dump_facts_open(const char *path, bool own, struct dump_facts *facts, struct error *err)
{
    *facts = (struct dump_facts){ .dump = NULL };
    TRY(coredump_open(path, &facts->dump, err));
    take_all(facts, own);
    enum status status = coredump_check(facts->dump, err);
    if (!status && facts->evidence.grid_count == 0)
        status = error_set(err, STATUS_BAD_FILE, "it shows no warp with an exception");
    if (status)
        dump_facts_close(facts);
    return status;
}

void dump_facts_close(struct dump_facts *facts)
{
    coredump_close(facts->dump);
    facts->dump = NULL;
}

/* ---- Recordings of greta's own -------------------------------------------------------------- */

static bool find_dump(const char *flight, char ret_path[FILES_PATH_BYTES])
{
    struct stat info;
    int length = snprintf(ret_path, FILES_PATH_BYTES, "%s" DUMP_FACTS_SUFFIX, flight);
    return length > 0 && (size_t)length < FILES_PATH_BYTES && lstat(ret_path, &info) == 0 &&
           S_ISREG(info.st_mode);
}

bool dump_facts_is_there(const char *flight)
{
    char path[FILES_PATH_BYTES];
    return find_dump(flight, path);
}

void dump_facts_forget(const char *flight)
{
    char path[FILES_PATH_BYTES];
    if (find_dump(flight, path))
        unlink(path);
}

enum status dump_facts_analyze(const char *flight, const struct analyze_options *options,
                               struct analyzer **ret_analyzer, struct error *err)
{
    struct analyze_options with = *options;
    struct dump_facts facts = { .dump = NULL };
    char path[FILES_PATH_BYTES];
    struct error unused;
    if (find_dump(flight, path) && dump_facts_open(path, true, &facts, &unused) == STATUS_OK)
        with.hardware = &facts.evidence;
    enum status status = analyze_flight(flight, &with, ret_analyzer, err);
    dump_facts_close(&facts);
    dump_facts_forget(flight);
    return status;
}
