/* export.h - a flight file as text, JSON lines or a timeline, for greta flight and the folder of an
 * audit. */
#ifndef GRETA_REPORT_EXPORT_H
#define GRETA_REPORT_EXPORT_H

#include "base/status.h"
#include "event/event.h"
#include "event/flight.h"

#include <stdbool.h>
#include <stdint.h>

/* Which events; -1, 0 and "" mean any. */
struct report_filter {
    int32_t stream, layer, step;
    char tensor[EVENT_TENSOR_BYTES];
    char op[EVENT_OP_BYTES];
    uint64_t from_ns, to_ns; /* since the recording began; to_ns 0: to its end */
    bool failures_only;
};

enum report_event_format { REPORT_EVENT_TEXT, REPORT_EVENT_JSONL, REPORT_EVENT_CHROME };

/* Streams to write(context, bytes, count), which returns a status; memory use does not grow with
 * the file. */
struct report_sink {
    enum status (*write)(void *context, const char *bytes, size_t count, struct error *err);
    void *context;
};
MUST_CHECK enum status report_events(const struct flight_reader *reader,
                                     const struct report_filter *filter,
                                     enum report_event_format format,
                                     const struct report_sink *sink, struct error *err);

#endif
