/* ptx_flow.c - which words of the parameters each name of a body may carry, until nothing changes;
 * and what the instructions do with them. ptx_statement.h reads the instructions.
 *
 * Names are taken as they stand: two registers of one name in two blocks carry what either does.
 * Any word that is no number is a name, so that registers without % count too. */
#include "interpose/cuda/ptx_flow.h"

#include "interpose/cuda/ptx_statement.h"

#include <stdlib.h>
#include <string.h>

/* Names of one body; more, and nothing is known of the kernel. */
#define NAME_PLACES 32768u /* a power of two */
#define NAME_LIMIT (NAME_PLACES / 2)
/* Times that a body is gone through: as long as the longest chain that runs against its order. */
#define PASS_LIMIT 24u
#define MASKS (KERNEL_WORD_LIMIT / 64u)

struct words {
    uint64_t mask[MASKS];
};

struct flow_name {
    struct text_view name; /* bytes NULL: free */
    struct words carries;
    uint8_t holds; /* the address of this parameter, plus 1; 0: of none */
};

struct ptx_flow {
    struct flow_name *names; /* NAME_PLACES, by hash */
    uint32_t *used;          /* places, NAME_LIMIT */
    uint32_t used_count;
    struct ptx_kernel *kernel;
    bool changed, overflow;
};

struct ptx_flow *ptx_flow_create(void)
{
    struct ptx_flow *flow = calloc(1, sizeof(*flow));
    if (!flow)
        return NULL;
    flow->names = calloc(NAME_PLACES, sizeof(*flow->names));
    flow->used = calloc(NAME_LIMIT, sizeof(*flow->used));
    if (flow->names && flow->used)
        return flow;
    ptx_flow_destroy(flow);
    return NULL;
}

void ptx_flow_destroy(struct ptx_flow *flow)
{
    if (!flow)
        return;
    free(flow->names);
    free(flow->used);
    free(flow);
}

/* ---- Names ---------------------------------------------------------------------------------- */

/* NULL: there are too many. */
static struct flow_name *name_of(struct ptx_flow *flow, struct text_view name)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (size_t i = 0; i < name.length; i++)
        hash = (hash ^ (uint8_t)name.bytes[i]) * UINT64_C(0x100000001B3);
    for (uint32_t at = (uint32_t)(hash >> 32) & (NAME_PLACES - 1);;
         at = (at + 1) & (NAME_PLACES - 1)) {
        struct flow_name *place = &flow->names[at];
        if (place->name.bytes && text_view_equal(place->name, name))
            return place;
        if (place->name.bytes)
            continue;
        if (flow->used_count == NAME_LIMIT) {
            flow->overflow = true;
            return NULL;
        }
        flow->used[flow->used_count++] = at;
        place->name = name;
        return place;
    }
}

static void add_words(struct words *to, const struct words *more, bool *changed)
{
    for (size_t i = 0; i < MASKS; i++) {
        *changed = *changed || (more->mask[i] & ~to->mask[i]);
        to->mask[i] |= more->mask[i];
    }
}

static void use_words(struct ptx_flow *flow, const struct words *words, uint8_t use)
{
    for (uint32_t i = 0; i < KERNEL_WORD_LIMIT; i++)
        if (words->mask[i / 64] >> (i % 64) & 1)
            flow->kernel->uses.uses[i] |= use;
}

static const struct ptx_parameter *parameter_named(const struct ptx_flow *flow,
                                                   struct text_view name)
{
    for (uint16_t i = 0; i < flow->kernel->uses.parameter_count; i++)
        if (text_view_equal(flow->kernel->parameters[i].name, name))
            return &flow->kernel->parameters[i];
    return NULL;
}

/* The parameter, or that whose address the register holds; NULL: neither. */
static const struct ptx_parameter *parameter_held(struct ptx_flow *flow, struct text_view name)
{
    const struct ptx_parameter *parameter = parameter_named(flow, name);
    const struct flow_name *known = parameter ? NULL : name_of(flow, name);
    return known && known->holds ? &flow->kernel->parameters[known->holds - 1] : parameter;
}

/* ---- Instructions --------------------------------------------------------------------------- */

enum effect {
    EFFECT_UNKNOWN, /* everything escapes */
    EFFECT_NONE,
    EFFECT_PASSES, /* the first operand carries what the others do */
    EFFECT_LOADS,
    EFFECT_STORES,
    EFFECT_COPIES /* to the first address, from the second */
};

static enum effect effect_of(struct text_view opcode)
{
    static const struct {
        const char *name;
        enum effect effect;
    } rows[] = {
#define INSTRUCTION(name, effect) { name, EFFECT_##effect },
#include "interpose/cuda/ptx_instructions.def"
#undef INSTRUCTION
    };
    const char *dot = memchr(opcode.bytes, '.', opcode.length);
    size_t length = dot ? (size_t)(dot - opcode.bytes) : opcode.length;
    if (length == 4 && memcmp(opcode.bytes, "wmma", 4) == 0)
        return ptx_has_part(opcode, "load")  ? EFFECT_LOADS
               : ptx_has_part(opcode, "mma") ? EFFECT_PASSES
                                             : EFFECT_UNKNOWN;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (strlen(rows[i].name) == length && memcmp(rows[i].name, opcode.bytes, length) == 0)
            return rows[i].effect;
    return EFFECT_UNKNOWN;
}

/* All words of a parameter whose address is taken. */
static void expose(struct ptx_flow *flow, const struct ptx_parameter *parameter)
{
    for (uint32_t i = 0; i < parameter->words; i++)
        flow->kernel->uses.uses[parameter->word + i] |= KERNEL_READS | KERNEL_WRITES;
}

