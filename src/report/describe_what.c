/* describe_what.c - what the cause of a finding did, in words: the numbers of each hypothesis. */
#include "report/describe.h"

#include <inttypes.h>

#define SAY(english, spanish) describe_say(out, english, spanish)

/* ---- Lifetimes and order -------------------------------------------------------------------- */

static void add_use_after_free(const struct describer *out, const struct finding *finding)
{
    text_add(out->text, ": ");
    describe_the_operand(out, &finding->cause);
    if (finding->check && finding->cause.foreign)
        text_add(out->text, finding->cause.kind == EVENT_BUFFER_DESTROY
                                ? SAY(" is freed a second time", " se libera otra vez")
                                : SAY(" was freed before", " se había liberado antes"));
    else if (finding->check)
        text_addf(out->text,
                  SAY(" was freed before (generation %" PRIu64 ", now %" PRIu64 ")",
                      " se había liberado antes (generación %" PRIu64 ", ahora %" PRIu64 ")"),
                  finding->expected, finding->found);
    else if (finding->near.known)
        text_addf(out->text,
                  SAY(" was accessed at 0x%" PRIx64 " after it was freed",
                      " se accedió en 0x%" PRIx64 " después de liberarse"),
                  finding->near.address);
    else
        text_add(out->text, SAY(" was freed while this work was queued or running",
                                " se liberó con este trabajo en cola o en curso"));
    describe_freed(out, &finding->other);
}

static void add_unordered(const struct describer *out, const struct finding *finding)
{
    const struct analyze_place *cause = &finding->cause;
    bool write = cause->mode & EVENT_WRITE;
    if (cause->kind == EVENT_STREAM_DESTROY) {
        text_add(out->text, SAY(": nothing waited for the stream's last work",
                                ": nada esperó al último trabajo del flujo"));
        describe_other(out, ", ", ", ", &finding->other);
    } else if (finding->certainty == FINDING_POSSIBLE && finding->other.event_id == 0) {
        text_addf(out->text,
                  SAY(": its source had the hash %016" PRIx64 " before and %016" PRIx64 " after",
                      ": su origen tenía el hash %016" PRIx64 " antes y %016" PRIx64 " después"),
                  finding->expected, finding->found);
    } else if (finding->other.event_id == 0) {
        text_add(out->text, SAY(": its bytes were read without waiting for the copy",
                                ": sus bytes se leyeron sin esperar a la copia"));
    } else {
        text_add(out->text, write ? SAY(" wrote ", " escribió ") : SAY(" read ", " leyó "));
        describe_bytes(out, cause->bytes);
        text_add(out->text, " ");
        describe_of_operand(out, cause);
        text_add(out->text, SAY(" with no order", " sin orden"));
        describe_other(out, " after the access by ", " tras el acceso hecho por ", &finding->other);
    }
}

static void add_staging(const struct describer *out, const struct finding *finding)
{
    if (finding->other.kind == EVENT_SOURCE_CHANGED && finding->other.event_id) {
        text_addf(out->text,
                  SAY(": the host memory it reads was rewritten before anything waited for the "
                      "copy (hash %016" PRIx64 ", then %016" PRIx64 ")",
                      ": la memoria del anfitrión que lee se reescribió antes de que se esperara a "
                      "la copia (hash %016" PRIx64 ", luego %016" PRIx64 ")"),
                  finding->expected, finding->found);
        return;
    }
    text_add(out->text, finding->check ? SAY(" used a ticket after its release",
                                             " usó un ticket después de liberarlo")
                                       : SAY(" took a staging slot that was in use",
                                             " tomó una ranura intermedia que estaba en uso"));
    describe_other(out, "; taken by ", "; tomada por ", &finding->other);
}

/* ---- Faults and values ---------------------------------------------------------------------- */

/* Where a fault's address lies, seen from the buffer of the operand it is held against. */
static void add_miss(const struct describer *out, const struct finding *finding)
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
        text_add(out->text, below ? SAY("2^32 bytes below ", "2^32 bytes por debajo ")
                                  : SAY("2^32 bytes above ", "2^32 bytes por encima "));
        describe_from_operand(out, &finding->cause);
        text_add(out->text, SAY(": an offset that wrapped at 32 bits?",
                                ": ¿un desplazamiento que desbordó 32 bits?"));
        return;
    }
    /* The first byte outside is one byte past the end, or before the start. */
    bool before = address < begin;
    text_add(out->text, ", ");
    describe_bytes(out, before ? begin - address : address - begin - bytes + 1);
    text_add(out->text, before ? SAY(" before the start ", " antes del inicio ")
                               : SAY(" past the end ", " más allá del final "));
    describe_of_operand(out, &finding->cause);
}

static void add_fault(const struct describer *out, const struct finding *finding)
{
    if (finding->certainty == FINDING_DIRECT || finding->near.known)
        text_add(out->text,
                 SAY(" made an illegal memory access", " hizo un acceso ilegal a memoria"));
    else if (finding->cause.ordinal || finding->candidate_count > 1)
        text_add(out->text, SAY(" may have made an illegal memory access",
                                " pudo hacer un acceso ilegal a memoria"));
    else
        text_add(out->text, SAY(": the process ended here", ": el proceso terminó aquí"));
    if (finding->near.known && out->brief)
        text_addf(out->text, SAY(" at 0x%" PRIx64, " en 0x%" PRIx64), finding->near.address);
    if (finding->candidate_count <= 1) /* else it would be an operand of one of them */
        add_miss(out, finding);
}

