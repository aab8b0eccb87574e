/* match.c - which call a spec means, and which operand of it. Whatever takes the planter is called
 * with its lock held. */
#include "inject/inject_impl.h"

#include <string.h>

static bool is_launch_fault(enum inject_fault fault)
{
    return fault <= INJECT_DEAD_HANDLE || fault == INJECT_EARLY_FREE ||
           fault == INJECT_FREE_WHILE_QUEUED || fault == INJECT_TWO_STREAMS ||
           fault == INJECT_SKIPPED_LAUNCH || fault == INJECT_UNINITIALISED_READ ||
           fault == INJECT_STALE_GRAPH;
}

static bool call_can_carry(enum inject_fault fault, enum event_kind kind)
{
    switch (fault) {
    case INJECT_VIEW_PAST_END:
        return kind == EVENT_COPY_IN || kind == EVENT_COPY_OUT || kind == EVENT_FILL;
    case INJECT_SIZE_BEYOND_VIEW:
    case INJECT_SLOT_REWRITTEN:
        return kind == EVENT_COPY_IN;
    case INJECT_FREED_STAGING:
    case INJECT_DOUBLE_RELEASE:
    case INJECT_OVERLAPPING_D2H:
    case INJECT_OVERLAPPING_COPIES:
        return kind == EVENT_COPY_OUT;
    case INJECT_SKIPPED_WAIT:
        return kind == EVENT_MARK_WAIT;
    case INJECT_LOST_WAKEUP:
        return kind == EVENT_COPY_OUT || kind == EVENT_MARK_RECORD;
    case INJECT_DOUBLE_FREE:
        return kind == EVENT_BUFFER_DESTROY;
    default:
        return is_launch_fault(fault) && kind == EVENT_LAUNCH;
    }
}

bool inject_carries(enum inject_fault fault, enum event_kind kind)
{
    const struct inject_row *row = inject_row(fault);
    switch (row->where) {
    case INJECT_IN_LAUNCH:
        return kind == EVENT_LAUNCH || (fault == INJECT_MEMORY_VANISHED && kind == EVENT_COPY_OUT);
    case INJECT_IN_COPY:
        return strcmp(event_kind_name(kind), row->op) == 0;
    default:
        return call_can_carry(fault, kind);
    }
}

bool inject_fits(const struct inject *inject, const char *op, const struct event_scope *scope)
{
    const struct inject_spec *spec = &inject->spec;
    const char *wanted = spec->op[0] ? spec->op : inject_row(spec->fault)->op;
    uint64_t run = __atomic_load_n(&inject->device->iteration, __ATOMIC_RELAXED);
    return !inject->record.planted && !inject->acting && (!wanted[0] || strcmp(wanted, op) == 0) &&
           (spec->layer < 0 || spec->layer == scope->layer) &&
           (spec->step < 0 || spec->step == scope->step) &&
           (spec->run < 0 || (uint64_t)spec->run == run) &&
           (!spec->tensor[0] || strcmp(spec->tensor, scope->tensor) == 0);
}

void inject_note(struct inject *inject, const char *op, const struct event_scope *scope,
                 const struct device_contract *contract, int operand, uint64_t event_id)
{
    struct inject_place *place = &inject->record.place;
    *place = (struct inject_place){ .event_id = event_id,
                                    .scope = *scope,
                                    .operand_index = EVENT_NO_OPERAND,
                                    .stream_index = EVENT_NO_STREAM };
    event_set_text(place->op, sizeof(place->op), op);
    if (contract && operand >= 0) {
        event_set_text(place->operand, sizeof(place->operand), contract->operands[operand].name);
        place->operand_index = (uint8_t)operand;
    }
    inject->record.planted = true;
}

static bool is_index_rule(const struct device_operand_rule *rule)
{
    return rule->dtype_bits == UINT64_C(1) << DTYPE_I32;
}

bool inject_operand_can(enum inject_fault fault, const struct device_operand_rule *rule)
{
    switch (fault) {
    case INJECT_BAD_INDEX:
    case INJECT_ROPE_POSITION:
    case INJECT_ROPE_PAST_TABLE:
    case INJECT_KV_POSITION:
    case INJECT_KV_SLOT_PAST_CACHE:
    case INJECT_TOKEN_PAST_VOCABULARY:
        return is_index_rule(rule) && rule->mode == EVENT_READ;
    case INJECT_NAN_OUTPUT:
        return !is_index_rule(rule) && (rule->mode & EVENT_WRITE) != 0;
    case INJECT_UNEQUAL_RUNS:
    case INJECT_WRONG_OUTPUT:
        return (rule->mode & EVENT_WRITE) != 0;
    case INJECT_UNINITIALISED_READ:
        return (rule->mode & EVENT_READ) != 0;
    default:
        return true;
    }
}

/* May the fault be in this operand where the spec names none? */
static bool suits(enum inject_fault fault, const struct device_operand_rule *rule)
{
    bool is_index = is_index_rule(rule);
    bool is_float = (rule->dtype_bits & (UINT64_C(1) << DTYPE_F32)) != 0;
    switch (fault) {
    case INJECT_BAD_INDEX:
        return is_index && rule->mode == EVENT_READ;
    case INJECT_NAN_OUTPUT:
    case INJECT_UNEQUAL_RUNS:
    case INJECT_WRONG_OUTPUT:
        return is_float && (rule->mode & EVENT_WRITE) != 0;
    case INJECT_OVERRUN:
    case INJECT_UNDERRUN:
        return (rule->mode & EVENT_WRITE) != 0;
    case INJECT_UNINITIALISED_READ:
        return is_float && (rule->mode & EVENT_READ) != 0;
    case INJECT_EARLY_FREE:
    case INJECT_FREE_WHILE_QUEUED:
    case INJECT_MEMORY_VANISHED:
    case INJECT_WILD_POINTER:
    case INJECT_WRAPPED_OFFSET:
        return !is_index;
    default:
        return true;
    }
}

bool inject_operand_fits(const struct inject_spec *spec, const struct device_operand_rule *rule)
{
    const char *wanted = spec->operand[0] ? spec->operand : inject_row(spec->fault)->operand;
    return wanted[0] ? strcmp(wanted, rule->name) == 0 && inject_operand_can(spec->fault, rule)
                     : suits(spec->fault, rule);
}

int inject_operand(const struct inject *inject, const struct device_contract *contract,
                   const bool *present)
{
    for (int i = 0; i < contract->operand_count; i++)
        if (present[i] && inject_operand_fits(&inject->spec, &contract->operands[i]))
            return i;
    return -1;
}
