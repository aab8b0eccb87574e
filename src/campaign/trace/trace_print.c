/* trace_print.c - what a trace says on the terminal, in English and Spanish. Names of calls,
 * functions, files and hypotheses are names in both. They come from outside: shown printably. */
#include "campaign/trace/trace.h"

#include "report/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Findings shown in the terminal; the artifacts have them all. */
#define SHOWN_LIMIT 24u

static const char *word(const struct trace *trace, enum word word)
{
    return words_get(trace->options->language, word);
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
    bool access = place->kind == EVENT_HOST_ACCESS;
    text_addf(text, "      %s ", title);
    text_add_printable(text,
                       text_view_of(kernel   ? name
                                    : access ? word(trace, WORD_TRACE_HOST_ACCESS)
                                             : place->op),
                       400);
    text_addf(text, "%s\n", word(trace, WORD_TRACE_CALLED_BY));
    size_t count = trace_stack(trace, process, place->stack_index, frames, COUNT_OF(frames));
    for (size_t i = 0; i < count; i++)
        add_frame(&frames[i], text);
}

/* The memory that the failing launch's pointers lead to, and the calls that made it. */
static void add_pointers(struct trace *trace, const struct trace_process *process,
                         const struct finding *finding, struct text *text)
{
    struct report_frame frames[REPORT_FRAME_LIMIT];
    for (uint32_t i = 0; i < finding->pointer_count; i++) {
        const struct finding_pointer *pointer = &finding->pointers[i];
        char operand[WORDS_NUMBER_BYTES], apart[WORDS_NUMBER_BYTES], bytes[WORDS_NUMBER_BYTES];
        char address[32];
        if (!pointer->created_id)
            continue;
        snprintf(address, sizeof(address), "0x%" PRIx64, pointer->address);
        words_add(text, trace->options->language,
                  pointer->destroyed_id ? WORD_TRACE_POINTER_FREED : WORD_TRACE_POINTER,
                  words_number(pointer->operand, operand), address,
                  words_number(pointer->address - pointer->buffer_address, apart), pointer->buffer,
                  words_number(pointer->buffer_bytes, bytes), NULL);
        text_add(text, "\n");
        size_t count = trace_stack(trace, process, pointer->stack_index, frames, COUNT_OF(frames));
        for (size_t j = 0; j < count; j++)
            add_frame(&frames[j], text);
    }
}

static bool is_sure(const struct finding *finding)
{
    return finding->certainty == FINDING_DIRECT;
}

void trace_print_finding(struct trace *trace, const struct trace_process *process,
                         const struct finding *finding, struct text *text)
{
    text_addf(text, "  %s %s: ",
              word(trace, is_sure(finding) ? WORD_TRACE_CONFIRMED : WORD_TRACE_POSSIBLE),
              hypothesis_info(finding->hypothesis)->slug);
    report_finding_describe(finding, trace->options->language, text);
    text_add(text, "\n");
    add_side(trace, process, "-", &finding->cause, text);
    add_pointers(trace, process, finding, text);
    add_side(trace, process, word(trace, WORD_TRACE_OTHER_SIDE), &finding->other, text);
    add_side(trace, process, word(trace, WORD_TRACE_SEEN_AT), &finding->seen, text);
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
    char number[WORDS_NUMBER_BYTES];
    for (int class = 0; class < 3; class ++)
        for (size_t i = 0; i < listed->count; i++)
            for (size_t j = 0; j < listed->list[i]->finding_count; j++) {
                const struct finding *finding = &listed->list[i]->findings[j];
                if (class_of(finding) != class)
                    continue;
                if (count++ == 0)
                    words_add_line(text, trace->options->language, WORD_TRACE_FINDINGS, NULL);
                if (shown < SHOWN_LIMIT) {
                    trace_print_finding(trace, listed->from[i], finding, text);
                    shown++;
                }
            }
    if (count > shown)
        words_add_line(text, trace->options->language, WORD_TRACE_MORE,
                       words_number(count - shown, number), NULL);
}

/* ---- How it went ---------------------------------------------------------------------------- */

