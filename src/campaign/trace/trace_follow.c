/* trace_follow.c - the recordings of a traced program: found as its processes make them, analysed
 * from outside while they are written, and what they say about the callers. */
#include "campaign/trace/trace.h"

#include "base/clock.h"
#include "base/size.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Longer than any program waits in one call without being given up by its user. */
#define HANG_LIMIT_NS (UINT64_C(365) * 24 * 3600 * 1000000000)

/* ---- Finding -------------------------------------------------------------------------------- */

static bool is_known(const struct trace *trace, const char *name)
{
    for (size_t i = 0; i < trace->process_count; i++)
        if (trace->processes[i].rerun == trace->in_rerun &&
            strcmp(trace->processes[i].name, name) == 0)
            return true;
    return false;
}

static void on_event(void *context, const struct event *event)
{
    trace_figures_add(&((struct trace_process *)context)->figures, event);
}

/* A file that is still being made is found again at the next look. */
static void follow(struct trace *trace, const char *file, const char *name)
{
    struct error err;
    if (trace->process_count == TRACE_PROCESS_LIMIT) {
        trace->unread++;
        return;
    }
    struct trace_process *process = &trace->processes[trace->process_count];
    *process = (struct trace_process){ .rerun = trace->in_rerun };
    snprintf(process->name, sizeof(process->name), "%s", name);
    if (files_join(process->path, &err, trace->run, "%s", file) ||
        flight_attach(process->path, &process->flight, &err))
        return;
    if (flight_open(process->path, &process->reader, &err)) {
        flight_close(process->flight);
        return;
    }
    struct analyze_options options = { .level = AUDIT_LOG,
                                       .hang_limit_ns = HANG_LIMIT_NS,
                                       .observer = { on_event, process },
                                       .is_cached = trace->options->tensors ? NULL
                                                                            : trace_is_cached,
                                       .cached_context = process };
    if (analyze_live_start(process->flight, process->path, &options, &process->live, &err)) {
        snprintf(process->missing, sizeof(process->missing), "%s", err.text);
        process->live = NULL;
    }
    trace->process_count++;
}

void trace_look_for_recordings(struct trace *trace)
{
    DIR *folder = opendir(trace->run);
    const struct dirent *entry;
    while (folder && (entry = readdir(folder)) != NULL) {
        char name[64];
        size_t length = strlen(entry->d_name);
        static const char suffix[] = ".flight";
        size_t cut = sizeof(suffix) - 1;
        if (length <= cut || length - cut >= sizeof(name) ||
            strcmp(entry->d_name + length - cut, suffix) != 0)
            continue;
        memcpy(name, entry->d_name, length - cut);
        name[length - cut] = '\0';
        if (!is_known(trace, name))
            follow(trace, entry->d_name, name);
    }
    if (folder)
        closedir(folder);
}

/* A slug, then what was found. */
static void read_note(struct trace *trace, const char *path)
{
    char line[512];
    FILE *file = fopen(path, "r");
    if (file && fgets(line, sizeof(line), file)) {
        size_t length = strcspn(line, " ");
        snprintf(trace->note, sizeof(trace->note), "%.*s", (int)min_u64(length, 31), line);
        snprintf(trace->note_detail, sizeof(trace->note_detail), "%.479s",
                 line[length] ? line + length + 1 : "");
    }
    if (file)
        fclose(file);
}

/* What a library left instead of a recording. */
static void read_notes(struct trace *trace)
{
    DIR *folder = opendir(trace->run);
    const struct dirent *entry;
    while (folder && !trace->note[0] && (entry = readdir(folder)) != NULL) {
        const char *dot = strrchr(entry->d_name, '.');
        char path[FILES_PATH_BYTES];
        struct error unused;
        if (!dot || strcmp(dot, ".note") != 0 ||
            files_join(path, &unused, trace->run, "%s", entry->d_name))
            continue;
        read_note(trace, path);
    }
    if (folder)
        closedir(folder);
}

/* The last reader may look at what was written since the first. */
static void reopen(struct trace_process *process)
{
    struct flight_reader *reader;
    struct error unused;
    if (flight_open(process->path, &reader, &unused))
        return;
    flight_reader_close(process->reader);
    process->reader = reader;
    process->observed_ns = flight_info(reader)->observed_ns;
    process->observed_count = flight_info(reader)->observed_count;
}

void trace_stop_following(struct trace *trace)
{
    struct error err;
    trace_look_for_recordings(trace);
    read_notes(trace);
    for (size_t i = 0; i < trace->process_count; i++) {
        struct trace_process *process = &trace->processes[i];
        if (!process->live)
            continue;
        reopen(process);
        trace_read_dump(trace, process);
        if (analyze_live_stop(process->live, &process->analyzer, &err)) {
            snprintf(process->missing, sizeof(process->missing), "%s", err.text);
            process->analyzer = NULL;
        }
        process->live = NULL;
        flight_close(process->flight);
        process->flight = NULL;
    }
}

/* Its file is written to no more. */
static bool has_ended(const struct flight_info *info)
{
    return info->closed || info->pid == 0 || info->pid > INT32_MAX ||
           (kill((pid_t)info->pid, 0) != 0 && errno == ESRCH);
}

