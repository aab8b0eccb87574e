/* fuzz_chat.c - hostile answers of models: divided in chunks, and read as calls of tools. */
#include "chat/reply.h"
#include "chat/tool_calls.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_part(void *context, enum chat_part part, struct text_view text)
{
    size_t *bytes = context;
    ASSERT(part < CHAT_PART_COUNT && text.length > 0);
    *bytes += text.length;
}

/* Parts have at most what the answer had. */
static void divide(const char *answer, size_t size, size_t step)
{
    struct chat_reply reply;
    size_t bytes = 0;
    chat_reply_begin(&reply, (struct text_view){ answer, size / 2 }, on_part, &bytes);
    for (size_t at = 0; at < size; at += step)
        chat_reply_add(&reply,
                       (struct text_view){ answer + at, size - at < step ? size - at : step });
    chat_reply_end(&reply);
    chat_reply_release(&reply);
    ASSERT(bytes <= size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *answer = (const char *)data;
    json_t *tools = json_pack("[{s:s}]", "name", "f"), *calls = NULL;
    struct error err;
    divide(answer, size, 1);
    divide(answer, size, 7);
    if (!chat_tool_calls((struct text_view){ answer, size }, tools, 0, &calls, &err))
        for (size_t i = 0; i < json_array_size(calls); i++) {
            const json_t *function = json_object_get(json_array_get(calls, i), "function");
            json_t *arguments = json_loads(
                json_string_value(json_object_get(function, "arguments")), JSON_ALLOW_NUL, NULL);
            ASSERT(json_is_object(arguments) &&
                   json_string_length(json_object_get(function, "name")) > 0);
            json_decref(arguments);
        }
    json_decref(calls);
    json_decref(tools);
    return 0;
}
