/* cmd_trace.c - greta trace: what another program does with its GPU, and what is wrong with it. */
#include "cli/cli.h"
#include "cli/colour.h"
#include "cli/command_line.h"
#include "cli/version.h"

#include "campaign/campaign.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

struct settings {
    const char *artifacts, *author, *language, *backend, *cupti_library;
    uint32_t records;
    int32_t error_exit_code, inconclusive_exit_code;
    bool summary, narrow, tensors, trap_host, json, quiet, cupti, no_coredump, keep_core;
};

static const struct settings defaults = {
    .language = "en", .backend = "auto", .error_exit_code = -1, .inconclusive_exit_code = -1
};

#define AT(field) offsetof(struct settings, field)

static const struct cli_option options[] = {
    { "--summary", NULL, CLI_FLAG, AT(summary),
      "transfers by kind and size, copies that stall or use pageable memory, waits, memory peaks",
      NULL, false },
    { "--narrow", NULL, CLI_FLAG, AT(narrow),
      "if several launches may have made a fault, run the program again with a wait after each of "
      "them",
      NULL, false },
    { "--tensors", NULL, CLI_FLAG, AT(tensors),
      "PyTorch: make each tensor an allocation of its own (sets PYTORCH_NO_CUDA_MEMORY_CACHING; "
      "slow)",
      NULL, false },
    { "--trap-host", NULL, CLI_FLAG, AT(trap_host),
      "protect host memory that queued copies use, and find the program's accesses to it before a "
      "wait",
      NULL, false },
    { "--error-exitcode", "N", CLI_I32, AT(error_exit_code),
      "exit with N if a root cause was found or a defect was seen, and with 4 if nothing could be "
      "checked (default: with the program's own code)",
      NULL, false },
    { "--inconclusive-exitcode", "N", CLI_I32, AT(inconclusive_exit_code),
      "exit with N if the verdict is INCONCLUSIVE and the program itself succeeded", NULL, false },
    { "--artifacts", "DIR", CLI_TEXT, AT(artifacts),
      "keep recordings and reports in DIR/DATE/ID, as greta audit does", NULL, true },
    { "--backend", "NAME", CLI_TEXT, AT(backend), "which calls to record (default: auto, all)",
      "auto cuda hip", false },
    { "--cupti", NULL, CLI_FLAG, AT(cupti),
      "see CUDA calls through CUPTI, for programs that no library can be preloaded into", NULL,
      false },
    { "--cupti-library", "FILE", CLI_TEXT, AT(cupti_library),
      "the same with this libcupti (default: the program's own, else the toolkit's)", NULL, true },
    { "--no-coredump", NULL, CLI_FLAG, AT(no_coredump),
      "do not ask the CUDA driver for a GPU core dump of a fault", NULL, false },
    { "--keep-core", NULL, CLI_FLAG, AT(keep_core),
      "keep GPU core dumps, next to the recordings in the folder of --artifacts", NULL, false },
    { "--records", "N", CLI_U32, AT(records),
      "calls a recording holds before old ones are overwritten (default: 262144)", NULL, false },
    { "--author", "NAME", CLI_TEXT, AT(author), "name of the report's author", NULL, false },
    { "--lang", "LANGUAGE", CLI_TEXT, AT(language),
      "language of all that is printed and of report.html (default: en)", "en es", false },
    { "--quiet|-q", NULL, CLI_FLAG, AT(quiet), "print nothing if the verdict is CLEAN", NULL,
      false },
    { "--json", NULL, CLI_FLAG, AT(json), "print summary.json instead of text", NULL, false },
};

/* ---- Signals -------------------------------------------------------------------------------- */

/* The last signal that came; only the handler sets it. */
static volatile sig_atomic_t came;

static void on_signal(int number)
{
    came = number;
}

static int take_signal(void)
{
    int number = came;
    came = 0;
    return number;
}

/* Signals are for the program: greta passes them on and waits for what the program makes of them.
 * What the caller ignores (nohup) stays ignored, here and there. */
