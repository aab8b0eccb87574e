/* vocabulary.c - see vocabulary.h. Control tokens stand for no text; those that end it are listed
 * apart. */
#include "grammar/vocabulary.h"

#include "base/array.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* All tokens together; the largest real vocabularies have 3 MB. */
#define BYTES_LIMIT (1u << 28)

static struct text_view bytes_of(const struct grammar_vocabulary *vocabulary, uint32_t id)
{
    uint32_t start = vocabulary->starts[id];
    return (struct text_view){ vocabulary->bytes.bytes + start,
                               vocabulary->starts[id + 1] - start };
}

/* ---- Bytes of tokens ------------------------------------------------------------------------ */

static enum status read_tokens(struct grammar_vocabulary *vocabulary, struct error *err)
{
    const struct tokenizer *tokenizer = vocabulary->tokenizer;
    for (uint32_t id = 0; id < vocabulary->token_count; id++) {
        uint32_t start = (uint32_t)vocabulary->bytes.length;
        vocabulary->starts[id] = start;
        if (tokenizer_is_end(tokenizer, id))
            vocabulary->ends[vocabulary->end_count++] = id;
        else if (tokenizer_token_type(tokenizer, id) != TOKENIZER_UNUSED)
            tokenizer_token_bytes(tokenizer, id, 0, &vocabulary->bytes);
        if (vocabulary->bytes.failed)
            return error_set(err, STATUS_NO_MEMORY, "no memory for the bytes of tokens");
        if (vocabulary->bytes.length > BYTES_LIMIT)
            return error_set(err, STATUS_LIMIT,
                             "vocabulary: expected at most %u bytes of tokens, found more",
                             BYTES_LIMIT);
        uint32_t length = (uint32_t)vocabulary->bytes.length - start;
        if (length)
            vocabulary->order[vocabulary->order_count++] = id;
        if (length > vocabulary->longest_bytes)
            vocabulary->longest_bytes = length;
    }
    vocabulary->starts[vocabulary->token_count] = (uint32_t)vocabulary->bytes.length;
    return STATUS_OK;
}

struct sorted_token {
    struct text_view bytes;
    uint32_t id;
};

static int by_bytes(const void *a_item, const void *b_item)
{
    const struct sorted_token *a = a_item, *b = b_item;
    bool a_is_long = a->bytes.length > TRIE_SHORT_BYTES;
    if (a_is_long != (b->bytes.length > TRIE_SHORT_BYTES))
        return a_is_long ? 1 : -1;
    size_t shorter = a->bytes.length < b->bytes.length ? a->bytes.length : b->bytes.length;
    int order = memcmp(a->bytes.bytes, b->bytes.bytes, shorter);
    if (order || a->bytes.length == b->bytes.length)
        return order ? order : a->id < b->id ? -1 : a->id > b->id;
    return a->bytes.length < b->bytes.length ? -1 : 1;
}

static enum status sort_tokens(struct grammar_vocabulary *vocabulary, struct error *err)
{
    uint32_t count = vocabulary->order_count;
    struct sorted_token *tokens = calloc(count + 1u, sizeof(*tokens));
    if (!tokens)
        return error_set(err, STATUS_NO_MEMORY, "no memory to sort a vocabulary");
    for (uint32_t i = 0; i < count; i++)
        tokens[i] = (struct sorted_token){ bytes_of(vocabulary, vocabulary->order[i]),
                                           vocabulary->order[i] };
    qsort(tokens, count, sizeof(*tokens), by_bytes);
    for (uint32_t i = 0; i < count; i++)
        vocabulary->order[i] = tokens[i].id;
    free(tokens);
    return STATUS_OK;
}

/* ---- The trie ------------------------------------------------------------------------------- */

/* Bytes that a token has in common with the one before it in order. */
static uint32_t common_bytes(const struct grammar_vocabulary *vocabulary, const struct trie *trie,
                             uint32_t place)
{
    if (place == 0)
        return 0;
    struct text_view a = bytes_of(vocabulary, trie->ids[place - 1]);
    struct text_view b = bytes_of(vocabulary, trie->ids[place]);
    uint32_t common = 0;
    while (common < a.length && common < b.length && a.bytes[common] == b.bytes[common])
        common++;
    return common;
}

static uint32_t count_nodes(const struct grammar_vocabulary *vocabulary, const struct trie *trie)
{
    uint32_t count = 1;
    for (uint32_t i = 0; i < trie->id_count; i++)
        count += (uint32_t)bytes_of(vocabulary, trie->ids[i]).length -
                 common_bytes(vocabulary, trie, i);
    return count;
}

