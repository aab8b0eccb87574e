/* describe.c - a finding as one sentence, in English and Spanish. Names of ops, tensors, files and
 * checks are names in both. They come from outside: shown printably. */
#include "analyze/analyze_impl.h"

#include "base/text.h"

#include <inttypes.h>
#include <string.h>

struct writer {
    struct text *text;
    enum analyze_language language;
};

/* Both may be formats: the compiler checks each. */
__attribute__((format_arg(2), format_arg(3))) static const char *
say(const struct writer *out, const char *english, const char *spanish)
{
    return out->language == ANALYZE_SPANISH ? spanish : english;
}

static void add_name(const struct writer *out, const char *name)
{
    text_add_printable(out->text, text_view_of(name), 80);
}

/* ---- Places --------------------------------------------------------------------------------- */

/* "rope, layer 17, step 3", "copy-out logits, step 3" */
static void add_place(const struct writer *out, const struct analyze_place *place)
{
    bool is_op = place->op[0] && (place->kind == EVENT_LAUNCH || place->foreign);
    if (is_op)
        add_name(out, place->op);
    else
        text_add(out->text, event_kind_name((enum event_kind)place->kind));
    if (place->scope.tensor[0]) {
        text_add(out->text, !is_op ? " " : place->foreign ? ", " : ", tensor ");
        add_name(out, place->scope.tensor);
    }
    if (place->scope.layer >= 0)
        text_addf(out->text, ", %s %" PRId32, say(out, "layer", "capa"), place->scope.layer);
    if (place->scope.step >= 0)
        text_addf(out->text, ", %s %" PRId32, say(out, "step", "paso"), place->scope.step);
}

/* " (event 812, stream 1, forward.c:120)" */
static void add_call(const struct writer *out, const struct analyze_place *place)
{
    text_addf(out->text, " (%s %" PRIu64, say(out, "event", "evento"), place->event_id);
    if (place->stream_index != EVENT_NO_STREAM)
        text_addf(out->text, ", %s %" PRIu32, say(out, "stream", "flujo"), place->stream_index);
    if (place->node)
        text_addf(out->text, ", %s %" PRIu32 ", %s %u", say(out, "graph node", "nodo del grafo"),
                  place->node, say(out, "replay", "repetición"), place->epoch);
    if (place->ordinal)
        text_addf(out->text, ", %s %" PRIu64, say(out, "launch", "lanzamiento"), place->ordinal);
    if (place->file[0]) {
        text_add(out->text, ", ");
        add_name(out, place->file);
        text_addf(out->text, ":%" PRIu32, place->line);
    }
    text_add(out->text, ")");
}

/* "operand 1", "memory" */
static void add_operand_number(const struct writer *out, const struct analyze_place *place)
{
    if (place->operand != EVENT_NO_OPERAND)
        text_addf(out->text, "%s %u", say(out, "operand", "operando"), place->operand);
    else
        text_add(out->text, say(out, "memory", "memoria"));
}

/* "operand 1 (positions)", "its range", with the buffer's name where there is one */
static void add_operand(const struct writer *out, const struct analyze_place *place)
{
    add_operand_number(out, place);
    if (place->buffer[0]) {
        text_add(out->text, say(out, " in buffer ", " en el búfer "));
        add_name(out, place->buffer);
    }
}

static void add_other(const struct writer *out, const char *english, const char *spanish,
                      const struct analyze_place *place)
{
    if (place->event_id == 0)
        return;
    text_add(out->text, say(out, english, spanish));
    add_place(out, place);
    add_call(out, place);
}

static void add_neighbour(const struct writer *out, const char *english, const char *spanish,
                          const struct analyze_neighbour *neighbour)
{
    if (neighbour->bytes == 0)
        return;
    uint64_t apart = neighbour->distance < 0 ? 0 - (uint64_t)neighbour->distance
                                             : (uint64_t)neighbour->distance;
    text_add(out->text, say(out, english, spanish));
    add_name(out, neighbour->name[0] ? neighbour->name : "?");
    if (apart)
        text_addf(out->text, say(out, " %" PRIu64 " bytes away", " a %" PRIu64 " bytes"), apart);
}

static void add_near(const struct writer *out, const struct analyze_neighbourhood *near)
{
    if (!near->known)
        return;
    text_addf(out->text, say(out, "; address 0x%" PRIx64, "; dirección 0x%" PRIx64), near->address);
    add_neighbour(out, ", inside the live buffer ", ", dentro del búfer vivo ", &near->live);
    add_neighbour(out, ", inside the freed buffer ", ", dentro del búfer liberado ", &near->freed);
    if (near->live.bytes)
        return;
    add_neighbour(out, ", behind ", ", detrás de ", &near->before);
    add_neighbour(out, ", before ", ", delante de ", &near->after);
}

