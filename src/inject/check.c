/* check.c - a spec compared with what the workload has, before anything is run: a fault that no
 * call can carry would never be planted, and a clean result would say nothing. */
#include "inject/inject_impl.h"

#include "base/text.h"
#include "device/kernel.h"

#include <stdio.h>
#include <string.h>

static bool is_listed(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static void add_names(struct text *list, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        text_addf(list, "%s%s", list->length ? ", " : "", names[i]);
}

/* Takes the list. */
static enum status refuse(struct text *list, const char *key, const char *found, const char *more,
                          struct error *err)
{
    enum status status = error_set(err, STATUS_USAGE,
                                   "inject: %s: found '%s', expected one of: %s%s", key, found,
                                   text_get(list), more);
    text_release(list);
    return status;
}

/* The kind of call that is not a launch: "copy-out". EVENT_KIND_COUNT: there is none. */
static enum event_kind find_call(const char *name)
{
    for (int i = 0; i < EVENT_KIND_COUNT; i++)
        if (i != EVENT_LAUNCH && strcmp(event_kind_name((enum event_kind)i), name) == 0)
            return (enum event_kind)i;
    return EVENT_KIND_COUNT;
}

static const struct device_contract *find_contract(const struct inject_stage *stage,
                                                   const char *name)
{
    for (size_t i = 0; i < stage->contract_count; i++)
        if (strcmp(stage->contracts[i]->name, name) == 0)
            return stage->contracts[i];
    return NULL;
}

static bool has_operand(const struct inject_spec *spec, const struct device_contract *contract)
{
    bool found = false;
    for (int i = 0; i < contract->operand_count && !found; i++)
        found = inject_operand_fits(spec, &contract->operands[i]);
    return found;
}

/* The ops and calls that can carry the fault. */
static void add_carriers(struct text *list, const struct inject_spec *spec,
                         const struct inject_stage *stage)
{
    struct inject_spec any = *spec;
    any.operand[0] = '\0';
    bool launches = inject_carries(spec->fault, EVENT_LAUNCH);
    for (size_t i = 0; launches && i < stage->contract_count; i++)
        if (has_operand(&any, stage->contracts[i]))
            add_names(list, &stage->contracts[i]->name, 1);
    for (int i = 0; i < EVENT_KIND_COUNT; i++) {
        const char *name = event_kind_name((enum event_kind)i);
        if (i != EVENT_LAUNCH && inject_carries(spec->fault, (enum event_kind)i))
            add_names(list, &name, 1);
    }
}

static enum status refuse_op(const struct inject_spec *spec, const struct inject_stage *stage,
                             struct error *err)
{
    struct text list;
    text_init(&list);
    add_carriers(&list, spec, stage);
    enum status status = error_set(err, STATUS_USAGE,
                                   "inject: %s cannot be in %s; expected op to be one of: %s",
                                   inject_fault_name(spec->fault), spec->op, text_get(&list));
    text_release(&list);
    return status;
}

static enum status check_op(const struct inject_spec *spec, const struct inject_stage *stage,
                            struct error *err)
{
    struct text list;
    if (!spec->op[0])
        return STATUS_OK;
    enum event_kind kind = find_call(spec->op);
    const struct device_contract *contract = find_contract(stage, spec->op);
    if (contract) {
        struct inject_spec any = *spec;
        any.operand[0] = '\0'; /* what the spec says of it is looked at by itself */
        bool fits = inject_carries(spec->fault, EVENT_LAUNCH) &&
                    (spec->operand[0] || has_operand(&any, contract));
        return fits ? STATUS_OK : refuse_op(spec, stage, err);
    }
    if (kind != EVENT_KIND_COUNT)
        return inject_carries(spec->fault, kind) ? STATUS_OK : refuse_op(spec, stage, err);
    text_init(&list);
    for (size_t i = 0; i < stage->contract_count; i++)
        add_names(&list, &stage->contracts[i]->name, 1);
    return refuse(&list, "op", spec->op, ", or a call such as copy-in and copy-out", err);
}

/* Adds the operands of the contract that the fault can be in; true if the spec's is one. */
static bool add_operands(struct text *list, const struct inject_spec *spec,
                         const struct device_contract *contract)
{
    bool found = false;
    for (int i = 0; i < contract->operand_count; i++) {
        if (!inject_operand_can(spec->fault, &contract->operands[i]))
            continue;
        add_names(list, &contract->operands[i].name, 1);
        found = found || strcmp(contract->operands[i].name, spec->operand) == 0;
    }
    return found;
}

/* The operand must be one that the fault can be in, of the op that the spec names or the fault is
 * about; else of any op. */
static enum status check_operand(const struct inject_spec *spec, const struct inject_stage *stage,
                                 struct error *err)
{
    struct text list;
    const char *op = spec->op[0] ? spec->op : inject_row(spec->fault)->op;
    bool found = false;
    if (!spec->operand[0])
        return STATUS_OK;
    if (!inject_carries(spec->fault, EVENT_LAUNCH) || find_call(op) != EVENT_KIND_COUNT)
        return error_set(err, STATUS_USAGE,
                         "inject: operand: found '%s', expected none: only launches have operands, "
                         "and %s is not in one",
                         spec->operand, inject_fault_name(spec->fault));
    text_init(&list);
    for (size_t i = 0; i < stage->contract_count; i++)
        if (!op[0] || strcmp(stage->contracts[i]->name, op) == 0)
            found = add_operands(&list, spec, stage->contracts[i]) || found;
    bool none = list.length == 0;
    if (!found && op[0] && !none)
        return refuse(&list, "operand", spec->operand, "", err);
    text_release(&list);
    if (found)
        return STATUS_OK;
    if (none)
        return refuse_op(spec, stage, err);
    return error_set(err, STATUS_USAGE,
                     "inject: operand: found '%s', expected an operand that %s can be in; name the "
                     "op to see which it has",
                     spec->operand, inject_fault_name(spec->fault));
}

/* Keys that say nothing of this fault, or that no call of it has. */
static enum status check_keys(const struct inject_spec *spec, const struct inject_stage *stage,
                              struct error *err)
{
    if (spec->limit_ms && spec->fault != INJECT_LOST_WAKEUP)
        return error_set(err, STATUS_USAGE, "inject: ms: expected with lost-wakeup, found with %s",
                         inject_fault_name(spec->fault));
    if (spec->fault == INJECT_DOUBLE_FREE && (spec->layer >= 0 || spec->step >= 0))
        return error_set(err, STATUS_USAGE,
                         "inject: double-free: expected no %s: buffers are destroyed in none",
                         spec->layer >= 0 ? "layer" : "step");
    if (spec->run >= 0 && stage->no_runs)
        return error_set(err, STATUS_USAGE,
                         "inject: run: found %d, expected none: only an audit numbers its "
                         "iterations",
                         (int)spec->run);
    return STATUS_OK;
}

static enum status check_tensor(const struct inject_spec *spec, const struct inject_stage *stage,
                                struct error *err)
{
    struct text list;
    bool known = stage->label_count || stage->more_label_count || stage->is_weight;
    /* A double free names a buffer, of which there are more than can be known before. */
    if (!spec->tensor[0] || !known || spec->fault == INJECT_DOUBLE_FREE ||
        is_listed(stage->labels, stage->label_count, spec->tensor) ||
        is_listed(stage->more_labels, stage->more_label_count, spec->tensor) ||
        (stage->is_weight && stage->is_weight(stage->context, spec->tensor)))
        return STATUS_OK;
    text_init(&list);
    add_names(&list, stage->labels, stage->label_count);
    add_names(&list, stage->more_labels, stage->more_label_count);
    return refuse(&list, "tensor", spec->tensor, stage->is_weight ? ", or a weight's name" : "",
                  err);
}

static enum status check_number(const char *key, int32_t found, int32_t first, uint64_t count,
                                struct error *err)
{
    if (found < 0 || count == 0 || (found >= first && (uint64_t)found - (uint64_t)first < count))
        return STATUS_OK;
    return error_set(
        err, STATUS_USAGE, "inject: %s: found %d, expected %d to %ju: there are %ju in this run",
        key, (int)found, (int)first, (uintmax_t)count - 1 + (uintmax_t)first, (uintmax_t)count);
}

enum status inject_check(const struct inject_spec *spec, const struct inject_stage *stage,
                         struct error *err)
{
    TRY(check_op(spec, stage, err));
    TRY(check_operand(spec, stage, err));
    TRY(check_keys(spec, stage, err));
    TRY(check_number("layer", spec->layer, 0, stage->layer_count, err));
    TRY(check_number("step", spec->step, 0, stage->step_limit, err));
    TRY(check_number("run", spec->run, 1, stage->run_count, err));
    return check_tensor(spec, stage, err);
}
