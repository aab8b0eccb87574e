/* render.c - from a conversation to the text and the ids that a model reads. */
#define _GNU_SOURCE /* memmem */
#include "chat/chat.h"

#include <string.h>
#include <time.h>

struct tm chat_now(void)
{
    time_t seconds = time(NULL);
    struct tm now = { 0 };
    localtime_r(&seconds, &now);
    return now;
}

enum status chat_add_tokens(json_t *variables, const struct tokenizer *tokenizer, struct error *err)
{
    static const struct {
        const char *name;
        enum tokenizer_special special;
    } rows[] = {
        { "bos_token", TOKENIZER_BOS },     { "eos_token", TOKENIZER_EOS },
        { "unk_token", TOKENIZER_UNK },     { "sep_token", TOKENIZER_SEPARATOR },
        { "pad_token", TOKENIZER_PADDING }, { "cls_token", TOKENIZER_CLS },
        { "mask_token", TOKENIZER_MASK },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        uint32_t id = tokenizer_special_id(tokenizer, rows[i].special);
        if (id == TOKENIZER_NO_ID || json_object_get(variables, rows[i].name))
            continue;
        struct text_view text = tokenizer_token_text(tokenizer, id);
        json_t *value = json_stringn(text.bytes, text.length);
        if (!value)
            continue; /* no UTF-8: no template could write it */
        if (json_object_set_new(variables, rows[i].name, value) != 0)
            return error_set(err, STATUS_NO_MEMORY, "no memory for the variables of a template");
    }
    return STATUS_OK;
}

/* ---- Continuing the last message ------------------------------------------------------------- */

/* Added to the last message's text; the rendering is cut where it appears. The space at the end
 * shows if the template trims messages. */
#define MARK_WORD "CONTINUE_FINAL_MESSAGE_TAG"
#define MARK MARK_WORD " "

/* The object and key that hold the last message's text; NULL if there is none. */
static json_t *find_final(json_t *variables, const char **ret_key)
{
    json_t *messages = json_object_get(variables, "messages");
    size_t count = json_array_size(messages);
    json_t *last = count ? json_array_get(messages, count - 1) : NULL;
    json_t *content = json_object_get(last, "content");
    *ret_key = "content";
    if (json_is_string(content))
        return last;
    *ret_key = "text";
    for (size_t i = json_array_size(content); i > 0; i--)
        if (json_is_string(json_object_get(json_array_get(content, i - 1), "text")))
            return json_array_get(content, i - 1);
    return NULL;
}

static enum status mark_final(json_t *variables, struct text *final, struct error *err)
{
    const char *key;
    json_t *holder = find_final(variables, &key), *text = json_object_get(holder, key);
    if (!text)
        return error_set(err, STATUS_REFUSED,
                         "continue_final_message: expected a last message with text");
    text_add_bytes(final, json_string_value(text), json_string_length(text));
    size_t length = final->length;
    text_add(final, MARK);
    json_t *marked = json_stringn(text_get(final), final->length);
    final->length = length;
    if (final->failed || !marked || json_object_set_new(holder, key, marked) != 0 ||
        json_object_set_new(variables, "add_generation_prompt", json_false()) != 0)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a conversation");
    return STATUS_OK;
}

static bool is_blank(char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* Cuts the text that was added after `begin` at the mark. */
static enum status cut_at_mark(struct text *out, size_t begin, const struct text *final,
                               struct error *err)
{
    size_t word = strlen(MARK_WORD), at = out->length, least = begin + word;
    while (at >= least && memcmp(out->bytes + at - word, MARK_WORD, word) != 0)
        at--;
    struct text_view message = { text_get(final), final->length };
    while (message.length && is_blank(message.bytes[0])) {
        message.bytes++;
        message.length--;
    }
    while (message.length && is_blank(message.bytes[message.length - 1]))
        message.length--;
    if (at < least ||
        !memmem(out->bytes + begin, out->length - begin, message.bytes, message.length))
        return error_set(err, STATUS_REFUSED,
                         "continue_final_message: the last message does not appear in the text "
                         "as it is; the template changes it");
    bool kept_space = at < out->length && out->bytes[at] == ' ';
    out->length = at - word;
    while (!kept_space && out->length > begin && is_blank(out->bytes[out->length - 1]))
        out->length--;
    out->bytes[out->length] = '\0';
    return STATUS_OK;
}

static enum status render_continued(const struct template *template,
                                    const struct chat_rendering *rendering, struct text *out,
                                    struct template_failure *failure, struct error *err)
{
    size_t begin = out->length;
    struct text final;
    text_init(&final);
    json_t *variables = json_deep_copy(rendering->variables);
    enum status status = mark_final(variables, &final, err);
    if (status)
        goto done;
    struct template_input input = { .variables = variables, .now = rendering->now };
    status = template_render(template, &input, out, failure, err);
    if (!status)
        status = cut_at_mark(out, begin, &final, err);
    if (status && out->bytes) {
        out->length = begin;
        out->bytes[begin] = '\0';
    }
done:
    json_decref(variables);
    text_release(&final);
    return status;
}

enum status chat_render(const struct template *template, const struct chat_rendering *rendering,
                        struct text *out, struct template_failure *failure, struct error *err)
{
    if (rendering->continue_final)
        return render_continued(template, rendering, out, failure, err);
    struct template_input input = { .variables = rendering->variables, .now = rendering->now };
    return template_render(template, &input, out, failure, err);
}

enum status chat_encode(const struct tokenizer *tokenizer, struct text_view text,
                        struct tokenizer_ids *ids, struct error *err)
{
    uint32_t begin = tokenizer_special_id(tokenizer, TOKENIZER_BOS);
    bool adds = tokenizer_info(tokenizer)->add_bos && begin != TOKENIZER_NO_ID;
    size_t first = ids->count;
    if (adds) {
        struct text_view mark = tokenizer_token_text(tokenizer, begin);
        if (text.length >= mark.length && memcmp(text.bytes, mark.bytes, mark.length) == 0)
            adds = false;
    }
    TRY(tokenizer_encode(tokenizer, text,
                         TOKENIZER_PARSE_SPECIAL | (adds ? TOKENIZER_ADD_SPECIAL : 0u), ids, err));
    uint32_t end = tokenizer_special_id(tokenizer, TOKENIZER_EOS);
    if (adds && tokenizer_info(tokenizer)->add_eos && ids->count > first + 1 &&
        ids->ids[ids->count - 1] == end)
        ids->count--; /* the answer is still to come */
    return STATUS_OK;
}