/* ---- What happened -------------------------------------------------------------------------- */

/* What the check of a foreign call says: nothing was refused there. */
static void add_violation(const struct writer *out, const struct finding *finding)
{
    static const struct {
        enum event_check check;
        const char *english, *spanish;
    } words[] = {
        { EVENT_CHECK_VIEW_END,
          " ends past its allocation: of %" PRIu64 " bytes, up to byte %" PRIu64,
          " termina más allá de su asignación: de %" PRIu64 " bytes, hasta el byte %" PRIu64 },
        { EVENT_CHECK_ALIGNMENT,
          " is not the start of an allocation: that is at %#" PRIx64 ", given was %#" PRIx64,
          " no es el inicio de una asignación: está en %#" PRIx64 ", se dio %#" PRIx64 },
    };
    add_operand(out, &finding->cause);
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (finding->check == words[i].check) {
            text_addf(out->text, say(out, words[i].english, words[i].spanish), finding->expected,
                      finding->found);
            return;
        }
    if (finding->check == EVENT_CHECK_DIRECTION)
        text_add(out->text, say(out,
                                " is device memory where the call takes host memory: the copy "
                                "goes the wrong way",
                                " es memoria del dispositivo donde la llamada espera memoria del "
                                "anfitrión: la copia va en sentido contrario"));
    else if (finding->cause.operand == EVENT_NO_OPERAND)
        text_addf(out->text,
                  say(out, ": the stream %#" PRIx64 " was destroyed before",
                      ": el flujo %#" PRIx64 " fue destruido antes"),
                  finding->found);
    else
        text_addf(out->text,
                  say(out, ": no allocation is known at %#" PRIx64,
                      ": no se conoce ninguna asignación en %#" PRIx64),
                  finding->found);
}

static void add_refusal(const struct writer *out, const struct finding *finding)
{
    if (finding->check && finding->cause.foreign) {
        add_violation(out, finding);
        return;
    }
    if (!finding->check) {
        text_add(out->text, say(out, "the launch is past a limit of the device",
                                "el lanzamiento excede un límite del dispositivo"));
        return;
    }
    add_operand(out, &finding->cause);
    text_addf(
        out->text,
        say(out, " was refused by the check %s: expected %" PRIu64 ", found %" PRIu64,
            " fue rechazado por la comprobación %s: se esperaba %" PRIu64 ", se halló %" PRIu64),
        event_check_name((enum event_check)finding->check), finding->expected, finding->found);
}

static void add_use_after_free(const struct writer *out, const struct finding *finding)
{
    add_operand(out, &finding->cause);
    if (finding->check && finding->cause.foreign)
        text_add(out->text, finding->cause.kind == EVENT_BUFFER_DESTROY
                                ? say(out, " is freed a second time", " se libera otra vez")
                                : say(out, " was freed before", " se había liberado antes"));
    else if (finding->check)
        text_addf(out->text,
                  say(out, " was destroyed before (generation %" PRIu64 ", now %" PRIu64 ")",
                      " fue destruido antes (generación %" PRIu64 ", ahora %" PRIu64 ")"),
                  finding->expected, finding->found);
    else if (finding->near.known)
        text_add(out->text,
                 say(out, " was touched after it was freed", " se tocó después de liberarse"));
    else
        text_add(out->text, say(out, " was destroyed while this work was queued or running",
                                " fue destruido con este trabajo en cola o en curso"));
    add_other(out, "; freed by ", "; liberado por ", &finding->other);
}

static void add_unordered(const struct writer *out, const struct finding *finding)
{
    if (finding->cause.kind == EVENT_STREAM_DESTROY) {
        text_add(out->text, say(out, "nobody waited for the stream's last work",
                                "nadie esperó el último trabajo del flujo"));
        add_other(out, ", ", ", ", &finding->other);
        return;
    }
    if (finding->certainty == FINDING_POSSIBLE && finding->other.event_id == 0) {
        text_addf(out->text,
                  say(out, "its source had the hash %016" PRIx64 " before and %016" PRIx64 " after",
                      "su origen tenía el resumen %016" PRIx64 " antes y %016" PRIx64 " después"),
                  finding->expected, finding->found);
        return;
    }
    if (finding->other.event_id == 0) {
        text_add(out->text, say(out, "its bytes were read without waiting for the copy",
                                "sus bytes se leyeron sin esperar la copia"));
        return;
    }
    text_addf(out->text, "%" PRIu64 " bytes, ", finding->cause.bytes);
    add_operand(out, &finding->cause);
    text_add(out->text, finding->cause.mode & EVENT_WRITE
                            ? say(out, ", are written with no order", ", se escriben sin orden")
                            : say(out, ", are read with no order", ", se leen sin orden"));
    add_other(out, " after the access of ", " tras el acceso de ", &finding->other);
}

