/* describe.c - a finding as one sentence: who did what, with the numbers, and where it surfaced; in
 * English and Spanish. A headline is the same sentence without what identifies the calls. Names of
 * ops, tensors, files and checks are names in both languages. They come from outside: shown
 * printably. */
#include "report/describe.h"

#include <inttypes.h>
#include <string.h>

#define SAY(english, spanish) describe_say(out, english, spanish)

/* More candidates than these are counted in a headline, not named. */
#define HEADLINE_CANDIDATES 3u
#define SENTENCE_CANDIDATES 8u

void describe_name(const struct describer *out, const char *name)
{
    text_add_printable(out->text, text_view_of(name), REPORT_NAME_LIMIT);
}

void describe_bytes(const struct describer *out, uint64_t count)
{
    text_addf(out->text, "%" PRIu64 " %s", count, text_plural(count, "byte", "bytes"));
}

/* ---- Places --------------------------------------------------------------------------------- */

static bool is_op(const struct analyze_place *place)
{
    return place->op[0] && (place->kind == EVENT_LAUNCH || place->foreign);
}

/* " (event 812, stream 1, forward.c:120)" */
static void add_call(const struct describer *out, const struct analyze_place *place)
{
    text_addf(out->text, " (%s %" PRIu64, SAY("event", "evento"), place->event_id);
    if (place->stream_index != EVENT_NO_STREAM)
        text_addf(out->text, ", %s %" PRIu32, SAY("stream", "flujo"), place->stream_index);
    if (place->node)
        text_addf(out->text, ", %s %" PRIu32 ", %s %u", SAY("graph node", "nodo del grafo"),
                  place->node, SAY("replay", "ejecución"), place->epoch);
    if (place->ordinal)
        text_addf(out->text, ", %s %" PRIu64, SAY("launch", "lanzamiento"), place->ordinal);
    if (place->file[0]) {
        text_add(out->text, ", ");
        describe_name(out, place->file);
        text_addf(out->text, ":%" PRIu32, place->line);
    }
    text_add(out->text, ")");
}

void describe_place(const struct describer *out, const struct analyze_place *place)
{
    if (is_op(place)) {
        describe_name(out, place->op);
        if (place->scope.tensor[0] && !out->brief) {
            text_add(out->text, place->foreign ? ", " : ", tensor ");
            describe_name(out, place->scope.tensor);
        }
    } else {
        report_add_kind(out->text, place->kind, out->language, place->scope.tensor);
    }
    if (place->scope.layer >= 0)
        text_addf(out->text, ", %s %" PRId32, SAY("layer", "capa"), place->scope.layer);
    if (place->scope.step >= 0)
        text_addf(out->text, ", %s %" PRId32, SAY("step", "paso"), place->scope.step);
    if (!out->brief)
        add_call(out, place);
    else if (place->ordinal)
        text_addf(out->text, " (%s %" PRIu64 ")", SAY("launch", "lanzamiento"), place->ordinal);
}

static void add_with_article(const struct describer *out, const struct analyze_place *place)
{
    if (!is_op(place))
        text_add(out->text, report_kind_article(place->kind, out->language));
    describe_place(out, place);
}

void describe_other(const struct describer *out, const char *english, const char *spanish,
                    const struct analyze_place *place)
{
    if (place->event_id == 0)
        return;
    text_add(out->text, SAY(english, spanish));
    add_with_article(out, place);
}

void describe_freed(const struct describer *out, const struct analyze_place *place)
{
    if (is_op(place)) {
        describe_other(out, "; freed by ", "; liberado por ", place);
    } else if (place->event_id && !out->brief) {
        text_add(out->text, SAY("; freed", "; liberado"));
        add_call(out, place);
    }
}

/* ---- Operands ------------------------------------------------------------------------------- */

/* Operands of copies, fills and frees have no names; their buffer has one. */
static bool is_buffer_only(const struct analyze_place *place)
{
    return place->buffer[0] &&
           (place->operand == EVENT_NO_OPERAND || (place->kind != EVENT_LAUNCH && !place->foreign));
}

/* "operand positions (buffer indices)", "operand 1", "buffer logits", "memory" */
void describe_operand(const struct describer *out, const struct analyze_place *place)
{
    if (is_buffer_only(place)) {
        text_add(out->text, SAY("buffer ", "búfer "));
        describe_name(out, place->buffer);
        return;
    }
    if (place->operand == EVENT_NO_OPERAND) {
        text_add(out->text, SAY("memory", "memoria"));
        return;
    }
    text_add(out->text, SAY("operand ", "operando "));
    if (place->operand_name[0])
        describe_name(out, place->operand_name);
    else
        text_addf(out->text, "%u", (unsigned)place->operand);
    if (place->buffer[0] && strcmp(place->buffer, place->operand_name) != 0) {
        text_add(out->text, SAY(" (buffer ", " (búfer "));
        describe_name(out, place->buffer);
        text_add(out->text, ")");
    }
}

static bool is_feminine(const struct analyze_place *place)
{
    return place->operand == EVENT_NO_OPERAND && !place->buffer[0];
}

/* "of operand x", "del operando x" */
void describe_of_operand(const struct describer *out, const struct analyze_place *place)
{
    text_add(out->text, SAY("of ", is_feminine(place) ? "de la " : "del "));
    describe_operand(out, place);
}

