/* hypotheses.c - what each hypothesis is called, how it is looked for, and what to do about it. */
#include "report/finding.h"

static const struct report_hypothesis_words words[] = {
    [HYPOTHESIS_SIZE_MISMATCH] = { .title = { "Size mismatch", "Discrepancia de tamaños" },
                                   .detector = { "Bytes asked for by every copy, against its view "
                                                 "and the live buffer, "
                                                 "before the device is asked.",
                                                 "Los bytes que pide cada copia, contra su vista y "
                                                 "el búfer vivo, antes "
                                                 "de preguntar al dispositivo." },
                                   .unit = { "copies and buffers", "copias y búferes" },
                                   .advice = { "Compute the size of the copy from the view it "
                                               "reads, in 64 bits.",
                                               "Calcule el tamaño de la copia a partir de la vista "
                                               "que lee, en 64 "
                                               "bits." } },
    [HYPOTHESIS_USE_AFTER_FREE] = { .title = { "Use after free", "Uso después de liberar" },
                                    .detector = { "Generation of every handle; every free ordered "
                                                  "after the work that "
                                                  "uses the buffer; a fault address held against "
                                                  "memory freed before.",
                                                  "La generación de cada handle; cada liberación "
                                                  "ordenada después "
                                                  "del trabajo que usa el búfer; la dirección de "
                                                  "un fallo contra la "
                                                  "memoria liberada antes." },
                                    .unit = { "uses and frees", "usos y liberaciones" },
                                    .advice = { "Free a buffer only after waiting for the last "
                                                "work that uses it.",
                                                "Libere un búfer solo después de esperar al último "
                                                "trabajo que lo "
                                                "usa." } },
    [HYPOTHESIS_MISSING_SYNC] = { .title = { "Missing synchronisation", "Sincronización ausente" },
                                  .detector = { "Vector clocks over streams, marks, tickets and "
                                                "host threads, on the "
                                                "byte ranges every call declares.",
                                                "Relojes vectoriales sobre flujos, marcas, tickets "
                                                "e hilos del "
                                                "anfitrión, en los rangos de bytes que declara "
                                                "cada llamada." },
                                  .unit = { "accesses", "accesos" },
                                  .advice = { "Record a mark after the first access and let the "
                                              "second stream (or the "
                                              "host) wait for it.",
                                              "Registre una marca tras el primer acceso y haga que "
                                              "el segundo flujo "
                                              "(o el anfitrión) la espere." } },
    [HYPOTHESIS_BAD_POINTER] = { .title = { "Bad pointer or index", "Puntero o índice inválido" },
                                 .detector = { "Bounds and alignment of every view in 64 bits "
                                               "before the launch; "
                                               "kernels check every index they read and leave a "
                                               "trap; from level "
                                               "guard on a GPU's runtime is asked what each "
                                               "address is.",
                                               "Límites y alineación de cada vista en 64 bits "
                                               "antes del lanzamiento; "
                                               "los kernels comprueban cada índice que leen y "
                                               "dejan una trampa; desde "
                                               "el nivel guard se pregunta al runtime de la GPU "
                                               "qué es cada "
                                               "dirección." },
                                 .unit = { "launches", "lanzamientos" },
                                 .advice = { "Look at what wrote the index or computed the offset: "
                                             "positions, token "
                                             "ids and slots must stay below the bound given.",
                                             "Vea quién escribió el índice o calculó el "
                                             "desplazamiento: posiciones, "
                                             "tokens y ranuras deben quedar por debajo del límite "
                                             "dado." } },
    [HYPOTHESIS_STAGING_REUSE] = { .title = { "Reuse of staging memory",
                                              "Reutilización de memoria intermedia" },
                                   .detector = { "State of every staging slot and ticket: free, "
                                                 "landing, held.",
                                                 "Estado de cada ranura intermedia y de cada "
                                                 "ticket: libre, en curso, "
                                                 "retenido." },
                                   .unit = { "copies through staging",
                                             "copias por memoria intermedia" },
                                   .advice = { "Release a ticket after its bytes were read, and do "
                                               "not use it again.",
                                               "Libere un ticket después de leer sus bytes y no "
                                               "lea nada más con "
                                               "él." } },
    [HYPOTHESIS_OVERLAPPING_COPIES] = { .title = { "Overlapping copies", "Copias solapadas" },
                                        .detector = { "Byte ranges of copies and fills in flight, "
                                                      "on the device and in host "
                                                      "memory, against the order of their streams.",
                                                      "Rangos de bytes de copias y rellenos en "
                                                      "vuelo, en el dispositivo y en "
                                                      "la memoria del anfitrión, contra el orden "
                                                      "de sus flujos." },
                                        .unit = { "copies and fills", "copias y rellenos" },
                                        .advice = { "Order the two copies with a mark, or give "
                                                    "each its own memory.",
                                                    "Ordene las dos copias con una marca, o dé a "
                                                    "cada una su propia "
                                                    "memoria." } },
    [HYPOTHESIS_KERNEL_FAULT] = { .title = { "Kernel fault", "Fallo de un kernel" },
                                  .detector = { "Breadcrumbs of every launch, the fault's address "
                                                "and the ledger of "
                                                "memory; guard pages make small overruns fault.",
                                                "Rastro de cada lanzamiento, la dirección del "
                                                "fallo y el registro de "
                                                "memoria; las páginas de guarda hacen fallar los "
                                                "desbordes pequeños." },
                                  .unit = { "launches", "lanzamientos" },
                                  .advice = { "Look at the launch named as the cause, not at the "
                                              "call that reported "
                                              "the error.",
                                              "Mire el lanzamiento nombrado como causa, no la "
                                              "llamada que informó del "
                                              "error." } },
    [HYPOTHESIS_CONTRACT_BREACH] = { .title = { "Breach of an op's contract",
                                                "Incumplimiento del contrato de una operación" },
                                     .detector = { "Types, shapes, strides, parameters and "
                                                   "geometry of every launch "
                                                   "against the contract of its op, in 64 bits.",
                                                   "Tipos, formas, strides, parámetros y geometría "
                                                   "de cada lanzamiento "
                                                   "contra el contrato de su operación, en 64 "
                                                   "bits." },
                                     .unit = { "launches", "lanzamientos" },
                                     .advice = { "Correct the argument that the check names; the "
                                                 "op was not run.",
                                                 "Corrija el argumento que nombra la comprobación; "
                                                 "la operación no se "
                                                 "ejecutó." } },
    [HYPOTHESIS_STALE_GRAPH] = { .title = { "Stale graph", "Grafo obsoleto" },
                                 .detector = { "Generations of all buffers baked into a graph, "
                                               "before every replay.",
                                               "Generaciones de todos los búferes fijados en un "
                                               "grafo, antes de cada "
                                               "ejecución." },
                                 .unit = { "replays", "ejecuciones de grafos" },
                                 .advice = { "Record the graph again after a buffer it names was "
                                             "created anew.",
                                             "Vuelva a grabar el grafo cuando se cree de nuevo un "
                                             "búfer que "
                                             "nombra." } },
    [HYPOTHESIS_UNINITIALISED_READ] = { .title = { "Read of uninitialised memory",
                                                   "Lectura de memoria sin inicializar" },
                                        .detector = { "First read of every declared byte range, "
                                                      "those updated in place too, "
                                                      "against the writes before it; with guards, "
                                                      "fresh memory holds a "
                                                      "poison value.",
                                                      "Primera lectura de cada rango declarado, "
                                                      "también de los que se "
                                                      "actualizan en su sitio, contra las "
                                                      "escrituras anteriores; con "
                                                      "guardas, la memoria nueva contiene un valor "
                                                      "veneno." },
                                        .unit = { "reads", "lecturas" },
                                        .advice = { "Write the range before it is read: the launch "
                                                    "that should have is "
                                                    "missing or came too late.",
                                                    "Escriba el rango antes de leerlo: el "
                                                    "lanzamiento que debía hacerlo "
                                                    "falta o llegó tarde." } },
    [HYPOTHESIS_SILENT_CORRUPTION] = { .title = { "Silent corruption", "Corrupción silenciosa" },
                                       .detector = { "A hash of every transfer before, after and "
                                                     "where it landed; canaries "
                                                     "on both sides of every buffer.",
                                                     "Un hash de cada transferencia antes, después "
                                                     "y en su destino; "
                                                     "canarios a ambos lados de cada búfer." },
                                       .unit = { "transfers", "transferencias" },
                                       .advice = { "Damaged canary: look at the launch named, it "
                                                   "wrote past its buffer. "
                                                   "Transfer: repeat with other staging and D2H "
                                                   "modes.",
                                                   "Canario dañado: mire el lanzamiento nombrado, "
                                                   "que escribió fuera de su "
                                                   "búfer. Transferencia: repita con otra memoria "
                                                   "intermedia y otros modos "
                                                   "D2H." } },
    [HYPOTHESIS_RUNTIME_DEFECT] = { .title = { "Defect of the runtime", "Defecto del runtime" },
                                    .detector = { "Valid transfers with wrong bytes, set apart by "
                                                  "runs that differ only "
                                                  "in staging memory or copy mode.",
                                                  "Transferencias válidas con bytes erróneos, "
                                                  "separadas por ejecuciones "
                                                  "que solo difieren en la memoria intermedia o el "
                                                  "modo de copia." },
                                    .unit = { "transfers", "transferencias" },
                                    .advice = { "Avoid the copy path that fails and report it to "
                                                "the vendor with this "
                                                "record.",
                                                "Evite la ruta de copia que falla e informe al "
                                                "fabricante con este "
                                                "registro." } },
    [HYPOTHESIS_NON_DETERMINISM] = { .title = { "Results that differ between equal runs",
                                                "Resultados distintos entre ejecuciones iguales" },
                                     .detector = { "Hash of every result read by the host, against "
                                                   "the same one of "
                                                   "earlier iterations of equal configuration.",
                                                   "Hash de cada resultado que lee el anfitrión, "
                                                   "contra el mismo de "
                                                   "iteraciones anteriores de igual "
                                                   "configuración." },
                                     .unit = { "results compared", "resultados comparados" },
                                     .advice = { "Something reads bytes it should not, or in an "
                                                 "order that is not fixed: "
                                                 "see the other hypotheses first.",
                                                 "Algo lee bytes que no debe, o en un orden que no "
                                                 "es fijo: vea antes las "
                                                 "otras hipótesis." } },
    [HYPOTHESIS_HANG] = { .title = { "Hang", "Bloqueo" },
                          .detector = { "Calls that do not return while, for the limit, no launch "
                                        "begins or ends and no call is made, with the breadcrumbs "
                                        "of the stream they wait for.",
                                        "Llamadas que no vuelven mientras, durante el límite, no "
                                        "empieza ni termina ningún lanzamiento ni se hace ninguna "
                                        "llamada, con el rastro del flujo al que esperan." },
                          .unit = { "waits", "esperas" },
                          .advice = { "Look at the launch or mark at which the stream stopped.",
                                      "Mire el lanzamiento o la marca en que está parado el "
                                      "flujo." } },
    [HYPOTHESIS_NUMERIC] = { .title = { "Values that are not finite", "Valores no finitos" },
                             .detector = { "Outputs of sampled launches are scanned for NaN and "
                                           "infinity; the "
                                           "first launch that makes them from finite inputs is "
                                           "named.",
                                           "Se buscan NaN e infinitos en las salidas de "
                                           "lanzamientos muestreados; "
                                           "se nombra el primero que los produce a partir de "
                                           "entradas finitas." },
                             .unit = { "launches scanned", "lanzamientos examinados" },
                             .advice = { "Look at the inputs and the kernel of the launch named.",
                                         "Mire las entradas y el kernel del lanzamiento "
                                         "nombrado." } },
    [HYPOTHESIS_LEAK] = { .title = { "Memory leak", "Fuga de memoria" },
                          .detector = { "Memory of one call stack that is taken again and again "
                                        "between "
                                        "launches, never given back, not used again and alive when "
                                        "the process "
                                        "has ended in order; what a caching allocator keeps is "
                                        "left out.",
                                        "Memoria de una misma pila de llamadas que se pide una y "
                                        "otra vez "
                                        "entre lanzamientos, nunca se devuelve, no se vuelve a "
                                        "usar y sigue "
                                        "viva cuando el proceso terminó en orden; se omite lo que "
                                        "retiene un "
                                        "asignador con caché." },
                          .unit = { "allocations", "asignaciones" },
                          .advice = { "Free what the call named made, before the process ends.",
                                      "Libere lo que pidió la llamada nombrada, antes de que "
                                      "termine el "
                                      "proceso." } },
};
_Static_assert(COUNT_OF(words) == HYPOTHESIS_COUNT, "every hypothesis has words");

const struct report_hypothesis_words *report_hypothesis_words(enum hypothesis hypothesis)
{
    ASSERT((unsigned)hypothesis < HYPOTHESIS_COUNT);
    return &words[hypothesis];
}
