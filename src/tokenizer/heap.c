/* heap.c - a binary heap of candidates, best first. */
#include "tokenizer/tokenizer_impl.h"

#include "base/array.h"

void tokenizer_heap_release(struct tokenizer_heap *heap)
{
    free(heap->items);
    *heap = (struct tokenizer_heap){ 0 };
}

static bool is_before(const struct tokenizer_heap_item *a, const struct tokenizer_heap_item *b)
{
    return ((uint64_t)a->priority << 32 | a->at) < ((uint64_t)b->priority << 32 | b->at);
}

bool tokenizer_heap_push(struct tokenizer_heap *heap, struct tokenizer_heap_item item)
{
    struct tokenizer_heap_item *items = array_reserve(heap->items, heap->count, &heap->capacity,
                                                      sizeof(*items));
    if (!items)
        return false;
    heap->items = items;
    size_t at = heap->count++;
    while (at > 0 && is_before(&item, &items[(at - 1) / 2])) {
        items[at] = items[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    items[at] = item;
    return true;
}

bool tokenizer_heap_pop(struct tokenizer_heap *heap, struct tokenizer_heap_item *ret)
{
    struct tokenizer_heap_item *items = heap->items;
    if (heap->count == 0)
        return false;
    *ret = items[0];
    struct tokenizer_heap_item moved = items[--heap->count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count && is_before(&items[child + 1], &items[child]))
            child++;
        if (!is_before(&items[child], &moved))
            break;
        items[at] = items[child];
        at = child;
    }
    items[at] = moved;
    return true;
}
