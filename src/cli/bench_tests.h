/* bench_tests.h - the list of tests of greta bench, from its options. */
#ifndef GRETA_CLI_BENCH_TESTS_H
#define GRETA_CLI_BENCH_TESTS_H

#include "cli/cli.h"

/* Prompt tokens in batches, then generated ones one by one, after `depth` tokens of context. */
struct bench_test {
    uint32_t prompt, generate, depth;
};

#define BENCH_TEST_LIMIT 256u

struct bench_tests {
    struct bench_test items[BENCH_TEST_LIMIT];
    size_t count;
};

/* As given by the user: numbers separated by commas; borrowed. */
struct bench_test_texts {
    const char *prompts, *generates, *depths;
    const struct cli_text_list *pairs; /* each a prompt length and the number of tokens generated
                                          after it */
};

/* Makes a test of every prompt, every generation and every pair, each at every depth, in this
 * order. Tests without tokens are left out; at least one test must remain. tests must be empty;
 * after a failure it holds some of them. */
MUST_CHECK enum status bench_tests_list(const struct bench_test_texts *texts,
                                        struct bench_tests *tests, struct error *err);

#endif
