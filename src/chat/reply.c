/* reply.c - see reply.h. */
#include "chat/reply.h"

#include <string.h>

struct marker {
    const char *text;
    enum chat_part next;
    bool kept;       /* the text belongs to what follows */
    bool only_first; /* only before anything was said: an answer may be about the marker */
};

static const struct marker markers[] = {
    { "<think>", CHAT_PART_REASONING, false, true },
    { "</think>", CHAT_PART_CONTENT, false, false },
    { "<seed:think>", CHAT_PART_REASONING, false, true },
    { "</seed:think>", CHAT_PART_CONTENT, false, false },
    { "[THINK]", CHAT_PART_REASONING, false, true },
    { "[/THINK]", CHAT_PART_CONTENT, false, false },
    { "<|inner_prefix|>", CHAT_PART_REASONING, false, true },
    { "<|inner_suffix|>", CHAT_PART_CONTENT, false, false },
    { "<|START_THINKING|>", CHAT_PART_REASONING, false, true },
    { "<|END_THINKING|>", CHAT_PART_CONTENT, false, false },
    { "<|START_RESPONSE|>", CHAT_PART_CONTENT, false, false },
    { "<|END_RESPONSE|>", CHAT_PART_CONTENT, false, false },
    { "<|channel|>analysis<|message|>", CHAT_PART_REASONING, false, false },
    { "<|channel|>final<|message|>", CHAT_PART_CONTENT, false, false },
    { "<|channel|>commentary<|message|>", CHAT_PART_CONTENT, false, false },
    { "<|channel|>commentary to=", CHAT_PART_TOOLS, true, false },
    { "<|end|>", CHAT_PART_CONTENT, false, false },
    { "<|start|>assistant", CHAT_PART_CONTENT, false, false },
    { "<tool_call>", CHAT_PART_TOOLS, true, false },
    { "[TOOL_CALLS]", CHAT_PART_TOOLS, true, false },
    { "<|python_tag|>", CHAT_PART_TOOLS, true, false },
    { "<|tool_call_start|>", CHAT_PART_TOOLS, true, false },
    { "<｜tool▁calls▁begin｜>", CHAT_PART_TOOLS, true, false },
    { "<｜DSML｜", CHAT_PART_TOOLS, true, false },
    { "<|tool_calls_section_begin|>", CHAT_PART_TOOLS, true, false },
    { "<|tool_call|>", CHAT_PART_TOOLS, true, false },
    { "<|tool_call>", CHAT_PART_TOOLS, true, false },
    { "<start_function_call>", CHAT_PART_TOOLS, true, false },
    { "<|START_ACTION|>", CHAT_PART_TOOLS, true, false },
    { "<minimax:tool_call>", CHAT_PART_TOOLS, true, false },
    { "<seed:tool_call>", CHAT_PART_TOOLS, true, false },
    { "<TOOLCALL>", CHAT_PART_TOOLS, true, false },
    { "<|tools_prefix|>", CHAT_PART_TOOLS, true, false },
    { "<function=", CHAT_PART_TOOLS, true, false },
};

/* Control tokens within calls, next to those that are parts of the markers above. */
static const char *const inner_marks[] = {
    "</tool_call>",
    "[CALL_ID]",
    "[ARGS]",
    "<|tool_call_end|>",
    "<|tool_call_begin|>",
    "<|tool_call_argument_begin|>",
    "<|tool_calls_section_end|>",
    "<|constrain|>",
    "<|message|>",
    "<|call|>",
    "<|END_ACTION|>",
    "<|/tool_call|>",
    "<tool_call|>",
    "<|tools_suffix|>",
    "<end_function_call>",
    "<escape>",
    "<|\"|>",
    "<arg_key>",
    "</arg_key>",
    "<arg_value>",
    "</arg_value>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁calls▁end｜>",
};

