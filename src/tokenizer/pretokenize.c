/* pretokenize.c - divides text into the pieces that are merged one by one, with PCRE2.
 *
 * The patterns are part of greta, the text may come from anyone: matching is bounded in steps and
 * in memory, and bytes that are not UTF-8 were cut out before. Threads share compiled patterns;
 * what a match needs belongs to the call. */
#include "tokenizer/tokenizer_impl.h"

#include "base/array.h"

#include <inttypes.h>
#include <string.h>

#define KEY_PRE "tokenizer.ggml.pre"

/* Backtracking steps per byte of text; the patterns need two or three. */
#define STEPS_PER_BYTE 16u
#define STEPS_AT_LEAST 100000u
#define HEAP_LIMIT_KIB 65536u

/* ---- Rules ---------------------------------------------------------------------------------- */

static enum status unknown_rule(const struct gguf_file *file, struct text_view name,
                                struct error *err)
{
    char shown[64];
    struct text names;
    text_init(&names);
    struct text_view known = tokenizer_pre_name(0);
    for (size_t i = 1; known.bytes; known = tokenizer_pre_name(i++))
        text_addf(&names, "%s%.*s", i > 1 ? ", " : "", (int)known.length, known.bytes);
    enum status status = error_set(
        err, STATUS_UNSUPPORTED, "%s: " KEY_PRE ": expected one of %s; found '%s'", gguf_path(file),
        text_get(&names), text_printable(name, shown, sizeof(shown)));
    text_release(&names);
    return status;
}

static enum status compile(struct tokenizer *tokenizer, const char *pattern, struct error *err)
{
    int code;
    PCRE2_SIZE offset;
    pcre2_code *compiled = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                                         PCRE2_UTF | PCRE2_UCP, &code, &offset, NULL);
    if (!compiled) {
        char words[128] = "";
        pcre2_get_error_message(code, (PCRE2_UCHAR *)words, sizeof(words));
        return error_set(err, code == PCRE2_ERROR_NOMEMORY ? STATUS_NO_MEMORY : STATUS_UNSUPPORTED,
                         "cannot compile the splitting rule %s: %s at %zu of '%s'",
                         tokenizer->info.pre, words, offset, pattern);
    }
    /* If the system forbids code made at run time, the interpreter does the same, more slowly. */
    (void)pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);
    tokenizer->patterns[tokenizer->pattern_count++] = compiled;
    return STATUS_OK;
}

enum status tokenizer_pretokenize_load(struct tokenizer *tokenizer, const struct gguf_file *file,
                                       struct error *err)
{
    struct text_view name = text_view_of("default");
    tokenizer->info.pre_missing = gguf_find(file, KEY_PRE) == NULL;
    if (!tokenizer->info.pre_missing)
        TRY(gguf_get_text(file, KEY_PRE, &name, err));
    const struct tokenizer_rule *rule = tokenizer_rule_find(name);
    if (!rule)
        return unknown_rule(file, name, err);
    tokenizer->info.pre = rule->name;
    tokenizer->info.add_bos = rule->add_bos;
    tokenizer->ignore_merges = rule->ignore_merges;
    for (size_t i = 0; i < TOKENIZER_PATTERN_LIMIT && rule->patterns[i]; i++)
        TRY(compile(tokenizer, rule->patterns[i], err));
    return STATUS_OK;
}

/* ---- Splitting ------------------------------------------------------------------------------ */

static enum status add_piece(struct tokenizer_pieces *pieces, size_t start, size_t end,
                             struct error *err)
{
    if (start == end)
        return STATUS_OK;
    struct tokenizer_piece *items = array_reserve(pieces->items, pieces->count, &pieces->capacity,
                                                  sizeof(*items));
    if (!items)
        return error_set(err, STATUS_NO_MEMORY, "no memory to split a text of this length");
    pieces->items = items;
    items[pieces->count++] = (struct tokenizer_piece){ (uint32_t)start, (uint32_t)(end - start) };
    return STATUS_OK;
}

static enum status begin(struct tokenizer_work *work, size_t text_bytes, struct error *err)
{
    if (!work->match_data)
        work->match_data = pcre2_match_data_create(1, NULL);
    if (!work->match_context)
        work->match_context = pcre2_match_context_create(NULL);
    if (!work->match_data || !work->match_context)
        return error_set(err, STATUS_NO_MEMORY, "no memory to match patterns");
    pcre2_set_match_limit(work->match_context,
                          STEPS_AT_LEAST + STEPS_PER_BYTE * (uint32_t)text_bytes);
    pcre2_set_heap_limit(work->match_context, HEAP_LIMIT_KIB);
    return STATUS_OK;
}

/* The next match at or after `from`; *ret_end is 0 if there is none. */
static enum status match(struct tokenizer_work *work, const pcre2_code *pattern,
                         struct text_view piece, size_t from, size_t *ret_start, size_t *ret_end,
                         struct error *err)
{
    uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY | work->match_options;
    PCRE2_SPTR subject = (PCRE2_SPTR)piece.bytes;
    int result = pcre2_match(pattern, subject, piece.length, from, options, work->match_data,
                             work->match_context);
    /* Compiled patterns have a small stack; that of the interpreter grows. */
    if (result == PCRE2_ERROR_JIT_STACKLIMIT)
        result = pcre2_match(pattern, subject, piece.length, from, options | PCRE2_NO_JIT,
                             work->match_data, work->match_context);
    *ret_end = 0;
    if (result == PCRE2_ERROR_NOMATCH)
        return STATUS_OK;
    if (result < 0) {
        char words[128] = "";
        pcre2_get_error_message(result, (PCRE2_UCHAR *)words, sizeof(words));
        return error_set(err, STATUS_LIMIT, "cannot split a piece of %zu bytes by the rule %s: %s",
                         piece.length, work->tokenizer->info.pre, words);
    }
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(work->match_data);
    *ret_start = ends[0];
    *ret_end = ends[1];
    return STATUS_OK;
}

/* Adds the matches and the text between them. A pattern sees nothing outside of the piece. */
static enum status split_piece(struct tokenizer_work *work, const pcre2_code *pattern,
                               struct text_view text, struct tokenizer_piece whole,
                               struct error *err)
{
    struct text_view piece = { text.bytes + whole.start, whole.length };
    size_t at = 0;
    while (at < piece.length) {
        size_t start = 0, end;
        TRY(match(work, pattern, piece, at, &start, &end, err));
        if (end == 0)
            break;
        ASSERT(start >= at && end > start && end <= piece.length);
        TRY(add_piece(&work->pieces, whole.start + at, whole.start + start, err));
        TRY(add_piece(&work->pieces, whole.start + start, whole.start + end, err));
        at = end;
    }
    return add_piece(&work->pieces, whole.start + at, whole.start + piece.length, err);
}

enum status tokenizer_pretokenize(struct tokenizer_work *work, struct text_view text,
                                  struct error *err)
{
    const struct tokenizer *tokenizer = work->tokenizer;
    TRY(begin(work, text.length, err));
    work->pieces.count = 0;
    TRY(add_piece(&work->pieces, 0, text.length, err));
    for (size_t i = 0; i < tokenizer->pattern_count; i++) {
        struct tokenizer_pieces before = work->pieces;
        work->pieces = work->pieces_before;
        work->pieces_before = before;
        work->pieces.count = 0;
        for (size_t j = 0; j < before.count; j++)
            TRY(split_piece(work, tokenizer->patterns[i], text, before.items[j], err));
    }
    return STATUS_OK;
}
