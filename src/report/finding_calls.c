/* finding_calls.c - calls and operands in sentences about findings. */
#include "report/finding_fill.h"

#include <inttypes.h>
#include <string.h>

/* ---- A call --------------------------------------------------------------------------------- */

bool telling_is_op(const struct analyze_place *place)
{
    return place->op[0] && (place->kind == EVENT_LAUNCH || place->foreign);
}

static bool fill_what(const struct telling *telling, struct text *text)
{
    const struct analyze_place *place = telling->place;
    if (telling_is_op(place))
        return add_name(text, place->op);
    report_add_kind(text, place->kind, telling->language, place->scope.tensor);
    return true;
}

static bool has_tensor(const struct telling *telling)
{
    const struct analyze_place *place = telling->place;
    return telling_is_op(place) && place->scope.tensor[0] && !telling->brief;
}

static bool fill_tensor(const struct telling *telling, struct text *text)
{
    const struct analyze_place *place = telling->place;
    return has_tensor(telling) && !place->foreign && add_name(text, place->scope.tensor);
}

/* In a foreign program's call that is no tensor, but says more about the call. */
static bool fill_variant(const struct telling *telling, struct text *text)
{
    const struct analyze_place *place = telling->place;
    return has_tensor(telling) && place->foreign && !event_is_ranged(place->kind) &&
           add_name(text, place->scope.tensor);
}

/* What the program itself calls the part of its work that the call belongs to. */
static bool fill_range(const struct telling *telling, struct text *text)
{
    const struct analyze_place *place = telling->place;
    return has_tensor(telling) && place->foreign && event_is_ranged(place->kind) &&
           add_name(text, place->scope.tensor);
}

static bool fill_layer(const struct telling *telling, struct text *text)
{
    int32_t layer = telling->place->scope.layer;
    return layer >= 0 && add_number(text, (uint64_t)layer);
}

static bool fill_step(const struct telling *telling, struct text *text)
{
    int32_t step = telling->place->scope.step;
    return step >= 0 && add_number(text, (uint64_t)step);
}

static bool fill_call(const struct telling *telling, struct text *text)
{
    return add_clause(telling, telling->brief ? CLAUSE_CALL_IN_BRIEF : CLAUSE_CALL, text);
}

static bool fill_event(const struct telling *telling, struct text *text)
{
    return add_number(text, telling->place->event_id);
}

static bool fill_stream(const struct telling *telling, struct text *text)
{
    uint32_t stream = telling->place->stream_index;
    return stream != EVENT_NO_STREAM && add_number(text, stream);
}

static bool fill_node(const struct telling *telling, struct text *text)
{
    return telling->place->node && add_number(text, telling->place->node);
}

static bool fill_replay(const struct telling *telling, struct text *text)
{
    return add_number(text, telling->place->epoch);
}

static bool fill_ordinal(const struct telling *telling, struct text *text)
{
    return telling->place->ordinal && add_number(text, telling->place->ordinal);
}

static bool fill_site(const struct telling *telling, struct text *text)
{
    if (!add_name(text, telling->place->file))
        return false;
    text_addf(text, ":%" PRIu32, telling->place->line);
    return true;
}

void tell_place(const struct telling *telling, const struct analyze_place *place, struct text *text)
{
    struct telling of = *telling;
    of.place = place;
    tell_clause(&of, CLAUSE_PLACE, text);
}

static bool add_with_article(const struct telling *telling, const struct analyze_place *place,
                             struct text *text)
{
    if (!place->event_id)
        return false;
    if (!telling_is_op(place))
        text_add(text, report_kind_article(place->kind, telling->language));
    tell_place(telling, place, text);
    return true;
}

static bool fill_other(const struct telling *telling, struct text *text)
{
    return add_with_article(telling, &telling->finding->other, text);
}

static bool fill_seen(const struct telling *telling, struct text *text)
{
    return add_with_article(telling, &telling->finding->seen, text);
}

/* What moved last before a hang, in a whole sentence; nothing where that is not known. */
static bool fill_moved(const struct telling *telling, struct text *text)
{
    return !telling->brief && add_with_article(telling, &telling->finding->moved, text);
}

