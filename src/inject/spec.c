/* spec.c - the text form of a spec. */
#include "inject/inject.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum status find_fault(const char *text, size_t length, enum inject_fault *ret,
                              struct error *err)
{
    for (size_t i = 0; i < INJECT_FAULT_COUNT; i++) {
        const char *name = inject_fault_name((enum inject_fault)i);
        if (strlen(name) == length && memcmp(name, text, length) == 0) {
            *ret = (enum inject_fault)i;
            return STATUS_OK;
        }
    }
    char list[1024] = "";
    for (size_t i = 0; i < INJECT_FAULT_COUNT; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof(list) - used, " %s", inject_fault_name((enum inject_fault)i));
    }
    return error_set(err, STATUS_USAGE, "inject: found '%.*s', expected one of:%s", (int)length,
                     text, list);
}

static enum status set_number(const char *key, const char *value, int32_t *ret, struct error *err)
{
    char *end;
    errno = 0;
    long number = strtol(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end || errno || number > INT32_MAX)
        return error_set(err, STATUS_USAGE,
                         "inject: %s: expected a whole number from 0 to %d, found '%s'", key,
                         INT32_MAX, value);
    *ret = (int32_t)number;
    return STATUS_OK;
}

static enum status set_text(const char *key, const char *value, char *field, size_t field_bytes,
                            struct error *err)
{
    if (strlen(value) >= field_bytes)
        return error_set(err, STATUS_USAGE, "inject: %s: expected fewer than %zu bytes, found '%s'",
                         key, field_bytes, value);
    event_set_text(field, field_bytes, value);
    return STATUS_OK;
}

static enum status note_key(const char *key, uint32_t *seen, struct error *err)
{
    static const char *const keys[] = { "layer", "step", "run", "op", "operand", "tensor", "ms" };
    for (uint32_t i = 0; i < COUNT_OF(keys); i++) {
        if (strcmp(keys[i], key) != 0)
            continue;
        if (*seen & 1u << i)
            return error_set(err, STATUS_USAGE, "inject: found '%s' twice", key);
        *seen |= 1u << i;
        return STATUS_OK;
    }
    return error_set(err, STATUS_USAGE,
                     "inject: expected layer, step, run, op, operand, tensor or ms, found '%s'",
                     key);
}

/* "key=value", ended by NUL. seen: a bit for each key of the spec so far. */
static enum status set_key(struct inject_spec *spec, char *pair, uint32_t *seen, struct error *err)
{
    char *equals = strchr(pair, '=');
    if (!equals || equals[1] == '\0')
        return error_set(err, STATUS_USAGE, "inject: expected KEY=VALUE, found '%s'", pair);
    *equals = '\0';
    const char *value = equals + 1;
    TRY(note_key(pair, seen, err));
    if (strcmp(pair, "layer") == 0)
        return set_number(pair, value, &spec->layer, err);
    if (strcmp(pair, "step") == 0)
        return set_number(pair, value, &spec->step, err);
    if (strcmp(pair, "run") == 0)
        return set_number(pair, value, &spec->run, err);
    if (strcmp(pair, "op") == 0)
        return set_text(pair, value, spec->op, sizeof(spec->op), err);
    if (strcmp(pair, "operand") == 0)
        return set_text(pair, value, spec->operand, sizeof(spec->operand), err);
    if (strcmp(pair, "tensor") == 0)
        return set_text(pair, value, spec->tensor, sizeof(spec->tensor), err);
    int32_t limit;
    TRY(set_number(pair, value, &limit, err));
    spec->limit_ms = (uint32_t)limit;
    return STATUS_OK;
}

enum status inject_parse(const char *text, struct inject_spec *ret_spec, struct error *err)
{
    struct inject_spec spec = { .layer = -1, .step = -1, .run = -1 };
    uint32_t seen = 0;
    size_t length = strcspn(text, "@");
    TRY(find_fault(text, length, &spec.fault, err));
    const char *at = text[length] ? text + length + 1 : text + length;
    if (text[length] && !*at)
        return error_set(err, STATUS_USAGE, "inject: expected KEY=VALUE after '@', found nothing");
    while (*at) {
        char pair[128];
        size_t pair_length = strcspn(at, ",");
        if (pair_length >= sizeof(pair))
            return error_set(err, STATUS_USAGE,
                             "inject: expected a short KEY=VALUE, found '%.40s...'", at);
        memcpy(pair, at, pair_length);
        pair[pair_length] = '\0';
        TRY(set_key(&spec, pair, &seen, err));
        at += pair_length;
        if (*at == ',' && *++at == '\0')
            return error_set(err, STATUS_USAGE,
                             "inject: expected KEY=VALUE after ',', found nothing");
    }
    *ret_spec = spec;
    return STATUS_OK;
}
