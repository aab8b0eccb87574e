/* child.c - starting a worker, watching it, and its end. */
#include "campaign/child.h"

#include "base/clock.h"
#include "base/stall.h"
#include "base/text.h"
#include "campaign/files.h"
#include "campaign/memory_killer.h"
#include "report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define AGAIN_LIMIT 2    /* reruns in place of one that was ended from outside */
#define POLL_NS 5000000L /* often enough that a child of 50 ms is not waited for twice as long */

enum status child_path(const char *folder, const char *label, const char *suffix, char *ret_path,
                       struct error *err)
{
    return files_join(ret_path, err, folder, "run/%s.%s", label, suffix);
}

/* ---- Starting ------------------------------------------------------------------------------- */

static enum status spawn(const struct child_setup *setup, const char *job_path,
                         const char *log_path, pid_t *ret_pid, struct error *err)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char *arguments[] = { (char *)(uintptr_t) "greta", (char *)(uintptr_t) "audit-worker",
                          (char *)(uintptr_t)job_path, NULL };
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log_path,
                                     O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    /* A group of its own: Ctrl-C is for the auditor, which decides what becomes of the child. */
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    int code = posix_spawn(ret_pid, setup->program, &actions, &attributes, arguments,
                           (char **)(uintptr_t)setup->environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return code ? error_set_os(err, code, "cannot start %s", setup->program) : STATUS_OK;
}

/* ---- Watching ------------------------------------------------------------------------------- */

/* Counts the iterations reported so far, from where the last look ended; and how long the worker
 * has reported nothing. */
struct watch {
    const char *results;
    off_t seen; /* bytes of the results file */
    uint64_t done;
    struct stall stall;
    int stopped_by; /* the signal; 0: it runs */
};