static bool fill_moved_ago(const struct telling *telling, struct text *text)
{
    text_addf(text, "%.1f s", (double)telling->finding->moved_ago_ns / 1e9);
    return true;
}

static bool fill_later_ms(const struct telling *telling, struct text *text)
{
    const struct finding *finding = telling->finding;
    uint64_t from = finding->cause.time_ns, to = finding->seen.time_ns;
    if (finding->candidate_count > 1 || !from || to <= from)
        return false;
    double ms = (double)(to - from) / 1e6;
    text_addf(text, ms < 0.1 ? "%.3f" : "%.1f", ms);
    return true;
}

/* ---- Operands ------------------------------------------------------------------------------- */

/* Operands of copies, fills and frees have no names; their buffer has one. */
static bool is_buffer_only(const struct analyze_place *place)
{
    return place->buffer[0] &&
           (place->operand == EVENT_NO_OPERAND || (place->kind != EVENT_LAUNCH && !place->foreign));
}

static bool fill_operand(const struct telling *telling, struct text *text)
{
    const struct analyze_place *cause = &telling->finding->cause;
    return add_clause(telling,
                      is_buffer_only(cause)                ? CLAUSE_BUFFER
                      : cause->operand == EVENT_NO_OPERAND ? CLAUSE_MEMORY
                                                           : CLAUSE_OPERAND,
                      text);
}

static bool fill_operand_name(const struct telling *telling, struct text *text)
{
    const struct analyze_place *cause = &telling->finding->cause;
    return add_name(text, cause->operand_name) || add_number(text, cause->operand);
}

static bool fill_operand_buffer(const struct telling *telling, struct text *text)
{
    const struct analyze_place *cause = &telling->finding->cause;
    return strcmp(cause->buffer, cause->operand_name) != 0 && add_name(text, cause->buffer);
}

static bool fill_buffer(const struct telling *telling, struct text *text)
{
    const char *name = telling->finding->cause.buffer;
    return add_name(text, name[0] ? name : "?");
}

/* "memoria" is, "operando" and "búfer" are not. */
static enum clause by_gender(const struct telling *telling, enum clause clause)
{
    const struct analyze_place *cause = &telling->finding->cause;
    bool feminine = cause->operand == EVENT_NO_OPERAND && !cause->buffer[0];
    return feminine ? clause + 1 : clause;
}
_Static_assert(CLAUSE_THE_FEMININE == CLAUSE_THE + 1 && CLAUSE_OF_FEMININE == CLAUSE_OF + 1 &&
                   CLAUSE_FROM_FEMININE == CLAUSE_FROM + 1,
               "the feminine form of a clause comes next");

static bool fill_the_operand(const struct telling *telling, struct text *text)
{
    return add_clause(telling, by_gender(telling, CLAUSE_THE), text);
}

static bool fill_of_operand(const struct telling *telling, struct text *text)
{
    return add_clause(telling, by_gender(telling, CLAUSE_OF), text);
}

static bool fill_from_operand(const struct telling *telling, struct text *text)
{
    return add_clause(telling, by_gender(telling, CLAUSE_FROM), text);
}

const struct filler call_fillers[] = {
    { "what", fill_what },
    { "tensor", fill_tensor },
    { "variant", fill_variant },
    { "range", fill_range },
    { "layer", fill_layer },
    { "step", fill_step },
    { "call", fill_call },
    { "event", fill_event },
    { "stream", fill_stream },
    { "node", fill_node },
    { "replay", fill_replay },
    { "ordinal", fill_ordinal },
    { "site", fill_site },
    { "other", fill_other },
    { "seen", fill_seen },
    { "moved", fill_moved },
    { "moved_ago", fill_moved_ago },
    { "later_ms", fill_later_ms },
    { "operand", fill_operand },
    { "the_operand", fill_the_operand },
    { "of_operand", fill_of_operand },
    { "from_operand", fill_from_operand },
    { "operand_name", fill_operand_name },
    { "operand_buffer", fill_operand_buffer },
    { "buffer", fill_buffer },
    { 0 },
};
