/* trace_print.c - what a trace says on the terminal, in English and Spanish. Names of calls,
 * functions, files and hypotheses are names in both. They come from outside: shown printably. */
#include "campaign/trace/trace.h"

#include <inttypes.h>
#include <string.h>

/* Findings shown in the terminal; the artifacts have them all. */
#define SHOWN_LIMIT 24u

/* Both may be formats: the compiler checks each. */
__attribute__((format_arg(2), format_arg(3))) static const char *
say(const struct trace *trace, const char *english, const char *spanish)
{
    return trace->options->language == ANALYZE_SPANISH ? spanish : english;
}

/* ---- Findings ------------------------------------------------------------------------------- */

static void add_frame(const struct report_frame *frame, struct text *text)
{
    bool known = frame->function[0] != '\0';
    text_add(text, "          ");
    text_add_printable(text, text_view_of(known ? frame->function : frame->file), 200);
    text_addf(text, "+0x%" PRIx64, frame->offset);
    if (known) {
        text_add(text, " (");
        text_add_printable(text, text_view_of(frame->file), 200);
        text_add(text, ")");
    }
    if (frame->line) {
        text_add(text, ", ");
        text_add_printable(text, text_view_of(frame->source), 200);
        text_addf(text, ":%" PRIu32, frame->line);
    }
    text_add(text, "\n");
}

static void add_side(struct trace *trace, const struct trace_process *process, const char *title,
                     const struct analyze_place *place, struct text *text)
{
    struct report_frame frames[REPORT_FRAME_LIMIT];
    char name[512];
    if (!place->event_id || (!place->stack_index && !place->name_index))
        return;
    bool kernel = place->name_index && trace_kernel(process, place->name_index, name, sizeof(name));
    text_addf(text, "      %s ", title);
    text_add_printable(text, text_view_of(kernel ? name : place->op), 400);
    text_add(text, say(trace, ", called by\n", ", llamada por\n"));
    size_t count = trace_stack(trace, process, place->stack_index, frames, COUNT_OF(frames));
    for (size_t i = 0; i < count; i++)
        add_frame(&frames[i], text);
}

static bool is_sure(const struct finding *finding)
{
    return finding->certainty == FINDING_DIRECT;
}

void trace_print_finding(struct trace *trace, const struct trace_process *process,
                         const struct finding *finding, struct text *text)
{
    text_addf(text, "  %s %s: ",
              is_sure(finding) ? say(trace, "CONFIRMED", "CONFIRMADO")
                               : say(trace, "possible", "posible"),
              hypothesis_info(finding->hypothesis)->slug);
    report_finding_describe(finding, trace->options->language, text);
    text_add(text, "\n");
    add_side(trace, process, "-", &finding->cause, text);
    add_side(trace, process, say(trace, "other side:", "el otro lado:"), &finding->other, text);
    add_side(trace, process, say(trace, "seen at:", "visto en:"), &finding->seen, text);
}

/* What is certain first, then what ended the program. */
static int class_of(const struct finding *finding)
{
    if (is_sure(finding))
        return 0;
    return finding->hypothesis == HYPOTHESIS_KERNEL_FAULT ? 1 : 2;
}

static void add_findings(struct trace *trace, const struct trace_listed *listed, struct text *text)
{
    size_t shown = 0, count = 0;
    for (int class = 0; class < 3; class ++)
        for (size_t i = 0; i < listed->count; i++)
            for (size_t j = 0; j < listed->list[i]->finding_count; j++) {
                const struct finding *finding = &listed->list[i]->findings[j];
                if (class_of(finding) != class)
                    continue;
                if (count++ == 0)
                    text_add(text, say(trace, "findings\n", "hallazgos\n"));
                if (shown < SHOWN_LIMIT) {
                    trace_print_finding(trace, listed->from[i], finding, text);
                    shown++;
                }
            }
    if (count > shown)
        text_addf(text,
                  say(trace, "  and %zu more; --artifacts keeps them all\n",
                      "  y %zu más; --artifacts los guarda todos\n"),
                  count - shown);
}

/* ---- How it went ---------------------------------------------------------------------------- */

/* Memory that caching allocators keep is one piece to us. */
static void add_caches(const struct trace *trace, struct text *text)
{
    uint64_t count = 0;
    for (size_t i = 0; i < trace->process_count; i++) {
        const struct trace_process *process = &trace->processes[i];
        for (size_t j = 0; process->reader && j < flight_allocation_count(process->reader); j++) {
            const struct flight_allocation *one = flight_allocation_at(process->reader, j);
            uint64_t id = one->created_id;
            struct event event;
            if (flight_next(process->reader, &id, &event) && event.id == one->created_id)
                count += trace_is_cached((void *)(uintptr_t)process, event.stack_index);
        }
    }
    if (count)
        text_addf(
            text,
            say(trace,
                "  %" PRIu64 " allocations belong to a caching allocator or a library: what "
                "it cuts out of them is not seen, so neither are overruns and uses after "
                "free inside\n",
                "  %" PRIu64 " asignaciones son de un asignador con caché o de una "
                "biblioteca: lo que reparte de ellas no se ve, ni tampoco los desbordamientos "
                "y usos tras liberar dentro de ellas\n"),
            count);
}

