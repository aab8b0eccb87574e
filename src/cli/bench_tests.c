/* bench_tests.c - see bench_tests.h. A number is at most TOKEN_LIMIT, so that the tokens of a test
 * can be added up in 32 bits. */
#include "cli/bench_tests.h"

#include <stdlib.h>

#define LIST_LIMIT 16u /* numbers of an option */
#define TOKEN_LIMIT (1u << 24)

struct number_list {
    uint32_t numbers[LIST_LIMIT];
    size_t count;
};

/* "128,512" */
static enum status read_list(const char *name, const char *text, struct number_list *list,
                             struct error *err)
{
    list->count = 0;
    for (const char *at = text;; at++) {
        char *end;
        unsigned long number = strtoul(at, &end, 10);
        if (*at < '0' || *at > '9' || number > TOKEN_LIMIT || (*end && *end != ',') ||
            list->count == LIST_LIMIT)
            return error_set(
                err, STATUS_USAGE,
                "%s: expected up to %u numbers of at most %u with commas between them, "
                "found '%s'",
                name, LIST_LIMIT, TOKEN_LIMIT, text);
        list->numbers[list->count++] = (uint32_t)number;
        at = end;
        if (!*at)
            return STATUS_OK;
    }
}

static enum status add_test(struct bench_tests *tests, uint32_t prompt, uint32_t generate,
                            const struct number_list *depths, struct error *err)
{
    for (size_t i = 0; i < depths->count && (prompt || generate); i++) {
        if (tests->count == BENCH_TEST_LIMIT)
            return error_set(err, STATUS_USAGE, "expected at most %u tests", BENCH_TEST_LIMIT);
        tests->items[tests->count++] = (struct bench_test){ prompt, generate, depths->numbers[i] };
    }
    return STATUS_OK;
}

enum status bench_tests_list(const struct bench_test_texts *texts, struct bench_tests *tests,
                             struct error *err)
{
    struct number_list prompts, generates, depths, pair;
    TRY(read_list("--n-prompt", texts->prompts, &prompts, err));
    TRY(read_list("--n-gen", texts->generates, &generates, err));
    TRY(read_list("--n-depth", texts->depths, &depths, err));
    for (size_t i = 0; i < prompts.count; i++)
        TRY(add_test(tests, prompts.numbers[i], 0, &depths, err));
    for (size_t i = 0; i < generates.count; i++)
        TRY(add_test(tests, 0, generates.numbers[i], &depths, err));
    for (size_t i = 0; i < texts->pairs->count; i++) {
        TRY(read_list("--pg", texts->pairs->items[i], &pair, err));
        if (pair.count != 2)
            return error_set(err, STATUS_USAGE, "--pg: expected two numbers, found '%s'",
                             texts->pairs->items[i]);
        TRY(add_test(tests, pair.numbers[0], pair.numbers[1], &depths, err));
    }
    if (tests->count == 0)
        return error_set(err, STATUS_USAGE,
                         "expected a prompt or generation length above 0, found only zeros");
    return STATUS_OK;
}
