/* trace_dump.c - from a GPU core dump to facts for the analysis (analyze/hardware.h).
 *
 * The driver wrote the dump next to the recording of the process. It is foreign, and may be cut
 * short: then the launches since the last wait stay candidates, and the report says why. */
#include "campaign/trace/trace.h"

#include "coredump/coredump.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct trace_dump {
    struct coredump *dump; /* grids borrow their arguments from it */
    struct hardware_evidence evidence;
};

/* Any of them: the caller has a use for dumps of its own, or wants none. */
static const char *const own_settings[] = { "CUDA_ENABLE_COREDUMP_ON_EXCEPTION",
                                            "CUDA_ENABLE_LIGHTWEIGHT_COREDUMP",
                                            "CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION",
                                            "CUDA_ENABLE_USER_TRIGGERED_COREDUMP",
                                            "CUDA_COREDUMP_FILE",
                                            "CUDA_COREDUMP_GENERATION_FLAGS" };

const char *trace_own_dump_setting(const struct trace *trace)
{
    for (size_t i = 0; trace->options->environment[i]; i++)
        for (size_t j = 0; j < COUNT_OF(own_settings); j++) {
            size_t length = strlen(own_settings[j]);
            if (strncmp(trace->options->environment[i], own_settings[j], length) == 0 &&
                trace->options->environment[i][length] == '=')
                return own_settings[j];
        }
    return NULL;
}

bool trace_wants_dumps(const struct trace *trace)
{
    return !trace->options->no_coredump && !trace->options->cupti && trace->library_cuda[0] &&
           !trace_own_dump_setting(trace);
}

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

/* Every grid that has an exception, each with its first one. */
static void take_all(struct trace_dump *dump)
{
    struct hardware_evidence *evidence = &dump->evidence;
    size_t taken[HARDWARE_GRID_LIMIT];
    uint64_t total;
    size_t count = coredump_exception_count(dump->dump, &total);
    for (size_t i = 0; i < count; i++) {
        const struct coredump_exception *exception = coredump_exception_at(dump->dump, i);
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
            take_grid(grid, coredump_grid_at(dump->dump, exception->grid_index));
            take_exception(grid, dump->dump, exception);
        }
        grid->warp_count++;
    }
    evidence->more_grids = evidence->more_grids || total > count;
}

static bool find_launch(void *context, const struct event *event, struct flight_launch *ret_launch,
                        char ret_name[FLIGHT_NAME_BYTES])
{
    const struct trace_process *process = context;
    if (!flight_launch_at(process->reader, event->launch.facts_index, event->id, ret_launch))
        return false;
    if (!flight_name(process->reader, event->launch.name_index, ret_name))
        ret_name[0] = '\0';
    return true;
}

/* ---- The file ------------------------------------------------------------------------------- */

/* What the library in the program left instead of a dump. */
static void read_reason(struct trace_process *process, const char *path)
{
    FILE *file = fopen(path, "r");
    if (file && !fgets(process->no_dump, sizeof(process->no_dump), file))
        process->no_dump[0] = '\0';
    if (file)
        fclose(file);
}

static enum status read_file(struct trace_process *process, const char *path, struct error *err)
{
    struct trace_dump *dump = calloc(1, sizeof(*dump));
    if (!dump)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a GPU core dump");
    enum status status = coredump_open(path, &dump->dump, err);
    if (!status) {
        take_all(dump);
        status = coredump_check(dump->dump, err);
    }
    if (!status && dump->evidence.grid_count == 0)
        status = error_set(err, STATUS_BAD_FILE, "it shows no warp with an exception");
    if (status) {
        trace_dump_release(dump);
        return status;
    }
    dump->evidence.launch = find_launch;
    dump->evidence.context = process;
    process->dump = dump;
    analyze_live_set_hardware(process->live, &dump->evidence);
    return STATUS_OK;
}

void trace_read_dump(const struct trace *trace, struct trace_process *process)
{
    char path[FILES_PATH_BYTES], reason[FILES_PATH_BYTES];
    struct stat info;
    struct error err;
    if (!trace_wants_dumps(trace) ||
        files_join(path, &err, trace->run, "%s" INTERPOSE_SUFFIX_DUMP, process->name) ||
        files_join(reason, &err, trace->run, "%s" INTERPOSE_SUFFIX_NO_DUMP, process->name))
        return;
    read_reason(process, reason);
    unlink(reason);
    if (lstat(path, &info) != 0)
        return;
    if (!S_ISREG(info.st_mode))
        snprintf(process->no_dump, sizeof(process->no_dump), "it is not a file");
    else if (read_file(process, path, &err))
        snprintf(process->no_dump, sizeof(process->no_dump), "%s", err.text);
    if (!trace->options->keep_core)
        unlink(path); /* its pages stay as long as they are mapped */
}

void trace_dump_release(struct trace_dump *dump)
{
    if (!dump)
        return;
    coredump_close(dump->dump);
    free(dump);
}
