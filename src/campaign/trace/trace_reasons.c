/* trace_reasons.c - why a trace did not see all of a program: no call could be recorded, a recording
 * could not be read, page traps were not set everywhere, a fault has no GPU core dump. */
#include "campaign/trace/trace.h"

#include "report/words.h"

#include <string.h>

/* What a library said of why it cannot record. */
static void add_note(const struct trace *trace, enum report_language language, struct text *text)
{
    static const struct {
        const char *slug;
        enum word words; /* followed by the detail in parentheses */
    } notes[] = {
        { INTERPOSE_NOTE_NO_CUPTI, WORD_TRACE_NO_CUPTI },
        { INTERPOSE_NOTE_BAD_CUPTI, WORD_TRACE_BAD_CUPTI },
        { INTERPOSE_NOTE_CUPTI_TAKEN, WORD_TRACE_CUPTI_TAKEN },
        { INTERPOSE_NOTE_NO_RECORDING, WORD_TRACE_NO_RECORDING },
    };
    for (size_t i = 0; i < COUNT_OF(notes); i++)
        if (strcmp(trace->note, notes[i].slug) == 0)
            text_add(text, words_get(language, notes[i].words));
    if (trace->note_detail[0])
        text_addf(text, " (%s)", trace->note_detail);
}

static void add_blindness(const struct trace *trace, enum report_language language,
                          struct text *text)
{
    static const enum word reasons[] = { [TRACE_BLIND_OTHER_USER] = WORD_TRACE_OTHER_USER,
                                         [TRACE_BLIND_STATIC] = WORD_TRACE_STATIC,
                                         [TRACE_BLIND_NO_CALL] = WORD_TRACE_NO_CALL,
                                         [TRACE_BLIND_NO_MEMORY] = WORD_TRACE_NO_MEMORY };
    if (trace->blind == TRACE_NOT_BLIND || trace->blind == TRACE_BLIND_NOTE)
        add_note(trace, language, text);
    else
        text_add(text, words_get(language, reasons[trace->blind]));
}

/* What became of page traps; false: they were not asked for, or all were set. */
static bool add_traps(const struct trace *trace, enum report_language language, struct text *text)
{
    static const enum word reasons[EVENT_TRAPS_COUNT] = {
        [EVENT_TRAPS_LIMIT] = WORD_TRACE_TRAPS_LIMIT,
        [EVENT_TRAPS_SIGNAL] = WORD_TRACE_TRAPS_SIGNAL,
        [EVENT_TRAPS_RING] = WORD_TRACE_TRAPS_RING,
        [EVENT_TRAPS_ASYNC] = WORD_TRACE_TRAPS_ASYNC,
        [EVENT_TRAPS_REFUSED] = WORD_TRACE_TRAPS_REFUSED,
    };
    enum event_traps worst = EVENT_TRAPS_ON;
    for (size_t i = 0; i < trace->process_count; i++) {
        const struct trace_process *process = &trace->processes[i];
        const struct analysis *analysis = process->analyzer ? analyzer_result(process->analyzer)
                                                            : NULL;
        if (analysis && analysis->host_traps_state > worst)
            worst = analysis->host_traps_state;
    }
    if (worst != EVENT_TRAPS_ON && text)
        text_add(text, words_get(language, reasons[worst]));
    return worst != EVENT_TRAPS_ON;
}

/* Why a fault of the process has no GPU core dump; false: it has one, or there was no fault. */
static bool add_no_dump(const struct trace *trace, const struct trace_process *process,
                        enum report_language language, struct text *text)
{
    const struct analysis *analysis = process->analyzer ? analyzer_result(process->analyzer) : NULL;
    const char *own = trace_own_dump_setting(trace);
    bool fault = false;
    for (size_t i = 0; analysis && i < analysis->finding_count; i++)
        fault = fault || analysis->findings[i].hypothesis == HYPOTHESIS_KERNEL_FAULT;
    if (!fault || process->dump || trace->options->no_coredump || process->rerun ||
        !trace_is_cuda(process))
        return false;
    if (trace->options->cupti)
        text_add(text, words_get(language, WORD_TRACE_DUMP_CUPTI));
    else if (own)
        words_add(text, language, WORD_TRACE_DUMP_OWN, own, NULL);
    else if (process->no_dump[0])
        words_add(text, language, WORD_TRACE_DUMP_FAILED, process->no_dump, NULL);
    else
        text_add(text, words_get(language, WORD_TRACE_DUMP_NONE));
    return true;
}

bool trace_add_reason(const void *context, size_t index, enum report_language language,
                      struct text *text)
{
    const struct trace *trace = context;
    size_t number = 0;
    if ((trace->blind != TRACE_NOT_BLIND || trace->note[0]) && number++ == index) {
        add_blindness(trace, language, text);
        return true;
    }
    for (size_t i = 0; i < trace->process_count; i++) {
        const struct trace_process *process = &trace->processes[i];
        if (!process->missing[0] || number++ != index)
            continue;
        words_add(text, language, WORD_TRACE_NOT_ANALYSED, process->name, process->missing, NULL);
        return true;
    }
    if (add_traps(trace, language, NULL) && number++ == index)
        return add_traps(trace, language, text);
    for (size_t i = 0; i < trace->process_count; i++) {
        struct text words;
        text_init(&words);
        bool found = add_no_dump(trace, &trace->processes[i], language, &words) &&
                     number++ == index;
        if (found)
            text_add(text, text_get(&words));
        text->failed = text->failed || words.failed;
        text_release(&words);
        if (found)
            return true;
    }
    return false;
}
