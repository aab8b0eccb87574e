/* trace_run.c - the program itself: started with the libraries in its environment, its input,
 * output and signals its own, and waited for to its end. */
#include "campaign/trace/trace.h"

#include "base/clock.h"
#include "campaign/memory_killer.h"
#include "interpose/interpose.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* New recordings are looked for so often; a program's end is seen as soon. */
#define POLL_NS 3000000L
#define ADDED_LIMIT 12u

/* ---- The environment ------------------------------------------------------------------------ */

struct added {
    char *variables[ADDED_LIMIT]; /* "NAME=value"; owned */
    size_t count;
    const char **all; /* owned array, borrowed texts */
};

static void added_release(struct added *added)
{
    for (size_t i = 0; i < added->count; i++)
        free(added->variables[i]);
    free(added->all);
}

static const char *find_variable(const char *const *environment, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; environment[i]; i++)
        if (strncmp(environment[i], name, length) == 0 && environment[i][length] == '=')
            return environment[i] + length + 1;
    return NULL;
}

static bool add_variable(struct added *added, const char *name, const char *value,
                         const char *behind)
{
    struct text text;
    text_init(&text);
    text_addf(&text, "%s=%s%s%s", name, value, behind ? ":" : "", behind ? behind : "");
    if (text.failed || added->count == ADDED_LIMIT) {
        text_release(&text);
        return false;
    }
    added->variables[added->count++] = text.bytes;
    return true;
}

/* The caller's environment with ours put over it. */
static bool join_environment(struct added *added, const char *const *environment)
{
    size_t count = 0, kept = 0;
    while (environment[count])
        count++;
    added->all = calloc(count + added->count + 1, sizeof(*added->all));
    if (!added->all)
        return false;
    for (size_t i = 0; i < count; i++) {
        bool ours = false;
        for (size_t j = 0; j < added->count; j++) {
            size_t name = strcspn(added->variables[j], "=") + 1;
            ours = ours || strncmp(environment[i], added->variables[j], name) == 0;
        }
        if (!ours)
            added->all[kept++] = environment[i];
    }
    for (size_t j = 0; j < added->count; j++)
        added->all[kept++] = added->variables[j];
    return true;
}

/* A tool that is in the program already has the driver's only place for one. */
static enum status check_injection(const struct trace *trace, struct error *err)
{
    const char *taken = find_variable(trace->options->environment, "CUDA_INJECTION64_PATH");
    if (!taken || !trace->options->cupti || !trace->library_cuda[0])
        return STATUS_OK;
    return error_set(err, STATUS_REFUSED,
                     "expected CUDA_INJECTION64_PATH to be unset, found %.300s: another tool is "
                     "in the program; unset it, or leave out --cupti",
                     taken);
}

/* Our libraries, then the caller's. The dynamic linker knows no quotes. */
static enum status join_preloaded(const struct trace *trace, char ret_list[4 * FILES_PATH_BYTES],
                                  struct error *err)
{
    const char *libraries[] = { trace->options->cupti ? "" : trace->library_cuda,
                                trace->library_hip, trace->library_pages };
    size_t length = 0;
    ret_list[0] = '\0';
    for (size_t i = 0; i < COUNT_OF(libraries); i++) {
        if (libraries[i][strcspn(libraries[i], ": ")])
            return error_set(err, STATUS_REFUSED,
                             "cannot preload %s: LD_PRELOAD takes no path with a space or a colon; "
                             "move greta to another folder",
                             libraries[i]);
        if (libraries[i][0])
            length += (size_t)snprintf(ret_list + length, FILES_PATH_BYTES + 1, "%s%s",
                                       length ? ":" : "", libraries[i]);
    }
    return STATUS_OK;
}

static enum status make_environment(const struct trace *trace, const char *narrow,
                                    struct added *added, struct error *err)
{
    const struct trace_options *options = trace->options;
    char records[16], preloaded[4 * FILES_PATH_BYTES];
    TRY(check_injection(trace, err));
    TRY(join_preloaded(trace, preloaded, err));
    snprintf(records, sizeof(records), "%u", options->records);
    bool injects = options->cupti && trace->library_cuda[0];
    /* Names of ranges; a tool that the program was given by its user comes first. */
    bool ranges = !options->cupti && trace->library_cuda[0] &&
                  !find_variable(options->environment, "NVTX_INJECTION64_PATH");
    bool good =
        (!options->tensors || (add_variable(added, "PYTORCH_NO_CUDA_MEMORY_CACHING", "1", NULL) &&
                               add_variable(added, "PYTORCH_NO_HIP_MEMORY_CACHING", "1", NULL))) &&
        add_variable(added, INTERPOSE_VARIABLE_FOLDER, trace->run, NULL) &&
        (!options->records || add_variable(added, INTERPOSE_VARIABLE_RECORDS, records, NULL)) &&
        (!narrow || add_variable(added, INTERPOSE_VARIABLE_NARROW, narrow, NULL)) &&
        (!trace_wants_dumps(trace) ||
         add_variable(added, INTERPOSE_VARIABLE_COREDUMP, "1", NULL)) &&
        (!options->cupti_library ||
         add_variable(added, INTERPOSE_VARIABLE_CUPTI, options->cupti_library, NULL)) &&
        (!injects || add_variable(added, "CUDA_INJECTION64_PATH", trace->library_cuda, NULL)) &&
        (!ranges || add_variable(added, "NVTX_INJECTION64_PATH", trace->library_cuda, NULL)) &&
        (!preloaded[0] || add_variable(added, "LD_PRELOAD", preloaded,
                                       find_variable(options->environment, "LD_PRELOAD"))) &&
        join_environment(added, options->environment);
    return good ? STATUS_OK : error_set(err, STATUS_NO_MEMORY, "no memory for an environment");
}