static void catch_signals(void)
{
    struct sigaction action = { .sa_handler = on_signal }, before;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < TRACE_SIGNAL_COUNT; i++)
        if (sigaction(trace_signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(trace_signals[i], &action, NULL);
}

/* Ends as the program did: the caller of greta sees the same signal. */
static void end_by(int number)
{
    struct sigaction action = { .sa_handler = SIG_DFL };
    sigset_t set;
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
    sigemptyset(&set);
    sigaddset(&set, number);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    fflush(NULL);
    raise(number);
}

/* ---- Running -------------------------------------------------------------------------------- */

static enum report_language language_of(const struct settings *settings)
{
    return strcmp(settings->language, "es") == 0 ? REPORT_SPANISH : REPORT_ENGLISH;
}

/* Exit code if the program succeeded but the verdict leaves something open; -1: the program's own.
 * A gate that was requested and could check nothing must not pass. */
static int32_t open_exit_code(const struct settings *settings, const struct trace_result *result)
{
    if (result->outcome != AUDIT_INCONCLUSIVE || result->signal || result->exit_code)
        return -1;
    if (settings->inconclusive_exit_code >= 0)
        return settings->inconclusive_exit_code;
    return settings->error_exit_code >= 0 && result->nothing_seen ? CLI_EXIT_UNDECIDED : -1;
}

static void print(const struct settings *settings, const struct trace_result *result, bool colour)
{
    if (settings->json) {
        fprintf(stderr, "%s", text_get(&result->json));
    } else if (!settings->quiet || result->outcome != AUDIT_CLEAN) {
        fprintf(stderr, "\n%sgreta trace%s\n", cli_colour_begin(colour, CLI_COLOUR_HEADING),
                cli_colour_end(colour));
        cli_put_coloured(stderr, colour, text_get(&result->table));
    }
    int32_t code = open_exit_code(settings, result);
    if (settings->json || code < 0)
        return;
    struct text words;
    text_init(&words);
    report_gate_words(code, result->nothing_seen, language_of(settings), &words);
    fputs(text_get(&words), stderr);
    text_release(&words);
}

/* The program's exit code, unless a gate overrides it. */
static enum cli_exit exit_of(const struct settings *settings, const struct trace_result *result)
{
    if (settings->error_exit_code >= 0 &&
        (result->outcome == AUDIT_ROOT_CAUSE || result->outcome == AUDIT_DEFECT_SEEN))
        return (enum cli_exit)settings->error_exit_code;
    if (open_exit_code(settings, result) >= 0)
        return (enum cli_exit)open_exit_code(settings, result);
    if (result->signal) {
        end_by(result->signal);
        return (enum cli_exit)(128 + result->signal); /* it was one that does not end a process */
    }
    return (enum cli_exit)result->exit_code;
}

static enum status check(const struct settings *settings, struct error *err)
{
    const int32_t codes[] = { settings->error_exit_code, settings->inconclusive_exit_code };
    static const char *const names[] = { "--error-exitcode", "--inconclusive-exitcode" };
    for (size_t i = 0; i < COUNT_OF(codes); i++)
        if (codes[i] < -1 || codes[i] > 255)
            return error_set(err, STATUS_USAGE, "%s: expected 0 to 255, found %d", names[i],
                             (int)codes[i]);
    if (settings->trap_host && (settings->cupti || settings->cupti_library))
        return error_set(err, STATUS_USAGE,
                         "--trap-host: expected no --cupti: page traps need preloaded libraries");
    if (settings->keep_core &&
        (settings->no_coredump || settings->cupti || settings->cupti_library))
        return error_set(
            err, STATUS_USAGE,
            "--keep-core: expected GPU core dumps, found %s, with which there are none",
            settings->no_coredump ? "--no-coredump" : "--cupti");
    if (settings->keep_core && !settings->artifacts)
        return error_set(err, STATUS_USAGE,
                         "--keep-core: expected --artifacts DIR as well, where they are kept");
    return STATUS_OK;
}

static enum cli_exit run_trace(const struct cli_invocation *invocation)
{
    const struct settings *settings = invocation->settings;
    const struct cli_environment *environment = invocation->environment;
    struct trace_result result;
    struct text command;
    struct error err;
    text_init(&command);
    cli_add_command_line(&command, environment);
    struct trace_options asked = {
        .arguments = invocation->operands,
        .environment = environment->variables,
        .program = "/proc/self/exe",
        .temporary_folder = environment->temporary_folder,
        .version = GRETA_VERSION,
        .commit = GRETA_COMMIT[0] ? GRETA_COMMIT : NULL,
        .command = text_get(&command),
        .author = settings->author,
        .artifacts = settings->artifacts,
        .backend = settings->backend,
        .cupti = settings->cupti || settings->cupti_library,
        .cupti_library = settings->cupti_library,
        .records = settings->records,
        .no_coredump = settings->no_coredump,
        .keep_core = settings->keep_core,
        .summary = settings->summary,
        .narrow = settings->narrow,
        .tensors = settings->tensors,
        .trap_host = settings->trap_host,
        .language = language_of(settings),
        .take_signal = take_signal,
    };
    trace_result_init(&result);
    catch_signals();
    enum status status = check(settings, &err);
    if (!status)
        status = campaign_trace(&asked, &result, &err);
    enum cli_exit code;
    if (status) {
        code = cli_fail(invocation, &err);
        code = code == CLI_EXIT_FAILED ? CLI_EXIT_CANNOT : code; /* 1 is the program's */
    } else {
        print(settings, &result, invocation->colour_err);
        code = exit_of(settings, &result);
    }
    trace_result_release(&result);
    text_release(&command);
    return code;
}

const struct cli_command cli_trace = {
    .name = "trace",
    .operands = "-- PROGRAM [ARGUMENT...]",
    .operand_least = 1,
    .operand_most = SIZE_MAX,
    .summary = "audit the GPU calls of any program, unmodified",
    .description =
        "Runs PROGRAM and records its calls of CUDA or HIP: allocations, copies, fills, launches "
        "with their pointer arguments, streams, events, waits, graphs, pinned memory, errors. The "
        "program is not changed or rebuilt, and keeps its input, output, signals and exit code. "
        "Findings are printed on stderr when it has ended, however it ended.\n\n"
        "greta finds copies and fills past an allocation, from or to freed memory, or in the wrong "
        "direction; double frees; frees while queued work uses the memory; pinned memory rewritten "
        "before its copy was waited for; unordered copies of the same bytes; waits missing between "
        "streams; graphs with freed pointers; leaks; the launches a fault can come from. Each "
        "finding names both calls, with their call stacks, and source lines if the program has "
        "debug information (-g). What a kernel does with a pointer is not "
        "known: findings that rest on it are called possible, with the reason, and never "
        "CONFIRMED.\n\n"
        "A kernel fault on CUDA is CONFIRMED in this run: the driver is asked for a GPU core dump "
        "of it, in a private folder, and to let the program go on with the error as usual. The "
        "dump "
        "names kernel, source line, block and thread; greta adds which launch it was, who made it, "
        "and the allocation that each pointer argument leads to. It is removed after reading, "
        "unless "
        "--keep-core is given. --no-coredump disables this; so do --cupti, and "
        "CUDA_ENABLE_COREDUMP_ON_EXCEPTION and the other variables for core dumps, which stay the "
        "caller's.\n\n"
        "With --trap-host the pages of pinned and registered memory are protected while a queued "
        "copy uses them. An access of the program before it waited is caught at its instruction, "
        "recorded and let through: a result that was read too early, a source that was "
        "rewritten.\n\n"
        "The program has libgreta_trace_cuda.so and libgreta_trace_hip.so preloaded, before what "
        "LD_PRELOAD already names. With --cupti the CUDA driver loads a library instead "
        "(CUDA_INJECTION64_PATH), which needs libcupti from the CUDA toolkit or from PyTorch; GPU "
        "core dumps are then switched off by the driver. If no call could be seen the verdict is "
        "INCONCLUSIVE and says why.\n\n"
        "Exit status: the program's own; N of --error-exitcode if a root cause was found or a "
        "defect was seen; N of --inconclusive-exitcode if the verdict is INCONCLUSIVE and the "
        "program succeeded; 4 if --error-exitcode was given without it, the program succeeded and "
        "nothing could be checked; 3 if the program could not be started.",
    .examples = "  greta trace -- ./my_program\n"
                "  greta trace --summary -- python3 infer.py\n"
                "  greta trace --error-exitcode 99 --artifacts traces -- ./tests\n"
                "  greta trace --error-exitcode 99 --inconclusive-exitcode 98 -- ./tests\n"
                "  greta trace --narrow -- ./crashes_at_a_copy\n"
                "  greta trace --trap-host -- ./reads_too_early\n",
    .options = options,
    .option_count = COUNT_OF(options),
    .settings_bytes = sizeof(defaults),
    .defaults = &defaults,
    .run = run_trace,
};
