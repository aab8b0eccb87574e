/* wordwrap.c - the wordwrap filter: lines of at most so many characters, broken between words,
 * after hyphens, and within words that are too long. */
#include "template/builtin.h"

struct wrap {
    struct render *r;
    int64_t width;
    struct text_view between; /* lines */
    bool break_words, break_hyphens;
    bool first;            /* nothing has been written */
    struct text_view line; /* what goes into the next line */
    int64_t line_characters;
};

static int64_t characters(struct text_view text)
{
    return jinja_count_characters(text.bytes, text.length);
}

static bool is_letter(char byte)
{
    return (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
}

/* The next run of blanks, or of a word up to its hyphen. */
static struct text_view next_chunk(const struct wrap *wrap, struct text_view text)
{
    size_t end = 0;
    bool blank = jinja_space_at(text.bytes, (uint32_t)text.length) > 0;
    while (end < text.length) {
        uint32_t code;
        const char *at = text.bytes + end;
        if ((jinja_space_at(at, (uint32_t)(text.length - end)) > 0) != blank)
            break;
        end += jinja_decode(at, text.length - end, &code);
        if (wrap->break_hyphens && code == '-' && end > 1 && end < text.length &&
            is_letter(at[-1]) && is_letter(at[1]))
            break;
    }
    return (struct text_view){ text.bytes, end };
}

static enum status write_line(struct wrap *wrap)
{
    struct text_view line = jinja_strip(wrap->line, NULL, false, true);
    if (line.length == 0)
        return STATUS_OK;
    if (!wrap->first)
        TRY(jinja_add_view(wrap->r, wrap->between));
    wrap->first = false;
    return jinja_add_view(wrap->r, line);
}

/* Takes as much of a word that fits no line as this line has room for. */
static enum status break_word(struct wrap *wrap, struct text_view *chunk)
{
    while (wrap->line_characters + characters(*chunk) > wrap->width) {
        size_t end = 0;
        for (int64_t room = wrap->width - wrap->line_characters; room > 0; room--) {
            uint32_t code;
            end += jinja_decode(chunk->bytes + end, chunk->length - end, &code);
        }
        wrap->line.length += end;
        TRY(jinja_spend(wrap->r, 1 + chunk->length / 8));
        TRY(write_line(wrap));
        *chunk = (struct text_view){ chunk->bytes + end, chunk->length - end };
        wrap->line = (struct text_view){ chunk->bytes, 0 };
        wrap->line_characters = 0;
    }
    return STATUS_OK;
}

static enum status wrap_paragraph(struct wrap *wrap, struct text_view text)
{
    bool any = false;
    wrap->line = (struct text_view){ text.bytes, 0 };
    wrap->line_characters = 0;
    while (text.length > 0) {
        struct text_view chunk = next_chunk(wrap, text);
        size_t length = chunk.length;
        bool blank = jinja_space_at(chunk.bytes, (uint32_t)chunk.length) > 0;
        TRY(jinja_spend(wrap->r, 1 + length / 8));
        if (wrap->line_characters + characters(chunk) > wrap->width) {
            bool too_long = characters(chunk) > wrap->width;
            if (too_long && wrap->break_words && !blank) {
                TRY(break_word(wrap, &chunk));
            } else if (wrap->line.length > 0) {
                TRY(write_line(wrap));
                wrap->line = (struct text_view){ chunk.bytes, 0 };
                wrap->line_characters = 0;
            }
        }
        if (blank && wrap->line.length == 0 && any)
            wrap->line.bytes = chunk.bytes + chunk.length; /* no line but the first begins so */
        else {
            wrap->line.length += chunk.length;
            wrap->line_characters += characters(chunk);
        }
        any = true;
        text = (struct text_view){ text.bytes + length, text.length - length };
    }
    return write_line(wrap);
}

enum status jinja_wordwrap(struct render *r, const struct call *call, struct value *ret)
{
    static const struct string splitlines = { "splitlines", 10, 10, false, NULL };
    struct call method = { .count = 0 };
    struct value lines, between;
    struct wrap wrap = { .r = r,
                         .break_words = !is_given(call->args[1]) || jinja_truth(call->args[1]),
                         .break_hyphens = !is_given(call->args[3]) || jinja_truth(call->args[3]),
                         .between = { "\n", 1 } };
    TRY(jinja_integer_argument(r, call->args[0], 79, &wrap.width));
    TRY(jinja_text_argument(r, call->subject, &method.subject));
    if (is_given(call->args[2]) && !value_is(call->args[2], VALUE_NONE)) {
        TRY(jinja_text_argument(r, call->args[2], &between));
        wrap.between = value_text(between);
    }
    if (wrap.width <= 0)
        return fail(r, VALUE, "invalid width %lld (must be > 0)", (long long)wrap.width);
    TRY(jinja_method_find(VALUE_STRING, &splitlines)->run(r, &method, &lines));
    size_t begin = jinja_text_begin(r);
    for (uint32_t i = 0; i < lines.list->count; i++) {
        if (i > 0)
            TRY(jinja_add_view(r, wrap.between));
        wrap.first = true;
        TRY(wrap_paragraph(&wrap, value_text(lines.list->items[i])));
    }
    return jinja_text_end(r, begin, ret);
}
