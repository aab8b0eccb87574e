/* clauses.c - the parts that sentences about findings are made of. */
#include "report/finding_words.h"

static const char *const clauses[][REPORT_LANGUAGE_COUNT] = {
    [CLAUSE_PLACE] = { "{what}[, tensor {tensor}][, {variant}][, layer {layer}][, step {step}]"
                       "{call}",
                       "{what}[, tensor {tensor}][, {variant}][, capa {layer}][, paso {step}]"
                       "{call}" },
    [CLAUSE_CALL] = { " (event {event}[, stream {stream}][, graph node {node}, replay {replay}]"
                      "[, launch {ordinal}][, {site}])",
                      " (evento {event}[, flujo {stream}][, nodo del grafo {node}, ejecución "
                      "{replay}][, lanzamiento {ordinal}][, {site}])" },
    [CLAUSE_CALL_IN_BRIEF] = { "[ (launch {ordinal})]", "[ (lanzamiento {ordinal})]" },
    [CLAUSE_ONE_OF] = { "one of {number} launches", "uno de {number} lanzamientos" },

    [CLAUSE_OPERAND] = { "operand {operand_name}[ (buffer {operand_buffer})]",
                         "operando {operand_name}[ (búfer {operand_buffer})]" },
    [CLAUSE_BUFFER] = { "buffer {buffer}", "búfer {buffer}" },
    [CLAUSE_MEMORY] = { "memory", "memoria" },
    [CLAUSE_THE] = { "{operand}", "el {operand}" },
    [CLAUSE_THE_FEMININE] = { "{operand}", "la {operand}" },
    [CLAUSE_OF] = { "of {operand}", "del {operand}" },
    [CLAUSE_OF_FEMININE] = { "of {operand}", "de la {operand}" },
    [CLAUSE_FROM] = { "{operand}", "del {operand}" },
    [CLAUSE_FROM_FEMININE] = { "{operand}", "de la {operand}" },

    [CLAUSE_FREED] = { "; freed{call}", "; liberado{call}" },
    [CLAUSE_FREED_BY] = { "; freed by {other}", "; liberado por {other}" },
    [CLAUSE_REFUSED] = { " (refused by the check {check})",
                         " (rechazado por la comprobación {check})" },
    [CLAUSE_SAME_INPUTS] = { "; all its inputs have the same bytes in both",
                             "; todas sus entradas tienen los mismos bytes en ambas" },
    [CLAUSE_LAST_AGREED] = { "[; the last op that agreed: {other}]",
                             "[; la última operación que coincidió: {other}]" },
    [CLAUSE_BEFORE_START] = { ", {number} {number|byte|bytes} before the start {of_operand}",
                              ", {number} {number|byte|bytes} antes del inicio {of_operand}" },
    [CLAUSE_PAST_END] = { ", {number} {number|byte|bytes} past the end {of_operand}",
                          ", {number} {number|byte|bytes} más allá del final {of_operand}" },
    [CLAUSE_WRAPPED_BELOW] = { ", [{wraps} x ]2^32 bytes below {from_operand}: an offset that "
                               "wrapped at 32 bits?",
                               ", [{wraps} x ]2^32 bytes por debajo {from_operand}: ¿un "
                               "desplazamiento que desbordó 32 bits?" },
    [CLAUSE_WRAPPED_ABOVE] = { ", [{wraps} x ]2^32 bytes above {from_operand}: an offset that "
                               "wrapped at 32 bits?",
                               ", [{wraps} x ]2^32 bytes por encima {from_operand}: ¿un "
                               "desplazamiento que desbordó 32 bits?" },
    [CLAUSE_ADDRESS] = { "; address {address}", "; dirección {address}" },
    [CLAUSE_NEAR_LIVE] = { ", inside the live buffer {neighbour}[ by {apart} {apart|byte|bytes}]",
                           ", dentro del búfer vivo {neighbour}[ por {apart} "
                           "{apart|byte|bytes}]" },
    [CLAUSE_NEAR_FREED] = { ", inside the freed buffer {neighbour}[ by {apart} "
                            "{apart|byte|bytes}]",
                            ", dentro del búfer liberado {neighbour}[ por {apart} "
                            "{apart|byte|bytes}]" },
    [CLAUSE_NEAR_BEFORE] = { ", past the end of {neighbour}[ by {apart} {apart|byte|bytes}]",
                             ", más allá del final de {neighbour}[ por {apart} "
                             "{apart|byte|bytes}]" },
    [CLAUSE_NEAR_AFTER] = { ", before the start of {neighbour}[ by {apart} {apart|byte|bytes}]",
                            ", antes del inicio de {neighbour}[ por {apart} "
                            "{apart|byte|bytes}]" },
    [CLAUSE_SURFACED] = { "; surfaced [{later_ms} ms later ]at {seen}",
                          "; se manifestó [{later_ms} ms después ]en {seen}" },
    [CLAUSE_CANDIDATES] = { "; candidates: ", "; candidatos: " },
    [CLAUSE_MORE] = { "; and {number} more", "; y {number} más" },
    [CLAUSE_NOT_THE_CAUSE] = { "; this is where it was seen, and its cause is not known",
                               "; aquí se vio, y no se conoce su causa" },
    [CLAUSE_REASON] = { "; {reason}", "; {reason}" },
    [CLAUSE_TIMES] = { "; {number} times", "; {number} veces" },
};
_Static_assert(COUNT_OF(clauses) == CLAUSE_COUNT, "every clause has words");

const char *words_clause(enum clause clause, enum report_language language)
{
    ASSERT((unsigned)clause < CLAUSE_COUNT && (unsigned)language < REPORT_LANGUAGE_COUNT);
    return clauses[clause][language];
}
