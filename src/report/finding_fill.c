/* finding_fill.c - what the names in the templates of sentences about findings stand for. */
#include "report/finding_fill.h"

#include <inttypes.h>
#include <string.h>

/* ---- Numbers -------------------------------------------------------------------------------- */

static bool fill_number(const struct telling *telling, struct text *text)
{
    return add_number(text, telling->number);
}

static bool fill_bytes(const struct telling *telling, struct text *text)
{
    return add_number(text, telling->finding->cause.bytes);
}

static bool fill_run(const struct telling *telling, struct text *text)
{
    return add_number(text, telling->finding->cause.iteration);
}

static bool fill_earlier_run(const struct telling *telling, struct text *text)
{
    return add_number(text, telling->finding->other.iteration);
}

static bool fill_address(const struct telling *telling, struct text *text)
{
    if (!telling->finding->near.known)
        return false;
    text_addf(text, "0x%" PRIx64, telling->finding->near.address);
    return true;
}

static bool fill_brief_address(const struct telling *telling, struct text *text)
{
    return telling->brief && fill_address(telling, text);
}

static bool fill_neighbour(const struct telling *telling, struct text *text)
{
    const char *name = telling->neighbour->name;
    return add_name(text, name[0] ? name : "?");
}

static bool fill_apart(const struct telling *telling, struct text *text)
{
    uint64_t apart = analyze_apart(telling->neighbour);
    return apart && add_number(text, apart);
}

static bool fill_wraps(const struct telling *telling, struct text *text)
{
    return telling->number > 1 && add_number(text, telling->number);
}

static bool fill_check(const struct telling *telling, struct text *text)
{
    return add_name(text, event_check_name((enum event_check)telling->finding->check));
}

static bool fill_reason(const struct telling *telling, struct text *text)
{
    text_add(text, report_reason_words(telling->finding->reason, telling->language));
    return true;
}

/* ---- Clauses -------------------------------------------------------------------------------- */

/* Where memory was freed; nothing where that is not known. */
static bool fill_freed(const struct telling *telling, struct text *text)
{
    struct telling of = *telling;
    of.place = &telling->finding->other;
    if (!of.place->event_id)
        return true;
    if (telling_is_op(of.place))
        tell_clause(&of, CLAUSE_FREED_BY, text);
    else if (!telling->brief)
        tell_clause(&of, CLAUSE_FREED, text);
    return true;
}

static bool fill_refused(const struct telling *telling, struct text *text)
{
    return add_clause(telling, CLAUSE_REFUSED, text);
}

static bool fill_inputs(const struct telling *telling, struct text *text)
{
    bool same = telling->finding->reason == REASON_NONE;
    return add_clause(telling, same ? CLAUSE_SAME_INPUTS : CLAUSE_LAST_AGREED, text);
}

/* What singles a copy out. */
static bool fill_source(const struct telling *telling, struct text *text)
{
    return !finding_is_culprit(telling->finding) || add_clause(telling, CLAUSE_SAME_SOURCE, text);
}

static bool fill_miss(const struct telling *telling, struct text *text)
{
    static const enum clause clauses[] = {
        [MISS_BEFORE_START] = CLAUSE_BEFORE_START,
        [MISS_PAST_END] = CLAUSE_PAST_END,
        [MISS_WRAPPED_BELOW] = CLAUSE_WRAPPED_BELOW,
        [MISS_WRAPPED_ABOVE] = CLAUSE_WRAPPED_ABOVE,
    };
    struct finding_miss miss = finding_miss(telling->finding);
    struct telling of = *telling;
    of.number = miss.wraps ? miss.wraps : miss.bytes;
    if (miss.side != MISS_UNKNOWN)
        tell_clause(&of, clauses[miss.side], text);
    return true;
}

/* ---- By name -------------------------------------------------------------------------------- */

static const struct filler fillers[] = {
    { "number", fill_number },
    { "bytes", fill_bytes },
    { "run", fill_run },
    { "earlier_run", fill_earlier_run },
    { "address", fill_address },
    { "brief_address", fill_brief_address },
    { "neighbour", fill_neighbour },
    { "apart", fill_apart },
    { "wraps", fill_wraps },
    { "check", fill_check },
    { "reason", fill_reason },
    { "freed", fill_freed },
    { "refused", fill_refused },
    { "inputs", fill_inputs },
    { "source", fill_source },
    { "miss", fill_miss },
};

static bool is_name(struct text_view view, const char *name)
{
    return name && strlen(name) == view.length && memcmp(name, view.bytes, view.length) == 0;
}

static bool add_parameter(const struct finding_parameter *parameter, uint64_t value,
                          struct text *text)
{
    switch (parameter->type) {
    case PARAMETER_COUNT:
    case PARAMETER_BYTES:
        return add_number(text, value);
    case PARAMETER_OFFSET:
        text_addf(text, "%" PRId64, (int64_t)value);
        break;
    case PARAMETER_ADDRESS:
        text_addf(text, "%#" PRIx64, value);
        break;
    case PARAMETER_HASH:
        text_addf(text, "%016" PRIx64, value);
        break;
    case PARAMETER_DURATION:
        text_addf(text, "%.1f s", (double)value / 1e9);
        break;
    }
    return true;
}

static const struct filler *find_filler(struct text_view name)
{
    for (const struct filler *one = call_fillers; one->name; one++)
        if (is_name(name, one->name))
            return one;
    for (const struct filler *one = hardware_fillers; one->name; one++)
        if (is_name(name, one->name))
            return one;
    for (size_t i = 0; i < COUNT_OF(fillers); i++)
        if (is_name(name, fillers[i].name))
            return &fillers[i];
    return NULL;
}

bool tell_knows(const struct finding_defect_info *info, struct text_view name)
{
    return (info && (is_name(name, info->expected.name) || is_name(name, info->found.name))) ||
           find_filler(name);
}

/* The finding's own parameters first. A clause about another finding's has none of those names. */
bool tell_name(const void *context, struct text_view name, struct text *text)
{
    const struct telling *telling = context;
    const struct finding *finding = telling->finding;
    const struct finding_defect_info *info = finding_defect_info(finding_defect(finding));
    if (!telling->place && is_name(name, info->expected.name))
        return add_parameter(&info->expected, finding->expected, text);
    if (!telling->place && is_name(name, info->found.name))
        return add_parameter(&info->found, finding->found, text);
    const struct filler *filler = find_filler(name);
    ASSERT(filler);
    return filler->fill(telling, text);
}

void tell_clause(const struct telling *telling, enum clause clause, struct text *text)
{
    template_fill(text, words_clause(clause, telling->language), tell_name, telling);
}
