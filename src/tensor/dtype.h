/* dtype.h - the element types a tensor can have: names, block sizes, ids in GGUF files.
 *
 * A row of a tensor is a whole number of blocks; a block is block_elements values in block_bytes
 * bytes. Plain types have blocks of one element. */
#ifndef GRETA_TENSOR_DTYPE_H
#define GRETA_TENSOR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum dtype {
    DTYPE_F32,
    DTYPE_F16,
    DTYPE_BF16,
    DTYPE_F64,
    DTYPE_I8,
    DTYPE_I16,
    DTYPE_I32,
    DTYPE_I64,
    DTYPE_Q4_0,
    DTYPE_Q4_1,
    DTYPE_Q5_0,
    DTYPE_Q5_1,
    DTYPE_Q8_0,
    DTYPE_Q8_1, /* activations only; never in a model file */
    DTYPE_Q2_K,
    DTYPE_Q3_K,
    DTYPE_Q4_K,
    DTYPE_Q5_K,
    DTYPE_Q6_K,
    DTYPE_Q8_K, /* activations only; never in a model file */
    DTYPE_IQ2_XXS,
    DTYPE_IQ2_XS,
    DTYPE_IQ2_S,
    DTYPE_IQ3_XXS,
    DTYPE_IQ3_S,
    DTYPE_IQ1_S,
    DTYPE_IQ1_M,
    DTYPE_IQ4_NL,
    DTYPE_IQ4_XS,
    DTYPE_TQ1_0,
    DTYPE_TQ2_0,
    DTYPE_MXFP4,
    DTYPE_NVFP4,
    DTYPE_Q1_0,
    DTYPE_Q2_0,
    DTYPE_Q8_0_X8, /* only on GPUs: 256 quants of Q8_0, then their 8 scales */
    DTYPE_Q6_K_X8, /* only on GPUs: 8 Q6_K blocks: all nibbles, upper bits, scales, then d */
    DTYPE_COUNT
};

#define DTYPE_NO_FILE_ID UINT32_MAX

struct dtype_info {
    const char *name; /* as users know it: "Q4_K" */
    uint32_t file_id; /* in the tensor directory of a GGUF file, or DTYPE_NO_FILE_ID */
    uint32_t block_elements;
    uint32_t block_bytes;
};

/* Borrowed, static. dtype must be valid. */
const struct dtype_info *dtype_info(enum dtype dtype);
const char *dtype_name(enum dtype dtype);

/* Finds a type by name, upper or lower case. False if there is none. */
bool dtype_from_name(const char *name, enum dtype *ret_dtype);

/* Finds a type by its id in GGUF files. False if there is none; dtype_withdrawn_name then says
 * whether the id was used before. */
bool dtype_from_file_id(uint32_t file_id, enum dtype *ret_dtype);

/* The name of a type that was withdrawn from the format ("Q4_2"), or NULL. Static. */
const char *dtype_withdrawn_name(uint32_t file_id);

/* Bytes of a row of element_count values. False if the row is not a whole number of blocks, or has
 * more bytes than 64 bits can hold. */
bool dtype_row_bytes(enum dtype dtype, uint64_t element_count, uint64_t *ret_bytes);

#endif
