/* run.c - from argv to a command's exit code. */
#include "cli/cli.h"

#include "base/text.h"
#include "campaign/campaign.h"
#include "cli/version.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] && strcmp(value, "0") != 0;
}

extern char **environ; /* POSIX gives it no header */

/* The value of the first variable that is set, followed by suffix; otherwise `otherwise`. A path
 * that is too long counts as none. */
static void set_folder(char folder[CLI_FOLDER_BYTES], const char *name, const char *suffix,
                       const char *otherwise)
{
    const char *value = getenv(name);
    int length = value && value[0] ? snprintf(folder, CLI_FOLDER_BYTES, "%s%s", value, suffix) : -1;
    if (length < 0 || length >= CLI_FOLDER_BYTES)
        snprintf(folder, CLI_FOLDER_BYTES, "%s", otherwise);
}

/* True for a terminal that obeys control sequences. */
static bool obeys(int descriptor)
{
    const char *terminal = getenv("TERM");
    return isatty(descriptor) == 1 && terminal && terminal[0] && strcmp(terminal, "dumb") != 0;
}

/* The user may not want colours where they can be shown (https://no-color.org). */
static bool wants_colour(int descriptor)
{
    const char *none = getenv("NO_COLOR");
    return obeys(descriptor) && !(none && none[0]);
}

static struct cli_environment read_environment(int argument_count, char **arguments)
{
    struct cli_environment environment = {
        .guard_rail_disabled = is_set("GRETA_DISABLE_GUARD_RAIL"),
        .progress_shown = obeys(STDERR_FILENO),
        .colour_out = wants_colour(STDOUT_FILENO),
        .colour_err = wants_colour(STDERR_FILENO),
        .d2h_trace = is_set("GRETA_TRACE_MEMCPY"),
        .d2h_audit = is_set("GCORE_D2H_AUDIT"),
        .d2h_debug = is_set("GRETA_D2H_DEBUG"),
        .d2h_audit_log = is_set("GCORE_D2H_AUDIT_LOG") ? getenv("GCORE_D2H_AUDIT_LOG") : NULL,
        .arguments = arguments,
        .argument_count = argument_count,
        .variables = (const char *const *)environ,
    };
    char home[CLI_FOLDER_BYTES];
    set_folder(home, "HOME", "/.cache/greta", "");
    set_folder(environment.cache_folder, "XDG_CACHE_HOME", "/greta", home);
    set_folder(environment.temporary_folder, "TMPDIR", "", "/tmp");
    set_folder(environment.runtime_folder, "XDG_RUNTIME_DIR", "", environment.temporary_folder);
    return environment;
}

/* Applies --color, if it was given. */
static void apply_colour(struct cli_invocation *invocation, const char *when)
{
    if (!when || strcasecmp(when, "auto") == 0)
        return;
    bool on = strcasecmp(when, "always") == 0 || strcasecmp(when, "on") == 0;
    invocation->colour_out = invocation->colour_err = on;
}

static enum cli_exit run_command(const struct cli_command *command, int argument_count,
                                 char **arguments, const struct cli_environment *environment)
{
    struct cli_invocation invocation = { .command = command,
                                         .environment = environment,
                                         .colour_out = environment->colour_out,
                                         .colour_err = environment->colour_err };
    struct cli_common common = { 0 };
    void *settings = malloc(command->settings_bytes ? command->settings_bytes : 1);
    const char **operands = calloc((size_t)argument_count + 1, sizeof(*operands));
    enum cli_exit code;
    struct error err;
    bool help = false;
    if (!settings || !operands) {
        error_set_at(&err, STATUS_NO_MEMORY, __FILE__, __LINE__, "no memory to start");
        code = cli_fail(&invocation, &err);
        goto done;
    }
    if (command->settings_bytes)
        memcpy(settings, command->defaults, command->settings_bytes);
    if (cli_parse(command, argument_count, arguments, settings, &common, operands,
                  &invocation.operand_count, &help, &err)) {
        code = cli_fail(&invocation, &err);
        goto done;
    }
    invocation.quiet = common.quiet;
    apply_colour(&invocation, common.colour);
    if (help) {
        cli_print_command_help(stdout, invocation.colour_out, command);
        code = CLI_EXIT_OK;
        goto done;
    }
    invocation.settings = settings;
    invocation.operands = operands;
    code = command->run(&invocation);
done:
    free(settings);
    free(operands);
    return code;
}

static enum cli_exit unknown_command(const char *name)
{
    char list[256] = "", nearest[64], shown[256];
    for (size_t i = 0; i < cli_command_count(); i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof(list) - used, "%s ", cli_command_at(i)->name);
    }
    const char *hint = cli_nearest(name, list, nearest, sizeof(nearest));
    fprintf(stderr, "greta: unknown command '%s'%s%s%s (see greta --help)\n",
            text_printable(text_view_of(name), shown, sizeof(shown)), hint ? "; did you mean " : "",
            hint ? hint : "", hint ? "?" : "");
    return CLI_EXIT_USAGE;
}

static enum cli_exit dispatch(int argument_count, char **arguments)
{
    struct cli_environment environment = read_environment(argument_count, arguments);
    const char *slash = argument_count > 0 ? strrchr(arguments[0], '/') : NULL;
    const char *called = slash ? slash + 1 : argument_count > 0 ? arguments[0] : "greta";
    cli_catch_interrupts();
    /* greta_infer is another name of `greta infer`. */
    bool is_infer = strcmp(called, "greta_infer") == 0;
    const char *name = is_infer ? "infer" : argument_count > 1 ? arguments[1] : NULL;
    int used = is_infer ? 1 : 2;
    if (!name) {
        cli_print_help(stderr, environment.colour_err);
        return CLI_EXIT_USAGE;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) {
        cli_print_help(stdout, environment.colour_out);
        return CLI_EXIT_OK;
    }
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
        printf("greta %s\n", GRETA_VERSION);
        return CLI_EXIT_OK;
    }
    if (!is_infer && strcmp(name, CAMPAIGN_WORKER_COMMAND) == 0)
        return cli_audit_worker(argument_count - used, arguments + used);
    const struct cli_command *command = cli_command_find(name);
    if (command)
        return run_command(command, argument_count - used, arguments + used, &environment);
    return unknown_command(name);
}

enum cli_exit cli_run(int argument_count, char **arguments)
{
    enum cli_exit code = dispatch(argument_count, arguments);
    /* Help and version are printed without a check of each write; a full disk is noticed here. */
    if (code == CLI_EXIT_OK && (fflush(stdout) != 0 || ferror(stdout))) {
        fprintf(stderr, "greta: cannot write to standard output\n");
        return CLI_EXIT_CANNOT;
    }
    return code;
}