static void use_name(struct ptx_flow *flow, struct text_view name, uint8_t use)
{
    const struct ptx_parameter *parameter = parameter_named(flow, name);
    const struct flow_name *known = name_of(flow, name);
    if (parameter)
        expose(flow, parameter);
    if (known && known->holds)
        expose(flow, &flow->kernel->parameters[known->holds - 1]);
    if (known)
        use_words(flow, &known->carries, use);
}

/* The targets of a load of parameters carry its words: in order, and each by its bytes. */
static void load_parameter(struct ptx_flow *flow, const struct ptx_statement *statement,
                           const struct ptx_operand *from, const struct ptx_parameter *parameter)
{
    uint32_t bytes = ptx_value_bytes(statement->opcode), offset = 0;
    const char *end = statement->end;
    if (!bytes || !ptx_offset_after(from->name.bytes + from->name.length, end, &offset)) {
        expose(flow, parameter);
        return;
    }
    for (size_t i = 0; i < statement->count; i++) {
        struct words loaded = { { 0 } };
        if (statement->names[i].operand != 0 || statement->names[i].bracket)
            continue;
        for (uint32_t word = offset / 8; word <= (offset + bytes - 1) / 8; word++) {
            if (word >= parameter->words) {
                expose(flow, parameter);
                return;
            }
            uint32_t place = parameter->word + word;
            loaded.mask[place / 64] |= UINT64_C(1) << (place % 64);
        }
        offset += bytes;
        struct flow_name *target = name_of(flow, statement->names[i].name);
        if (target)
            add_words(&target->carries, &loaded, &flow->changed);
    }
}

static void load(struct ptx_flow *flow, const struct ptx_statement *statement)
{
    bool of_parameters = ptx_has_part(statement->opcode, "param");
    for (size_t i = 0; i < statement->count; i++) {
        const struct ptx_operand *one = &statement->names[i];
        if (!one->bracket)
            continue;
        const struct ptx_parameter *parameter = parameter_held(flow, one->name);
        if (parameter && of_parameters)
            load_parameter(flow, statement, one, parameter);
        else
            use_name(flow, one->name, KERNEL_READS);
    }
}

/* A register receives the address of a parameter, and nothing else. */
static bool is_address_moved(struct ptx_flow *flow, const struct ptx_statement *statement)
{
    const struct ptx_operand *names = statement->names;
    bool moves = statement->opcode.length > 4 && memcmp(statement->opcode.bytes, "mov.", 4) == 0;
    if (!moves || statement->count != 2 || names[0].operand != 0 || names[1].operand != 1)
        return false;
    const struct ptx_parameter *parameter = parameter_held(flow, names[1].name);
    struct flow_name *target = name_of(flow, names[0].name);
    if (!parameter || !target)
        return false;
    uint8_t holds = (uint8_t)(parameter - flow->kernel->parameters + 1);
    if (target->holds && target->holds != holds)
        return false; /* now this one, now another */
    flow->changed = flow->changed || !target->holds;
    target->holds = holds;
    return true;
}

static void pass(struct ptx_flow *flow, const struct ptx_statement *statement)
{
    struct words sum = { { 0 } };
    bool ignored = false, moved = is_address_moved(flow, statement);
    for (size_t i = 0; i < statement->count; i++) {
        const struct ptx_operand *one = &statement->names[i];
        const struct flow_name *source = one->operand ? name_of(flow, one->name) : NULL;
        const struct ptx_parameter *held = source ? parameter_held(flow, one->name) : NULL;
        if (held && !moved)
            expose(flow, held);
        if (source)
            add_words(&sum, &source->carries, &ignored);
    }
    for (size_t i = 0; i < statement->count; i++) {
        struct flow_name *target = statement->names[i].operand
                                       ? NULL
                                       : name_of(flow, statement->names[i].name);
        if (target)
            add_words(&target->carries, &sum, &flow->changed);
    }
}

static void run(struct ptx_flow *flow, const struct ptx_statement *statement)
{
    enum effect effect = statement->cut ? EFFECT_UNKNOWN : effect_of(statement->opcode);
    if (effect == EFFECT_NONE)
        return;
    if (effect == EFFECT_LOADS) {
        load(flow, statement);
        return;
    }
    if (effect == EFFECT_PASSES) {
        pass(flow, statement);
        return;
    }
    for (size_t i = 0; i < statement->count; i++) {
        uint32_t bracket = statement->names[i].bracket;
        uint8_t use = KERNEL_READS | KERNEL_WRITES;
        if (effect == EFFECT_STORES && bracket == 1)
            use = KERNEL_WRITES;
        if (effect == EFFECT_COPIES && bracket == 2)
            use = KERNEL_READS;
        use_name(flow, statement->names[i].name, use);
    }
    flow->overflow = flow->overflow || statement->cut;
}

bool ptx_flow_read(struct ptx_flow *flow, struct ptx_kernel *kernel)
{
    struct ptx_statement statement;
    for (uint32_t i = 0; i < flow->used_count; i++)
        flow->names[flow->used[i]] = (struct flow_name){ { NULL, 0 }, { { 0 } }, 0 };
    flow->used_count = 0;
    flow->overflow = false;
    flow->changed = true;
    flow->kernel = kernel;
    for (uint32_t i = 0; flow->changed && !flow->overflow; i++) {
        const char *at = kernel->body.bytes, *end = at + kernel->body.length;
        if (i == PASS_LIMIT)
            return false;
        flow->changed = false;
        while (at < end && !flow->overflow) {
            const char *stop = memchr(at, ';', (size_t)(end - at));
            if (ptx_statement_read(at, stop ? stop : end, &statement))
                run(flow, &statement);
            at = stop ? stop + 1 : end;
        }
    }
    return !flow->overflow;
}
