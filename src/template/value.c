/* value.c - what a value is called, and if it counts as true. */
#include "template/value.h"

#include "base/status.h"

static const char *const kind_names[] = {
    [VALUE_ABSENT] = "absent",
    [VALUE_UNDEFINED] = "Undefined",
    [VALUE_NONE] = "NoneType",
    [VALUE_BOOL] = "bool",
    [VALUE_INT] = "int",
    [VALUE_FLOAT] = "float",
    [VALUE_STRING] = "str",
    [VALUE_LIST] = "list",
    [VALUE_TUPLE] = "tuple",
    [VALUE_DICT] = "dict",
    [VALUE_NAMESPACE] = "Namespace",
    [VALUE_RANGE] = "range",
    [VALUE_GENERATOR] = "generator",
    [VALUE_VIEW] = "dict_items",
    [VALUE_LOOP] = "LoopContext",
    [VALUE_MACRO] = "Macro",
    [VALUE_BUILTIN] = "function",
    [VALUE_CYCLER] = "Cycler",
    [VALUE_JOINER] = "Joiner",
};
_Static_assert(COUNT_OF(kind_names) == VALUE_KIND_COUNT, "every kind has a name");

const char *jinja_kind_name(struct value value)
{
    if (value.kind == VALUE_VIEW && value.view != VIEW_ITEMS)
        return value.view == VIEW_KEYS ? "dict_keys" : "dict_values";
    return kind_names[value.kind];
}

bool jinja_truth(struct value value)
{
    switch (value.kind) {
    case VALUE_ABSENT:
    case VALUE_UNDEFINED:
    case VALUE_NONE:
        return false;
    case VALUE_BOOL:
        return value.truth;
    case VALUE_INT:
        return value.integer != 0;
    case VALUE_FLOAT:
        return value.real != 0;
    case VALUE_STRING:
        return value.string->length > 0;
    case VALUE_LIST:
    case VALUE_TUPLE:
    case VALUE_VIEW:
        return value.list->count > 0;
    case VALUE_DICT:
        return value.dict->count > 0;
    case VALUE_RANGE:
        return value.range->count > 0;
    default:
        return true;
    }
}
