/* emit.h - one sequence of calls, two outputs: aligned text for people, JSON for scripts.
 *
 * Fields are added to the innermost open object or list; emit_finish renders everything at once. In
 * text a key "head_count_kv" reads "head count kv", a list of objects is a table, and sizes and
 * counts are shortened; in JSON they are exact. If memory runs out, emit_finish returns the error.
 */
#ifndef GRETA_BASE_EMIT_H
#define GRETA_BASE_EMIT_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum emit_format { EMIT_TEXT, EMIT_JSON };

struct emit;

MUST_CHECK enum status emit_create(enum emit_format format, struct emit **ret, struct error *err);
void emit_destroy(struct emit *emit); /* NULL is fine */

/* key is NULL inside a list. Objects and lists nest at most EMIT_DEPTH_LIMIT deep. */
#define EMIT_DEPTH_LIMIT 8
void emit_object_begin(struct emit *emit, const char *key);
void emit_object_end(struct emit *emit);
void emit_list_begin(struct emit *emit, const char *key);
void emit_list_end(struct emit *emit);

/* Text from outside may hold any bytes; in text they are shown as by text_add_printable, in JSON
 * only those that are not valid UTF-8. emit_view cuts long text. */
void emit_view(struct emit *emit, const char *key, struct text_view value);
void emit_text(struct emit *emit, const char *key, const char *value);
void emit_textf(struct emit *emit, const char *key, const char *format, ...) PRINTF_LIKE(3, 4);
void emit_flag(struct emit *emit, const char *key, bool value);
void emit_count(struct emit *emit, const char *key, uint64_t value); /* exact in text and JSON */
void emit_integer(struct emit *emit, const char *key, int64_t value);
/* A number that is at least 0; a negative one means none ("none" in text, null in JSON). */
void emit_index(struct emit *emit, const char *key, int64_t value);
void emit_real(struct emit *emit, const char *key, double value);
void emit_bytes(struct emit *emit, const char *key, uint64_t bytes); /* "4.58 GiB" in text */
/* A line that only the text has; JSON leaves it out. */
void emit_note(struct emit *emit, const char *key, const char *value);

bool emit_is_json(const struct emit *emit);

/* Writes everything to out. STATUS_IO if out did not take it. */
MUST_CHECK enum status emit_finish(struct emit *emit, FILE *out, struct error *err);

#endif