static bool is_blank(char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

bool chat_reply_wants(struct text_view control_token)
{
    if (control_token.length == 0)
        return false;
    for (size_t i = 0; i < COUNT_OF(markers); i++) {
        const char *text = markers[i].text;
        for (size_t at = 0; strlen(text + at) >= control_token.length; at++)
            if (memcmp(text + at, control_token.bytes, control_token.length) == 0)
                return true;
    }
    for (size_t i = 0; i < COUNT_OF(inner_marks); i++)
        if (text_view_is(control_token, inner_marks[i]))
            return true;
    return false;
}

void chat_reply_begin(struct chat_reply *reply, struct text_view prompt, chat_part_sink sink,
                      void *context)
{
    *reply = (struct chat_reply){ .sink = sink, .context = context };
    text_init(&reply->held);
    while (prompt.length && is_blank(prompt.bytes[prompt.length - 1]))
        prompt.length--;
    for (size_t i = 0; i < COUNT_OF(markers); i++) {
        size_t length = strlen(markers[i].text);
        if (!markers[i].kept && prompt.length >= length &&
            memcmp(prompt.bytes + prompt.length - length, markers[i].text, length) == 0)
            reply->part = markers[i].next;
    }
}

static void hand_out(struct chat_reply *reply, struct text_view text)
{
    while (!reply->part_begun && text.length && is_blank(text.bytes[0])) {
        text.bytes++;
        text.length--;
    }
    if (text.length == 0)
        return;
    reply->part_begun = true;
    reply->content_begun |= reply->part == CHAT_PART_CONTENT;
    reply->sink(reply->context, reply->part, text);
}

/* The first marker in the text that counts here; NULL: none. */
static const struct marker *find_marker(const struct chat_reply *reply, struct text_view text,
                                        size_t *ret_at)
{
    bool first = !reply->content_begun;
    for (size_t at = 0; at < text.length; at++) {
        for (size_t i = 0; i < COUNT_OF(markers); i++) {
            size_t length = strlen(markers[i].text);
            if (markers[i].only_first && !first)
                continue;
            if (text.length - at >= length &&
                memcmp(text.bytes + at, markers[i].text, length) == 0) {
                *ret_at = at;
                return &markers[i];
            }
        }
        first = first && is_blank(text.bytes[at]);
    }
    return NULL;
}

/* Bytes at the end of the text that may begin a marker. */
static size_t held_back(struct text_view text)
{
    size_t most = 0;
    for (size_t i = 0; i < COUNT_OF(markers); i++) {
        size_t length = strlen(markers[i].text) - 1;
        length = length < text.length ? length : text.length;
        for (; length > most; length--)
            if (memcmp(text.bytes + text.length - length, markers[i].text, length) == 0)
                most = length;
    }
    return most;
}

void chat_reply_add(struct chat_reply *reply, struct text_view more)
{
    text_add_bytes(&reply->held, more.bytes, more.length);
    struct text_view text = { text_get(&reply->held), reply->held.length };
    size_t at;
    const struct marker *marker;
    /* A call is handed on as it is, to its end. */
    while (reply->part != CHAT_PART_TOOLS && (marker = find_marker(reply, text, &at))) {
        size_t skipped = at + (marker->kept ? 0 : strlen(marker->text));
        hand_out(reply, (struct text_view){ text.bytes, at });
        reply->part = marker->next;
        reply->part_begun = false;
        text = (struct text_view){ text.bytes + skipped, text.length - skipped };
    }
    size_t kept = reply->part == CHAT_PART_TOOLS ? 0 : held_back(text);
    hand_out(reply, (struct text_view){ text.bytes, text.length - kept });
    if (kept)
        memmove(reply->held.bytes, text.bytes + text.length - kept, kept);
    reply->held.length = kept;
}

void chat_reply_end(struct chat_reply *reply)
{
    hand_out(reply, (struct text_view){ text_get(&reply->held), reply->held.length });
    reply->held.length = 0;
}

void chat_reply_release(struct chat_reply *reply)
{
    text_release(&reply->held);
}
