/* reasons.c - why a finding is only possible, why a verdict is open, or how a hang came about. */
#include "report/finding.h"

static const char *const reasons[][REPORT_LANGUAGE_COUNT] = {
    [REASON_NONE] = { "", "" },
    [REASON_NO_LAUNCH_KNOWN] = { "the fault names no launch, and the breadcrumbs show none that "
                                 "was running",
                                 "el fallo no nombra ningún lanzamiento y el rastro no muestra "
                                 "ninguno en curso" },
    [REASON_SEVERAL_LAUNCHES] = { "each of them may have been running; those known to have begun "
                                  "come first, then the "
                                  "others in the order of their calls",
                                  "cualquiera pudo estar en ejecución; van primero los que consta "
                                  "que empezaron y luego "
                                  "los demás por orden de llamada" },
    [REASON_NEAR_ADDRESS] = { "each of them may have been running; those whose memory is near the "
                              "address, or 2^32 "
                              "bytes from it, come first",
                              "cualquiera pudo estar en ejecución; van primero los que tienen "
                              "memoria cerca de la "
                              "dirección, o a 2^32 bytes de ella" },
    [REASON_GAPS] = { "records are missing: a launch that is not in them may have done it",
                      "faltan registros: pudo hacerlo un lanzamiento que no está en ellos" },
    [REASON_REPLAY_UNKNOWN] = { "which launch of the graph it was is not known",
                                "no se sabe qué lanzamiento del grafo fue" },
    [REASON_STREAM_BEGAN] = { "the stream began this launch; nothing shows whether it ended, or "
                              "whether what follows it began",
                              "el flujo empezó este lanzamiento; nada muestra si terminó, ni si "
                              "empezó lo que le sigue" },
    [REASON_CANARY_WINDOW] = { "each may have run since these bytes were last seen whole; those "
                               "that write nearest to the damage come first, then in the order of "
                               "their calls",
                               "cualquiera pudo ejecutarse desde que esos bytes se vieron "
                               "intactos; "
                               "primero los que escriben más cerca del daño, luego por orden de "
                               "llamada" },
    [REASON_CANARY_LATE] = { "the damage was seen when the buffer was destroyed: any launch since "
                             "its creation may have done it",
                             "el daño se vio al destruir el búfer: pudo hacerlo cualquier "
                             "lanzamiento desde su creación" },
    [REASON_NEEDS_COMPARISON] = { "the transfer was valid and its bytes are wrong: only runs that "
                                  "differ in staging or "
                                  "copy mode tell what is at fault",
                                  "la transferencia era válida y sus bytes son erróneos: solo "
                                  "ejecuciones con otra "
                                  "memoria intermedia u otro modo de copia dicen a qué se debe" },
    [REASON_SOURCE_CHANGED] = { "the bytes at the origin changed during the copy, and no declared "
                                "access explains it",
                                "los bytes de origen cambiaron durante la copia, y ningún acceso "
                                "declarado lo explica" },
    [REASON_INPUT_NOT_SCANNED] = { "an input of the launch was not scanned: an earlier one may "
                                   "have made the values",
                                   "una entrada del lanzamiento no se examinó: uno anterior pudo "
                                   "producir los valores" },
    [REASON_STREAM_INSIDE] = { "the stream entered this launch and did not finish it",
                               "el flujo entró en este lanzamiento y no lo terminó" },
    [REASON_LOST_WAKEUP] = { "the stream finished all its work, and the wait did not return",
                             "el flujo terminó todo su trabajo, y la espera no volvió" },
    [REASON_WAITS_FOR_MARK] = { "the stream waits for a mark that is not passed",
                                "el flujo espera una marca que no se alcanza" },
    [REASON_KERNEL_ACCESS] = { "a kernel was given the pointer; whether it reads or writes there "
                               "is not known",
                               "un kernel recibió el puntero; no se sabe si lee o escribe ahí" },
    [REASON_HIDDEN_ORDER] = { "the stream has host functions, waits for values in memory or other "
                              "processes: they may order it",
                              "el flujo tiene funciones del anfitrión, esperas de valores en "
                              "memoria u otros procesos: pueden ordenarlo" },
    [REASON_ABANDONED] = { "the stream is gone: only a wait for the whole device can still order "
                           "its work",
                           "el flujo ya no existe: solo una espera de todo el dispositivo puede "
                           "ordenar su trabajo" },
    [REASON_WINDOW] = { "the error is reported late: any launch since the last wait may have made "
                        "it; "
                        "a rerun with --narrow waits for each",
                        "el error se comunica tarde: pudo causarlo cualquier lanzamiento desde la "
                        "última espera; --narrow repite y espera a cada uno" },
    [REASON_ROW_GAPS] = { "the rows have gaps between them, so their bytes may not overlap",
                          "las filas tienen huecos entre sí, así que puede que sus bytes no se "
                          "solapen" },
    [REASON_RUNTIME_ACCEPTED] = { "the runtime took the address all the same: memory made unseen "
                                  "(a module's, another interface's) may lie there now",
                                  "el runtime aceptó la dirección: ahí puede haber ahora memoria "
                                  "creada sin verse (de un módulo, de otra interfaz)" },
    [REASON_INPUT_DIFFERS] = { "this input differed already before the launch, and no op that was "
                               "hashed before it gave other bytes",
                               "esta entrada ya difería antes del lanzamiento, y ninguna operación "
                               "anterior examinada dio otros bytes" },
    [REASON_BETWEEN_HASHES] = { "the last op that agreed is named first: what made the difference "
                                "lies after it and no "
                                "later than here",
                                "la última operación que coincidió va primero: lo que causó la "
                                "diferencia está después "
                                "de ella y no más allá de aquí" },
    [REASON_BEFORE_HASHES] = { "no op that was hashed before it agreed: what made the difference "
                               "lies before or here",
                               "ninguna operación examinada antes coincidió: lo que causó la "
                               "diferencia está antes o aquí" },
    [REASON_MAY_WAIT] = { "the call may wait for this work by itself: no document says that it "
                          "does, or that it does not",
                          "la llamada puede esperar este trabajo por sí misma: ningún documento "
                          "dice que lo haga ni que no" },
    [REASON_UNSEEN_ORDER] = { "the program may have learned that this work was done from memory "
                              "that the device writes, or in a call that may wait",
                              "el programa pudo saber que este trabajo había terminado por memoria "
                              "que escribe el dispositivo o en una llamada que puede esperar" },
    [REASON_HELD_BACK] = { "a kernel before it can read memory of the host: the program may hold "
                           "the stream back with it",
                           "un kernel anterior puede leer memoria del anfitrión: el programa puede "
                           "retener el flujo con él" },
    [REASON_ADDRESS_REUSED] = { "memory was allocated at that address since: the graph may be "
                                "meant to use it",
                                "desde entonces se asignó memoria en esa dirección: puede que el "
                                "grafo deba usarla" },
    [REASON_STREAM_ACCEPTED] = { "the runtime took the stream all the same: one made unseen may "
                                 "have its handle now",
                                 "el runtime aceptó el flujo: otro creado sin verse puede tener "
                                 "ahora su identificador" },
    [REASON_KEPT] = { "it grew with the launches and was not used again; memory that is kept on "
                      "purpose may look the same",
                      "creció con los lanzamientos y no se volvió a usar; la memoria que se guarda "
                      "a propósito puede verse igual" },
    [REASON_UNWATCHED] = { "whether the device makes progress was not seen: a long wait looks the "
                           "same",
                           "no se vio si el dispositivo avanza: una espera larga se ve igual" },
    [REASON_NOT_STARTED] = { "the work waited for was not begun", "el trabajo esperado no empezó" },
};

