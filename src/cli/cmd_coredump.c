/* cmd_coredump.c - greta coredump: what a GPU core dump says. */
#include "cli/cli.h"
#include "cli/colour.h"
#include "coredump/coredump.h"
#include "report/report.h"

#include <errno.h>
#include <string.h>

struct settings {
    bool json;
    const char *language;
};

static const struct settings defaults = { .language = "en" };

#define AT(field) offsetof(struct settings, field)

static const struct cli_option options[] = {
    { "--json", NULL, CLI_FLAG, AT(json), "JSON instead of text", NULL, false },
    { "--lang", "LANGUAGE", CLI_TEXT, AT(language), "language of the text (default: en)", "en es",
      false },
};

static enum status print(const struct cli_invocation *invocation, const struct coredump *dump,
                         struct error *err)
{
    const struct settings *settings = invocation->settings;
    bool spanish = strcmp(settings->language, "es") == 0;
    enum status status = STATUS_OK;
    struct text text;
    text_init(&text);
    if (settings->json)
        report_coredump_json(dump, &text);
    else
        report_coredump(dump, spanish ? REPORT_SPANISH : REPORT_ENGLISH, &text);
    if (text.failed)
        status = error_set(err, STATUS_NO_MEMORY, "%s: no memory to print it",
                           invocation->operands[1]);
    /* What was read is only worth printing if the file stayed whole meanwhile. */
    if (!status)
        status = coredump_check(dump, err);
    if (!status && settings->json)
        fputs(text_get(&text), stdout);
    else if (!status)
        cli_put_table(stdout, invocation->colour_out, text_get(&text));
    if (!status && (fflush(stdout) != 0 || ferror(stdout)))
        status = error_set_os(err, errno, "cannot write the output");
    text_release(&text);
    return status;
}

static enum status run(const struct cli_invocation *invocation, bool *ret_failed, struct error *err)
{
    struct coredump *dump;
    uint64_t exceptions;
    if (strcmp(invocation->operands[0], "show") != 0)
        return error_set(err, STATUS_USAGE, "expected show, found '%s'", invocation->operands[0]);
    if (invocation->operand_count < 2)
        return error_set(err, STATUS_USAGE, "show: expected a FILE, found none");
    TRY(coredump_open(invocation->operands[1], &dump, err));
    enum status status = print(invocation, dump, err);
    (void)coredump_exception_count(dump, &exceptions);
    *ret_failed = exceptions > 0;
    coredump_close(dump);
    return status;
}

static enum cli_exit run_coredump(const struct cli_invocation *invocation)
{
    struct error err;
    bool failed;
    cli_catch_interrupts();
    if (run(invocation, &failed, &err))
        return cli_fail(invocation, &err);
    return failed ? CLI_EXIT_FAILED : CLI_EXIT_OK;
}

const struct cli_command cli_coredump = {
    .name = "coredump",
    .operands = "show FILE",
    .actions = "show",
    .operand_least = 1,
    .operand_most = 2,
    .summary = "say what died where, from a GPU core dump",
    .description =
        "Reads a core dump that NVIDIA's driver wrote for a GPU "
        "(CUDA_ENABLE_COREDUMP_ON_EXCEPTION), "
        "of any program, without a debugger or a toolkit.\n\n"
        "show: the first line says which kernel failed, at which source line, with which "
        "exception, in which block and thread. Then come the device, the launch with its "
        "dimensions and arguments, the other grids that were alive, and what the dump does not "
        "decide: a kernel is named only if one name is left. Source lines need a program that was "
        "built with nvcc -lineinfo.\n\n"
        "Exit status 1 if the dump has an exception, 0 if it has none, 3 if it cannot be read.",
    .examples = "  greta coredump show core_4711               # what died where\n"
                "  greta coredump show core_4711 --lang es     # the same in Spanish\n"
                "  greta coredump show core_4711 --json        # everything, for scripts\n",
    .options = options,
    .option_count = COUNT_OF(options),
    .settings_bytes = sizeof(defaults),
    .defaults = &defaults,
    .run = run_coredump,
};
