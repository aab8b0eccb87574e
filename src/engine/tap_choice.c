/* tap_choice.c - parses what a user wants to tap. */
#include "engine/engine_impl.h"

#include "base/text.h"

#include <string.h>

static const struct {
    const char *name;
    uint32_t kind;
} kind_names[] = {
    { "wo", ENGINE_TAP_WO },         { "norm", ENGINE_TAP_NORM }, { "attn", ENGINE_TAP_ATTN },
    { "mlp", ENGINE_TAP_MLP },       { "kv", ENGINE_TAP_KV },     { "logits", ENGINE_TAP_LOGITS },
    { "hidden", ENGINE_TAP_HIDDEN },
};

static enum status wrong_choice(const char *text, struct error *err)
{
    char shown[96];
    return error_set(
        err, STATUS_USAGE,
        "tap: expected KIND or KIND@layer=L,step=S,head=H, where L and S may be ranges "
        "(0-3) and KIND is wo, norm, attn, mlp, kv, logits or hidden; found '%s'",
        text_printable(text_view_of(text), shown, sizeof(shown)));
}

/* "3" or "3-7" up to a comma or the end. */
static bool parse_range(const char **at, int32_t *ret_first, int32_t *ret_last)
{
    int64_t numbers[2];
    size_t count = 0;
    do {
        if (count == 2 || **at < '0' || **at > '9')
            return false;
        int64_t number = 0;
        for (; **at >= '0' && **at <= '9'; (*at)++) {
            number = number * 10 + (**at - '0');
            if (number > INT32_MAX)
                return false;
        }
        numbers[count++] = number;
    } while (**at == '-' && (*at)++);
    *ret_first = (int32_t)numbers[0];
    *ret_last = (int32_t)numbers[count - 1];
    return *ret_first <= *ret_last && (**at == ',' || **at == '\0');
}

static bool parse_limit(const char **at, struct engine_tap_choice *choice)
{
    int32_t last;
    if (strncmp(*at, "layer=", 6) == 0) {
        *at += 6;
        return parse_range(at, &choice->first_layer, &choice->last_layer);
    }
    if (strncmp(*at, "step=", 5) == 0) {
        *at += 5;
        return parse_range(at, &choice->first_step, &choice->last_step);
    }
    if (strncmp(*at, "head=", 5) == 0) {
        *at += 5;
        return parse_range(at, &choice->head, &last) && choice->head == last;
    }
    return false;
}

enum status engine_tap_parse(const char *text, struct engine_tap_choice *ret_choice,
                             struct error *err)
{
    struct engine_tap_choice choice = { .first_layer = -1,
                                        .last_layer = INT32_MAX,
                                        .last_step = INT32_MAX };
    size_t length = strcspn(text, "@");
    for (size_t i = 0; i < COUNT_OF(kind_names); i++)
        if (strlen(kind_names[i].name) == length && memcmp(kind_names[i].name, text, length) == 0)
            choice.kinds = kind_names[i].kind;
    if (!choice.kinds)
        return wrong_choice(text, err);
    const char *at = text + length;
    while (*at) {
        at++; /* '@' or ',' */
        if (!parse_limit(&at, &choice))
            return wrong_choice(text, err);
    }
    *ret_choice = choice;
    return STATUS_OK;
}