_Static_assert(COUNT_OF(reasons) == REASON_COUNT, "every reason has words");

const char *report_reason_words(enum finding_reason reason, enum report_language language)
{
    ASSERT((unsigned)reason < REASON_COUNT && (unsigned)language < REPORT_LANGUAGE_COUNT);
    return reasons[reason][language];
}

static const char *const missing_words[][REPORT_LANGUAGE_COUNT] = {
    [VERDICT_MISSING_NOTHING] = { "nothing is missing", "no falta nada" },
    [VERDICT_MISSING_DETECTOR] = { "its detector did not run", "su detector no se ejecutó" },
    [VERDICT_MISSING_LEVEL] = { "the runs were below the audit level it needs",
                                "las ejecuciones estaban por debajo del nivel de auditoría que "
                                "necesita" },
    [VERDICT_MISSING_SELF_TEST] = { "there is no self-test of this binary on this device",
                                    "no hay autoprueba de este binario en este dispositivo" },
    [VERDICT_MISSING_SELF_TEST_PASS] = { "its self-test failed on this device",
                                         "su autoprueba falló en este dispositivo" },
    [VERDICT_MISSING_RECORDS] = { "records were lost, damaged or forgotten before they were "
                                  "analysed",
                                  "se perdieron, dañaron u olvidaron registros antes de "
                                  "analizarlos" },
    [VERDICT_MISSING_EXERCISE] = { "the path was not exercised often enough",
                                   "la ruta no se recorrió lo suficiente" },
    [VERDICT_MISSING_EQUAL_RUNS] = { "there were no two equal iterations to compare",
                                     "no hubo dos iteraciones iguales que comparar" },
    [VERDICT_MISSING_CERTAINTY] = { "what was found has more than one explanation",
                                    "lo hallado tiene más de una explicación" },
    [VERDICT_MISSING_COMPARISON] = { "it needs runs that differ in one thing, which were not made",
                                     "necesita ejecuciones que difieran en una sola cosa, que no "
                                     "se hicieron" },
    [VERDICT_MISSING_END] = { "a run did not end in order, and nothing says why",
                              "una ejecución no terminó en orden, y nada dice por qué" },
};
_Static_assert(COUNT_OF(missing_words) == VERDICT_MISSING_COUNT, "all that is missing has words");

const char *report_missing_words(enum verdict_missing missing, enum report_language language)
{
    ASSERT((unsigned)missing < VERDICT_MISSING_COUNT);
    ASSERT((unsigned)language < REPORT_LANGUAGE_COUNT);
    return missing_words[missing][language];
}
