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
static uint32_t common_bytes(const struct grammar_vocabulary *vocabulary, uint32_t place)
{
    if (place == 0)
        return 0;
    struct text_view a = bytes_of(vocabulary, vocabulary->order[place - 1]);
    struct text_view b = bytes_of(vocabulary, vocabulary->order[place]);
    uint32_t common = 0;
    while (common < a.length && common < b.length && a.bytes[common] == b.bytes[common])
        common++;
    return common;
}

static uint32_t count_nodes(const struct grammar_vocabulary *vocabulary)
{
    uint32_t count = 1;
    for (uint32_t i = 0; i < vocabulary->order_count; i++)
        count += (uint32_t)bytes_of(vocabulary, vocabulary->order[i]).length -
                 common_bytes(vocabulary, i);
    return count;
}

static void close_nodes(struct grammar_vocabulary *vocabulary, const uint32_t *path,
                        uint32_t *depth, uint32_t to)
{
    while (*depth > to)
        vocabulary->nodes[path[(*depth)--]].skip = vocabulary->node_count;
}

static void add_nodes(struct grammar_vocabulary *vocabulary, uint32_t *path)
{
    uint32_t depth = 0;
    vocabulary->nodes[0] = (struct trie_node){ 0 };
    vocabulary->node_count = 1;
    for (uint32_t i = 0; i < vocabulary->order_count; i++) {
        struct text_view bytes = bytes_of(vocabulary, vocabulary->order[i]);
        close_nodes(vocabulary, path, &depth, common_bytes(vocabulary, i));
        while (depth < bytes.length) {
            path[++depth] = vocabulary->node_count;
            vocabulary->nodes[vocabulary->node_count++] = (struct trie_node){
                .first_token = i, .depth = (uint16_t)depth, .byte = (uint8_t)bytes.bytes[depth - 1]
            };
        }
    }
    close_nodes(vocabulary, path, &depth, 0);
    vocabulary->nodes[0].skip = vocabulary->node_count;
    vocabulary->nodes[vocabulary->node_count] =
        (struct trie_node){ .first_token = vocabulary->order_count };
}

static enum status build_trie(struct grammar_vocabulary *vocabulary, struct error *err)
{
    TRY(sort_tokens(vocabulary, err));
    vocabulary->nodes = calloc(count_nodes(vocabulary) + 1u, sizeof(*vocabulary->nodes));
    uint32_t *path = calloc(vocabulary->longest_bytes + 1u, sizeof(*path));
    if (vocabulary->nodes && path)
        add_nodes(vocabulary, path);
    free(path);
    return vocabulary->node_count
               ? STATUS_OK
               : error_set(err, STATUS_NO_MEMORY, "no memory for the trie of a vocabulary");
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
        status = build_trie(vocabulary, err);
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
    free(vocabulary->nodes);
    free(vocabulary->ends);
    free(vocabulary);
}