/* greta sees what a caching allocator keeps, but not how the program divides it. */
static void add_caches(const struct trace *trace, struct text *text)
{
    uint64_t count = 0;
    char number[WORDS_NUMBER_BYTES];
    for (size_t i = 0; !trace->options->tensors && i < trace->process_count; i++) {
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
        words_add_line(text, trace->options->language, WORD_TRACE_CACHED,
                       words_number(count, number), NULL);
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
    char calls[WORDS_NUMBER_BYTES], taken[32], whole[32], share[32];
    snprintf(taken, sizeof(taken), "%.3f", seconds);
    snprintf(whole, sizeof(whole), "%.3f", wall);
    snprintf(share, sizeof(share), "%.1f", wall > 0 ? 100 * seconds / wall : 0.0);
    words_add_line(text, trace->options->language, WORD_TRACE_OVERHEAD, words_number(kept, calls),
                   taken, whole, share, NULL);
    if (lost)
        words_add_line(text, trace->options->language, WORD_TRACE_LOST, words_number(lost, calls),
                       NULL);
}

static void add_end(const struct trace *trace, struct text *text)
{
    enum report_language language = trace->options->language;
    struct text reason;
    text_add(text, word(trace, WORD_TRACE_END));
    report_ending_words(trace->ending, language, text);
    text_add(text, "\n");
    text_init(&reason);
    for (size_t i = 0; trace_add_reason(trace, i, language, &reason); i++) {
        bool part = trace->blind == TRACE_NOT_BLIND;
        text_add(text, "  ");
        if (i == 0)
            text_add(text, word(trace, part ? WORD_TRACE_NOT_ALL : WORD_TRACE_NOTHING));
        text_add_printable(text, text_view_of(text_get(&reason)), SIZE_MAX);
        text_add(text, "\n");
        text_clear(&reason);
    }
    text->failed = text->failed || reason.failed;
    text_release(&reason);
}

/* The hypotheses that keep a trace from being clean, and why. One that is not asked here has no
 * detector; what a crash leaves open is said by the end of the program. */
static void add_undecided(const struct trace *trace, const struct audit_verdict *verdict,
                          struct text *text)
{
    enum report_language language = trace->options->language;
    for (int i = 0; i < HYPOTHESIS_COUNT; i++) {
        const struct hypothesis_verdict *one = &verdict->hypotheses[i];
        char checked[WORDS_NUMBER_BYTES], total[WORDS_NUMBER_BYTES];
        if (one->verdict != VERDICT_INCONCLUSIVE || one->missing == VERDICT_MISSING_DETECTOR ||
            one->missing == VERDICT_MISSING_END)
            continue;
        const struct report_hypothesis_words *words = report_hypothesis_words((enum hypothesis)i);
        words_add_line(text, language, WORD_TRACE_UNDECIDED,
                       hypothesis_info((enum hypothesis)i)->slug,
                       words_number(one->checked, checked), words_number(one->total, total),
                       one->total == 1 ? words->unit[language] : words->units[language],
                       report_missing_words(one->missing, language), NULL);
    }
}

void trace_print(struct trace *trace, const struct trace_listed *listed,
                 const struct audit_verdict *verdict, struct text *text)
{
    struct trace_figures sum = { 0 };
    enum report_language language = trace->options->language;
    for (size_t i = 0; i < trace->process_count; i++)
        if (!trace->processes[i].rerun)
            trace_figures_join(&sum, &trace->processes[i].figures);
    add_findings(trace, listed, text);
    if (trace->options->summary) {
        words_add_line(text, language, WORD_TRACE_SUMMARY, NULL);
        trace_figures_print(&sum, language, text);
    }
    words_add(text, language, WORD_TRACE_VERDICT, report_outcome_words(verdict->outcome, language),
              NULL);
    if (verdict->outcome == AUDIT_CLEAN)
        report_subjects_words(&verdict->subjects, language, text);
    text_add(text, "\n");
    add_end(trace, text);
    if (verdict->outcome == AUDIT_INCONCLUSIVE && trace->blind == TRACE_NOT_BLIND)
        add_undecided(trace, verdict, text);
    if (listed->event_count) {
        add_caches(trace, text);
        add_overhead(trace, text);
    }
    if (trace->keep) {
        text_add(text, "  ");
        text_add_printable(text, text_view_of(trace->folder), SIZE_MAX);
        text_add(text, "/report.html\n");
    }
}
