/* mix.c - the type of each tensor in a file of a given type. */
#include "convert/convert_impl.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    enum dtype dtype;   /* of most matrices */
    uint32_t file_type; /* general.file_type */
    bool upgrades;      /* attn_v and ffn_down of some layers are Q6_K */
} types[] = {
    [CONVERT_F32] = { "f32", DTYPE_F32, 0, false },
    [CONVERT_F16] = { "f16", DTYPE_F16, 1, false },
    [CONVERT_BF16] = { "bf16", DTYPE_BF16, 32, false },
    [CONVERT_Q8_0] = { "q8_0", DTYPE_Q8_0, 7, false },
    [CONVERT_Q4_0] = { "q4_0", DTYPE_Q4_0, 2, false },
    [CONVERT_Q4_K_M] = { "q4_k_m", DTYPE_Q4_K, 15, true },
    [CONVERT_Q5_K_M] = { "q5_k_m", DTYPE_Q5_K, 17, true },
    [CONVERT_Q6_K] = { "q6_k", DTYPE_Q6_K, 18, false },
    [CONVERT_MXFP4] = { "mxfp4", DTYPE_Q8_0, 38, false },
};
_Static_assert(COUNT_OF(types) == CONVERT_TYPE_COUNT, "every type has a row");

const char *convert_type_name(enum convert_type type)
{
    ASSERT((unsigned)type < CONVERT_TYPE_COUNT);
    return types[type].name;
}

uint32_t convert_file_type(enum convert_type type)
{
    return types[type].file_type;
}

bool convert_type_find(const char *name, enum convert_type *ret_type)
{
    char lower[16];
    size_t length = strlen(name);
    if (length >= sizeof(lower))
        return false;
    for (size_t i = 0; i <= length; i++)
        lower[i] = (char)tolower((unsigned char)name[i]);
    if (strcmp(lower, "q4_k") == 0 || strcmp(lower, "q5_k") == 0)
        memcpy(lower + length, "_m", sizeof("_m"));
    for (size_t i = 0; i < CONVERT_TYPE_COUNT; i++) {
        if (strcmp(lower, types[i].name) == 0) {
            *ret_type = (enum convert_type)i;
            return true;
        }
    }
    return false;
}

static bool ends_with(struct text_view name, const char *end)
{
    size_t length = strlen(end);
    return name.length >= length && memcmp(name.bytes + name.length - length, end, length) == 0;
}

bool convert_is_quantized(struct text_view name, const struct shape *shape)
{
    bool matrix = shape->dims[1] * shape->dims[2] * shape->dims[3] > 1 && shape->rank > 1;
    return matrix && ends_with(name, "weight") && !ends_with(name, "_norm.weight") &&
           !ends_with(name, "ffn_gate_inp.weight") && !text_view_is(name, "position_embd.weight") &&
           !text_view_is(name, "token_types.weight");
}

/* The layers whose attn_v and ffn_down matter most: the first and last eighth, and every third
 * between. */
static bool layer_is_upgraded(uint32_t layer, uint32_t count)
{
    uint32_t eighth = count / 8;
    return layer < eighth || layer >= 7 * count / 8 || (layer - eighth) % 3 == 2;
}

/* Reads the layer from a name such as "blk.17.attn_v.weight"; false if there is none, or one that
 * no model has. */
static bool layer_of(const char *name, uint32_t *ret_layer)
{
    char *end;
    if (strncmp(name, "blk.", 4) != 0 || !isdigit((unsigned char)name[4]))
        return false;
    unsigned long layer = strtoul(name + 4, &end, 10);
    *ret_layer = (uint32_t)layer;
    return *end == '.' && layer <= UINT32_MAX;
}

static enum dtype mixed_dtype(const struct convert_mix *mix, struct text_view name)
{
    enum dtype plain = types[mix->type].dtype;
    bool block_type = dtype_info(plain)->block_elements > 1;
    if (text_view_is(name, "output.weight") ||
        (mix->tied && text_view_is(name, "token_embd.weight")))
        return block_type && plain != DTYPE_Q8_0 ? DTYPE_Q6_K : plain;
    if (mix->type == CONVERT_MXFP4 && ends_with(name, "_exps.weight"))
        return DTYPE_MXFP4;
    if (!types[mix->type].upgrades)
        return plain;
    char text[64];
    uint32_t layer;
    snprintf(text, sizeof(text), "%.*s", (int)name.length, name.bytes);
    if (mix->type == CONVERT_Q4_K_M && ends_with(name, ".attn_qkv.weight"))
        return DTYPE_Q5_K;
    if ((ends_with(name, ".attn_v.weight") || ends_with(name, ".ffn_down.weight")) &&
        layer_of(text, &layer) && layer_is_upgraded(layer, mix->layer_count))
        return DTYPE_Q6_K;
    return plain;
}

/* The nearest type when rows are not whole blocks. */
static enum dtype fallback(enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_Q4_K:
        return DTYPE_Q5_0;
    case DTYPE_Q5_K:
        return DTYPE_Q5_1;
    case DTYPE_Q6_K:
        return DTYPE_Q8_0;
    default:
        return DTYPE_F16;
    }
}

enum dtype convert_dtype(const struct convert_mix *mix, struct text_view name,
                         const struct shape *shape)
{
    enum dtype dtype = mixed_dtype(mix, name);
    while (shape->dims[0] % dtype_info(dtype)->block_elements)
        dtype = fallback(dtype);
    return dtype;
}
