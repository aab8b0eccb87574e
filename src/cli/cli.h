/* cli.h - the command line: commands and options as data, and what every command shares.
 *
 * Only this module reads the environment and writes to the terminal. A command is a row: its
 * options are a table of names, targets and help texts. Parsing, --help, man pages and shell
 * completion are all made from that table. */
#ifndef GRETA_CLI_CLI_H
#define GRETA_CLI_CLI_H

#include "base/emit.h"
#include "base/progress.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Exit codes of greta, the same for every command. */
enum cli_exit {
    CLI_EXIT_OK = 0,
    CLI_EXIT_FAILED = 1,    /* ran, and the answer is no */
    CLI_EXIT_USAGE = 2,     /* the command line makes no sense */
    CLI_EXIT_CANNOT = 3,    /* could not run */
    CLI_EXIT_UNDECIDED = 4, /* inconclusive or not reproduced */
    CLI_EXIT_INTERRUPTED = 130,
};

enum cli_option_kind {
    CLI_FLAG,       /* bool: sets it */
    CLI_CLEAR_FLAG, /* bool: clears it; the last of the two on the command line counts */
    CLI_TEXT,       /* const char * */
    CLI_U32,
    CLI_U64,
    CLI_I32, /* signed integers */
    CLI_F32,
    CLI_TEXT_LIST, /* struct cli_text_list: may be given several times */
};

/* The values of a repeated option, in order. */
#define CLI_LIST_LIMIT 64
struct cli_text_list {
    size_t count;
    const char *items[CLI_LIST_LIMIT];
};

struct cli_option {
    const char *names;    /* "--ctx|-c|--ctx-size": the first is shown first */
    const char *argument; /* "N"; NULL for a flag */
    enum cli_option_kind kind;
    size_t offset; /* of the target in the command's settings */
    const char *help;
    const char *values; /* "f32 f16": the only ones, for help and completion; NULL: any */
    int completes;      /* enum cli_completes: what else a shell offers */
};

enum cli_completes {
    CLI_COMPLETES_NOTHING, /* false */
    CLI_COMPLETES_FILE,    /* true */
    CLI_COMPLETES_FAULT,   /* names of planted faults */
};

/* A flag of llama.cpp that greta refuses. */
struct cli_refusal {
    const char *names;   /* as in struct cli_option */
    const char *instead; /* what to do */
};

/* The types that greta writes models in (convert_type_name). */
#define CLI_MODEL_TYPES "f32 f16 bf16 q8_0 q4_0 q4_k_m q5_k_m q6_k mxfp4"

/* Options of every command. */
struct cli_common {
    const char *colour; /* one of CLI_COLOUR_VALUES; NULL: auto */
    bool quiet;
};
#define CLI_COLOUR_VALUES "auto always never on off"
#define CLI_COMMON_OPTION_COUNT 2
extern const struct cli_option cli_common_options[CLI_COMMON_OPTION_COUNT];

struct cli_invocation;

struct cli_command {
    const char *name;
    const char *operands; /* "FILE", "IN OUT TYPE", or "" */
    const char *actions;  /* "show list": what the first operand may be, for completion; NULL */
    size_t operand_least, operand_most;
    const char *summary;     /* one line */
    const char *description; /* paragraphs separated by blank lines */
    const char *examples;    /* lines "command  # what it does" */
    const struct cli_option *options;
    size_t option_count;
    const struct cli_refusal *refusals; /* or NULL */
    size_t refusal_count;
    const char *last_operand_values; /* "f32 f16": what a shell offers for it; NULL: files */
    size_t settings_bytes;
    const void *defaults; /* settings_bytes of it */
    enum cli_exit (*run)(const struct cli_invocation *invocation);
};

/* Option number `index` of a command: its own, then the common ones that it does not replace; NULL
 * after the last. */
const struct cli_option *cli_command_option(const struct cli_command *command, size_t index);

#define CLI_FOLDER_BYTES 1024

/* The environment as it was read, once, in main. */
struct cli_environment {
    bool guard_rail_disabled;    /* GRETA_DISABLE_GUARD_RAIL=1 */
    bool progress_shown;         /* stderr is a terminal that obeys control sequences */
    bool colour_out, colour_err; /* stdout and stderr are terminals that want colours */
    /* Lines about copies to the host, in the format of the first audits. */
    bool d2h_trace;            /* GRETA_TRACE_MEMCPY=1 */
    bool d2h_audit;            /* GCORE_D2H_AUDIT=1 */
    bool d2h_debug;            /* GRETA_D2H_DEBUG=1 */
    const char *d2h_audit_log; /* GCORE_D2H_AUDIT_LOG: a file; NULL: stderr */
    char *const *arguments;    /* the command line as typed */
    int argument_count;
    const char *const *variables;            /* the whole environment, for child processes; ends in
                                                NULL */
    char cache_folder[CLI_FOLDER_BYTES];     /* XDG_CACHE_HOME/greta; "" where there is no home */
    char runtime_folder[CLI_FOLDER_BYTES];   /* XDG_RUNTIME_DIR, else the temporary one */
    char temporary_folder[CLI_FOLDER_BYTES]; /* TMPDIR, else /tmp */
};

