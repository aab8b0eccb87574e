/* options.c - parses the command line with a command's table. */
#include "cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool cli_option_name(const struct cli_option *option, size_t index, char *name, size_t name_bytes)
{
    const char *at = option->names;
    for (; index > 0; index--) {
        at = strchr(at, '|');
        if (!at)
            return false;
        at++;
    }
    snprintf(name, name_bytes, "%.*s", (int)strcspn(at, "|"), at);
    return true;
}

/* ---- Near misses ---------------------------------------------------------------------------- */

#define WORD_LIMIT 32

/* Changes (insert, remove, replace) from a to b; words beyond the limit are far from everything. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t a_length = strlen(a), b_length = strlen(b);
    if (a_length > WORD_LIMIT || b_length > WORD_LIMIT)
        return SIZE_MAX;
    size_t row[WORD_LIMIT + 1];
    for (size_t j = 0; j <= b_length; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            size_t shorter = row[j - 1] < row[j] ? row[j - 1] : row[j];
            row[j] = replaced < shorter + 1 ? replaced : shorter + 1;
        }
    }
    return row[b_length];
}

/* Words are near below this distance. It is 0 for a letter or two, or every other word would be
 * near. */
static size_t near_limit(const char *word)
{
    size_t length = strlen(word + strspn(word, "-"));
    return length < 3 ? 0 : length < 5 ? 2 : 3;
}

static const char *nearest_of(const char *word, const char *list, size_t *best, char *buffer,
                              size_t buffer_bytes)
{
    bool found = false;
    while (*list) {
        size_t length = strcspn(list, " |");
        char candidate[64];
        snprintf(candidate, sizeof(candidate), "%.*s", (int)length, list);
        size_t distance = length ? edit_distance(word, candidate) : SIZE_MAX;
        if (distance < *best) {
            *best = distance;
            snprintf(buffer, buffer_bytes, "%s", candidate);
            found = true;
        }
        list += length + (list[length] != '\0');
    }
    return found ? buffer : NULL;
}

const char *cli_nearest(const char *word, const char *list, char *buffer, size_t buffer_bytes)
{
    size_t best = near_limit(word);
    return nearest_of(word, list, &best, buffer, buffer_bytes);
}

/* True if the name is in a list such as "--one|-o". */
static bool is_listed(const char *names, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = names; *at;) {
        size_t word = strcspn(at, "|");
        if (word == length && strncmp(at, name, length) == 0)
            return true;
        at += word + (at[word] == '|');
    }
    return false;
}

static enum status unknown_flag(const struct cli_command *command, const char *flag,
                                struct error *err)
{
    char nearest[64];
    const char *hint = NULL;
    size_t best = near_limit(flag);
    for (size_t i = 0; i < command->refusal_count; i++)
        if (is_listed(command->refusals[i].names, flag))
            return error_set(err, STATUS_USAGE, "%s is not an option of greta: %s", flag,
                             command->refusals[i].instead);
    for (size_t i = 0; i < command->option_count; i++) {
        const char *near = nearest_of(flag, command->options[i].names, &best, nearest,
                                      sizeof(nearest));
        hint = near ? near : hint;
    }
    return error_set(err, STATUS_USAGE, "unknown flag '%s'%s%s%s (see greta %s --help)", flag,
                     hint ? "; did you mean " : "", hint ? hint : "", hint ? "?" : "",
                     command->name);
}

/* ---- Values --------------------------------------------------------------------------------- */

static enum status parse_number(const char *name, const char *text, uint64_t most, uint64_t *ret,
                                struct error *err)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    /* strtoull accepts a sign and spaces; options do not. */
    if (text[0] < '0' || text[0] > '9' || *end != '\0')
        return error_set(err, STATUS_USAGE, "%s: expected a whole number from 0, found '%s'", name,
                         text);
    if (errno == ERANGE || value > most)
        return error_set(err, STATUS_USAGE, "%s: expected at most %" PRIu64 ", found '%s'", name,
                         most, text);
    *ret = value;
    return STATUS_OK;
}