static void count_lines(struct watch *watch, off_t size)
{
    static const char mark[] = "\"kind\":\"run\"";
    int file = open(watch->results, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    char block[16384];
    ssize_t count;
    while (watch->seen < size && (count = pread(file, block, sizeof(block) - 1, watch->seen)) > 0) {
        block[count] = '\0';
        for (const char *at = block; (at = strstr(at, mark)) != NULL; at++)
            watch->done++;
        watch->seen += count;
    }
    close(file);
}

static bool look(struct watch *watch)
{
    struct stat info;
    if (stat(watch->results, &info) != 0 || info.st_size == watch->seen)
        return false;
    count_lines(watch, info.st_size);
    return true;
}

/* Asks without waiting: *ret_gone, and then *ret_state, which says how it ended. */
static enum status ask_state(pid_t pid, struct watch *watch, bool *ret_gone, int *ret_state,
                             struct error *err)
{
    int state = 0;
    pid_t changed = waitpid(pid, &state, WNOHANG | WUNTRACED | WCONTINUED);
    if (changed < 0 && errno != EINTR)
        return error_set_os(err, errno, "cannot wait for the worker");
    bool stopped = changed == pid && WIFSTOPPED(state);
    bool continued = changed == pid && WIFCONTINUED(state);
    if (stopped || continued) {
        watch->stopped_by = stopped ? WSTOPSIG(state) : 0;
        watch->stall.still_ns = 0;
    }
    *ret_gone = changed == pid && !stopped && !continued;
    *ret_state = state;
    return STATUS_OK;
}

struct run_ending child_ending(const struct child_outcome *outcome)
{
    if (outcome->hung)
        return (struct run_ending){ .kind = ENDING_HUNG };
    if (outcome->stopped_by)
        return (struct run_ending){ ENDING_STOPPED, outcome->stopped_by };
    if (outcome->out_of_memory)
        return (struct run_ending){ ENDING_OUT_OF_MEMORY, outcome->signal };
    if (outcome->signal)
        return run_ending_of_signal(outcome->signal);
    return (struct run_ending){ ENDING_EXITED, outcome->exit_code };
}

void child_ending_words(const struct child_outcome *outcome, char ret_words[CHILD_ENDING_BYTES])
{
    struct text words;
    text_init(&words);
    report_ending_words(child_ending(outcome), REPORT_ENGLISH, &words);
    event_set_text(ret_words, CHILD_ENDING_BYTES, text_get(&words));
    text_release(&words);
}

bool child_was_ended_from_outside(const struct child_outcome *outcome)
{
    enum run_ending_kind kind = child_ending(outcome).kind;
    return !outcome->ended && !outcome->interrupted &&
           (kind == ENDING_KILLED || kind == ENDING_OUT_OF_MEMORY || kind == ENDING_STOPPED);
}

void child_note_hang(struct child_outcome *outcome)
{
    double seconds = (double)outcome->still_ns / 1e9;
    if (!outcome->hung || outcome->error[0])
        return;
    if (outcome->beat_launch)
        snprintf(outcome->error, sizeof(outcome->error),
                 "no sign of progress for %.1f s; the last launch to move was event %" PRIu64
                 " of stream %" PRIu32,
                 seconds, outcome->beat_launch, outcome->beat_stream);
    else
        snprintf(outcome->error, sizeof(outcome->error), "no sign of progress for %.1f s", seconds);
}

static void note_end(struct child_outcome *outcome, pid_t pid, uint64_t killed_before, int state)
{
    if (WIFSIGNALED(state))
        outcome->signal = WTERMSIG(state);
    else if (WIFEXITED(state))
        outcome->exit_code = WEXITSTATUS(state);
    outcome->out_of_memory = outcome->signal == SIGKILL && !outcome->hung && !outcome->stopped_by &&
                             !outcome->interrupted && memory_killer_took(pid, killed_before);
}

/* Lines to expect of a job that goes well. */
static uint64_t run_count(const struct job *job)
{
    uint32_t interval = job->streams_interval ? job->streams_interval : 1;
    bool both = (job->work & JOB_INFER) && (job->work & JOB_STREAMS);
    return job->iterations + (both ? (job->iterations + interval - 1) / interval : 0);
}

/* Until the child is gone, by itself or by us. */
static enum status watch_child(pid_t pid, const struct job *job, const struct progress *progress,
                               struct child_outcome *outcome, struct error *err)
{
    struct watch watch = { .results = job->results };
    /* The worker's own analysis must see a hang before we end it. */
    uint64_t limit_ns = 2 * (job->hang_limit_ns ? job->hang_limit_ns : JOB_HANG_DEFAULT_NS);
    struct timespec pause = { 0, POLL_NS };
    enum status status = STATUS_OK;
    uint64_t killed_before = memory_killer_count();
    int state = 0;
    for (;;) {
        bool gone = false;
        TRY(ask_state(pid, &watch, &gone, &state, err));
        if (gone)
            break;
        stall_look(&watch.stall, look(&watch), clock_ns());
        if (!status && progress_step(progress, watch.done, run_count(job), err)) {
            status = STATUS_INTERRUPTED;
            outcome->interrupted = true;
            kill(pid, SIGKILL);
        }
        if (!outcome->hung && !outcome->stopped_by && watch.stall.still_ns > limit_ns) {
            outcome->stopped_by = watch.stopped_by;
            outcome->hung = !watch.stopped_by;
            outcome->still_ns = watch.stall.still_ns;
            kill(pid, SIGKILL);
        }
        nanosleep(&pause, NULL);
    }
    note_end(outcome, pid, killed_before, state);
    return status;
}

/* ---- A job ---------------------------------------------------------------------------------- */

enum status child_run(const struct child_setup *setup, struct job *job,
                      const struct progress *progress, struct child_outcome *ret_outcome,
                      struct error *err)
{
    char job_path[FILES_PATH_BYTES], results[FILES_PATH_BYTES], log[FILES_PATH_BYTES];
    struct child_outcome outcome = { 0 };
    pid_t pid;
    TRY(child_path(setup->folder, job->label, "job.json", job_path, err));
    TRY(child_path(setup->folder, job->label, "results.jsonl", results, err));
    TRY(child_path(setup->folder, job->label, "log", log, err));
    /* What an earlier try left is not ours. */
    unlink(results);
    unlink(log);
    job->results = results;
    job->log = log;
    job->auditor_pid = (uint64_t)getpid();
    enum status status = job_write(job, job_path, err);
    if (!status)
        status = spawn(setup, job_path, log, &pid, err);
    if (!status) {
        status = watch_child(pid, job, progress, &outcome, err);
        struct error second;
        if (child_read_results(results, &outcome, &second) && !status && !outcome.failed[0])
            snprintf(outcome.failed, sizeof(outcome.failed), "%.*s", 500, second.text);
        child_note_hang(&outcome);
    }
    job->results = job->log = NULL;
    if (!setup->keep) {
        unlink(job_path);
        unlink(results);
    }
    if (status && status != STATUS_INTERRUPTED)
        child_outcome_release(&outcome);
    else
        *ret_outcome = outcome;
    return status;
}

/* The run's own iterations are not what its step counts. */
static bool ask_watcher(void *context, uint64_t done, uint64_t total)
{
    const struct child_step *step = context;
    (void)done;
    (void)total;
    return !step->watcher->step ||
           step->watcher->step(step->watcher->context, step->stage, step->done, step->total);
}

enum status child_run_again(const struct child_setup *setup, struct job *job,
                            const struct child_step *step, struct child_outcome *ret_outcome,
                            struct error *err)
{
    struct child_step asked = *step;
    struct progress progress = { ask_watcher, &asked };
    for (int left = AGAIN_LIMIT;; left--) {
        TRY(progress_step(&progress, 0, 0, err));
        enum status status = child_run(setup, job, &progress, ret_outcome, err);
        if (status == STATUS_INTERRUPTED) {
            child_outcome_release(ret_outcome);
            if (job->flight)
                unlink(job->flight);
        }
        if (status)
            return status;
        if (left == 0 || job->kill_at_end || !child_was_ended_from_outside(ret_outcome))
            return STATUS_OK;
        child_outcome_release(ret_outcome);
    }
}
