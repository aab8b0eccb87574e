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
    [DEFECT_NEVER_FREED] = { ": {allocations} {allocations|allocation|allocations} of this call, "
                             "{bytes} "
                             "{bytes|byte|bytes}, {allocations|was|were} alive when the process "
                             "ended, and none was "
                             "ever freed",
                             ": {allocations} {allocations|asignación|asignaciones} de esta "
                             "llamada, {bytes} "
                             "{bytes|byte|bytes}, {allocations|seguía viva|seguían vivas} al "
                             "terminar el proceso, y "
                             "ninguna se liberó" },
    [DEFECT_WORK_ABANDONED] = { ": nothing waited for the stream's last work[, {other}]",
                                ": nada esperó al último trabajo del flujo[, {other}]" },
    [DEFECT_READ_EARLY] = { ": its bytes were read without waiting for the copy",
                            ": sus bytes se leyeron sin esperar a la copia" },
    [DEFECT_UNORDERED_WRITE] = { " wrote {bytes} {bytes|byte|bytes} {of_operand}[; nothing orders "
                                 "it after the access "
                                 "by {other}]",
                                 " escribió {bytes} {bytes|byte|bytes} {of_operand}[; nada asegura "
                                 "que ocurra tras el "
                                 "acceso hecho por {other}]" },
    [DEFECT_UNORDERED_READ] = { " read {bytes} {bytes|byte|bytes} {of_operand}[; nothing orders it "
                                "after the access by "
                                "{other}]",
                                " leyó {bytes} {bytes|byte|bytes} {of_operand}[; nada asegura que "
                                "ocurra tras el "
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
    [DEFECT_TICKET_RELEASED] = { " used a ticket after its release[; the slot was taken by "
                                 "{other}]",
                                 " usó un ticket después de liberarlo[; la ranura la tomó "
                                 "{other}]" },
    [DEFECT_SLOT_IN_USE] = { " took a staging slot that was in use[; it had been taken by {other}]",
                             " tomó una ranura intermedia que estaba en uso[; la había tomado "
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
    [DEFECT_WRITE_OUTSIDE] = { " overwrote {bytes} {bytes|byte|bytes} outside buffer {buffer}, "
                               "which has "
                               "{buffer_bytes} {buffer_bytes|byte|bytes}; the first is at offset "
                               "{offset}",
                               " sobrescribió {bytes} {bytes|byte|bytes} fuera del búfer {buffer}, "
                               "que tiene "
                               "{buffer_bytes} {buffer_bytes|byte|bytes}; el primero está en el "
                               "desplazamiento "
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
    [DEFECT_PAST_ALLOCATION] = { ": {the_operand} ends past its allocation, which has "
                                 "{allocation_bytes} "
                                 "{allocation_bytes|byte|bytes}: it goes up to byte {last_byte}",
                                 ": {the_operand} termina más allá de su asignación, que tiene "
                                 "{allocation_bytes} "
                                 "{allocation_bytes|byte|bytes}: llega hasta el byte {last_byte}" },
    [DEFECT_INSIDE_ALLOCATION] = { ": {the_operand} is not the start of an allocation: the "
                                   "allocation starts at "
                                   "{allocation_address}, and the call was given {given_address}",
                                   ": {the_operand} no es el inicio de una asignación: la "
                                   "asignación empieza en "
                                   "{allocation_address} y la llamada recibió {given_address}" },
    [DEFECT_WRONG_DIRECTION] = { ": {the_operand} is device memory where the call takes host "
                                 "memory: the copy goes the wrong way",
                                 ": {the_operand} es memoria del dispositivo donde la llamada "
                                 "espera memoria del anfitrión: la copia va en sentido "
                                 "contrario" },
    [DEFECT_STREAM_DESTROYED] = { ": it was given the stream {stream}, which had been destroyed",
                                  ": recibió el flujo {stream}, que ya se había destruido" },
    [DEFECT_UNKNOWN_ADDRESS] = { ": {the_operand} is at {given_address}, where no allocation is "
                                 "known",
                                 ": {the_operand} está en {given_address}, donde no se conoce "
                                 "ninguna asignación" },

    /* What greta itself refused. */
    [DEFECT_DEVICE_LIMIT] = { " is past a limit of the device",
                              " excede un límite del dispositivo" },
    [DEFECT_VIEW_PAST_BUFFER] = { " asked for byte {last_byte} {of_operand}, which has "
                                  "{buffer_bytes} "
                                  "{buffer_bytes|byte|bytes}{refused}",
                                  " pidió el byte {last_byte} {of_operand}, que tiene "
                                  "{buffer_bytes} "
                                  "{buffer_bytes|byte|bytes}{refused}" },
    [DEFECT_BYTES_PAST_VIEW] = { " asked for {wanted_bytes} {wanted_bytes|byte|bytes} "
                                 "{of_operand}, whose view has "
                                 "{view_bytes}{refused}",
                                 " pidió {wanted_bytes} {wanted_bytes|byte|bytes} {of_operand}, "
                                 "cuya vista tiene "
                                 "{view_bytes}{refused}" },
    [DEFECT_TOO_FEW_BYTES] = { " asked for {wanted_bytes} {wanted_bytes|byte|bytes}; it needs at "
                               "least "
                               "{least_bytes}{refused}",
                               " pidió {wanted_bytes} {wanted_bytes|byte|bytes}; necesita al menos "
                               "{least_bytes}{refused}" },
    [DEFECT_MISALIGNED] = { " used {the_operand} at offset {offset}, not a multiple of "
                            "{alignment}{refused}",
                            " usó {the_operand} en el desplazamiento {offset}, que no es múltiplo "
                            "de {alignment}{refused}" },
    [DEFECT_READ_ONLY] = { " was to write {the_operand}, which is read-only{refused}",
                           " iba a escribir {the_operand}, que es de solo lectura{refused}" },
    [DEFECT_OPERAND_COUNT] = { " was given {operands} {operands|operand|operands}; its contract "
                               "has "
                               "{operands_wanted}{refused}",
                               " recibió {operands} {operands|operando|operandos}; su contrato "
                               "tiene "
                               "{operands_wanted}{refused}" },
    [DEFECT_OPERAND_MISSING] = { " was not given {the_operand}, which its contract "
                                 "requires{refused}",
                                 " no recibió {the_operand}, que su contrato exige{refused}" },
    [DEFECT_WRONG_DTYPE] = { " was given {the_operand} of type number {dtype}; its contract allows "
                             "the types whose "
                             "bits are set in {dtypes_allowed}{refused}",
                             " recibió {the_operand} de tipo número {dtype}; su contrato admite "
                             "los tipos cuyos "
                             "bits valen 1 en {dtypes_allowed}{refused}" },
    [DEFECT_WRONG_SHAPE] = { " was given {the_operand} with extent {extent}; its contract says "
                             "{extent_wanted}{refused}",
                             " recibió {the_operand} con extensión {extent}; su contrato dice "
                             "{extent_wanted}{refused}" },
    [DEFECT_WRONG_STRIDE] = { " was given {the_operand} with rows {stride} {stride|byte|bytes} "
                              "apart; they need "
                              "{least_stride}{refused}",
                              " recibió {the_operand} con filas separadas {stride} "
                              "{stride|byte|bytes}; necesitan "
                              "{least_stride}{refused}" },
    [DEFECT_WRONG_PARAMETER] = { " was given a parameter of {value} where {value_wanted} was "
                                 "expected{refused}",
                                 " recibió un parámetro de {value} donde se esperaba "
                                 "{value_wanted}{refused}" },
    [DEFECT_TOO_MANY_TILES] = { " asked for {tiles} {tiles|tile or group|tiles or groups}; the "
                                "limit is "
                                "{limit}{refused}",
                                " pidió {tiles} {tiles|tesela o grupo|teselas o grupos}; el límite "
                                "es {limit}{refused}" },
    [DEFECT_UNKNOWN_TO_RUNTIME] = { " used {wanted_bytes} {wanted_bytes|byte|bytes} {of_operand}, "
                                    "of which the runtime "
                                    "knows {known_bytes} as memory of this device{refused}",
                                    " usó {wanted_bytes} {wanted_bytes|byte|bytes} {of_operand}, "
                                    "{wanted_bytes|del que|de los que} el runtime "
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
