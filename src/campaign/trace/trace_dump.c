/* trace_dump.c - from a GPU core dump to facts for the analysis (analyze/hardware.h).
 *
 * The driver wrote the dump next to the recording of the process. It is foreign, and may be cut
 * short: then the launches since the last wait stay candidates, and the report says why. */
#include "campaign/trace/trace.h"

#include "campaign/dump_facts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct trace_dump {
    struct dump_facts facts;
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
    enum status status = dump_facts_open(path, false, &dump->facts, err);
    if (status) {
        free(dump);
        return status;
    }
    dump->facts.evidence.launch = find_launch;
    dump->facts.evidence.context = process;
    process->dump = dump;
    analyze_live_set_hardware(process->live, &dump->facts.evidence);
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
    dump_facts_close(&dump->facts);
    free(dump);
}