static void add_trap(const struct writer *out, const struct finding *finding)
{
    text_addf(out->text,
              say(out, "index %" PRIu64 " past its bound %" PRIu64 ", read through ",
                  "índice %" PRIu64 " más allá de su límite %" PRIu64 ", leído por "),
              finding->found, finding->expected);
    add_operand(out, &finding->cause);
}

static void add_staging(const struct writer *out, const struct finding *finding)
{
    if (finding->other.kind == EVENT_SOURCE_CHANGED && finding->other.event_id) {
        text_addf(out->text,
                  say(out,
                      "the host memory it reads was rewritten before anybody waited for the copy "
                      "(digest %016" PRIx64 ", then %016" PRIx64 ")",
                      "la memoria del anfitrión que lee se reescribió antes de que nadie esperara "
                      "la copia (resumen %016" PRIx64 ", luego %016" PRIx64 ")"),
                  finding->expected, finding->found);
        return;
    }
    if (finding->check)
        text_add(out->text, say(out, "a ticket was used after its release",
                                "se usó un tique después de soltarlo"));
    else
        text_add(out->text, say(out, "its staging slot was in use", "su ranura estaba en uso"));
    add_other(out, "; taken by ", "; tomada por ", &finding->other);
}

static void add_corruption(const struct writer *out, const struct finding *finding)
{
    if (finding->near.known) {
        text_addf(
            out->text,
            say(out, "%" PRIu64 " bytes beside the buffer ", "%" PRIu64 " bytes junto al búfer "),
            finding->cause.bytes);
        add_name(out, finding->cause.buffer[0] ? finding->cause.buffer : "?");
        text_addf(out->text,
                  say(out, " (of %" PRIu64 " bytes) were overwritten, the first at offset %" PRId64,
                      " (de %" PRIu64 " bytes) fueron sobrescritos, el primero en el "
                      "desplazamiento %" PRId64),
                  finding->expected, (int64_t)finding->found);
        return;
    }
    text_addf(out->text,
              say(out, "bytes with the hash %016" PRIx64 " landed with the hash %016" PRIx64,
                  "bytes con el resumen %016" PRIx64 " llegaron con el resumen %016" PRIx64),
              finding->expected, finding->found);
}

static void add_differing(const struct writer *out, const struct finding *finding)
{
    bool is_op = finding->cause.kind == EVENT_LAUNCH;
    if (is_op) {
        add_operand(out, &finding->cause);
        text_add(out->text, say(out, " has ", " tiene "));
    }
    text_addf(
        out->text,
        say(out,
            "hash %016" PRIx64 " in iteration %" PRIu64 ", %016" PRIx64 " in iteration %" PRIu64,
            "resumen %016" PRIx64 " en la iteración %" PRIu64 ", %016" PRIx64
            " en la iteración %" PRIu64),
        finding->expected, finding->other.iteration, finding->found, finding->cause.iteration);
    if (is_op && !finding->reason[0])
        text_add(out->text, say(out, "; all its inputs have the same bytes in both",
                                "; todas sus entradas tienen los mismos bytes en ambas"));
    else if (is_op)
        add_other(out, "; last agreed: ", "; coincidió por última vez: ", &finding->other);
}

static void add_hang(const struct writer *out, const struct finding *finding)
{
    text_addf(out->text,
              say(out, "no progress for %.1f s (limit %.1f s)",
                  "sin progreso durante %.1f s (límite %.1f s)"),
              (double)finding->found / 1e9, (double)finding->expected / 1e9);
    add_other(out, "; mark of ", "; marca de ", &finding->other);
}

/* Where a fault's address lies, seen from the buffer of the operand it is held against. */
static void add_miss(const struct writer *out, const struct finding *finding)
{
    uint64_t address = finding->near.address, begin = finding->expected, bytes = finding->found;
    if (!finding->near.known || !begin || !bytes || address - begin < bytes)
        return;
    for (uint32_t wraps = 1; wraps <= FINDING_WRAP_LIMIT; wraps++) {
        uint64_t apart = (uint64_t)wraps << 32;
        bool below = address + apart - begin < bytes;
        if (!below && address - apart - begin >= bytes)
            continue;
        text_add(out->text, ", ");
        if (wraps > 1)
            text_addf(out->text, "%" PRIu32 " x ", wraps);
        text_add(out->text, below ? say(out, "2^32 bytes below ", "2^32 bytes por debajo de ")
                                  : say(out, "2^32 bytes above ", "2^32 bytes por encima de "));
        add_operand(out, &finding->cause);
        text_add(out->text, say(out, ": an offset that wrapped at 32 bits?",
                                ": ¿un desplazamiento que desbordó 32 bits?"));
        return;
    }
    /* The first byte outside is one byte past the end, or before the start. */
    bool before = address < begin;
    text_addf(out->text,
              before ? say(out, ", %" PRIu64 " bytes before the start of the buffer of ",
                           ", %" PRIu64 " bytes antes del inicio del búfer de ")
                     : say(out, ", %" PRIu64 " bytes past the end of the buffer of ",
                           ", %" PRIu64 " bytes más allá del final del búfer de "),
              before ? begin - address : address - begin - bytes + 1);
    add_operand_number(out, &finding->cause);
}

