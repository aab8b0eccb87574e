/* tool_calls.h - the calls of tools in an answer, from the forms of many families of models into
 * OpenAI's.
 *
 * What a model writes is hostile input and often damaged: what cannot be read as a call is left
 * alone. Nothing is executed. */
#ifndef GRETA_CHAT_TOOL_CALLS_H
#define GRETA_CHAT_TOOL_CALLS_H

#include "base/text.h"

#include <jansson.h>

/* The calls in the text, as an array of {"id", "type", "function": {"name", "arguments"}} with the
 * arguments as JSON text; empty if there are none. tools: what the model was offered, or NULL; it
 * decides the types of arguments that come as bare text, and which text without a marker is a call.
 * Ids that the text does not give are made from first_number on. */
MUST_CHECK enum status chat_tool_calls(struct text_view text, const json_t *tools,
                                       uint32_t first_number, json_t **ret_calls,
                                       struct error *err);

#endif
