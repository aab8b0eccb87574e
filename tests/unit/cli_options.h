/* cli_options.h - a command with a table of options, and command lines parsed against it. */
#ifndef GRETA_TESTS_CLI_OPTIONS_H
#define GRETA_TESTS_CLI_OPTIONS_H

#include "test.h"

#include "cli/cli.h"

struct settings {
    bool json, force;
    const char *shape, *out;
    uint32_t context;
    uint64_t seed;
    struct cli_text_list names;
};

static const struct cli_option options[] = {
    { "--json", NULL, CLI_FLAG, offsetof(struct settings, json), "h", NULL, false },
    { "--force|-f", NULL, CLI_FLAG, offsetof(struct settings, force), "h", NULL, false },
    { "--shape|-s", "NAME", CLI_TEXT, offsetof(struct settings, shape), "h", "tiny large", false },
    { "--out|-o", "FILE", CLI_TEXT, offsetof(struct settings, out), "h", NULL, true },
    { "--ctx|-c|--ctx-size", "N", CLI_U32, offsetof(struct settings, context), "h", NULL, false },
    { "--seed", "N", CLI_U64, offsetof(struct settings, seed), "h", NULL, false },
    { "--name|-n", "X", CLI_TEXT_LIST, offsetof(struct settings, names), "h", "a b", false },
};

static const struct cli_refusal refusals[] = { { "-cnv|--conversation", "say it yourself" } };

static const struct cli_command command = { .name = "try",
                                            .operands = "IN OUT",
                                            .operand_least = 1,
                                            .operand_most = 2,
                                            .options = options,
                                            .option_count = COUNT_OF(options),
                                            .refusals = refusals,
                                            .refusal_count = COUNT_OF(refusals) };

#define ARGUMENT_LIMIT 6

/* What cli_parse made of a line. */
struct outcome {
    enum status status;
    struct settings settings;
    struct cli_common common;
    const char *operands[ARGUMENT_LIMIT];
    size_t operand_count;
    bool help;
    struct error err;
};

static inline struct outcome parse_line(const char *const *words)
{
    struct outcome outcome = { .settings = { .shape = "default", .context = 7 } };
    char *arguments[ARGUMENT_LIMIT];
    int count = 0;
    for (; count < ARGUMENT_LIMIT && words[count]; count++)
        arguments[count] = (char *)(uintptr_t)words[count];
    outcome.status = cli_parse(&command, count, arguments, &outcome.settings, &outcome.common,
                               outcome.operands, &outcome.operand_count, &outcome.help,
                               &outcome.err);
    return outcome;
}

#endif