static void add_what(const struct writer *out, const struct finding *finding)
{
    switch (finding->hypothesis) {
    case HYPOTHESIS_USE_AFTER_FREE:
        add_use_after_free(out, finding);
        break;
    case HYPOTHESIS_MISSING_SYNC:
    case HYPOTHESIS_OVERLAPPING_COPIES:
        add_unordered(out, finding);
        break;
    case HYPOTHESIS_STAGING_REUSE:
        add_staging(out, finding);
        break;
    case HYPOTHESIS_KERNEL_FAULT:
        text_add(out->text, finding->certainty == FINDING_DIRECT || finding->near.known
                                ? say(out, "illegal memory access", "acceso ilegal a memoria")
                            : finding->cause.ordinal
                                ? say(out, "illegal memory access here or in a later launch",
                                      "acceso ilegal a memoria aquí o en un lanzamiento posterior")
                                : say(out, "the process ended here", "el proceso terminó aquí"));
        add_miss(out, finding);
        break;
    case HYPOTHESIS_STALE_GRAPH:
        add_operand(out, &finding->cause);
        text_add(out->text, say(out, " was destroyed after the graph was recorded",
                                " fue destruido después de grabar el grafo"));
        add_other(out, "; freed by ", "; liberado por ", &finding->other);
        break;
    case HYPOTHESIS_UNINITIALISED_READ:
        text_addf(out->text,
                  say(out, "%" PRIu64 " bytes that nobody wrote are read through ",
                      "se leen %" PRIu64 " bytes que nadie escribió por "),
                  finding->found);
        add_operand(out, &finding->cause);
        break;
    case HYPOTHESIS_SILENT_CORRUPTION:
    case HYPOTHESIS_RUNTIME_DEFECT:
        add_corruption(out, finding);
        break;
    case HYPOTHESIS_NON_DETERMINISM:
        add_differing(out, finding);
        break;
    case HYPOTHESIS_HANG:
        add_hang(out, finding);
        break;
    case HYPOTHESIS_NUMERIC:
        text_addf(out->text,
                  say(out, "%" PRIu64 " of %" PRIu64 " values are not finite in ",
                      "%" PRIu64 " de %" PRIu64 " valores no son finitos en "),
                  finding->found, finding->expected);
        add_operand(out, &finding->cause);
        break;
    case HYPOTHESIS_LEAK:
        text_addf(out->text,
                  say(out,
                      "%" PRIu64 " allocations of this call, %" PRIu64 " bytes, were alive when "
                      "the process ended, and none was ever freed",
                      "%" PRIu64 " asignaciones de esta llamada, %" PRIu64 " bytes, seguían vivas "
                      "al terminar el proceso, y ninguna se liberó"),
                  finding->expected, finding->found);
        break;
    case HYPOTHESIS_BAD_POINTER:
        if (!finding->check) {
            add_trap(out, finding);
            break;
        }
        add_refusal(out, finding);
        break;
    case HYPOTHESIS_SIZE_MISMATCH:
    case HYPOTHESIS_CONTRACT_BREACH:
    case HYPOTHESIS_COUNT:
        add_refusal(out, finding);
        break;
    }
}

void finding_describe(const struct finding *finding, enum analyze_language language,
                      struct text *text)
{
    struct writer out = { text, language };
    if (finding->seen.event_id) {
        text_add(text, say(&out, "seen at ", "visto en "));
        add_place(&out, &finding->seen);
        text_add(text, say(&out, ", caused by ", ", causado por "));
    }
    add_place(&out, &finding->cause);
    add_call(&out, &finding->cause);
    text_add(text, ": ");
    add_what(&out, finding);
    if (finding->hypothesis != HYPOTHESIS_SILENT_CORRUPTION)
        add_near(&out, &finding->near);
    if (finding->candidate_count > 1)
        text_addf(text, say(&out, "; %" PRIu32 " candidates", "; %" PRIu32 " candidatos"),
                  finding->candidate_count);
    if (finding->reason[0])
        text_addf(text, "; %s", finding_reason_words(finding, language));
    if (finding->count > 1)
        text_addf(text, say(&out, "; %" PRIu64 " times", "; %" PRIu64 " veces"), finding->count);
}
