/* trace_figures.c - what a program did with its GPU, in numbers: useful with no bug at all. */
#include "campaign/trace/trace.h"

#include "report/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const uint64_t size_limits[TRACE_SIZE_CLASSES - 1] = { 4096, 65536, 1048576, 16777216 };

static void add_transfer(struct trace_figures *figures, const struct event *event)
{
    enum trace_direction direction = event->kind == EVENT_COPY_IN    ? TRACE_TO_DEVICE
                                     : event->kind == EVENT_COPY_OUT ? TRACE_TO_HOST
                                     : event->kind == EVENT_FILL     ? TRACE_FILL
                                                                     : TRACE_WITHIN;
    struct trace_transfers *transfers = &figures->transfers[direction];
    transfers->count++;
    transfers->bytes += event_bytes(event);
    size_t class = 0;
    while (class + 1 < TRACE_SIZE_CLASSES && event_bytes(event) > size_limits[class])
        class ++;
    transfers->by_size[class]++;
    if (event->flags & EVENT_PAGEABLE) {
        transfers->pageable_count++;
        transfers->pageable_bytes += event_bytes(event);
    }
    if ((event->flags & (EVENT_SYNCHRONOUS | EVENT_STAGED)) && event->end_ns > event->begin_ns) {
        transfers->stalling_count++;
        transfers->stalling_ns += event->end_ns - event->begin_ns;
    }
}

static void add_memory(struct trace_figures *figures, const struct event *event)
{
    bool host = (event->flags & EVENT_HOST_MEMORY) != 0;
    uint64_t *now = host ? &figures->pinned_bytes : &figures->device_bytes;
    uint64_t *peak = host ? &figures->pinned_peak : &figures->device_peak;
    if (event->kind == EVENT_BUFFER_CREATE) {
        figures->allocations++;
        *now += event_bytes(event);
    } else {
        figures->frees++;
        *now -= event_bytes(event) < *now ? event_bytes(event) : *now;
    }
    if (*now > *peak)
        *peak = *now;
}

void trace_figures_add(struct trace_figures *figures, const struct event *event)
{
    bool done = event->outcome == EVENT_DONE;
    figures->calls++;
    figures->failures += event->outcome == EVENT_FAILED;
    switch (event->kind) {
    case EVENT_LAUNCH:
        figures->launches += done && !event_graph_id(event);
        break;
    case EVENT_GRAPH_REPLAY:
        figures->replays += done;
        break;
    case EVENT_STREAM_SYNC:
    case EVENT_MARK_SYNC:
        figures->waits++;
        figures->wait_ns += event->end_ns > event->begin_ns ? event->end_ns - event->begin_ns : 0;
        break;
    case EVENT_COPY_IN:
    case EVENT_COPY_OUT:
    case EVENT_COPY_WITHIN:
    case EVENT_FILL:
        if (done && !event_graph_id(event))
            add_transfer(figures, event);
        break;
    case EVENT_BUFFER_CREATE:
    case EVENT_BUFFER_DESTROY:
        if (done)
            add_memory(figures, event);
        break;
    default:
        break;
    }
}

void trace_figures_join(struct trace_figures *sum, const struct trace_figures *more)
{
    sum->calls += more->calls;
    sum->launches += more->launches;
    sum->replays += more->replays;
    sum->failures += more->failures;
    sum->waits += more->waits;
    sum->wait_ns += more->wait_ns;
    sum->allocations += more->allocations;
    sum->frees += more->frees;
    /* The peaks of several processes are added, although they need not have met. */
    sum->device_bytes += more->device_bytes;
    sum->pinned_bytes += more->pinned_bytes;
    sum->device_peak += more->device_peak;
    sum->pinned_peak += more->pinned_peak;
    for (size_t i = 0; i < TRACE_DIRECTIONS; i++) {
        struct trace_transfers *to = &sum->transfers[i];
        const struct trace_transfers *from = &more->transfers[i];
        to->count += from->count;
        to->bytes += from->bytes;
        to->stalling_count += from->stalling_count;
        to->stalling_ns += from->stalling_ns;
        to->pageable_count += from->pageable_count;
        to->pageable_bytes += from->pageable_bytes;
        for (size_t j = 0; j < TRACE_SIZE_CLASSES; j++)
            to->by_size[j] += from->by_size[j];
    }
}