static void add_corruption(const struct describer *out, const struct finding *finding)
{
    if (!finding->near.known) {
        text_addf(out->text,
                  SAY(": bytes with the hash %016" PRIx64 " arrived with the hash %016" PRIx64,
                      ": bytes con el hash %016" PRIx64 " llegaron con el hash %016" PRIx64),
                  finding->expected, finding->found);
        return;
    }
    text_add(out->text, SAY(" overwrote ", " sobrescribió "));
    describe_bytes(out, finding->cause.bytes);
    text_add(out->text, SAY(" outside buffer ", " fuera del búfer "));
    describe_name(out, finding->cause.buffer[0] ? finding->cause.buffer : "?");
    text_addf(out->text,
              SAY(" (of %" PRIu64 " bytes), the first at offset %" PRId64,
                  " (de %" PRIu64 " bytes), el primero en el desplazamiento %" PRId64),
              finding->expected, (int64_t)finding->found);
}

static void add_differing(const struct describer *out, const struct finding *finding)
{
    bool is_op = finding->cause.kind == EVENT_LAUNCH;
    text_add(out->text, ": ");
    if (is_op) {
        describe_operand(out, &finding->cause);
        text_add(out->text, SAY(" has ", " tiene "));
    }
    text_addf(out->text,
              SAY("hash %016" PRIx64 " in run %" PRIu64 ", %016" PRIx64 " in run %" PRIu64,
                  "hash %016" PRIx64 " en la ejecución %" PRIu64 ", %016" PRIx64
                  " en la ejecución %" PRIu64),
              finding->expected, finding->other.iteration, finding->found,
              finding->cause.iteration);
    if (is_op && !finding->reason)
        text_add(out->text, SAY("; all its inputs have the same bytes in both",
                                "; todas sus entradas tienen los mismos bytes en ambas"));
    else if (is_op)
        describe_other(out, "; the last op that agreed: ", "; la última operación que coincidió: ",
                       &finding->other);
}

static void add_hang(const struct describer *out, const struct finding *finding)
{
    text_addf(out->text,
              SAY(": no progress for %.1f s (limit %.1f s)",
                  ": sin progreso durante %.1f s (límite %.1f s)"),
              (double)finding->found / 1e9, (double)finding->expected / 1e9);
    describe_other(out, "; waits for ", "; espera ", &finding->other);
}

static void add_leak(const struct describer *out, const struct finding *finding)
{
    text_addf(out->text,
              SAY(": %" PRIu64 " allocations of this call, %" PRIu64 " bytes, were alive when the "
                  "process ended, and none was ever freed",
                  ": %" PRIu64 " asignaciones de esta llamada, %" PRIu64 " bytes, seguían vivas al "
                  "terminar el proceso, y ninguna se liberó"),
              finding->expected, finding->found);
}

static void add_bad_pointer(const struct describer *out, const struct finding *finding)
{
    if (finding->check) {
        describe_check(out, finding);
        return;
    }
    text_addf(out->text,
              SAY(" read index %" PRIu64 " (bound %" PRIu64 ") from ",
                  " leyó el índice %" PRIu64 " (límite %" PRIu64 ") "),
              finding->found, finding->expected);
    describe_from_operand(out, &finding->cause);
}

static void add_numeric(const struct describer *out, const struct finding *finding)
{
    text_addf(out->text,
              SAY(" wrote %" PRIu64 " non-finite %s among %" PRIu64 " to ",
                  " escribió %" PRIu64 " %s entre %" PRIu64 " en "),
              finding->found,
              text_plural(finding->found, SAY("value", "valor no finito"),
                          SAY("values", "valores no finitos")),
              finding->expected);
    describe_the_operand(out, &finding->cause);
}

void describe_what(const struct describer *out, const struct finding *finding)
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
        add_fault(out, finding);
        break;
    case HYPOTHESIS_STALE_GRAPH:
        text_add(out->text, ": ");
        describe_the_operand(out, &finding->cause);
        text_add(out->text, SAY(" was destroyed after the graph was recorded",
                                " se destruyó después de grabar el grafo"));
        describe_freed(out, &finding->other);
        break;
    case HYPOTHESIS_UNINITIALISED_READ:
        text_add(out->text, SAY(" read ", " leyó "));
        describe_bytes(out, finding->found);
        text_add(out->text, " ");
        describe_of_operand(out, &finding->cause);
        text_add(out->text, SAY(" that nothing had written",
                                text_plural(finding->found, " sin que nada lo hubiera escrito",
                                            " sin que nada los hubiera escrito")));
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
        add_numeric(out, finding);
        break;
    case HYPOTHESIS_LEAK:
        add_leak(out, finding);
        break;
    case HYPOTHESIS_BAD_POINTER:
        add_bad_pointer(out, finding);
        break;
    case HYPOTHESIS_SIZE_MISMATCH:
    case HYPOTHESIS_CONTRACT_BREACH:
    case HYPOTHESIS_COUNT:
        describe_check(out, finding);
        break;
    }
}