void trace_pack_recordings(struct trace *trace)
{
    for (size_t i = 0; i < trace->process_count; i++) {
        struct trace_process *process = &trace->processes[i];
        char packed[FILES_PATH_BYTES];
        struct error unused;
        int length = snprintf(packed, sizeof(packed), "%s" FLIGHT_PACKED_SUFFIX, process->path);
        if (length < 0 || (size_t)length >= sizeof(packed) || !process->reader ||
            !has_ended(flight_info(process->reader)) ||
            flight_pack(process->path, packed, 0, &unused))
            continue;
        unlink(process->path);
        memcpy(process->path, packed, (size_t)length + 1);
    }
}

bool trace_is_cuda(const struct trace_process *process)
{
    const char *dot = strrchr(process->name, '.');
    return dot && strcmp(dot, ".cuda") == 0;
}

void trace_process_release(struct trace_process *process)
{
    struct error unused;
    if (process->live && analyze_live_stop(process->live, &process->analyzer, &unused))
        process->analyzer = NULL;
    flight_close(process->flight);
    flight_reader_close(process->reader);
    analyzer_destroy(process->analyzer);
    trace_dump_release(process->dump);
}

/* ---- Callers -------------------------------------------------------------------------------- */

static bool find_module(const struct flight_reader *reader, uint64_t address,
                        struct flight_module *ret)
{
    for (size_t i = 0; flight_module_at(reader, i, ret); i++)
        if (address - ret->start < ret->end - ret->start)
            return true;
    return false;
}

static bool has_prefix(const char *path, const char *const *prefixes, size_t count)
{
    const char *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    for (size_t i = 0; i < count; i++)
        if (strncmp(file, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

/* Libraries between the program's call and us. */
static bool is_runtime(const char *path)
{
    static const char *const files[] = { "libgreta_trace_", "libcupti.so", "libcuda.so",
                                         "libcudart.so",    "libamdhip64", "libhsa-runtime" };
    return has_prefix(path, files, COUNT_OF(files));
}

/* True for a library that keeps memory until the process ends and hands it out again itself. */
static bool is_cache(const char *path)
{
    static const char *const files[] = { "libc10_cuda",   "libc10_hip",  "libtorch_cuda",
                                         "libtorch_hip",  "libcublas",   "libcudnn",
                                         "libcufft",      "libcusparse", "libcusolver",
                                         "libnccl",       "librccl",     "librocblas",
                                         "libtensorflow", "libjax",      "xla_cuda_plugin",
                                         "librmm" };
    return has_prefix(path, files, COUNT_OF(files));
}

bool trace_is_cached(void *context, uint32_t stack_index)
{
    const struct trace_process *process = context;
    uint64_t frames[FLIGHT_STACK_FRAMES];
    struct flight_module module;
    size_t count;
    if (!flight_stack(process->reader, stack_index, frames, &count))
        return false;
    for (size_t i = 0; i < count; i++)
        if (find_module(process->reader, frames[i], &module) && is_cache(module.path))
            return true;
    return false;
}

/* The static runtime's own functions say nothing to anybody. */
static bool is_noise(const struct report_frame *frame)
{
    return strncmp(frame->function, "__cudart", 8) == 0 ||
           strncmp(frame->function, "libcudart_static_", 17) == 0;
}

size_t trace_stack(struct trace *trace, const struct trace_process *process, uint32_t stack_index,
                   struct report_frame *ret_frames, size_t capacity)
{
    uint64_t frames[FLIGHT_STACK_FRAMES];
    struct flight_module module;
    size_t count, kept = 0;
    if (!flight_stack(process->reader, stack_index, frames, &count))
        return 0;
    for (size_t i = 0; i < count && kept < capacity; i++) {
        struct report_frame *frame = &ret_frames[kept];
        char name[512];
        if (!find_module(process->reader, frames[i], &module) || is_runtime(module.path))
            continue;
        const char *slash = strrchr(module.path, '/');
        *frame = (struct report_frame){ .offset = frames[i] - module.bias };
        event_set_text(frame->file, sizeof(frame->file), slash ? slash + 1 : module.path);
        /* The return address follows the call, which may be a function's last instruction. */
        uint64_t call = frame->offset - 1;
        if (symbols_find(trace->symbols, module.path, call, name, sizeof(name), &frame->offset)) {
            frame->offset++;
            symbols_demangle(name, true, frame->function, sizeof(frame->function));
        }
        if (is_noise(frame))
            continue;
        if (!program_lines_find(trace->program_lines, module.path, call, frame->source,
                                sizeof(frame->source), &frame->line))
            (void)lines_find(trace->lines, module.path, call, frame->source, sizeof(frame->source),
                             &frame->line);
        kept++;
    }
    return kept;
}

bool trace_kernel(const struct trace_process *process, uint32_t name_index, char *ret_name,
                  size_t name_bytes)
{
    char name[FLIGHT_NAME_BYTES];
    if (!flight_name(process->reader, name_index, name))
        return false;
    symbols_demangle(name, false, ret_name, name_bytes);
    return true;
}
