/* unicode.c - see unicode.h; the tables are in unicode_classes.def and unicode_cases.def. */
#include "template/unicode.h"

#include "base/status.h"

struct case_range {
    uint32_t first, last;
    int32_t step, delta;
};

struct case_many {
    uint32_t code, to[UNICODE_MANY];
};

#define RUNS(...) static const uint32_t runs[] = { __VA_ARGS__ };
#define UPPER(...) static const struct case_range upper[] = { __VA_ARGS__ };
#define LOWER(...) static const struct case_range lower[] = { __VA_ARGS__ };
#define UPPER_MANY(...) static const struct case_many upper_many[] = { __VA_ARGS__ };
#define LOWER_MANY(...) static const struct case_many lower_many[] = { __VA_ARGS__ };
#define TITLE(...) static const struct case_many title[] = { __VA_ARGS__ };
#include "template/unicode_cases.def"
#include "template/unicode_classes.def"

static const struct {
    const struct case_range *ranges;
    uint32_t range_count;
    const struct case_many *many;
    uint32_t many_count;
} cases[] = {
    [UNICODE_TO_UPPER] = { upper, COUNT_OF(upper), upper_many, COUNT_OF(upper_many) },
    [UNICODE_TO_LOWER] = { lower, COUNT_OF(lower), lower_many, COUNT_OF(lower_many) },
    [UNICODE_TO_TITLE] = { NULL, 0, title, COUNT_OF(title) },
};

#define CODE_MASK 0xFFFFFFu

bool jinja_unicode_is(uint32_t code, enum unicode_property property)
{
    uint32_t low = 0, high = COUNT_OF(runs); /* runs[low] begins at code or before */
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if ((runs[middle] & CODE_MASK) <= code)
            low = middle;
        else
            high = middle;
    }
    return ((runs[low] >> 24) & (uint32_t)property) != 0;
}

static uint32_t convert_many(uint32_t code, enum unicode_case to, uint32_t *ret)
{
    uint32_t low = 0, high = cases[to].many_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct case_many *many = &cases[to].many[middle];
        if (many->code == code) {
            uint32_t count = 0;
            while (count < UNICODE_MANY && many->to[count]) {
                ret[count] = many->to[count];
                count++;
            }
            return count;
        }
        if (many->code < code)
            low = middle + 1;
        else
            high = middle;
    }
    return 0;
}

uint32_t jinja_unicode_convert(uint32_t code, enum unicode_case to, uint32_t ret[UNICODE_MANY])
{
    uint32_t many = code < 0x80 ? 0 : convert_many(code, to, ret);
    if (many)
        return many;
    if (to == UNICODE_TO_TITLE)
        return jinja_unicode_convert(code, UNICODE_TO_UPPER, ret);
    ret[0] = code;
    uint32_t low = 0, high = cases[to].range_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct case_range *range = &cases[to].ranges[middle];
        if (code < range->first) {
            high = middle;
        } else if (code > range->last) {
            low = middle + 1;
        } else {
            if ((code - range->first) % (uint32_t)range->step == 0)
                ret[0] = (uint32_t)((int64_t)code + range->delta);
            return 1;
        }
    }
    return 1;
}

static bool changes(uint32_t code, enum unicode_case to)
{
    uint32_t converted[UNICODE_MANY];
    return jinja_unicode_convert(code, to, converted) > 1 || converted[0] != code;
}

bool jinja_unicode_is_upper(uint32_t code)
{
    return changes(code, UNICODE_TO_LOWER) && !changes(code, UNICODE_TO_UPPER);
}

/* A letter without an upper case of its own, as the ordinal indicator, is lower. */
bool jinja_unicode_is_lower(uint32_t code)
{
    return jinja_unicode_is(code, UNICODE_CASED) && !changes(code, UNICODE_TO_LOWER);
}
