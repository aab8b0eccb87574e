/* trace.c - greta trace: a foreign program, unmodified, with its GPU calls recorded and analysed.
 *
 * The program is run once as it is. Where a sticky error leaves a window of launches, and the
 * caller asks for it, it is run again with a wait after each launch of that window. */
#define _XOPEN_SOURCE 700 /* realpath, mkdtemp */
#include "campaign/trace/trace.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const int trace_signals[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2 };
_Static_assert(COUNT_OF(trace_signals) == TRACE_SIGNAL_COUNT, "every signal is counted");

void trace_result_init(struct trace_result *result)
{
    *result = (struct trace_result){ .outcome = AUDIT_INCONCLUSIVE };
    text_init(&result->table);
    text_init(&result->json);
}

void trace_result_release(struct trace_result *result)
{
    text_release(&result->table);
    text_release(&result->json);
}

/* ---- Libraries ------------------------------------------------------------------------------ */

/* Looks next to greta, as in its build folder, and where the install rules put the libraries. */
static bool find_library(const char *program_folder, const char *name,
                         char ret_path[FILES_PATH_BYTES])
{
    static const char *const folders[] = { ".", ("../" GRETA_LIBRARY_FOLDER), "../lib/greta",
                                           "../lib64/greta" };
    char path[FILES_PATH_BYTES + 64];
    for (size_t i = 0; i < COUNT_OF(folders); i++) {
        snprintf(path, sizeof(path), "%.3000s/%s/libgreta_trace_%s.so", program_folder, folders[i],
                 name);
        char real[PATH_MAX];
        if (realpath(path, real) && strlen(real) < FILES_PATH_BYTES) {
            memcpy(ret_path, real, strlen(real) + 1);
            return true;
        }
    }
    return false;
}

static enum status find_libraries(struct trace *trace, struct error *err)
{
    const char *backend = trace->options->backend;
    char program[PATH_MAX];
    if (!realpath(trace->options->program, program))
        return error_set(err, STATUS_NOT_FOUND, "%s: cannot find greta's own folder",
                         trace->options->program);
    char *slash = strrchr(program, '/');
    if (slash)
        *slash = '\0';
    const char *way = trace->options->cupti ? "cupti" : "cuda";
    bool cuda = strcmp(backend, "hip") != 0 && find_library(program, way, trace->library_cuda);
    bool hip = strcmp(backend, "cuda") != 0 && find_library(program, "hip", trace->library_hip);
    if (trace->options->trap_host && !find_library(program, "pages", trace->library_pages))
        return error_set(
            err, STATUS_NOT_FOUND,
            "expected libgreta_trace_pages.so next to greta or in %s/../%s, found none", program,
            GRETA_LIBRARY_FOLDER);
    if (cuda || hip)
        return STATUS_OK;
    return error_set(err, STATUS_NOT_FOUND,
                     "expected libgreta_trace_%s.so or libgreta_trace_hip.so next to greta or in "
                     "%s/../%s, found neither",
                     way, program, GRETA_LIBRARY_FOLDER);
}

/* ---- Folders -------------------------------------------------------------------------------- */

static enum status make_folder(struct trace *trace, struct error *err)
{
    const struct trace_options *options = trace->options;
    struct timespec now;
    struct tm utc;
    char day[16];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    strftime(trace->date, sizeof(trace->date), "%Y-%m-%dT%H:%M:%SZ", &utc);
    strftime(day, sizeof(day), "%Y-%m-%d", &utc);
    size_t length = strftime(trace->id, sizeof(trace->id), "%Y%m%d-%H%M%S", &utc);
    snprintf(trace->id + length, sizeof(trace->id) - length, "-%04x",
             (unsigned)((unsigned long)now.tv_nsec ^ (unsigned long)getpid()) & 0xffffu);
    trace->keep = options->artifacts != NULL;
    char made[FILES_PATH_BYTES], real[PATH_MAX];
    if (trace->keep)
        TRY(files_join(made, err, options->artifacts, "%s/%s", day, trace->id));
    else
        TRY(files_join(made, err, options->temporary_folder, "greta-trace-XXXXXX"));
    if (trace->keep)
        TRY(files_make_folder(made, err));
    else if (!mkdtemp(made)) /* a new one, of this user alone */
        return error_set_os(err, errno, "cannot make the folder %s", made);
    if (!realpath(made, real)) /* the program may change its folder */
        return error_set(err, STATUS_NOT_FOUND, "%s: cannot be found again", made);
    snprintf(trace->folder, sizeof(trace->folder), "%.4000s", real);
    TRY(files_join(trace->run, err, trace->folder, "run"));
    return files_make_folder(trace->run, err);
}