/* "operand x", "del operando x": after a word that takes no "of" in English */
void describe_from_operand(const struct describer *out, const struct analyze_place *place)
{
    text_add(out->text, SAY("", is_feminine(place) ? "de la " : "del "));
    describe_operand(out, place);
}

/* "operand x", "el operando x" */
void describe_the_operand(const struct describer *out, const struct analyze_place *place)
{
    text_add(out->text, SAY("", is_feminine(place) ? "la " : "el "));
    describe_operand(out, place);
}

/* ---- What lies at an address ---------------------------------------------------------------- */

static void add_neighbour(const struct describer *out, const char *english, const char *spanish,
                          const struct analyze_neighbour *neighbour)
{
    uint64_t apart = analyze_apart(neighbour);
    if (neighbour->bytes == 0 || apart > ANALYZE_NEAR_BYTES)
        return;
    text_add(out->text, SAY(english, spanish));
    describe_name(out, neighbour->name[0] ? neighbour->name : "?");
    if (apart) {
        text_add(out->text, SAY(" by ", " por "));
        describe_bytes(out, apart);
    }
}

static void add_near(const struct describer *out, const struct analyze_neighbourhood *near)
{
    if (!near->known)
        return;
    text_addf(out->text, SAY("; address 0x%" PRIx64, "; dirección 0x%" PRIx64), near->address);
    add_neighbour(out, ", inside the live buffer ", ", dentro del búfer vivo ", &near->live);
    add_neighbour(out, ", inside the freed buffer ", ", dentro del búfer liberado ", &near->freed);
    if (near->live.bytes)
        return;
    add_neighbour(out, ", past the end of ", ", pasado el final de ", &near->before);
    add_neighbour(out, ", before the start of ", ", antes del inicio de ", &near->after);
}

/* ---- The sentence --------------------------------------------------------------------------- */

/* "; surfaced 0.3 ms later at the D2H copy of logits, step 3" */
static void add_surfaced(const struct describer *out, const struct finding *finding)
{
    const struct analyze_place *cause = &finding->cause, *seen = &finding->seen;
    if (seen->event_id == 0 || seen->event_id == cause->event_id)
        return;
    text_add(out->text, SAY("; surfaced ", "; se manifestó "));
    if (finding->candidate_count <= 1 && cause->time_ns && seen->time_ns > cause->time_ns) {
        double ms = (double)(seen->time_ns - cause->time_ns) / 1e6;
        text_addf(out->text, ms < 0.1 ? "%.3f ms %s " : "%.1f ms %s ", ms, SAY("later", "después"));
    }
    text_add(out->text, SAY("at ", "en "));
    add_with_article(out, seen);
}

/* Who did it: "rope, layer 2, step 3", or that it was one of several. */
static void add_subject(const struct describer *out, const struct finding *finding)
{
    if (finding->candidate_count > 1)
        text_addf(out->text, SAY("one of %" PRIu64 " launches", "uno de %" PRIu64 " lanzamientos"),
                  finding->candidate_count + finding->candidates_left_out);
    else
        describe_place(out, &finding->cause);
}

static void add_candidates(const struct describer *out, const struct finding *finding)
{
    uint32_t count = finding->candidate_count,
             shown = out->brief ? HEADLINE_CANDIDATES : SENTENCE_CANDIDATES;
    if (count < 2)
        return;
    text_add(out->text, SAY("; candidates: ", "; candidatos: "));
    for (uint32_t i = 0; i < count && i < shown; i++) {
        text_add(out->text, i ? "; " : "");
        describe_place(out, &finding->candidates[i]);
    }
    uint64_t more = finding->candidates_left_out + (count > shown ? count - shown : 0);
    if (more)
        text_addf(out->text, SAY("; and %" PRIu64 " more", "; y %" PRIu64 " más"), more);
}

/* A symptom is not sold as its cause. */
static void add_attribution(const struct describer *out, const struct finding *finding)
{
    if (finding->certainty == FINDING_DIRECT && finding->attribution == FINDING_SEEN_AT &&
        finding->candidate_count <= 1 && finding->consequence_of < 0)
        text_add(out->text, SAY("; seen here, cause not found", "; visto aquí, causa no hallada"));
}

void report_finding_describe(const struct finding *finding, enum analyze_language language,
                             struct text *text)
{
    const struct describer full = { text, language, false }, *out = &full;
    add_subject(out, finding);
    describe_what(out, finding);
    if (finding->hypothesis != HYPOTHESIS_SILENT_CORRUPTION)
        add_near(out, &finding->near);
    add_surfaced(out, finding);
    add_candidates(out, finding);
    add_attribution(out, finding);
    if (finding->reason)
        text_addf(text, "; %s", report_reason_words(finding->reason, language));
    if (finding->count > 1)
        text_addf(text, SAY("; %" PRIu64 " times", "; %" PRIu64 " veces"), finding->count);
}

void report_finding_headline(const struct finding *finding, enum analyze_language language,
                             struct text *text)
{
    const struct describer brief = { text, language, true }, *out = &brief;
    add_subject(out, finding);
    describe_what(out, finding);
    add_surfaced(out, finding);
    add_candidates(out, finding);
    add_attribution(out, finding);
}

void report_finding_act(const struct finding *finding, enum analyze_language language,
                        struct text *text)
{
    struct text act;
    text_init(&act);
    const struct describer brief = { &act, language, true };
    describe_what(&brief, finding);
    const char *words = text_get(&act);
    text_add(text, words + strspn(words, ": "));
    text->failed = text->failed || act.failed;
    text_release(&act);
}
