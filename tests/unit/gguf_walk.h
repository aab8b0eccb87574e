/* gguf_walk.h - an independent look at the bytes of a written file: none of the reader's code and
 * none of its checks, just the fields in the order in which the format has them. */
#ifndef GRETA_TESTS_GGUF_WALK_H
#define GRETA_TESTS_GGUF_WALK_H

#include "base/bytes.h"
#include "gguf_build.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

#define WALK_TENSOR_LIMIT 16

struct walked_tensor {
    char name[64];
    uint32_t rank, type;
    uint64_t dims[4], offset;
};

/* The fields of a version 3 file whose values are u32, f32, bool, string or arrays of those. */
struct walked {
    uint64_t tensor_count, entry_count;
    char keys[512]; /* joined by spaces, in file order */
    struct walked_tensor tensors[WALK_TENSOR_LIMIT];
    uint64_t infos_end; /* where the padding begins */
};

static inline const uint8_t *walk_value(const uint8_t *at, uint32_t type)
{
    switch (type) {
    case BUILD_BOOL:
        return at + 1;
    case BUILD_STRING:
        return at + 8 + bytes_load_u64(at);
    case BUILD_ARRAY: {
        uint32_t element_type = bytes_load_u32(at);
        uint64_t count = bytes_load_u64(at + 4);
        at += 12;
        for (uint64_t i = 0; i < count; i++)
            at = walk_value(at, element_type);
        return at;
    }
    default:
        return at + 4;
    }
}

static inline void walk(const struct text *file, struct walked *ret)
{
    const uint8_t *start = (const uint8_t *)text_get(file);
    assert_memory_equal(start, "GGUF\3\0\0\0", 8);
    *ret = (struct walked){ .tensor_count = bytes_load_u64(start + 8),
                            .entry_count = bytes_load_u64(start + 16) };
    const uint8_t *at = start + 24;
    for (uint64_t i = 0; i < ret->entry_count; i++) {
        uint64_t length = bytes_load_u64(at);
        size_t used = strlen(ret->keys);
        snprintf(ret->keys + used, sizeof(ret->keys) - used, "%s%.*s", used ? " " : "", (int)length,
                 (const char *)at + 8);
        at += 8 + length;
        at = walk_value(at + 4, bytes_load_u32(at));
    }
    assert_true(ret->tensor_count <= WALK_TENSOR_LIMIT);
    for (uint64_t i = 0; i < ret->tensor_count; i++) {
        struct walked_tensor *tensor = &ret->tensors[i];
        uint64_t length = bytes_load_u64(at);
        snprintf(tensor->name, sizeof(tensor->name), "%.*s", (int)length, (const char *)at + 8);
        at += 8 + length;
        tensor->rank = bytes_load_u32(at);
        at += 4;
        for (uint32_t d = 0; d < tensor->rank; d++, at += 8)
            tensor->dims[d] = bytes_load_u64(at);
        tensor->type = bytes_load_u32(at);
        tensor->offset = bytes_load_u64(at + 4);
        at += 12;
    }
    ret->infos_end = (uint64_t)(at - start);
}

#endif
