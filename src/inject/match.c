/* match.c - which call a plan means, and which operand of it. With the lock held. */
#include "inject/inject_impl.h"

#include <string.h>

bool inject_fits(const struct inject *inject, const char *op, const struct event_scope *scope)
{
    const struct inject_plan *plan = &inject->plan;
    const char *wanted = plan->op[0] ? plan->op : inject_row(plan->fault)->op;
    uint64_t run = __atomic_load_n(&inject->device->iteration, __ATOMIC_RELAXED);
    return !inject->record.planted && !inject->acting && (!wanted[0] || strcmp(wanted, op) == 0) &&
           (plan->layer < 0 || plan->layer == scope->layer) &&
           (plan->step < 0 || plan->step == scope->step) &&
           (plan->run < 0 || (uint64_t)plan->run == run) &&
           (!plan->tensor[0] || strcmp(plan->tensor, scope->tensor) == 0);
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

static bool suits(enum inject_fault fault, const struct device_operand_rule *rule)
{
    bool is_index = rule->dtype_bits == UINT64_C(1) << DTYPE_I32;
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

int inject_operand(const struct inject *inject, const struct device_contract *contract,
                   const bool *present)
{
    const char *wanted = inject->plan.operand[0] ? inject->plan.operand
                                                 : inject_row(inject->plan.fault)->operand;
    for (int i = 0; i < contract->operand_count; i++) {
        const struct device_operand_rule *rule = &contract->operands[i];
        if (present[i] &&
            (wanted[0] ? strcmp(wanted, rule->name) == 0 : suits(inject->plan.fault, rule)))
            return i;
    }
    return -1;
}
