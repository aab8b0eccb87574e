/* merge.c - merges neighbouring symbols, the best pair first, until no pair is left.
 *
 * Symbols are a doubly linked list over the text; candidates wait in a heap. A symbol grows in
 * place and to the right, so a candidate is out of date exactly when its pair no longer has as many
 * bytes as before. Every merge removes one symbol and adds at most two candidates: n log n for n
 * symbols, however they merge. */
#include "tokenizer/tokenizer_impl.h"

#include "base/array.h"

enum status tokenizer_symbol_append(struct tokenizer_work *work, uint32_t length, uint32_t id,
                                    struct error *err)
{
    struct tokenizer_symbol *symbols = array_reserve(work->symbols, work->symbol_count,
                                                     &work->symbol_capacity, sizeof(*symbols));
    if (!symbols)
        return error_set(err, STATUS_NO_MEMORY, "no memory to split a text of this length");
    work->symbols = symbols;
    uint32_t at = (uint32_t)work->symbol_count++;
    symbols[at] = (struct tokenizer_symbol){
        .length = length, .previous = at - 1, .next = TOKENIZER_NO_SYMBOL, .id = id
    };
    if (at == 0) {
        symbols[at].previous = TOKENIZER_NO_SYMBOL;
        return STATUS_OK;
    }
    symbols[at].start = symbols[at - 1].start + symbols[at - 1].length;
    symbols[at - 1].next = at;
    return STATUS_OK;
}

static enum status propose(struct tokenizer_work *work, const char *text,
                           tokenizer_can_merge can_merge, uint32_t left_index, struct error *err)
{
    if (left_index == TOKENIZER_NO_SYMBOL)
        return STATUS_OK;
    const struct tokenizer_symbol *left = &work->symbols[left_index];
    if (left->next == TOKENIZER_NO_SYMBOL)
        return STATUS_OK;
    const struct tokenizer_symbol *right = &work->symbols[left->next];
    struct tokenizer_heap_item item = { .at = left_index, .length = left->length + right->length };
    if (can_merge(work->tokenizer, text, left, right, &item) &&
        !tokenizer_heap_push(&work->heap, item))
        return error_set(err, STATUS_NO_MEMORY, "no memory to merge a text of this length");
    return STATUS_OK;
}

enum status tokenizer_merge(struct tokenizer_work *work, const char *text,
                            tokenizer_can_merge can_merge, struct error *err)
{
    struct tokenizer_heap_item item;
    work->heap.count = 0;
    for (size_t i = 0; i + 1 < work->symbol_count; i++)
        TRY(propose(work, text, can_merge, (uint32_t)i, err));
    while (tokenizer_heap_pop(&work->heap, &item)) {
        struct tokenizer_symbol *left = &work->symbols[item.at];
        if (left->length == 0 || left->next == TOKENIZER_NO_SYMBOL)
            continue;
        struct tokenizer_symbol *right = &work->symbols[left->next];
        if (left->length + right->length != item.length)
            continue;
        left->length = item.length;
        left->id = item.id;
        left->next = right->next;
        right->length = 0;
        if (left->next != TOKENIZER_NO_SYMBOL)
            work->symbols[left->next].previous = item.at;
        TRY(propose(work, text, can_merge, left->previous, err));
        TRY(propose(work, text, can_merge, item.at, err));
    }
    return STATUS_OK;
}