static enum status parse_signed(const char *name, const char *text, int32_t *ret, struct error *err)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    bool plain = (text[0] >= '0' && text[0] <= '9') || text[0] == '-';
    if (!plain || *end != '\0' || end == text || errno || value < INT32_MIN || value > INT32_MAX)
        return error_set(err, STATUS_USAGE,
                         "%s: expected a whole number from %" PRId32 " to %" PRId32 ", found '%s'",
                         name, INT32_MIN, INT32_MAX, text);
    *ret = (int32_t)value;
    return STATUS_OK;
}

static enum status parse_real(const char *name, const char *text, float *ret, struct error *err)
{
    char *end;
    errno = 0;
    float value = strtof(text, &end);
    if (text[0] == '\0' || isspace((unsigned char)text[0]) || *end != '\0' || !isfinite(value))
        return error_set(err, STATUS_USAGE, "%s: expected a number, found '%s'", name, text);
    *ret = value;
    return STATUS_OK;
}

static enum status check_listed(const struct cli_option *option, const char *name, const char *text,
                                struct error *err)
{
    if (!option->values)
        return STATUS_OK;
    size_t length = strlen(text);
    for (const char *at = option->values; *at;) {
        size_t word = strcspn(at, " ");
        if (word == length && strncasecmp(at, text, length) == 0)
            return STATUS_OK;
        at += word + (at[word] == ' ');
    }
    return error_set(err, STATUS_USAGE, "%s: expected one of: %s; found '%s'", name, option->values,
                     text);
}

static enum status add_to_list(struct cli_text_list *list, const char *name, const char *text,
                               struct error *err)
{
    if (list->count == CLI_LIST_LIMIT)
        return error_set(err, STATUS_USAGE, "%s: expected at most %d times, found more", name,
                         CLI_LIST_LIMIT);
    list->items[list->count++] = text;
    return STATUS_OK;
}

static enum status store(const struct cli_option *option, const char *name, const char *text,
                         void *settings, struct error *err)
{
    char *target = (char *)settings + option->offset;
    uint64_t number;
    switch (option->kind) {
    case CLI_FLAG:
        *(bool *)target = true;
        break;
    case CLI_CLEAR_FLAG:
        *(bool *)target = false;
        break;
    case CLI_TEXT:
        TRY(check_listed(option, name, text, err));
        *(const char **)target = text;
        break;
    case CLI_U32:
        TRY(parse_number(name, text, UINT32_MAX, &number, err));
        *(uint32_t *)target = (uint32_t)number;
        break;
    case CLI_U64:
        TRY(parse_number(name, text, UINT64_MAX, &number, err));
        *(uint64_t *)target = number;
        break;
    case CLI_I32:
        TRY(parse_signed(name, text, (int32_t *)target, err));
        break;
    case CLI_F32:
        TRY(parse_real(name, text, (float *)target, err));
        break;
    case CLI_TEXT_LIST:
        TRY(check_listed(option, name, text, err));
        return add_to_list((struct cli_text_list *)(void *)target, name, text, err);
    }
    return STATUS_OK;
}

bool cli_option_changed(const struct cli_option *option, const void *settings, const void *defaults)
{
    static const size_t value_bytes[] = {
        [CLI_FLAG] = sizeof(bool),         [CLI_CLEAR_FLAG] = sizeof(bool),
        [CLI_TEXT] = sizeof(const char *), [CLI_U32] = sizeof(uint32_t),
        [CLI_U64] = sizeof(uint64_t),      [CLI_I32] = sizeof(int32_t),
        [CLI_F32] = sizeof(float),         [CLI_TEXT_LIST] = sizeof(struct cli_text_list),
    };
    return memcmp((const char *)settings + option->offset, (const char *)defaults + option->offset,
                  value_bytes[option->kind]) != 0;
}

/* ---- The whole line ------------------------------------------------------------------------- */

