/* reply.h - a model's answer as it comes: what it thinks, what it says, which tools it calls.
 *
 * Families of models divide their answers with markers of their own. Text is handed out as soon as
 * it cannot be part of a marker any more, and what was handed out is final. */
#ifndef GRETA_CHAT_REPLY_H
#define GRETA_CHAT_REPLY_H

#include "base/text.h"
#include "tokenizer/tokenizer.h"

enum chat_part {
    CHAT_PART_CONTENT,
    CHAT_PART_REASONING,
    CHAT_PART_TOOLS, /* calls as the model writes them, markers included (tool_calls.h) */
    CHAT_PART_COUNT
};

typedef void (*chat_part_sink)(void *context, enum chat_part part, struct text_view text);

struct chat_reply {
    enum chat_part part;
    bool content_begun; /* something but white space was said */
    bool part_begun;    /* white space at the beginning of a part is left out */
    struct text held;   /* may be the beginning of a marker */
    chat_part_sink sink;
    void *context;
};

/* prompt: what the model was given; a template may have opened its reasoning. Release the reply. */
void chat_reply_begin(struct chat_reply *reply, struct text_view prompt, chat_part_sink sink,
                      void *context);
void chat_reply_add(struct chat_reply *reply, struct text_view text);
void chat_reply_end(struct chat_reply *reply); /* hands out what is still held */
void chat_reply_release(struct chat_reply *reply);

/* True if this control token is part of a marker, so that its text must reach the reply. Others
 * have no text for people. */
bool chat_reply_wants(struct text_view control_token);

#endif
