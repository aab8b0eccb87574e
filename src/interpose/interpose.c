/* interpose.c - the life of a recording: its folder, its file and its tables. */
#include "interpose/interpose_impl.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* 128 MiB: greta reads while the program writes, and a burst of launches must not overtake it. */
#define RECORDS_DEFAULT 262144u
#define RECORDS_LEAST 1024u
#define RECORDS_MOST (1u << 22)
#define ALLOCATIONS 32768u
#define GRAPH_RECORDS 16384u
/* 2 MiB. A driver queues some thousand launches before it makes the program wait. */
#define LAUNCHES 16384u
#define BACKEND_LIMIT 4u
/* How many programs one process may execute one after another. */
#define PROGRAM_LIMIT 64u

/* A forked child shares its parent's mapping and must not write there. CUDA and HIP do not work in
 * it anyway; a program that it executes has a recording of its own. */
static struct interpose *started[BACKEND_LIMIT];
static unsigned started_count;

static void after_fork(void)
{
    for (unsigned i = 0; i < started_count; i++)
        started[i]->disabled = true;
}

/* A process that cannot be recorded must be known: greta finds this note next to the recordings. */
static void leave_file(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0)
        return;
    ssize_t unused = write(file, text, strlen(text));
    (void)unused;
    close(file);
}

static void leave_note(const char *folder, const char *backend, const char *slug,
                       const char *detail)
{
    char path[PATH_MAX], text[600];
    int length = snprintf(path, sizeof(path), "%s/%ld.%s.note", folder, (long)getpid(), backend);
    if (length < 0 || (size_t)length >= sizeof(path))
        return;
    snprintf(text, sizeof(text), "%.40s %.500s", slug, detail);
    leave_file(path, text);
}

const char *interpose_path(const struct interpose *interpose)
{
    return interpose->path;
}

void interpose_leave(const struct interpose *interpose, const char *suffix, const char *text)
{
    char path[PATH_MAX + 16];
    snprintf(path, sizeof(path), "%s%.15s", interpose->path, suffix);
    leave_file(path, text);
}

void interpose_note(const struct interpose_backend *backend, const char *slug, const char *detail)
{
    const char *folder = getenv(INTERPOSE_VARIABLE_FOLDER);
    if (folder && folder[0] == '/')
        leave_note(folder, backend->name, slug, detail);
}

/* The command line, arguments separated by spaces. */
static void read_command(char *text, size_t capacity)
{
    text[0] = '\0';
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    ssize_t count = read(file, text, capacity - 1);
    close(file);
    for (ssize_t i = 0; i + 1 < count; i++)
        if ((unsigned char)text[i] < 0x20)
            text[i] = ' ';
    text[count > 0 ? count : 0] = '\0';
}

static bool make_tables(struct interpose *interpose)
{
    interpose->streams = calloc(STREAM_TRACKED_LIMIT, sizeof(*interpose->streams));
    interpose->marks = calloc(MARK_TRACKED_LIMIT, sizeof(*interpose->marks));
    interpose->graphs = calloc(GRAPH_TRACKED_LIMIT, sizeof(*interpose->graphs));
    interpose->names = calloc(NAME_CACHE, sizeof(*interpose->names));
    return interpose->streams && interpose->marks && interpose->graphs && interpose->names;
}

static void release(struct interpose *interpose)
{
    free(interpose->blocks.list);
    free(interpose->streams);
    free(interpose->marks);
    free(interpose->graphs);
    free(interpose->names);
    free(interpose->trapped);
    free(interpose);
}

static uint32_t record_count(void)
{
    const char *text = getenv(INTERPOSE_VARIABLE_RECORDS);
    unsigned long count = text ? strtoul(text, NULL, 10) : 0;
    return count >= RECORDS_LEAST && count <= RECORDS_MOST ? (uint32_t)count : RECORDS_DEFAULT;
}

static void read_narrow(struct interpose *interpose)
{
    const char *text = getenv(INTERPOSE_VARIABLE_NARROW);
    char *end;
    if (!text)
        return;
    unsigned long long first = strtoull(text, &end, 10);
    if (*end != '-' || first == 0)
        return;
    interpose->narrow_first = first;
    interpose->narrow_last = strtoull(end + 1, NULL, 10);
}

/* A process that executes another program keeps its number; each program has a recording. */
static bool choose_path(char path[PATH_MAX], const char *folder, const char *backend)
{
    for (unsigned i = 1; i <= PROGRAM_LIMIT; i++) {
        char which[16] = "";
        if (i > 1)
            snprintf(which, sizeof(which), "-%u", i);
        int length = snprintf(path, PATH_MAX, "%s/%ld%s.%s.flight", folder, (long)getpid(), which,
                              backend);
        if (length < 0 || length >= PATH_MAX)
            return false;
        if (access(path, F_OK) != 0)
            return true;
    }
    return false;
}

static struct flight *make_flight(const char *folder, const struct interpose_backend *backend,
                                  const char *device, uint32_t records, char path[PATH_MAX])
{
    char command[FLIGHT_TEXT_BYTES];
    struct flight *flight = NULL;
    struct error err;
    if (!choose_path(path, folder, backend->name))
        return NULL;
    read_command(command, sizeof(command));
    struct flight_options options = { .record_count = records ? records : record_count(),
                                      .allocation_count = ALLOCATIONS,
                                      .graph_record_count = GRAPH_RECORDS,
                                      .launch_count = backend->runtime == INTERPOSE_CUDA ? LAUNCHES
                                                                                         : 0,
                                      .device = device,
                                      .command = command,
                                      .call_tables = true };
    if (flight_create(path, &options, &flight, &err)) {
        leave_note(folder, backend->name, INTERPOSE_NOTE_NO_RECORDING, err.text);
        return NULL;
    }
    path[strlen(path) - strlen(".flight")] = '\0';
    return flight;
}

struct interpose *interpose_open(const struct interpose_backend *backend, const char *folder,
                                 const char *device, uint32_t records)
{
    struct interpose *interpose = calloc(1, sizeof(*interpose));
    if (!interpose)
        return NULL;
    interpose->backend = backend;
    interpose->lowest = UINT64_MAX;
    interpose->process_id = (uint32_t)getpid();
    pthread_mutex_init(&interpose->lock, NULL);
    read_narrow(interpose);
    if (make_tables(interpose))
        interpose->flight = make_flight(folder, backend, device, records, interpose->path);
    if (!interpose->flight) {
        release(interpose);
        return NULL;
    }
    interpose->observer = flight_observer(interpose->flight);
    trapped_start(interpose);
    return interpose;
}

void interpose_close(struct interpose *interpose)
{
    if (!interpose)
        return;
    stack_forget(interpose->flight);
    flight_close(interpose->flight);
    pthread_mutex_destroy(&interpose->lock);
    release(interpose);
}

struct interpose *interpose_start(const struct interpose_backend *backend, const char *device)
{
    const char *folder = getenv(INTERPOSE_VARIABLE_FOLDER);
    if (!folder || folder[0] != '/' || started_count == BACKEND_LIMIT)
        return NULL;
    struct interpose *interpose = interpose_open(backend, folder, device, 0);
    if (!interpose)
        return NULL;
    if (started_count == 0)
        pthread_atfork(NULL, NULL, after_fork);
    started[started_count++] = interpose;
    return interpose;
}

/* The mapping and the tables stay: other threads may still be in a call. */
void interpose_stop(struct interpose *interpose)
{
    if (interpose && !interpose->disabled)
        flight_mark_closed(interpose->flight);
}
