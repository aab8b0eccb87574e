/* describe_check.c - a call that a check refused, or would have refused, in words. */
#include "report/describe.h"

#include <inttypes.h>

#define SAY(english, spanish) describe_say(out, english, spanish)

/* A foreign call that a check would have refused: it was made all the same. */
static void add_violation(const struct describer *out, const struct finding *finding)
{
    uint64_t expected = finding->expected, found = finding->found;
    text_add(out->text, ": ");
    describe_the_operand(out, &finding->cause);
    if (finding->check == EVENT_CHECK_VIEW_END)
        text_addf(out->text,
                  SAY(" ends past its allocation: of %" PRIu64 " bytes, up to byte %" PRIu64,
                      " termina más allá de su asignación: de %" PRIu64
                      " bytes, hasta el byte %" PRIu64),
                  expected, found);
    else if (finding->check == EVENT_CHECK_ALIGNMENT)
        text_addf(out->text,
                  SAY(" is not the start of an allocation: that is at %#" PRIx64
                      ", given was %#" PRIx64,
                      " no es el inicio de una asignación: está en %#" PRIx64 ", se dio %#" PRIx64),
                  expected, found);
    else if (finding->check == EVENT_CHECK_DIRECTION)
        text_add(out->text,
                 SAY(" is device memory where the call takes host memory: the copy goes the wrong "
                     "way",
                     " es memoria del dispositivo donde la llamada espera memoria del anfitrión: "
                     "la copia va en sentido contrario"));
    else if (finding->cause.operand == EVENT_NO_OPERAND)
        text_addf(out->text,
                  SAY(": the stream %#" PRIx64 " was destroyed before",
                      ": el flujo %#" PRIx64 " se había destruido antes"),
                  found);
    else
        text_addf(out->text,
                  SAY(": no allocation is known at %#" PRIx64,
                      ": no se conoce ninguna asignación en %#" PRIx64),
                  found);
}

/* What a check saw, in words: before the operand, and after it. {E} is what was expected, {F} what
 * was found. */
struct check_words {
    uint8_t check;
    bool operand; /* for calls that name one; else for those that do not */
    bool of;      /* "... of operand x", not "... operand x" */
    const char *before[ANALYZE_LANGUAGE_COUNT], *after[ANALYZE_LANGUAGE_COUNT];
};

static const struct check_words check_words[] = {
    { EVENT_CHECK_VIEW_END,
      true,
      true,
      { " asked for byte {F} ", " pidió el byte {F} " },
      { ", which has {E} bytes", ", que tiene {E} bytes" } },
    { EVENT_CHECK_BYTES,
      true,
      true,
      { " asked for {F} bytes ", " pidió {F} bytes " },
      { ", whose view has {E}", ", cuya vista tiene {E}" } },
    { EVENT_CHECK_BYTES,
      false,
      false,
      { " asked for {F} bytes", " pidió {F} bytes" },
      { ", where at least {E} is needed", ", cuando hace falta al menos {E}" } },
    { EVENT_CHECK_ALIGNMENT,
      true,
      false,
      { " used ", " usó " },
      { " at offset {F}, not a multiple of {E}",
        " en el desplazamiento {F}, que no es múltiplo de {E}" } },
    { EVENT_CHECK_READ_ONLY,
      true,
      false,
      { " was to write ", " iba a escribir " },
      { ", which is read-only", ", que es de solo lectura" } },
    { EVENT_CHECK_OPERANDS,
      false,
      false,
      { " was given {F} operands", " recibió {F} operandos" },
      { "; its contract has {E}", "; su contrato tiene {E}" } },
    { EVENT_CHECK_OPERANDS,
      true,
      false,
      { " was not given ", " no recibió " },
      { ", which its contract requires", ", que su contrato exige" } },
    { EVENT_CHECK_DTYPE,
      true,
      false,
      { " was given ", " recibió " },
      { " of type {F}; its contract allows the types in the bits {E}",
        " de tipo {F}; su contrato admite los tipos de los bits {E}" } },
    { EVENT_CHECK_SHAPE,
      true,
      false,
      { " was given ", " recibió " },
      { " with extent {F}; its contract says {E}", " con extensión {F}; su contrato dice {E}" } },
    { EVENT_CHECK_STRIDE,
      true,
      false,
      { " was given ", " recibió " },
      { " with rows {F} bytes apart; they need {E}", " con filas cada {F} bytes; necesitan {E}" } },
    { EVENT_CHECK_PARAMETER,
      false,
      false,
      { " was given a parameter of {F}", " recibió un parámetro de {F}" },
      { ", expected {E}", ", se esperaba {E}" } },
    { EVENT_CHECK_GEOMETRY,
      false,
      false,
      { " asked for {F} tiles or groups", " pidió {F} teselas o grupos" },
      { "; the limit is {E}", "; el límite es {E}" } },
    { EVENT_CHECK_POINTER,
      true,
      true,
      { " used {E} bytes ", " usó {E} bytes " },
      { ", of which the runtime knows {F} as memory of this device",
        ", de los que el runtime reconoce {F} como memoria de este dispositivo" } },
};

/* Of anything else there are only the numbers. */
static const struct check_words other_words = {
    .before = { " is not what the check allows", " no es lo que admite la comprobación" },
    .after = { ": expected {E}, found {F}", ": se esperaba {E}, se halló {F}" },
};

static void add_numbers(const struct describer *out, const char *words,
                        const struct finding *finding)
{
    for (; *words; words++)
        if (words[0] == '{' && (words[1] == 'E' || words[1] == 'F')) {
            text_addf(out->text, "%" PRIu64, words[1] == 'E' ? finding->expected : finding->found);
            words += 2;
        } else {
            text_add_bytes(out->text, words, 1);
        }
}

/* A call that greta itself refused; the device was not asked. */
static void add_refusal(const struct describer *out, const struct finding *finding)
{
    bool operand = finding->cause.operand != EVENT_NO_OPERAND;
    const struct check_words *words = &other_words;
    for (size_t i = 0; i < COUNT_OF(check_words); i++)
        if (check_words[i].check == finding->check && check_words[i].operand == operand)
            words = &check_words[i];
    add_numbers(out, words->before[out->language], finding);
    if (words->operand && words->of)
        describe_of_operand(out, &finding->cause);
    else if (words->operand)
        describe_the_operand(out, &finding->cause);
    add_numbers(out, words->after[out->language], finding);
    text_addf(out->text, SAY(" (refused by the check %s)", " (rechazado por la comprobación %s)"),
              event_check_name((enum event_check)finding->check));
}

void describe_check(const struct describer *out, const struct finding *finding)
{
    if (!finding->check)
        text_add(out->text,
                 SAY(" is past a limit of the device", " excede un límite del dispositivo"));
    else if (finding->cause.foreign)
        add_violation(out, finding);
    else
        add_refusal(out, finding);
}