static const struct cli_option *find_option(const struct cli_option *options, size_t count,
                                            const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (is_listed(options[i].names, name))
            return &options[i];
    return NULL;
}

/* --color alone means --color always: the next word is its value only if it can be. */
static bool takes_next(const struct cli_option *option, const char *next)
{
    struct error unused;
    return option->offset != offsetof(struct cli_common, colour) ||
           check_listed(option, "", next, &unused) == STATUS_OK;
}

/* Looks among the options of every command. */
static enum status parse_common(const struct cli_option *option, const char *name,
                                const char *equals, int argument_count, char *const *arguments,
                                int *at, struct cli_common *common, struct error *err)
{
    if (!option->argument)
        return equals ? error_set(err, STATUS_USAGE, "%s: expected no value, found '%s'", name,
                                  equals + 1)
                      : store(option, name, NULL, common, err);
    if (equals)
        return store(option, name, equals + 1, common, err);
    if (*at + 1 < argument_count && takes_next(option, arguments[*at + 1]))
        return store(option, name, arguments[++*at], common, err);
    return store(option, name, "always", common, err);
}

/* Parses one option at arguments[*at], and skips its value. */
static enum status parse_flag(const struct cli_command *command, int argument_count,
                              char *const *arguments, int *at, void *settings,
                              struct cli_common *common, struct error *err)
{
    const char *argument = arguments[*at];
    char name[64];
    const char *equals = strncmp(argument, "--", 2) == 0 ? strchr(argument, '=') : NULL;
    snprintf(name, sizeof(name), "%.*s", equals ? (int)(equals - argument) : 63, argument);
    const struct cli_option *option = find_option(command->options, command->option_count, name);
    const struct cli_option *shared = find_option(cli_common_options, CLI_COMMON_OPTION_COUNT,
                                                  name);
    if (!option && shared)
        return parse_common(shared, name, equals, argument_count, arguments, at, common, err);
    if (!option)
        return unknown_flag(command, name, err);
    if (!option->argument) {
        if (equals)
            return error_set(err, STATUS_USAGE, "%s: expected no value, found '%s'", name,
                             equals + 1);
        return store(option, name, NULL, settings, err);
    }
    if (equals)
        return store(option, name, equals + 1, settings, err);
    if (*at + 1 >= argument_count)
        return error_set(err, STATUS_USAGE, "%s: expected a value (%s), found none", name,
                         option->argument);
    (*at)++;
    return store(option, name, arguments[*at], settings, err);
}

static enum status check_operands(const struct cli_command *command, size_t count,
                                  const char *const *operands, struct error *err)
{
    if (count < command->operand_least)
        return error_set(err, STATUS_USAGE, "expected %s, found %s (see greta %s --help)",
                         command->operands, count ? operands[count - 1] : "nothing", command->name);
    if (count > command->operand_most)
        return error_set(err, STATUS_USAGE, "expected %s, found '%s' too (see greta %s --help)",
                         command->operands[0] ? command->operands : "no operands",
                         operands[command->operand_most], command->name);
    return STATUS_OK;
}

enum status cli_parse(const struct cli_command *command, int argument_count, char *const *arguments,
                      void *settings, struct cli_common *common, const char **operands,
                      size_t *ret_operand_count, bool *ret_help, struct error *err)
{
    size_t count = 0;
    bool flags_over = false;
    *ret_help = false;
    for (int at = 0; at < argument_count; at++) {
        const char *argument = arguments[at];
        bool flag = !flags_over && argument[0] == '-' && argument[1] != '\0';
        if (!flag) {
            operands[count++] = argument;
        } else if (strcmp(argument, "--") == 0) {
            flags_over = true;
        } else if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0) {
            *ret_help = true;
            return STATUS_OK;
        } else {
            TRY(parse_flag(command, argument_count, arguments, &at, settings, common, err));
        }
    }
    *ret_operand_count = count;
    return check_operands(command, count, operands, err);
}