struct cli_invocation {
    const struct cli_command *command;
    const struct cli_environment *environment;
    const void *settings;
    bool quiet;
    bool colour_out, colour_err; /* of stdout and stderr */
    const char *const *operands;
    size_t operand_count;
};

/* Commands. */
extern const struct cli_command cli_infer;
extern const struct cli_command cli_chat;
extern const struct cli_command cli_audit;
extern const struct cli_command cli_trace;
extern const struct cli_command cli_eval;
extern const struct cli_command cli_bench;
extern const struct cli_command cli_diff_taps;
extern const struct cli_command cli_inspect;
extern const struct cli_command cli_flight;
extern const struct cli_command cli_coredump;
extern const struct cli_command cli_synth;
extern const struct cli_command cli_quantize;
extern const struct cli_command cli_devices;
extern const struct cli_command cli_render;
extern const struct cli_command cli_tokenize;
extern const struct cli_command cli_detokenize;
extern const struct cli_command cli_manual;
extern const struct cli_command cli_completion;
extern const struct cli_command cli_help;

/* commands.c */
size_t cli_command_count(void);
const struct cli_command *cli_command_at(size_t index);
const struct cli_command *cli_command_find(const char *name); /* or NULL */

/* variables.c: what is read from the environment, for the man page. */
struct cli_variable {
    const char *name, *value, *help;
};
size_t cli_variable_count(void);
const struct cli_variable *cli_variable_at(size_t index);

/* run.c: does everything that main does. */
enum cli_exit cli_run(int argument_count, char **arguments);

/* cmd_audit.c: the worker of an audit; not in the list of commands. */
enum cli_exit cli_audit_worker(int argument_count, char **arguments);

/* options.c */

/* Fills settings (which hold the defaults already), common, and operands, which has room for
 * argument_count. *ret_help: --help was given, and the rest of the line was not checked. */
MUST_CHECK enum status cli_parse(const struct cli_command *command, int argument_count,
                                 char *const *arguments, void *settings, struct cli_common *common,
                                 const char **operands, size_t *ret_operand_count, bool *ret_help,
                                 struct error *err);

/* Copies name number `index` of an option's names; false when there are no more. */
bool cli_option_name(const struct cli_option *option, size_t index, char *name, size_t name_bytes);

/* True if the option's target differs from its default. Equal text at another address counts as
 * different, because it was given. */
bool cli_option_changed(const struct cli_option *option, const void *settings,
                        const void *defaults);

/* The word of a space-separated list that is nearest to `word`, if it is near enough; otherwise
 * NULL. The result is copied to buffer. */
const char *cli_nearest(const char *word, const char *list, char *buffer, size_t buffer_bytes);

/* help.c */
void cli_print_help(FILE *out, bool colour);
void cli_print_command_help(FILE *out, bool colour, const struct cli_command *command);

/* terminal.c */

/* Room for the text of an error, made printable: a byte of it takes up to four. */
#define CLI_SHOWN_BYTES (4 * ERROR_TEXT_BYTES)

/* Prints a line to stderr. Here, in errors and in warnings, control characters are escaped wherever
 * in the text they come from. */
void cli_put_line(const char *line);

/* Prints "greta inspect: text" to stderr and returns the exit code for the status. */
enum cli_exit cli_fail(const struct cli_invocation *invocation, const struct error *err);
void cli_warn(const struct cli_invocation *invocation, const char *format, ...) PRINTF_LIKE(2, 3);

/* Progress of one long operation on stderr, if that is a terminal; stops at Ctrl-C. */
struct cli_progress {
    struct progress progress; /* give this to the worker */
    const char *what;
    const char *unit; /* "bytes" are shown as sizes and speed; else only percent */
    bool shown;
    uint64_t started_ns, drawn_ns;
    bool line_open;
};
void cli_progress_begin(struct cli_progress *progress, const struct cli_invocation *invocation,
                        const char *what, const char *unit);
void cli_progress_end(struct cli_progress *progress); /* clears the line */

/* True if Ctrl-C was pressed or SIGTERM came. */
bool cli_is_interrupted(void);

/* After Ctrl-C: what it ended is over, and the next one counts again. False if the process is to end:
 * it was another signal. */
bool cli_forget_interrupt(void);

/* From now on Ctrl-C and SIGTERM end long work in order; the second one kills the process. */
void cli_catch_interrupts(void);
/* From now on an interrupted call is restarted, so that a write to a slow reader is not cut short.
 * Waiting for input cannot be interrupted then, so call it after all input was read. */
void cli_finish_calls(void);

#endif
