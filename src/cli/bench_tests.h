/* bench_tests.h - what greta bench measures: the list of its tests, from the texts of its options.
 */
#ifndef GRETA_CLI_BENCH_TESTS_H
#define GRETA_CLI_BENCH_TESTS_H

#include "cli/cli.h"

/* Prompt tokens in batches, then generated ones one by one, behind `depth` tokens of context. */
struct bench_test {
    uint32_t prompt, generate, depth;
};

#define BENCH_TEST_LIMIT 256u

struct bench_tests {
    struct bench_test items[BENCH_TEST_LIMIT];
    size_t count;
};

/* As they were given: numbers with commas between them; borrowed. */
struct bench_test_texts {
    const char *prompts, *generates, *depths;
    const struct cli_text_list *pairs; /* each a prompt and what is generated behind it */
};

/* Every prompt, every generation, every pair, each at every depth, in this order; nothing of no
 * tokens, and at least one test. tests is empty before; after a failure it has some of them. */
MUST_CHECK enum status bench_tests_list(const struct bench_test_texts *texts,
                                        struct bench_tests *tests, struct error *err);

#endif
