/* fuzz_inject.c - any bytes as the plan of a planted fault, as --inject has it. What is accepted
 * must hold what was read: every text ended, every number in its range. */
#include "inject/inject.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct inject_plan plan;
    struct inject_stage stage = { .layer_count = 4, .step_limit = 10, .run_count = 8 };
    struct error err;
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (!inject_parse(text, &plan, &err)) {
        ASSERT((unsigned)plan.fault < INJECT_FAULT_COUNT);
        ASSERT(plan.layer >= -1 && plan.step >= -1 && plan.run >= -1);
        ASSERT(memchr(plan.op, 0, sizeof(plan.op)) &&
               memchr(plan.operand, 0, sizeof(plan.operand)) &&
               memchr(plan.tensor, 0, sizeof(plan.tensor)));
        if (!inject_check(&plan, &stage, &err))
            ASSERT(plan.layer < 4 && plan.step < 10 && plan.run != 0 && plan.run <= 8);
    }
    free(text);
    return 0;
}
