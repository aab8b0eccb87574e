/* dtype.c - the table of element types, and the functions that look things up in it.
 *
 * The table is constant: every function here may be called from any thread. */
#include "tensor/dtype.h"

#include "base/size.h"
#include "base/status.h"

static const struct dtype_info dtype_infos[] = {
    [DTYPE_F32] = { "F32", 0, 1, 4 },
    [DTYPE_F16] = { "F16", 1, 1, 2 },
    [DTYPE_BF16] = { "BF16", 30, 1, 2 },
    [DTYPE_F64] = { "F64", 28, 1, 8 },
    [DTYPE_I8] = { "I8", 24, 1, 1 },
    [DTYPE_I16] = { "I16", 25, 1, 2 },
    [DTYPE_I32] = { "I32", 26, 1, 4 },
    [DTYPE_I64] = { "I64", 27, 1, 8 },
    [DTYPE_Q4_0] = { "Q4_0", 2, 32, 18 },
    [DTYPE_Q4_1] = { "Q4_1", 3, 32, 20 },
    [DTYPE_Q5_0] = { "Q5_0", 6, 32, 22 },
    [DTYPE_Q5_1] = { "Q5_1", 7, 32, 24 },
    [DTYPE_Q8_0] = { "Q8_0", 8, 32, 34 },
    [DTYPE_Q8_1] = { "Q8_1", 9, 32, 36 },
    [DTYPE_Q2_K] = { "Q2_K", 10, 256, 84 },
    [DTYPE_Q3_K] = { "Q3_K", 11, 256, 110 },
    [DTYPE_Q4_K] = { "Q4_K", 12, 256, 144 },
    [DTYPE_Q5_K] = { "Q5_K", 13, 256, 176 },
    [DTYPE_Q6_K] = { "Q6_K", 14, 256, 210 },
    [DTYPE_Q8_K] = { "Q8_K", 15, 256, 292 },
    [DTYPE_IQ2_XXS] = { "IQ2_XXS", 16, 256, 66 },
    [DTYPE_IQ2_XS] = { "IQ2_XS", 17, 256, 74 },
    [DTYPE_IQ2_S] = { "IQ2_S", 22, 256, 82 },
    [DTYPE_IQ3_XXS] = { "IQ3_XXS", 18, 256, 98 },
    [DTYPE_IQ3_S] = { "IQ3_S", 21, 256, 110 },
    [DTYPE_IQ1_S] = { "IQ1_S", 19, 256, 50 },
    [DTYPE_IQ1_M] = { "IQ1_M", 29, 256, 56 },
    [DTYPE_IQ4_NL] = { "IQ4_NL", 20, 32, 18 },
    [DTYPE_IQ4_XS] = { "IQ4_XS", 23, 256, 136 },
    [DTYPE_TQ1_0] = { "TQ1_0", 34, 256, 54 },
    [DTYPE_TQ2_0] = { "TQ2_0", 35, 256, 66 },
    [DTYPE_MXFP4] = { "MXFP4", 39, 32, 17 },
    [DTYPE_NVFP4] = { "NVFP4", 40, 64, 36 },
    [DTYPE_Q1_0] = { "Q1_0", 41, 128, 18 },
    [DTYPE_Q2_0] = { "Q2_0", 42, 64, 18 },
    [DTYPE_Q8_0_X8] = { "Q8_0_X8", DTYPE_NO_FILE_ID, 256, 272 },
    [DTYPE_Q6_K_X8] = { "Q6_K_X8", DTYPE_NO_FILE_ID, 2048, 1680 },
};
_Static_assert(COUNT_OF(dtype_infos) == DTYPE_COUNT, "every dtype has a row");

/* Ids that are no longer used. Files with them still exist, and "Q4_2 was withdrawn" helps their
 * owners more than "unknown type 4". */
static const struct {
    uint32_t file_id;
    const char *name;
} withdrawn_types[] = {
    { 4, "Q4_2" },      { 5, "Q4_3" },        { 31, "Q4_0_4_4" },   { 32, "Q4_0_4_8" },
    { 33, "Q4_0_8_8" }, { 36, "IQ4_NL_4_4" }, { 37, "IQ4_NL_4_8" }, { 38, "IQ4_NL_8_8" },
};

const struct dtype_info *dtype_info(enum dtype dtype)
{
    /* The cast also catches negative values, whatever type the compiler chose for the enum. */
    ASSERT((size_t)dtype < DTYPE_COUNT);
    return &dtype_infos[dtype];
}

const char *dtype_name(enum dtype dtype)
{
    return dtype_info(dtype)->name;
}

/* Not toupper: in a Turkish locale that would not find "iq4_nl". */
static char ascii_upper(char c)
{
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

static bool same_name(const char *a, const char *b)
{
    while (*a && ascii_upper(*a) == ascii_upper(*b)) {
        a++;
        b++;
    }
    return *a == '\0' && *b == '\0';
}

bool dtype_from_name(const char *name, enum dtype *ret_dtype)
{
    for (size_t i = 0; i < DTYPE_COUNT; i++) {
        if (same_name(dtype_infos[i].name, name)) {
            *ret_dtype = (enum dtype)i;
            return true;
        }
    }
    return false;
}

bool dtype_from_file_id(uint32_t file_id, enum dtype *ret_dtype)
{
    for (size_t i = 0; i < DTYPE_COUNT; i++) {
        if (dtype_infos[i].file_id == file_id && file_id != DTYPE_NO_FILE_ID) {
            *ret_dtype = (enum dtype)i;
            return true;
        }
    }
    return false;
}

const char *dtype_withdrawn_name(uint32_t file_id)
{
    for (size_t i = 0; i < COUNT_OF(withdrawn_types); i++) {
        if (withdrawn_types[i].file_id == file_id)
            return withdrawn_types[i].name;
    }
    return NULL;
}

bool dtype_row_bytes(enum dtype dtype, uint64_t element_count, uint64_t *ret_bytes)
{
    const struct dtype_info *info = dtype_info(dtype);
    if (element_count % info->block_elements != 0)
        return false;
    return size_mul(element_count / info->block_elements, info->block_bytes, ret_bytes);
}