static void close_nodes(struct trie *trie, const uint32_t *path, uint32_t *depth, uint32_t to)
{
    while (*depth > to)
        trie->nodes[path[(*depth)--]].skip = trie->node_count;
}

static void add_nodes(const struct grammar_vocabulary *vocabulary, struct trie *trie,
                      uint32_t *path)
{
    uint32_t depth = 0;
    trie->nodes[0] = (struct trie_node){ 0 };
    trie->node_count = 1;
    for (uint32_t i = 0; i < trie->id_count; i++) {
        struct text_view bytes = bytes_of(vocabulary, trie->ids[i]);
        close_nodes(trie, path, &depth, common_bytes(vocabulary, trie, i));
        while (depth < bytes.length) {
            path[++depth] = trie->node_count;
            trie->nodes[trie->node_count++] = (struct trie_node){
                .first_token = i, .depth = (uint16_t)depth, .byte = (uint8_t)bytes.bytes[depth - 1]
            };
        }
        if (bytes.length > trie->longest_bytes)
            trie->longest_bytes = (uint32_t)bytes.length;
    }
    close_nodes(trie, path, &depth, 0);
    trie->nodes[0].skip = trie->node_count;
    trie->nodes[trie->node_count] = (struct trie_node){ .first_token = trie->id_count };
}

static enum status build_trie(const struct grammar_vocabulary *vocabulary, struct trie *trie,
                              struct error *err)
{
    trie->nodes = calloc(count_nodes(vocabulary, trie) + 1u, sizeof(*trie->nodes));
    uint32_t *path = calloc(vocabulary->longest_bytes + 1u, sizeof(*path));
    if (trie->nodes && path)
        add_nodes(vocabulary, trie, path);
    free(path);
    return trie->node_count
               ? STATUS_OK
               : error_set(err, STATUS_NO_MEMORY, "no memory for the trie of a vocabulary");
}

static enum status build_tries(struct grammar_vocabulary *vocabulary, struct error *err)
{
    uint32_t short_count = 0;
    TRY(sort_tokens(vocabulary, err));
    while (short_count < vocabulary->order_count &&
           bytes_of(vocabulary, vocabulary->order[short_count]).length <= TRIE_SHORT_BYTES)
        short_count++;
    vocabulary->tries[TRIE_SHORT] = (struct trie){ vocabulary->order, short_count, 0, NULL, 0 };
    vocabulary->tries[TRIE_LONG] = (struct trie){ vocabulary->order + short_count,
                                                  vocabulary->order_count - short_count, 0, NULL,
                                                  0 };
    for (size_t kind = 0; kind < TRIE_COUNT; kind++)
        TRY(build_trie(vocabulary, &vocabulary->tries[kind], err));
    return STATUS_OK;
}

/* ---- Life ----------------------------------------------------------------------------------- */

enum status grammar_vocabulary_create(const struct tokenizer *tokenizer,
                                      struct grammar_vocabulary **ret_vocabulary, struct error *err)
{
    uint32_t count = tokenizer_info(tokenizer)->token_count;
    struct grammar_vocabulary *vocabulary = calloc(1, sizeof(*vocabulary));
    if (!vocabulary)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a vocabulary");
    *vocabulary = (struct grammar_vocabulary){ .tokenizer = tokenizer, .token_count = count };
    text_init(&vocabulary->bytes);
    vocabulary->starts = calloc((size_t)count + 1, sizeof(*vocabulary->starts));
    vocabulary->order = calloc((size_t)count + 1, sizeof(*vocabulary->order));
    vocabulary->ends = calloc((size_t)count + 1, sizeof(*vocabulary->ends));
    enum status status = STATUS_OK;
    if (!vocabulary->starts || !vocabulary->order || !vocabulary->ends)
        status = error_set(err, STATUS_NO_MEMORY,
                           "no memory for a vocabulary of %" PRIu32 " tokens", count);
    if (!status)
        status = read_tokens(vocabulary, err);
    if (!status)
        status = build_tries(vocabulary, err);
    if (status)
        grammar_vocabulary_destroy(vocabulary);
    else
        *ret_vocabulary = vocabulary;
    return status;
}

void grammar_vocabulary_destroy(struct grammar_vocabulary *vocabulary)
{
    if (!vocabulary)
        return;
    text_release(&vocabulary->bytes);
    free(vocabulary->starts);
    free(vocabulary->order);
    for (size_t kind = 0; kind < TRIE_COUNT; kind++)
        free(vocabulary->tries[kind].nodes);
    free(vocabulary->ends);
    free(vocabulary);
}