/* ---- The program ---------------------------------------------------------------------------- */

/* A rerun prints what the user has seen already: its output goes to a file next to its recordings.
 */
static void redirect(const struct trace *trace, posix_spawn_file_actions_t *actions, char *path)
{
    struct error unused;
    posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (files_join(path, &unused, trace->run, "rerun.log"))
        snprintf(path, FILES_PATH_BYTES, "/dev/null");
    posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, path, O_WRONLY | O_CREAT | O_APPEND,
                                     0600);
    posix_spawn_file_actions_adddup2(actions, STDOUT_FILENO, STDERR_FILENO);
}

static enum status start(const struct trace *trace, const char *const *environment, pid_t *ret_pid,
                         struct error *err)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char path[FILES_PATH_BYTES];
    sigset_t normal;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    if (trace->in_rerun)
        redirect(trace, &actions, path);
    /* What we catch for ourselves is as it was for the program; what is ignored stays so. */
    sigemptyset(&normal);
    for (size_t i = 0; i < TRACE_SIGNAL_COUNT; i++) {
        struct sigaction now;
        if (sigaction(trace_signals[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaddset(&normal, trace_signals[i]);
    }
    posix_spawnattr_setsigdefault(&attributes, &normal);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    int code = posix_spawnp(ret_pid, trace->options->arguments[0], &actions, &attributes,
                            (char **)(uintptr_t)trace->options->arguments,
                            (char **)(uintptr_t)environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return code ? error_set_os(err, code, "cannot start %s", trace->options->arguments[0])
                : STATUS_OK;
}

/* Signals sent to us are meant for the program. Ctrl-C reaches it by itself: it is in our group. */
static void pass_signals(const struct trace *trace, pid_t pid)
{
    int number = trace->options->take_signal ? trace->options->take_signal() : 0;
    if (number && number != SIGINT && number != SIGQUIT)
        kill(pid, number);
}

static void note_end(struct trace *trace, pid_t pid, uint64_t killed_before, int state)
{
    trace->program_pid = (long)pid;
    trace->signal = WIFSIGNALED(state) ? WTERMSIG(state) : 0;
    trace->exit_code = WIFEXITED(state) ? WEXITSTATUS(state) : 0;
    if (!trace->signal)
        trace->ending = (struct run_ending){ ENDING_EXITED, trace->exit_code };
    else if (trace->signal == SIGKILL && memory_killer_took(pid, killed_before))
        trace->ending = (struct run_ending){ ENDING_OUT_OF_MEMORY, trace->signal };
    else
        trace->ending = run_ending_of_signal(trace->signal);
}

static enum status wait_for(struct trace *trace, pid_t pid, uint64_t killed_before,
                            struct error *err)
{
    struct timespec pause = { 0, POLL_NS };
    for (;;) {
        int state;
        pid_t ended = waitpid(pid, &state, WNOHANG);
        if (ended == pid) {
            if (!trace->in_rerun)
                note_end(trace, pid, killed_before, state);
            return STATUS_OK;
        }
        if (ended < 0 && errno != EINTR)
            return error_set_os(err, errno, "cannot wait for the program");
        pass_signals(trace, pid);
        trace_look_for_recordings(trace);
        nanosleep(&pause, NULL);
    }
}

enum status trace_run(struct trace *trace, const char *narrow, struct error *err)
{
    struct added added = { .count = 0 };
    pid_t pid = 0;
    enum status status = make_environment(trace, narrow, &added, err);
    uint64_t started_ns = clock_ns(), killed_before = memory_killer_count();
    if (!status)
        status = start(trace, added.all, &pid, err);
    if (!status)
        status = wait_for(trace, pid, killed_before, err);
    if (!trace->in_rerun)
        trace->wall_ns = clock_ns() - started_ns;
    if (pid)
        trace_stop_following(trace);
    added_release(&added);
    return status;
}
