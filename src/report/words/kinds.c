/* kinds.c - what a call is, as a noun in each language. */
#include "report/finding.h"

struct kind_words {
    const char *noun[REPORT_LANGUAGE_COUNT];
    const char *join[REPORT_LANGUAGE_COUNT]; /* between the noun and a name */
    bool feminine;                           /* in Spanish */
};

#define OF                                                                                         \
    {                                                                                              \
        " of ", " de "                                                                             \
    }
#define IN                                                                                         \
    {                                                                                              \
        " in ", " en "                                                                             \
    }

static const struct kind_words kinds[] = {
    [EVENT_DEVICE_OPEN] = { { "opening of the device", "apertura del dispositivo" }, OF, true },
    [EVENT_DEVICE_CLOSE] = { { "closing of the device", "cierre del dispositivo" }, OF, false },
    [EVENT_BUFFER_CREATE] = { { "allocation", "asignación" }, OF, true },
    [EVENT_BUFFER_DESTROY] = { { "free", "liberación" }, OF, true },
    [EVENT_STREAM_CREATE] = { { "creation of a stream", "creación de un flujo" }, OF, true },
    [EVENT_STREAM_DESTROY] = { { "destruction of a stream", "destrucción de un flujo" }, OF, true },
    [EVENT_STREAM_SYNC] = { { "host's wait for a stream", "espera del anfitrión a un flujo" },
                            OF,
                            true },
    [EVENT_MARK_RECORD] = { { "record of a mark", "registro de una marca" }, OF, false },
    [EVENT_MARK_WAIT] = { { "wait for a mark", "espera a una marca" }, OF, true },
    [EVENT_MARK_SYNC] = { { "host's wait for a mark", "espera del anfitrión por una marca" },
                          OF,
                          true },
    [EVENT_COPY_IN] = { { "H2D copy", "copia H2D" }, OF, true },
    [EVENT_COPY_OUT] = { { "D2H copy", "copia D2H" }, OF, true },
    [EVENT_COPY_WITHIN] = { { "D2D copy", "copia D2D" }, OF, true },
    [EVENT_FILL] = { { "fill", "relleno" }, OF, false },
    [EVENT_MODULE_LOAD] = { { "load of a module", "carga de un módulo" }, OF, true },
    [EVENT_LAUNCH] = { { "launch", "lanzamiento" }, OF, false },
    [EVENT_GRAPH_BEGIN] = { { "start of a graph's capture", "inicio de la captura de un grafo" },
                            OF,
                            false },
    [EVENT_GRAPH_END] = { { "end of a graph's capture", "fin de la captura de un grafo" },
                          OF,
                          false },
    [EVENT_GRAPH_REPLAY] = { { "graph replay", "ejecución de un grafo" }, OF, true },
    [EVENT_GRAPH_DESTROY] = { { "destruction of a graph", "destrucción de un grafo" }, OF, true },
    [EVENT_TICKET_REDEEM] = { { "host's read of a D2H copy",
                                "lectura por el anfitrión de una copia D2H" },
                              OF,
                              true },
    [EVENT_TICKET_RELEASE] = { { "release of a staging slot",
                                 "liberación de una ranura intermedia" },
                               OF,
                               true },
    [EVENT_COMPLETION] = { { "completion", "finalización" }, OF, true },
    [EVENT_TRAP] = { { "index trap", "trampa de índice" }, IN, true },
    [EVENT_FAULT] = { { "memory fault", "fallo de memoria" }, IN, false },
    [EVENT_CANARY] = { { "canary", "canario" }, OF, false },
    [EVENT_RUN] = { { "run", "ejecución" }, OF, true },
    [EVENT_TRANSFER_HASH] = { { "hash of a transfer", "hash de una transferencia" }, OF, false },
    [EVENT_SCAN] = { { "scan of values", "examen de valores" }, OF, false },
    [EVENT_SOURCE_CHANGED] = { { "rewriting of the source", "reescritura del origen" }, OF, true },
    [EVENT_HIDDEN_ORDER] = { { "order that cannot be seen", "orden que no se ve" }, IN, false },
    [EVENT_CALL] = { { "call", "llamada" }, OF, true },
    [EVENT_HOST_ACCESS] = { { "host access", "acceso del anfitrión" }, OF, false },
    [EVENT_HOST_TRAPS] = { { "watch over host memory", "vigilancia de la memoria del anfitrión" },
                           OF,
                           true },
    [EVENT_OP_HASH] = { { "hash of an operand", "hash de un operando" }, OF, false },
};
_Static_assert(COUNT_OF(kinds) == EVENT_KIND_COUNT, "every kind has words");

void report_add_kind(struct text *text, uint8_t kind, enum report_language language,
                     const char *name)
{
    ASSERT((unsigned)language < REPORT_LANGUAGE_COUNT);
    const struct kind_words *words = kind < EVENT_KIND_COUNT ? &kinds[kind] : &kinds[EVENT_CALL];
    text_add(text, words->noun[language]);
    if (!name[0])
        return;
    text_add(text, words->join[language]);
    text_add_printable(text, text_view_of(name), REPORT_NAME_LIMIT);
}

const char *report_kind_article(uint8_t kind, enum report_language language)
{
    bool feminine = kind >= EVENT_KIND_COUNT || kinds[kind].feminine;
    return language == REPORT_ENGLISH ? "the " : feminine ? "la " : "el ";
}