static void add_overhead(const struct trace *trace, struct text *text)
{
    uint64_t ns = 0, lost = 0, kept = 0;
    for (size_t i = 0; i < trace->process_count; i++) {
        const struct trace_process *process = &trace->processes[i];
        if (process->rerun)
            continue;
        ns += process->observed_ns;
        if (process->analyzer) {
            const struct analysis *analysis = analyzer_result(process->analyzer);
            kept += analysis->event_count;
            lost += analysis->lost_count + analysis->dropped_count + analysis->damaged_count;
        }
    }
    double seconds = (double)ns / 1e9, wall = (double)trace->wall_ns / 1e9;
    text_addf(text,
              say(trace,
                  "  %" PRIu64 " calls recorded; observing took %.3f s of %.3f s (%.1f %%), "
                  "without what the runtime's callbacks cost\n",
                  "  %" PRIu64 " llamadas grabadas; observar tomó %.3f s de %.3f s (%.1f %%), sin "
                  "contar lo que cuestan las llamadas de retorno del runtime\n"),
              kept, seconds, wall, wall > 0 ? 100 * seconds / wall : 0.0);
    if (lost)
        text_addf(text,
                  say(trace,
                      "  %" PRIu64 " records were lost before they were analysed: --records gives "
                      "them more room\n",
                      "  %" PRIu64 " registros se perdieron antes de analizarse: --records les da "
                      "más sitio\n"),
                  lost);
}

/* What a library said of why it cannot record. */
static void add_note(const struct trace *trace, struct text *text)
{
    static const struct {
        const char *slug;
        const char *english, *spanish; /* followed by the detail in parentheses */
    } words[] = {
        { INTERPOSE_NOTE_NO_CUPTI,
          "libcupti was not found (next to the program's libcudart, in CUDA_PATH, CUDA_HOME, "
          "LD_LIBRARY_PATH, /usr/local/cuda); name it with --cupti",
          "no se encontró libcupti (junto al libcudart del programa, en CUDA_PATH, CUDA_HOME, "
          "LD_LIBRARY_PATH, /usr/local/cuda); indíquela con --cupti" },
        { INTERPOSE_NOTE_BAD_CUPTI, "the file given with --cupti cannot be loaded as CUPTI",
          "el archivo dado con --cupti no se puede cargar como CUPTI" },
        { INTERPOSE_NOTE_CUPTI_TAKEN, "CUPTI refused: another tool may be using it",
          "CUPTI se negó: otra herramienta puede estar usándola" },
        { INTERPOSE_NOTE_NO_RECORDING, "the recording could not be made",
          "no se pudo crear la grabación" },
    };
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strcmp(trace->note, words[i].slug) == 0)
            text_add(text, say(trace, words[i].english, words[i].spanish));
    if (trace->note_detail[0]) {
        text_add(text, " (");
        text_add_printable(text, text_view_of(trace->note_detail), 400);
        text_add(text, ")");
    }
}

static void add_blindness(const struct trace *trace, struct text *text)
{
    switch (trace->blind) {
    case TRACE_NOT_BLIND:
        if (!trace->note[0])
            return;
        text_add(text, say(trace, "  not all was looked at: ", "  no se miró todo: "));
        add_note(trace, text);
        break;
    case TRACE_BLIND_NOTE:
        text_add(text, say(trace, "  nothing was looked at: ", "  no se miró nada: "));
        add_note(trace, text);
        break;
    case TRACE_BLIND_OTHER_USER:
        text_add(text, say(trace,
                           "  nothing was looked at: the program changes its user (setuid): no "
                           "library can be put into it",
                           "  no se miró nada: el programa cambia de usuario (setuid): no se le "
                           "puede añadir ninguna biblioteca"));
        break;
    case TRACE_BLIND_NO_CALL:
        text_add(text, say(trace,
                           "  nothing was looked at: no GPU call was seen (it made none, has a "
                           "static HIP runtime, or clears its environment)",
                           "  no se miró nada: no se vio ninguna llamada a la GPU (no hizo "
                           "ninguna, tiene un runtime de HIP estático o limpia su entorno)"));
        break;
    case TRACE_BLIND_NO_MEMORY:
        text_add(text, say(trace,
                           "  nothing was looked at: calls were seen, but none that makes, copies "
                           "or uses memory",
                           "  no se miró nada: se vieron llamadas, pero ninguna que cree, copie o "
                           "use memoria"));
        break;
    }
    text_add(text, "\n");
}

static void add_end(const struct trace *trace, struct text *text)
{
    text_add(text, say(trace, "  end of the program: ", "  fin del programa: "));
    report_ending_words(trace->ending, trace->options->language, text);
    text_add(text, "\n");
    add_blindness(trace, text);
    for (size_t i = 0; i < trace->process_count; i++)
        if (trace->processes[i].missing[0])
            text_addf(text,
                      say(trace, "  the recording of process %s could not be analysed: %s\n",
                          "  la grabación del proceso %s no se pudo analizar: %s\n"),
                      trace->processes[i].name, trace->processes[i].missing);
}

void trace_print(struct trace *trace, const struct trace_listed *listed, enum audit_outcome outcome,
                 struct text *text)
{
    struct trace_figures sum = { 0 };
    enum analyze_language language = trace->options->language;
    for (size_t i = 0; i < trace->process_count; i++)
        if (!trace->processes[i].rerun)
            trace_figures_join(&sum, &trace->processes[i].figures);
    add_findings(trace, listed, text);
    if (trace->options->summary) {
        text_add(text, say(trace, "summary\n", "resumen\n"));
        trace_figures_print(&sum, language, text);
    }
    /* In English the name that summary.json has. */
    text_addf(text, say(trace, "verdict: %s\n", "veredicto: %s\n"),
              language == ANALYZE_SPANISH ? report_outcome_words(outcome, language)
                                          : audit_outcome_name(outcome));
    add_end(trace, text);
    if (listed->event_count) {
        add_caches(trace, text);
        add_overhead(trace, text);
    }
    if (trace->keep)
        text_addf(text, "  %s/report.html\n", trace->folder);
}
