/* gguf_build.h - GGUF files as bytes in memory, put together field by field for tests.
 *
 * Written from the format's description and not from src/gguf, so that the reader is tested against
 * something that does not share its mistakes. What is built is well-formed unless a test makes it
 * otherwise: every field is remembered under the owner and the name that messages of the reader
 * use, so that a test can find it, patch it, or cut the file inside it. */
#ifndef GRETA_TESTS_GGUF_BUILD_H
#define GRETA_TESTS_GGUF_BUILD_H

#include "base/text.h"

#include <stdint.h>

/* Ids of the format, kept apart from those in src/gguf on purpose. */
enum {
    BUILD_U8 = 0,
    BUILD_I8 = 1,
    BUILD_U16 = 2,
    BUILD_I16 = 3,
    BUILD_U32 = 4,
    BUILD_I32 = 5,
    BUILD_F32 = 6,
    BUILD_BOOL = 7,
    BUILD_STRING = 8,
    BUILD_ARRAY = 9,
    BUILD_U64 = 10,
    BUILD_I64 = 11,
    BUILD_F64 = 12,
};
enum { BUILD_TENSOR_F32 = 0, BUILD_TENSOR_F16 = 1, BUILD_TENSOR_Q8_0 = 8, BUILD_TENSOR_I8 = 24 };

#define GGUF_BUILD_ALIGNMENT 32u

/* Enough for every file that is looked into; the fields of larger ones are not remembered. */
#define GGUF_BUILD_FIELD_LIMIT 512

/* A field of the file. owner is "header", a key, or a tensor's name; name is what the reader calls
 * it: "magic", "version", "tensor_count", "metadata_kv_count", "key length", "key", "value type",
 * "array element type", "array length", "string length", "string", "value", "name length", "name",
 * "n_dims", "dims[0]", "type", "offset", "start" (the padding before the data), "data". */
struct gguf_field {
    char owner[72];
    char name[24];
    uint64_t offset;
    uint64_t bytes;
};

struct gguf_build {
    struct text text; /* the file so far; complete after gguf_build_finish */
    uint64_t entry_count;
    uint64_t tensor_count;
    uint64_t data_bytes; /* declared by tensors so far, padded */
    uint32_t alignment;
    struct gguf_field fields[GGUF_BUILD_FIELD_LIMIT];
    size_t field_count;
};

/* All of it is an ASSERT where it fails: a test without memory has nothing to say. */
void gguf_build_init(struct gguf_build *build, uint32_t version);
void gguf_build_release(struct gguf_build *build);

/* Any scalar but a string; bits are cut to the type's width. */
void gguf_build_number(struct gguf_build *build, const char *key, uint32_t type, uint64_t bits);
void gguf_build_string(struct gguf_build *build, const char *key, const char *value);
/* As above; key and value may hold any bytes. */
void gguf_build_raw_string(struct gguf_build *build, struct text_view key, struct text_view value);
/* elements as gguf_build_number takes them. */
void gguf_build_array(struct gguf_build *build, const char *key, uint32_t element_type,
                      const uint64_t *elements, uint64_t count);
void gguf_build_strings(struct gguf_build *build, const char *key, const char *const *strings,
                        uint64_t count);
/* Sets general.alignment and follows it. Before the first tensor. */
void gguf_build_align(struct gguf_build *build, uint32_t alignment);

/* Declares a tensor of `bytes` bytes at the next aligned offset. After the last entry. */
void gguf_build_tensor(struct gguf_build *build, const char *name, uint32_t rank,
                       const uint64_t *dims, uint32_t type, uint64_t bytes);
void gguf_build_raw_tensor(struct gguf_build *build, struct text_view name, uint32_t rank,
                           const uint64_t *dims, uint32_t type, uint64_t bytes);

/* Writes the counts, the padding and the data: byte i of the data section is gguf_build_data(i). */
void gguf_build_finish(struct gguf_build *build);
uint8_t gguf_build_data(uint64_t index);

/* ASSERTs that there is such a field. Borrowed. */
const struct gguf_field *gguf_build_find(const struct gguf_build *build, const char *owner,
                                         const char *name);
/* Overwrites a field of 1, 2, 4 or 8 bytes, little endian. */
void gguf_build_patch(struct gguf_build *build, const char *owner, const char *name,
                      uint64_t value);

/* Little-endian numbers, for tests that lay out bytes themselves. */
void gguf_build_add(struct text *text, uint64_t value, uint32_t bytes);

/* ---- Whole files ---------------------------------------------------------------------------- */

/* Every value type, an array of each, tensors of rank 0 to 4 and an empty one. */
void gguf_build_specimen(struct gguf_build *build, uint32_t version);

/* The smallest complete llama model: one layer, four tokens. */
void gguf_build_llama(struct gguf_build *build);

#endif
