/* fuzz_inject.c - any bytes as the spec of a planted fault, as --inject has it. What is accepted
 * must hold what was read: every text ended, every number in its range. */
#include "inject/inject.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct inject_spec spec;
    struct inject_stage stage = { .layer_count = 4, .step_limit = 10, .run_count = 8 };
    struct error err;
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (!inject_parse(text, &spec, &err)) {
        ASSERT((unsigned)spec.fault < INJECT_FAULT_COUNT);
        ASSERT(spec.layer >= -1 && spec.step >= -1 && spec.run >= -1);
        ASSERT(memchr(spec.op, 0, sizeof(spec.op)) &&
               memchr(spec.operand, 0, sizeof(spec.operand)) &&
               memchr(spec.tensor, 0, sizeof(spec.tensor)));
        if (!inject_check(&spec, &stage, &err))
            ASSERT(spec.layer < 4 && spec.step < 10 && spec.run != 0 && spec.run <= 8);
    }
    free(text);
    return 0;
}