static void remove_files(const char *folder)
{
    DIR *list = opendir(folder);
    const struct dirent *entry;
    char path[FILES_PATH_BYTES];
    struct error unused;
    while (list && (entry = readdir(list)) != NULL)
        if (files_join(path, &unused, folder, "%s", entry->d_name) == STATUS_OK)
            unlink(path); /* of "." and ".." that is refused */
    if (list)
        closedir(list);
    rmdir(folder);
}

static void remove_folder(struct trace *trace)
{
    char rerun[FILES_PATH_BYTES];
    struct error unused;
    if (trace->keep || !trace->folder[0])
        return;
    if (files_join(rerun, &unused, trace->folder, "rerun") == STATUS_OK)
        remove_files(rerun);
    if (files_join(rerun, &unused, trace->folder, "run") == STATUS_OK)
        remove_files(rerun);
    rmdir(trace->folder);
}

/* ---- Narrowing ------------------------------------------------------------------------------ */

/* "FIRST-LAST" of the launches one of which made the error; false if there is no such window. */
static bool find_window(const struct trace *trace, char ret_text[48])
{
    for (size_t i = 0; i < trace->process_count; i++) {
        const struct trace_process *process = &trace->processes[i];
        const struct analysis *analysis = process->analyzer ? analyzer_result(process->analyzer)
                                                            : NULL;
        for (size_t j = 0; analysis && j < analysis->finding_count; j++) {
            const struct finding *finding = &analysis->findings[j];
            if (finding->hypothesis != HYPOTHESIS_KERNEL_FAULT || finding->candidate_count < 2)
                continue;
            uint64_t last = finding->candidates[finding->candidate_count - 1].ordinal;
            if (!finding->cause.ordinal || last < finding->cause.ordinal)
                continue;
            snprintf(ret_text, 48, "%" PRIu64 "-%" PRIu64, finding->cause.ordinal, last);
            return true;
        }
    }
    return false;
}

static enum status narrow(struct trace *trace, struct error *err)
{
    char window[48];
    if (!trace->options->narrow || !find_window(trace, window))
        return STATUS_OK;
    trace->in_rerun = true;
    TRY(files_join(trace->run, err, trace->folder, "rerun"));
    TRY(files_make_folder(trace->run, err));
    return trace_run(trace, window, err);
}

/* ---- All of it ------------------------------------------------------------------------------ */

enum status campaign_trace(const struct trace_options *options, struct trace_result *result,
                           struct error *err)
{
    struct trace trace = { .options = options };
    trace.program_kind = trace_program_kind(options->environment, options->arguments[0]);
    trace.processes = calloc(TRACE_PROCESS_LIMIT, sizeof(*trace.processes));
    enum status status = trace.processes
                             ? STATUS_OK
                             : error_set(err, STATUS_NO_MEMORY, "no memory for a trace");
    if (!status && (!(trace.symbols = symbols_create()) || !(trace.lines = lines_create()) ||
                    !(trace.program_lines = program_lines_create())))
        status = error_set(err, STATUS_NO_MEMORY, "no memory for symbols");
    if (!status)
        status = find_libraries(&trace, err);
    if (!status)
        status = make_folder(&trace, err);
    if (!status)
        status = trace_run(&trace, NULL, err);
    if (!status) {
        result->exit_code = trace.exit_code;
        result->signal = trace.signal;
        status = narrow(&trace, err);
    }
    if (!status && trace.keep)
        trace_pack_recordings(&trace);
    if (!status)
        status = trace_report(&trace, result, err);
    if (trace.keep)
        snprintf(result->folder, sizeof(result->folder), "%s", trace.folder);
    for (size_t i = 0; i < trace.process_count; i++)
        trace_process_release(&trace.processes[i]);
    remove_folder(&trace);
    program_lines_destroy(trace.program_lines);
    lines_destroy(trace.lines);
    symbols_destroy(trace.symbols);
    free(trace.processes);
    return status;
}
