/* trace.h - everything a trace holds while it runs: the program, its recordings, and what follows
 * from them. */
#ifndef GRETA_CAMPAIGN_TRACE_TRACE_H
#define GRETA_CAMPAIGN_TRACE_TRACE_H

#include "base/lines.h"
#include "base/symbols.h"
#include "campaign/campaign.h"
#include "campaign/files.h"
#include "coredump/program_lines.h"
#include "interpose/interpose.h"
#include "report/report.h"

/* ---- Figures -------------------------------------------------------------------------------- */

enum trace_direction { TRACE_TO_DEVICE, TRACE_TO_HOST, TRACE_WITHIN, TRACE_FILL, TRACE_DIRECTIONS };
/* Size classes: up to 4 KiB, 64 KiB, 1 MiB, 16 MiB, and larger. */
#define TRACE_SIZE_CLASSES 5

struct trace_transfers {
    uint64_t count, bytes;
    uint64_t stalling_count, stalling_ns; /* the host waited for them */
    uint64_t pageable_count, pageable_bytes;
    uint64_t by_size[TRACE_SIZE_CLASSES];
};

/* What --summary prints; gathered event by event, by the thread that analyses. */
struct trace_figures {
    uint64_t calls, launches, replays, failures;
    uint64_t waits, wait_ns;
    struct trace_transfers transfers[TRACE_DIRECTIONS];
    uint64_t allocations, frees;
    uint64_t device_bytes, device_peak; /* now, and at most */
    uint64_t pinned_bytes, pinned_peak;
};
void trace_figures_add(struct trace_figures *figures, const struct event *event);
void trace_figures_join(struct trace_figures *sum, const struct trace_figures *more);
void trace_figures_print(const struct trace_figures *figures, enum report_language language,
                         struct text *text);

/* ---- A traced process ----------------------------------------------------------------------- */

#define TRACE_PROCESS_LIMIT 64u

struct trace_process {
    char name[64]; /* "1234.cuda" */
    char path[FILES_PATH_BYTES];
    struct flight *flight; /* attached while it runs */
    struct analyze_live *live;
    struct analyzer *analyzer;    /* NULL: its recording cannot be read; `missing` says why */
    struct flight_reader *reader; /* after the end */
    struct trace_figures figures;
    uint64_t observed_ns, observed_count;
    bool rerun; /* of --narrow */
    char missing[800];
    struct trace_dump *dump; /* NULL: none can be read */
    char no_dump[800];       /* why, in English; "": nothing is known */
};

/* What decides whether a library can be put into the program. */
enum trace_program_kind {
    TRACE_PROGRAM_USUAL,        /* as far as is known: a script's interpreter is not looked at */
    TRACE_PROGRAM_CHANGES_USER, /* setuid, setgid */
    TRACE_PROGRAM_STATIC,       /* linked without the dynamic linker, which is what preloads */
};

/* Why nothing could be looked at. */
enum trace_blindness {
    TRACE_NOT_BLIND,
    TRACE_BLIND_NOTE,       /* a library says why */
    TRACE_BLIND_OTHER_USER, /* a setuid program */
    TRACE_BLIND_STATIC,     /* nothing can be preloaded */
    TRACE_BLIND_NO_CALL,    /* no GPU call was seen */
    TRACE_BLIND_NO_MEMORY,  /* calls were seen, none with memory */
};

struct trace {
    const struct trace_options *options;
    char folder[FILES_PATH_BYTES]; /* of the artifacts, or a temporary one */
    char run[FILES_PATH_BYTES];    /* where recordings go */
    bool keep;                     /* the folder */
    char id[32], date[32];
    /* "": not there. The first is preloaded, or with options->cupti loaded by the driver. */
    char library_cuda[FILES_PATH_BYTES], library_hip[FILES_PATH_BYTES];
    char library_pages[FILES_PATH_BYTES]; /* of page traps; "": not asked for */
    enum trace_program_kind program_kind;
    struct trace_process *processes;
    size_t process_count;
    uint64_t unread; /* recordings there was no room for */
    bool in_rerun;
    long program_pid;
    struct run_ending ending; /* of the program */
    int exit_code, signal;    /* the same as numbers; signal 0: it ended by itself */
    uint64_t wall_ns;
    /* Why a library cannot record (INTERPOSE_NOTE_*), and what it found; "". */
    char note[32], note_detail[480];
    enum trace_blindness blind;
    struct symbols *symbols;
    struct lines *lines; /* with libdw, for what the other does not read */
    struct program_lines *program_lines;
};

/* trace_run.c: the program and its recordings, to its end. narrow: "FIRST-LAST", or NULL. */
MUST_CHECK enum status trace_run(struct trace *trace, const char *narrow, struct error *err);
/* trace_program.c: name is looked up as a shell would. */
enum trace_program_kind trace_program_kind(const char *const *environment, const char *name);
/* trace_dump.c: GPU core dumps are asked for. Those the caller asked for itself are its own. */
bool trace_wants_dumps(const struct trace *trace);
/* The variable by which the caller did; NULL: none. */
const char *trace_own_dump_setting(const struct trace *trace);
/* Reads the dump of a process that has ended, if there is one, and removes it unless it is to be
 * kept. What it says is for the analysis that is still to be finished. */
void trace_read_dump(const struct trace *trace, struct trace_process *process);
void trace_dump_release(struct trace_dump *dump); /* NULL is fine */
/* trace_follow.c */
void trace_look_for_recordings(struct trace *trace);
void trace_stop_following(struct trace *trace);
/* Compresses the recordings of processes that have ended, for a trace whose folder is kept. */
void trace_pack_recordings(struct trace *trace);
/* True if the recording is of CUDA calls. */
bool trace_is_cuda(const struct trace_process *process);
void trace_process_release(struct trace_process *process);
/* True if the stack belongs to a caching allocator or to a library that keeps its memory. */
bool trace_is_cached(void *process, uint32_t stack_index);
/* The callers, innermost first, without the runtime's own functions; returns how many. */
size_t trace_stack(struct trace *trace, const struct trace_process *process, uint32_t stack_index,
                   struct report_frame *ret_frames, size_t capacity);
/* A kernel's full name as it was written; false: not known. */
bool trace_kernel(const struct trace_process *process, uint32_t name_index, char *ret_name,
                  size_t name_bytes);
/* trace_self_test.c: plants faulty calls through interpose.h and checks that they are found. */
void trace_self_test(const char *folder, enum self_test_state ret[HYPOTHESIS_COUNT]);

/* Recordings that say something, in the order of the report's rows. */
struct trace_listed {
    const struct analysis *list[TRACE_PROCESS_LIMIT];
    const struct trace_process *from[TRACE_PROCESS_LIMIT];
    struct report_row rows[TRACE_PROCESS_LIMIT];
    char labels[TRACE_PROCESS_LIMIT][96], flights[TRACE_PROCESS_LIMIT][128];
    size_t count;
    uint64_t event_count;
};

/* trace_print.c: adds to text, in the language that was asked for. */
void trace_print_finding(struct trace *trace, const struct trace_process *process,
                         const struct finding *finding, struct text *text);
void trace_print(struct trace *trace, const struct trace_listed *listed,
                 const struct audit_verdict *verdict, struct text *text);
/* trace_reasons.c: why not everything was looked at, as in struct report_program; context is the
 * trace. */
bool trace_add_reason(const void *context, size_t index, enum report_language language,
                      struct text *text);
/* trace_report.c */
MUST_CHECK enum status trace_report(struct trace *trace, struct trace_result *result,
                                    struct error *err);

#endif
