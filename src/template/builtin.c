/* builtin.c - finding functions, filters, tests and methods by name. */
#include "template/builtin.h"

const struct builtin *jinja_table_find(const struct builtin_table *table, const struct string *name)
{
    for (size_t i = 0; i < table->count; i++)
        if (jinja_text_is(name, table->rows[i].name))
            return &table->rows[i];
    return NULL;
}

const struct builtin *jinja_filter_find(const struct string *name)
{
    static const struct builtin_table *const tables[] = { &jinja_text_filters, &jinja_list_filters,
                                                          &jinja_pick_filters,
                                                          &jinja_number_filters };
    const struct builtin *row = NULL;
    for (size_t i = 0; !row && i < COUNT_OF(tables); i++)
        row = jinja_table_find(tables[i], name);
    return row;
}

const struct builtin *jinja_test_find(const struct string *name)
{
    return jinja_table_find(&jinja_tests, name);
}

const struct builtin *jinja_function_find(const struct string *name)
{
    return jinja_table_find(&jinja_functions, name);
}

#define TABLES_OF_A_KIND 3

const struct builtin *jinja_method_find(enum value_kind kind, const struct string *name)
{
    static const struct builtin_table *const tables[VALUE_KIND_COUNT][TABLES_OF_A_KIND] = {
        [VALUE_STRING] = { &jinja_text_methods, &jinja_search_methods, &jinja_text_class_methods },
        [VALUE_DICT] = { &jinja_dict_methods },
        [VALUE_LIST] = { &jinja_list_methods, &jinja_tuple_methods },
        [VALUE_TUPLE] = { &jinja_tuple_methods },
        [VALUE_CYCLER] = { &jinja_cycler_methods },
    };
    const struct builtin *row = NULL;
    for (size_t i = 0; !row && i < TABLES_OF_A_KIND && tables[kind][i]; i++)
        row = jinja_table_find(tables[kind][i], name);
    return row;
}

enum status jinja_integer_argument(struct render *r, struct value value, int64_t fallback,
                                   int64_t *ret)
{
    *ret = fallback;
    if (!is_given(value) || value_is(value, VALUE_NONE))
        return STATUS_OK;
    if (value_is(value, VALUE_UNDEFINED))
        return jinja_fail_undefined(r, value);
    if (!value_is_integer(value))
        return fail(r, TYPE, "'%s' object cannot be interpreted as an integer",
                    jinja_kind_name(value));
    *ret = value_integer(value);
    return STATUS_OK;
}

enum status jinja_text_argument(struct render *r, struct value value, struct value *ret)
{
    if (value_is(value, VALUE_UNDEFINED))
        return jinja_fail_undefined(r, value);
    if (!value_is(value, VALUE_STRING))
        return fail(r, TYPE, "expected str, not %s", jinja_kind_name(value));
    *ret = value;
    return STATUS_OK;
}
