/* compile.c - rules to a program, last steps first: every part is compiled knowing its successor.
 *
 * Parts that no text matches become failures, so that from every state of the automaton some text
 * leads to the end. */
#include "grammar/program.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

/* A repetition of at most this many bytes is written out: no stack, fewer states. */
#define UNROLL_LIMIT 8u
/* Copies of what may be empty, which cannot be counted. */
#define COPY_LIMIT 64u

struct compiler {
    struct program *program;
    const struct rules *rules;
    const uint8_t *facts;
    unsigned depth;
};

static uint32_t compile(struct compiler *compiler, uint32_t number, uint32_t next);

/* ---- Steps ---------------------------------------------------------------------------------- */

uint32_t program_add(struct program *program, struct program_step step)
{
    if (program->error.status)
        return 0;
    if (program->step_count == PROGRAM_LIMIT) {
        (void)error_set(&program->error, STATUS_LIMIT,
                        "grammar: expected a program of at most %u steps, found more",
                        PROGRAM_LIMIT);
        return 0;
    }
    struct program_step *steps = array_reserve(program->steps, program->step_count,
                                               &program->step_capacity, sizeof(*steps));
    if (!steps) {
        (void)error_set(&program->error, STATUS_NO_MEMORY, "no memory for a grammar");
        return 0;
    }
    program->steps = steps;
    steps[program->step_count] = step;
    return (uint32_t)program->step_count++;
}

uint32_t program_add_set(struct program *program, const struct byte_set *set, uint32_t next)
{
    if (program->error.status)
        return 0;
    size_t number = program->set_count;
    /* The newest ones are the likeliest to be equal. */
    for (size_t i = number; i-- > 0 && number - i < 64;)
        if (memcmp(&program->sets[i], set, sizeof(*set)) == 0)
            return program_add(
                program, (struct program_step){ .op = PROGRAM_SET, .a = (uint32_t)i, .b = next });
    struct byte_set *sets = array_reserve(program->sets, number, &program->set_capacity,
                                          sizeof(*sets));
    if (!sets) {
        (void)error_set(&program->error, STATUS_NO_MEMORY, "no memory for a grammar");
        return 0;
    }
    program->sets = sets;
    sets[program->set_count++] = *set;
    return program_add(
        program, (struct program_step){ .op = PROGRAM_SET, .a = (uint32_t)number, .b = next });
}

void program_release(struct program *program)
{
    free(program->steps);
    free(program->sets);
    free(program->entries);
    *program = (struct program){ 0 };
}

/* ---- Parts ---------------------------------------------------------------------------------- */

static uint32_t add_split(struct compiler *compiler, uint32_t a, uint32_t b)
{
    return program_add(compiler->program,
                       (struct program_step){ .op = PROGRAM_SPLIT, .a = a, .b = b });
}

static uint32_t compile_text(struct compiler *compiler, const struct rules_node *node,
                             uint32_t next)
{
    for (uint32_t i = node->b; i-- > 0;) {
        uint8_t byte = (uint8_t)compiler->rules->texts.bytes[node->a + i];
        struct byte_set set = { { 0 } };
        set.bits[byte >> 6] = (uint64_t)1 << (byte & 63);
        next = program_add_set(compiler->program, &set, next);
    }
    return next;
}

/* A loop without a count: the split comes before its body, and is patched. */
static uint32_t compile_star(struct compiler *compiler, uint32_t body, uint32_t next)
{
    uint32_t split = add_split(compiler, 0, next);
    uint32_t begin = compile(compiler, body, split);
    if (!compiler->program->error.status)
        compiler->program->steps[split].a = begin;
    return split;
}

/* The body `least` to `most` times, written out. */
static uint32_t compile_copies(struct compiler *compiler, uint32_t body, uint32_t least,
                               uint32_t most, uint32_t next)
{
    uint32_t end = next;
    if (most == RULES_NO_LIMIT)
        next = compile_star(compiler, body, next);
    else
        for (uint32_t i = least; i < most && !compiler->program->error.status; i++)
            next = add_split(compiler, compile(compiler, body, next), end);
    for (uint32_t i = 0; i < least && !compiler->program->error.status; i++)
        next = compile(compiler, body, next);
    return next;
}

static bool is_small(const struct compiler *compiler, uint32_t number)
{
    const struct rules_node *node = &compiler->rules->nodes[number];
    return node->kind == RULES_SET || (node->kind == RULES_TEXT && node->b == 1);
}

static uint32_t compile_repeat(struct compiler *compiler, const struct rules_node *node,
                               uint32_t next)
{
    uint32_t least = node->least, most = node->most;
    bool nullable = compiler->facts[node->a] & RULES_NULLABLE;
    if (!(compiler->facts[node->a] & RULES_PRODUCTIVE))
        return next; /* none: the whole node is productive */
    if (nullable)
        least = 0;
    if (most == RULES_NO_LIMIT && least == 0)
        return compile_star(compiler, node->a, next);
    if (nullable && most > COPY_LIMIT) {
        if (!compiler->program->error.status)
            (void)error_set(&compiler->program->error, STATUS_LIMIT,
                            "grammar: expected at most %u repetitions of a part that may be "
                            "empty, found %u",
                            COPY_LIMIT, most);
        return 0;
    }
    uint32_t copies = most == RULES_NO_LIMIT ? least : most;
    if (nullable || most == 1 || (most == RULES_NO_LIMIT && least == 1) ||
        (copies <= UNROLL_LIMIT && is_small(compiler, node->a)))
        return compile_copies(compiler, node->a, least, most, next);
    uint32_t end = program_add(compiler->program, (struct program_step){ .op = PROGRAM_RETURN });
    uint32_t body = compile(compiler, node->a, end);
    return program_add(
        compiler->program,
        (struct program_step){
            .op = PROGRAM_REPEAT, .a = body, .b = next, .least = least, .most = most });
}

