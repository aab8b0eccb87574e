/* special.c - finds special tokens as literal text, before anything else is tokenized.
 *
 * The rule: all occurrences of the longest special token from left to right, then those of the next
 * one in what is left, and so on. One pass over the text does that: every position that begins a
 * special token waits in a heap with the longest one that fits there. Matches leave the heap
 * longest first, so a new match overlaps an earlier one exactly if its first or last byte is taken.
 */
#include "tokenizer/tokenizer_impl.h"

#include "base/array.h"
#include "base/size.h"

#include <inttypes.h>
#include <string.h>

/* ---- The table ------------------------------------------------------------------------------ */

static int by_text(const void *a_item, const void *b_item)
{
    const struct tokenizer_special_text *a = a_item, *b = b_item;
    size_t shorter = min_u64(a->text.length, b->text.length);
    int order = memcmp(a->text.bytes, b->text.bytes, shorter);
    if (order)
        return order;
    if (a->text.length != b->text.length)
        return a->text.length < b->text.length ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static int by_length(const void *a_item, const void *b_item)
{
    const struct tokenizer_special_text *a = a_item, *b = b_item;
    if (a->text.length != b->text.length)
        return a->text.length > b->text.length ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

static bool is_special(const struct tokenizer_symbol_text *token)
{
    return token->text.length > 0 &&
           (token->type == TOKENIZER_CONTROL || token->type == TOKENIZER_UNKNOWN ||
            token->type == TOKENIZER_USER_DEFINED);
}

/* Makes equal texts one entry, sorted by text. Returns how many are left. */
static size_t join_equal(struct tokenizer_special_text *specials, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        struct tokenizer_special_text *last = kept ? &specials[kept - 1] : NULL;
        if (!last || !text_view_equal(last->text, specials[i].text))
            specials[kept++] = specials[i];
        else if (last->user_id == TOKENIZER_NO_ID)
            last->user_id = specials[i].user_id;
    }
    return kept;
}

enum status tokenizer_special_load(struct tokenizer *tokenizer, struct error *err)
{
    size_t count = 0, filled = 0;
    for (uint32_t i = 0; i < tokenizer->info.token_count; i++)
        count += is_special(&tokenizer->symbols[i]);
    if (count == 0)
        return STATUS_OK;
    struct tokenizer_special_text *specials = calloc(count, sizeof(*specials));
    if (!specials)
        return error_set(err, STATUS_NO_MEMORY, "no memory for %zu special tokens", count);
    tokenizer->specials = specials;
    for (uint32_t i = 0; i < tokenizer->info.token_count; i++) {
        const struct tokenizer_symbol_text *token = &tokenizer->symbols[i];
        bool user_defined = token->type == TOKENIZER_USER_DEFINED;
        if (is_special(token))
            specials[filled++] = (struct tokenizer_special_text){
                .text = token->text, .id = i, .user_id = user_defined ? i : TOKENIZER_NO_ID
            };
    }
    qsort(specials, count, sizeof(*specials), by_length);
    for (size_t i = 0; i < count; i++)
        specials[i].order = (uint32_t)i;
    qsort(specials, count, sizeof(*specials), by_text);
    tokenizer->special_count = join_equal(specials, count);
    for (size_t byte = 0, at = 0; byte <= 256; byte++) {
        while (at < tokenizer->special_count && (uint8_t)specials[at].text.bytes[0] < byte)
            at++;
        tokenizer->special_first[byte] = (uint32_t)at;
    }
    return STATUS_OK;
}

/* ---- Searching ------------------------------------------------------------------------------ */

/* Among specials [from, to), which agree up to depth: the first whose byte at depth is not below
 * `byte`. One that ends there comes before all others. */
static size_t first_not_below(const struct tokenizer *tokenizer, size_t from, size_t to,
                              size_t depth, unsigned byte)
{
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        struct text_view text = tokenizer->specials[middle].text;
        if (text.length <= depth || (uint8_t)text.bytes[depth] < byte)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

/* The longest special token that text begins with, or NULL. */
static const struct tokenizer_special_text *longest_at(const struct tokenizer *tokenizer,
                                                       struct text_view text, bool parse_special)
{
    const struct tokenizer_special_text *longest = NULL;
    unsigned byte = (uint8_t)text.bytes[0];
    size_t from = tokenizer->special_first[byte], to = tokenizer->special_first[byte + 1];
    for (size_t depth = 1; from < to; depth++) {
        /* If one of those that agree so far ends here, it comes first. */
        const struct tokenizer_special_text *first = &tokenizer->specials[from];
        if (first->text.length == depth && (parse_special || first->user_id != TOKENIZER_NO_ID))
            longest = first;
        if (depth == text.length)
            break;
        byte = (uint8_t)text.bytes[depth];
        from = first_not_below(tokenizer, from, to, depth, byte);
        to = first_not_below(tokenizer, from, to, depth, byte + 1);
    }
    return longest;
}

static enum status propose(struct tokenizer_work *work, struct text_view text, size_t start,
                           size_t end, bool parse_special, struct error *err)
{
    struct text_view rest = { text.bytes + start, end - start };
    const struct tokenizer_special_text *found = longest_at(work->tokenizer, rest, parse_special);
    if (!found)
        return STATUS_OK;
    struct tokenizer_heap_item item = { .priority = found->order,
                                        .at = (uint32_t)start,
                                        .length = (uint32_t)found->text.length,
                                        .id = parse_special ? found->id : found->user_id };
    if (!tokenizer_heap_push(&work->heap, item))
        return error_set(err, STATUS_NO_MEMORY, "no memory for the special tokens of a text");
    return STATUS_OK;
}

static int by_start(const void *a_item, const void *b_item)
{
    const struct tokenizer_special_match *a = a_item, *b = b_item;
    return a->start < b->start ? -1 : a->start > b->start;
}

/* Takes candidates, longest first. taken: one byte per byte of the text. */
static enum status choose(struct tokenizer_work *work, struct text_view text, bool parse_special,
                          char *taken, struct tokenizer_special_match **matches, size_t *count,
                          struct error *err)
{
    size_t capacity = 0;
    struct tokenizer_heap_item item;
    while (tokenizer_heap_pop(&work->heap, &item)) {
        if (taken[item.at])
            continue;
        if (taken[item.at + item.length - 1]) {
            const char *first = memchr(taken + item.at, 1, item.length);
            TRY(propose(work, text, item.at, (size_t)(first - taken), parse_special, err));
            continue;
        }
        struct tokenizer_special_match *larger = array_reserve(*matches, *count, &capacity,
                                                               sizeof(*larger));
        if (!larger)
            return error_set(err, STATUS_NO_MEMORY, "no memory for the special tokens of a text");
        *matches = larger;
        larger[(*count)++] = (struct tokenizer_special_match){ item.at, item.length, item.id };
        memset(taken + item.at, 1, item.length);
    }
    if (*count)
        qsort(*matches, *count, sizeof(**matches), by_start);
    return STATUS_OK;
}

enum status tokenizer_special_split(struct tokenizer_work *work, struct text_view text,
                                    bool parse_special,
                                    struct tokenizer_special_match **ret_matches, size_t *ret_count,
                                    struct error *err)
{
    const struct tokenizer *tokenizer = work->tokenizer;
    struct tokenizer_special_match *matches = NULL;
    size_t count = 0;
    work->heap.count = 0;
    for (size_t at = 0; at < text.length && tokenizer->special_count; at++) {
        unsigned byte = (uint8_t)text.bytes[at];
        if (tokenizer->special_first[byte] != tokenizer->special_first[byte + 1])
            TRY(propose(work, text, at, text.length, parse_special, err));
    }
    if (work->heap.count) {
        char *taken = calloc(1, text.length);
        enum status status = taken ? choose(work, text, parse_special, taken, &matches, &count, err)
                                   : error_set(err, STATUS_NO_MEMORY,
                                               "no memory for the special tokens of a text");
        free(taken);
        if (status) {
            free(matches);
            return status;
        }
    }
    *ret_matches = matches;
    *ret_count = count;
    return STATUS_OK;
}