/* ---- Printing ------------------------------------------------------------------------------- */

static void print_advice(const struct trace_figures *figures, enum report_language language,
                         struct text *text)
{
    char size[TEXT_BYTES_CAPACITY], number[WORDS_NUMBER_BYTES], seconds[32];
    uint64_t count = 0, bytes = 0, stalls = 0, stalled_ns = 0;
    for (size_t i = 0; i < TRACE_DIRECTIONS; i++) {
        count += figures->transfers[i].pageable_count;
        bytes += figures->transfers[i].pageable_bytes;
        stalls += figures->transfers[i].stalling_count;
        stalled_ns += figures->transfers[i].stalling_ns;
    }
    if (count)
        words_add_line(text, language, WORD_TRACE_PAGEABLE_ADVICE, words_number(count, number),
                       text_bytes(bytes, size), NULL);
    snprintf(seconds, sizeof(seconds), "%.3f", (double)stalled_ns / 1e9);
    if (stalls)
        words_add_line(text, language, WORD_TRACE_STALLS, words_number(stalls, number), seconds,
                       NULL);
    snprintf(seconds, sizeof(seconds), "%.3f", (double)figures->wait_ns / 1e9);
    if (figures->waits)
        words_add_line(text, language, WORD_TRACE_WAITS, words_number(figures->waits, number),
                       seconds, NULL);
}

static void print_transfers(const struct trace_figures *figures, enum report_language language,
                            struct text *text)
{
    static const enum word names[] = { WORD_TRACE_TO_DEVICE, WORD_TRACE_TO_HOST, WORD_TRACE_WITHIN,
                                       WORD_TRACE_FILL };
    _Static_assert(COUNT_OF(names) == TRACE_DIRECTIONS, "every direction has a name");
    char size[TEXT_BYTES_CAPACITY];
    text_addf(text, "  %-15s %9s %12s %9s %9s %9s %9s %9s %9s %9s\n",
              words_get(language, WORD_TRACE_TRANSFERS), words_get(language, WORD_TRACE_COUNT),
              "bytes", "<=4K", "<=64K", "<=1M", "<=16M", ">16M",
              words_get(language, WORD_TRACE_STALLING), words_get(language, WORD_TRACE_PAGEABLE));
    for (size_t i = 0; i < TRACE_DIRECTIONS; i++) {
        const struct trace_transfers *one = &figures->transfers[i];
        const char *name = words_get(language, names[i]);
        size_t width = text_width(name);
        text_addf(text, "  %s", name);
        text_add_fill(text, ' ', width < 15 ? 15 - width : 0);
        text_addf(text, " %9" PRIu64 " %12s", one->count, text_bytes(one->bytes, size));
        for (size_t j = 0; j < TRACE_SIZE_CLASSES; j++)
            text_addf(text, " %9" PRIu64, one->by_size[j]);
        text_addf(text, " %9" PRIu64 " %9" PRIu64 "\n", one->stalling_count, one->pageable_count);
    }
}

void trace_figures_print(const struct trace_figures *figures, enum report_language language,
                         struct text *text)
{
    char size[TEXT_BYTES_CAPACITY], other[TEXT_BYTES_CAPACITY];
    char first[WORDS_NUMBER_BYTES], second[WORDS_NUMBER_BYTES], third[WORDS_NUMBER_BYTES];
    print_transfers(figures, language, text);
    words_add_line(text, language, WORD_TRACE_CALLS, words_number(figures->launches, first),
                   words_number(figures->replays, second), words_number(figures->failures, third),
                   NULL);
    words_add_line(text, language, WORD_TRACE_ALLOCATIONS,
                   words_number(figures->allocations, first), words_number(figures->frees, second),
                   text_bytes(figures->device_peak, size), text_bytes(figures->pinned_peak, other),
                   NULL);
    if (figures->device_bytes || figures->pinned_bytes)
        words_add_line(text, language, WORD_TRACE_NOT_FREED,
                       text_bytes(figures->device_bytes, size),
                       text_bytes(figures->pinned_bytes, other), NULL);
    print_advice(figures, language, text);
}
