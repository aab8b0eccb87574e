/* defects.c - what the cause of a finding did, right after its name: a template for each kind. */
#include "report/finding_words.h"

static const char *const defects[][REPORT_LANGUAGE_COUNT] = {
    /* Lifetimes and order. */
    [DEFECT_FREED_TWICE] = { ": {the_operand} is freed a second time{freed}",
                             ": {the_operand} se libera otra vez{freed}" },
    [DEFECT_FREED_BEFORE] = { ": {the_operand} was freed before{freed}",
                              ": {the_operand} se había liberado antes{freed}" },
    [DEFECT_STALE_HANDLE] = { ": {the_operand} was freed before (generation {generation}, now "
                              "{generation_now}){freed}",
                              ": {the_operand} se había liberado antes (generación {generation}, "
                              "ahora {generation_now}){freed}" },
    [DEFECT_FREED_ACCESSED] = { ": {the_operand} was accessed at {address} after it was "
                                "freed{freed}",
                                ": {the_operand} se accedió en {address} después de "
                                "liberarse{freed}" },
    [DEFECT_FREED_IN_USE] = { ": {the_operand} was freed while this work was queued or "
                              "running{freed}",
                              ": {the_operand} se liberó con este trabajo en cola o en "
                              "curso{freed}" },
    [DEFECT_GRAPH_BUFFER_DESTROYED] = { ": {the_operand} was destroyed after the graph was "
                                        "recorded{freed}",
                                        ": {the_operand} se destruyó después de grabar el "
                                        "grafo{freed}" },
    [DEFECT_NEVER_FREED] = { ": {allocations} allocations of this call, {bytes} bytes, were alive "
                             "when the process ended, and none was ever freed",
                             ": {allocations} asignaciones de esta llamada, {bytes} bytes, "
                             "seguían vivas al terminar el proceso, y ninguna se liberó" },
    [DEFECT_WORK_ABANDONED] = { ": nothing waited for the stream's last work[, {other}]",
                                ": nada esperó al último trabajo del flujo[, {other}]" },
    [DEFECT_READ_EARLY] = { ": its bytes were read without waiting for the copy",
                            ": sus bytes se leyeron sin esperar a la copia" },
    [DEFECT_UNORDERED_WRITE] = { " wrote {bytes} {bytes|byte|bytes} {of_operand} with no order[ "
                                 "after the access by {other}]",
                                 " escribió {bytes} {bytes|byte|bytes} {of_operand} sin orden[ "
                                 "tras el acceso hecho por {other}]" },
    [DEFECT_UNORDERED_READ] = { " read {bytes} {bytes|byte|bytes} {of_operand} with no order[ "
                                "after the access by {other}]",
                                " leyó {bytes} {bytes|byte|bytes} {of_operand} sin orden[ tras el "
                                "acceso hecho por {other}]" },
    [DEFECT_SOURCE_CHANGED] = { ": its source had the hash {hash_before} before and {hash_after} "
                                "after",
                                ": su origen tenía el hash {hash_before} antes y {hash_after} "
                                "después" },
    [DEFECT_SOURCE_REWRITTEN] = { ": the host memory it reads was rewritten before anything "
                                  "waited for the copy (hash {hash_before}, then {hash_after})",
                                  ": la memoria del anfitrión que lee se reescribió antes de que "
                                  "se esperara a la copia (hash {hash_before}, luego "
                                  "{hash_after})" },
    [DEFECT_TICKET_RELEASED] = { " used a ticket after its release[; taken by {other}]",
                                 " usó un ticket después de liberarlo[; tomada por {other}]" },
    [DEFECT_SLOT_IN_USE] = { " took a staging slot that was in use[; taken by {other}]",
                             " tomó una ranura intermedia que estaba en uso[; tomada por "
                             "{other}]" },

    /* Faults and values. */
    [DEFECT_ILLEGAL_ACCESS] = { " made an illegal memory access[ at {brief_address}]{miss}",
                                " hizo un acceso ilegal a memoria[ en {brief_address}]{miss}" },
    [DEFECT_MAYBE_ILLEGAL_ACCESS] = { " may have made an illegal memory access",
                                      " pudo hacer un acceso ilegal a memoria" },
    [DEFECT_PROCESS_ENDED] = { ": the process ended here", ": el proceso terminó aquí" },
    [DEFECT_INDEX_PAST_BOUND] = { " read index {index} (bound {bound}) from {from_operand}",
                                  " leyó el índice {index} (límite {bound}) {from_operand}" },
    [DEFECT_UNWRITTEN_READ] = { " read {unwritten_bytes} {unwritten_bytes|byte|bytes} "
                                "{of_operand} that nothing had written",
                                " leyó {unwritten_bytes} {unwritten_bytes|byte|bytes} "
                                "{of_operand} sin que nada {unwritten_bytes|lo|los} hubiera "
                                "escrito" },
    [DEFECT_TRANSFER_CHANGED] = { ": bytes with the hash {hash_taken} arrived with the hash "
                                  "{hash_landed}",
                                  ": bytes con el hash {hash_taken} llegaron con el hash "
                                  "{hash_landed}" },
    [DEFECT_WRITE_OUTSIDE] = { " overwrote {bytes} {bytes|byte|bytes} outside buffer {buffer} (of "
                               "{buffer_bytes} bytes), the first at offset {offset}",
                               " sobrescribió {bytes} {bytes|byte|bytes} fuera del búfer {buffer} "
                               "(de {buffer_bytes} bytes), el primero en el desplazamiento "
                               "{offset}" },
    [DEFECT_RESULT_DIFFERS] = { ": hash {hash_earlier} in run {earlier_run}, {hash} in run {run}",
                                ": hash {hash_earlier} en la ejecución {earlier_run}, {hash} en la "
                                "ejecución {run}" },
    [DEFECT_OPERAND_DIFFERS] = { ": {operand} has hash {hash_earlier} in run {earlier_run}, {hash} "
                                 "in run {run}{inputs}",
                                 ": {operand} tiene hash {hash_earlier} en la ejecución "
                                 "{earlier_run}, {hash} en la ejecución {run}{inputs}" },
    [DEFECT_NO_PROGRESS] = { ": no progress for {waited_ns} (limit {limit_ns})[; the device last "
                             "moved {moved_ago} earlier, in {moved}][; waits for {other}]",
                             ": sin progreso durante {waited_ns} (límite {limit_ns})[; el "
                             "dispositivo avanzó por última vez {moved_ago} antes, en {moved}][; "
                             "espera {other}]" },
    [DEFECT_NOT_RETURNED] = { ": has not returned for {waited_ns} (limit {limit_ns})[; waits for "
                              "{other}]",
                              ": no ha vuelto en {waited_ns} (límite {limit_ns})[; espera "
                              "{other}]" },
    [DEFECT_NOT_FINITE] = { " wrote {not_finite} non-finite {not_finite|value|values} among "
                            "{values} to {the_operand}",
                            " escribió {not_finite} {not_finite|valor no finito|valores no "
                            "finitos} entre {values} en {the_operand}" },

    /* What a check would have refused in a foreign program. */
    [DEFECT_PAST_ALLOCATION] = { ": {the_operand} ends past its allocation: of {allocation_bytes} "
                                 "bytes, up to byte {last_byte}",
                                 ": {the_operand} termina más allá de su asignación: de "
                                 "{allocation_bytes} bytes, hasta el byte {last_byte}" },
    [DEFECT_INSIDE_ALLOCATION] = { ": {the_operand} is not the start of an allocation: that is at "
                                   "{allocation_address}, given was {given_address}",
                                   ": {the_operand} no es el inicio de una asignación: está en "
                                   "{allocation_address}, se dio {given_address}" },
    [DEFECT_WRONG_DIRECTION] = { ": {the_operand} is device memory where the call takes host "
                                 "memory: the copy goes the wrong way",
                                 ": {the_operand} es memoria del dispositivo donde la llamada "
                                 "espera memoria del anfitrión: la copia va en sentido "
                                 "contrario" },
    [DEFECT_STREAM_DESTROYED] = { ": {the_operand}: the stream {stream} was destroyed before",
                                  ": {the_operand}: el flujo {stream} se había destruido antes" },
    [DEFECT_UNKNOWN_ADDRESS] = { ": {the_operand}: no allocation is known at {given_address}",
                                 ": {the_operand}: no se conoce ninguna asignación en "
                                 "{given_address}" },

    /* What greta itself refused. */
    [DEFECT_DEVICE_LIMIT] = { " is past a limit of the device",
                              " excede un límite del dispositivo" },
    [DEFECT_VIEW_PAST_BUFFER] = { " asked for byte {last_byte} {of_operand}, which has "
                                  "{buffer_bytes} bytes{refused}",
                                  " pidió el byte {last_byte} {of_operand}, que tiene "
                                  "{buffer_bytes} bytes{refused}" },
    [DEFECT_BYTES_PAST_VIEW] = { " asked for {wanted_bytes} bytes {of_operand}, whose view has "
                                 "{view_bytes}{refused}",
                                 " pidió {wanted_bytes} bytes {of_operand}, cuya vista tiene "
                                 "{view_bytes}{refused}" },
    [DEFECT_TOO_FEW_BYTES] = { " asked for {wanted_bytes} bytes, where at least {least_bytes} is "
                               "needed{refused}",
                               " pidió {wanted_bytes} bytes, cuando hace falta al menos "
                               "{least_bytes}{refused}" },
    [DEFECT_MISALIGNED] = { " used {the_operand} at offset {offset}, not a multiple of "
                            "{alignment}{refused}",
                            " usó {the_operand} en el desplazamiento {offset}, que no es múltiplo "
                            "de {alignment}{refused}" },
    [DEFECT_READ_ONLY] = { " was to write {the_operand}, which is read-only{refused}",
                           " iba a escribir {the_operand}, que es de solo lectura{refused}" },
    [DEFECT_OPERAND_COUNT] = { " was given {operands} operands; its contract has "
                               "{operands_wanted}{refused}",
                               " recibió {operands} operandos; su contrato tiene "
                               "{operands_wanted}{refused}" },
    [DEFECT_OPERAND_MISSING] = { " was not given {the_operand}, which its contract "
                                 "requires{refused}",
                                 " no recibió {the_operand}, que su contrato exige{refused}" },
    [DEFECT_WRONG_DTYPE] = { " was given {the_operand} of type {dtype}; its contract allows the "
                             "types in the bits {dtypes_allowed}{refused}",
                             " recibió {the_operand} de tipo {dtype}; su contrato admite los tipos "
                             "de los bits {dtypes_allowed}{refused}" },
    [DEFECT_WRONG_SHAPE] = { " was given {the_operand} with extent {extent}; its contract says "
                             "{extent_wanted}{refused}",
                             " recibió {the_operand} con extensión {extent}; su contrato dice "
                             "{extent_wanted}{refused}" },
    [DEFECT_WRONG_STRIDE] = { " was given {the_operand} with rows {stride} bytes apart; they need "
                              "{least_stride}{refused}",
                              " recibió {the_operand} con filas cada {stride} bytes; necesitan "
                              "{least_stride}{refused}" },
    [DEFECT_WRONG_PARAMETER] = { " was given a parameter of {value}, expected "
                                 "{value_wanted}{refused}",
                                 " recibió un parámetro de {value}, se esperaba "
                                 "{value_wanted}{refused}" },
    [DEFECT_TOO_MANY_TILES] = { " asked for {tiles} tiles or groups; the limit is {limit}{refused}",
                                " pidió {tiles} teselas o grupos; el límite es {limit}{refused}" },
    [DEFECT_UNKNOWN_TO_RUNTIME] = { " used {wanted_bytes} bytes {of_operand}, of which the runtime "
                                    "knows {known_bytes} as memory of this device{refused}",
                                    " usó {wanted_bytes} bytes {of_operand}, de los que el runtime "
                                    "reconoce {known_bytes} como memoria de este "
                                    "dispositivo{refused}" },
    [DEFECT_REFUSED] = { " is not what the check allows: expected {expected}, found "
                         "{found}{refused}",
                         " no es lo que admite la comprobación: se esperaba {expected}, se halló "
                         "{found}{refused}" },
};
_Static_assert(COUNT_OF(defects) == DEFECT_COUNT, "every kind of defect has a sentence");

const char *words_defect(enum finding_defect defect, enum report_language language)
{
    ASSERT((unsigned)defect < DEFECT_COUNT && (unsigned)language < REPORT_LANGUAGE_COUNT);
    return defects[defect][language];
}