/* Sequences and choices lean to the left, so that only their last parts are nested. */
static uint32_t compile_parts(struct compiler *compiler, uint32_t number, uint32_t next)
{
    const struct rules_node *nodes = compiler->rules->nodes;
    uint32_t split = 0;
    while (compiler->facts[number] & RULES_PRODUCTIVE && !compiler->program->error.status) {
        const struct rules_node *node = &nodes[number];
        if (node->kind == RULES_SEQ && !split) {
            next = compile(compiler, node->b, next);
            number = node->a;
            continue;
        }
        if (node->kind != RULES_ALT)
            break;
        if (compiler->facts[node->b] & RULES_PRODUCTIVE) {
            uint32_t other = compile(compiler, node->b, next);
            split = split ? add_split(compiler, other, split) : other;
        }
        number = node->a;
    }
    if (!(compiler->facts[number] & RULES_PRODUCTIVE))
        return split;
    uint32_t first = compile(compiler, number, next);
    return split ? add_split(compiler, first, split) : first;
}

static uint32_t compile(struct compiler *compiler, uint32_t number, uint32_t next)
{
    const struct rules_node *node = &compiler->rules->nodes[number];
    uint32_t step = 0;
    if (compiler->program->error.status || !(compiler->facts[number] & RULES_PRODUCTIVE))
        return 0;
    /* Reached by repetitions of choices in sequences: each is a few frames. */
    if (++compiler->depth > 4 * RULES_DEPTH_LIMIT) {
        (void)error_set(&compiler->program->error, STATUS_LIMIT,
                        "grammar: expected at most %u parts inside each other, found more",
                        4 * RULES_DEPTH_LIMIT);
        return 0;
    }
    switch (node->kind) {
    case RULES_NEVER:
        break;
    case RULES_EMPTY:
        step = next;
        break;
    case RULES_TEXT:
        step = compile_text(compiler, node, next);
        break;
    case RULES_SET:
        step = program_add_characters(compiler->program, compiler->rules->ranges + node->a, node->b,
                                      next);
        break;
    case RULES_SEQ:
    case RULES_ALT:
        step = compile_parts(compiler, number, next);
        break;
    case RULES_REPEAT:
        step = compile_repeat(compiler, node, next);
        break;
    case RULES_RULE:
        step = program_add(compiler->program,
                           (struct program_step){ .op = PROGRAM_CALL, .a = node->a, .b = next });
        break;
    }
    compiler->depth--;
    return step;
}

/* ---- All of it ------------------------------------------------------------------------------ */

static void find_classes(struct program *program)
{
    memset(program->classes, 0, sizeof(program->classes));
    program->class_count = 1;
    for (size_t i = 0; i < program->set_count && program->class_count < 256; i++) {
        /* By class: the number of its part inside the set; 0: none was met yet. */
        unsigned inside[256] = { 0 }, has_outside[256] = { 0 }, count = program->class_count;
        for (unsigned byte = 0; byte < 256; byte++)
            has_outside[program->classes[byte]] |= !byte_set_has(&program->sets[i], byte);
        for (unsigned byte = 0; byte < 256; byte++) {
            unsigned class = program->classes[byte];
            if (!byte_set_has(&program->sets[i], byte) || !has_outside[class])
                continue;
            if (!inside[class])
                inside[class] = count++;
            program->classes[byte] = (uint8_t)inside[class];
        }
        program->class_count = count;
    }
    for (unsigned byte = 256; byte-- > 0;)
        program->examples[program->classes[byte]] = (uint8_t)byte;
}

static enum status compile_rules(struct compiler *compiler, struct error *err)
{
    struct program *program = compiler->program;
    const struct rules *rules = compiler->rules;
    program->entries = calloc(rules->rule_count, sizeof(*program->entries));
    if (!program->entries)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a grammar");
    program_add(program, (struct program_step){ .op = PROGRAM_FAIL });
    uint32_t end = program_add(program, (struct program_step){ .op = PROGRAM_RETURN });
    for (size_t i = 0; i < rules->rule_count && !program->error.status; i++)
        program->entries[i] = compile(compiler, rules->roots[i], end);
    if (program->error.status)
        *err = program->error;
    return program->error.status;
}

enum status program_compile(const struct rules *rules, struct program *ret_program,
                            uint32_t *ret_rule, struct error *err)
{
    struct program program = { 0 };
    struct compiler compiler = { .program = &program, .rules = rules };
    uint8_t *facts = NULL;
    *ret_rule = 0;
    ASSERT(rules->rule_count > 0);
    TRY(rules_analyse(rules, &facts, err));
    compiler.facts = facts;
    enum status status = rules_check_left(rules, facts, ret_rule, err);
    if (!status && !(facts[rules->roots[0]] & RULES_PRODUCTIVE))
        status = error_set(err, STATUS_USAGE, "expected a grammar that some text fits, found none");
    if (!status)
        status = compile_rules(&compiler, err);
    free(facts);
    if (status) {
        program_release(&program);
        return status;
    }
    find_classes(&program);
    *ret_program = program;
    return STATUS_OK;
}
