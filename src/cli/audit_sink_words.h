/* audit_sink_words.h - how a copy ended, in the words of its device's runtime; for audit_sink.c. */
#ifndef GRETA_CLI_AUDIT_SINK_WORDS_H
#define GRETA_CLI_AUDIT_SINK_WORDS_H

#include "event/event.h"

#define AUDIT_SINK_WORDS_BYTES 192

/* kind: of the device: "cuda", "hip" or another. words: room for text that is made.
 * One word: the runtime's name for its own code; if it gave none, what greta did. */
const char *audit_sink_result(const char *kind, const struct event *event,
                              char words[AUDIT_SINK_WORDS_BYTES]);
/* The same as a sentence. */
const char *audit_sink_error(const char *kind, const struct event *event,
                             char words[AUDIT_SINK_WORDS_BYTES]);
/* What that sentence is called in a line. */
const char *audit_sink_error_key(const char *kind);

#endif
