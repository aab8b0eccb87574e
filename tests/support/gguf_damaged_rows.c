/* gguf_damaged_rows.c - damage that is not one number of a series: wrong headers, keys and names,
 * alignments, values, and tensors that do not fit together. */
#include "gguf_damaged.h"

#include "base/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A small well-formed file: two entries, two tensors, 128 bytes of data. */
static void build_base(struct gguf_build *build)
{
    gguf_build_init(build, 3);
    gguf_build_string(build, "a.text", "words");
    gguf_build_number(build, "a.flag", BUILD_BOOL, 1);
    gguf_build_array(build, "a.flags", BUILD_BOOL, (const uint64_t[]){ 1, 0, 1 }, 3);
    gguf_build_tensor(build, "one", 1, (const uint64_t[]){ 16 }, BUILD_TENSOR_F32, 64);
    gguf_build_tensor(build, "two", 2, (const uint64_t[]){ 8, 2 }, BUILD_TENSOR_F32, 64);
    gguf_build_finish(build);
}

/* Finishes and shows what was built; field NULL: harmless because of `harmless`. */
static void show_with(struct gguf_build *take_build, const char *name, const char *field,
                      uint64_t at, const char *words, const char *harmless, damaged_visit visit,
                      void *context)
{
    struct damaged damaged = { .bytes = take_build->text.bytes,
                               .size = take_build->text.length,
                               .at = at,
                               .words = words,
                               .harmless = harmless };
    gguf_damaged_name(&damaged, "%s", name);
    snprintf(damaged.field, sizeof(damaged.field), "%s", field ? field : "");
    visit(context, &damaged);
    gguf_build_release(take_build);
}

static void show(struct gguf_build *take_build, const char *name, const char *field, uint64_t at,
                 const char *harmless, damaged_visit visit, void *context)
{
    show_with(take_build, name, field, at, NULL, harmless, visit, context);
}

/* ---- Headers -------------------------------------------------------------------------------- */

static void damage_headers(damaged_visit visit, void *context)
{
    static const struct {
        const char *name;
        uint32_t magic, version;
        const char *field, *words;
    } rows[] = {
        { "magic of GGML", 0x67676D6C, 3, "magic", "not a GGUF file" },
        { "magic of GGJT", 0x67676A74, 3, "magic", "not a GGUF file" },
        { "magic in capitals and small letters", 0x66554747, 3, "magic", "not a GGUF file" },
        { "magic backwards", 0x47475546, 3, "magic", "not a GGUF file" },
        { "magic of zeros", 0, 3, "magic", "not a GGUF file" },
        { "version 0", 0x46554747, 0, "version", "expected 2 or 3, found " },
        { "version 1", 0x46554747, 1, "version", "withdrawn in 2023" },
        { "version 4", 0x46554747, 4, "version", "expected 2 or 3, found " },
        { "version 2 big endian", 0x46554747, 0x02000000, "version", "big-endian" },
        { "version 3 big endian", 0x46554747, 0x03000000, "version", "big-endian" },
        { "version 2^32-1", 0x46554747, 0xFFFFFFFF, "version", "expected 2 or 3, found " },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gguf_build build;
        build_base(&build);
        gguf_build_patch(&build, "header", "magic", rows[i].magic);
        gguf_build_patch(&build, "header", "version", rows[i].version);
        show_with(&build, rows[i].name, rows[i].field,
                  gguf_build_find(&build, "header", rows[i].field)->offset, rows[i].words, NULL,
                  visit, context);
    }
}

/* Files that never were GGUF. */
static void damage_strangers(damaged_visit visit, void *context)
{
    static const struct {
        const char *name, *bytes;
        size_t size;
        uint64_t at;
        const char *field;
    } rows[] = {
        { "empty file", "", 0, 0, "magic" },
        { "one byte", "G", 1, 0, "magic" },
        { "magic alone", "GGUF", 4, 4, "version" },
        { "text file", "once upon a time there was a file", 33, 0, "magic" },
        { "zip file", "PK\3\4 and whatever follows it....", 32, 0, "magic" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gguf_build build = { 0 };
        text_add_bytes(&build.text, rows[i].bytes, rows[i].size);
        show(&build, rows[i].name, rows[i].field, rows[i].at, NULL, visit, context);
    }
}

/* ---- Keys and names ------------------------------------------------------------------------- */

static void damage_keys(damaged_visit visit, void *context)
{
    static const struct {
        const char *name;
        struct text_view key;
        uint64_t bad_at; /* in the key */
    } rows[] = {
        { "key with NUL", { "a\0b", 3 }, 1 },       { "key is NUL", { "\0", 1 }, 0 },
        { "key ends in NUL", { "ab\0", 3 }, 2 },    { "key with newline", { "a\nb", 3 }, 1 },
        { "key with escape", { "\x1B[2J", 4 }, 0 }, { "key with space", { "a b", 3 }, 1 },
        { "key with DEL", { "a\x7F", 2 }, 1 },      { "key in UTF-8", { "caf\xC3\xA9", 5 }, 3 },
        { "key of 0xFF", { "\xFF", 1 }, 0 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gguf_build build;
        gguf_build_init(&build, 3);
        gguf_build_raw_string(&build, rows[i].key, text_view_of("v"));
        gguf_build_finish(&build);
        show(&build, rows[i].name, "key", 24 + 8 + rows[i].bad_at, NULL, visit, context);
    }
    char key[65536];
    memset(key, 'k', sizeof(key));
    struct gguf_build build;
    gguf_build_init(&build, 3);
    gguf_build_raw_string(&build, (struct text_view){ key, sizeof(key) }, text_view_of("v"));
    gguf_build_finish(&build);
    show(&build, "key of 65536 bytes", "key length", 24, NULL, visit, context);
}

static void damage_names(damaged_visit visit, void *context)
{
    static const char long_name[] =
        "0123456789012345678901234567890123456789012345678901234567890123456789";
    static const struct {
        const char *name;
        struct text_view tensor;
        const char *field;
        uint64_t at; /* from the name's length */
    } rows[] = {
        { "tensor name with NUL", { "a\0b", 3 }, "name", 8 + 1 },
        { "tensor name is NUL", { "\0", 1 }, "name", 8 },
        { "tensor name ends in NUL", { "ab\0", 3 }, "name", 8 + 2 },
        { "empty tensor name", { "", 0 }, "name length", 0 },
        { "tensor name of 64 bytes", { long_name, 64 }, "name length", 0 },
        { "tensor name of 70 bytes", { long_name, 70 }, "name length", 0 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gguf_build build;
        gguf_build_init(&build, 3);
        gguf_build_raw_tensor(&build, rows[i].tensor, 1, (const uint64_t[]){ 8 }, BUILD_TENSOR_F32,
                              32);
        gguf_build_finish(&build);
        show(&build, rows[i].name, rows[i].field, 24 + rows[i].at, NULL, visit, context);
    }
}

static void damage_duplicates(damaged_visit visit, void *context)
{
    for (size_t apart = 0; apart < 3; apart++) {
        struct gguf_build build;
        char name[64], other[8];
        gguf_build_init(&build, 3);
        gguf_build_number(&build, "same", BUILD_U32, 1);
        for (size_t i = 0; i < apart; i++) {
            snprintf(other, sizeof(other), "o%zu", i);
            gguf_build_number(&build, other, BUILD_U8, 1);
        }
        uint64_t at = build.text.length + 8;
        gguf_build_string(&build, "same", "again");
        gguf_build_finish(&build);
        snprintf(name, sizeof(name), "key again %zu apart", apart);
        show(&build, name, "key", at, NULL, visit, context);

        gguf_build_init(&build, 3);
        gguf_build_tensor(&build, "same", 0, NULL, BUILD_TENSOR_F32, 4);
        for (size_t i = 0; i < apart; i++) {
            snprintf(other, sizeof(other), "o%zu", i);
            gguf_build_tensor(&build, other, 0, NULL, BUILD_TENSOR_F32, 4);
        }
        at = build.text.length + 8;
        gguf_build_tensor(&build, "same", 0, NULL, BUILD_TENSOR_F16, 2);
        gguf_build_finish(&build);
        snprintf(name, sizeof(name), "tensor again %zu apart", apart);
        show(&build, name, "name", at, NULL, visit, context);
    }
}

/* ---- Values --------------------------------------------------------------------------------- */

static void damage_flags(damaged_visit visit, void *context)
{
    static const uint8_t values[] = { 2, 0x80, 0xFF };
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        for (uint64_t element = 0; element < 4; element++) {
            struct gguf_build build;
            char name[64];
            build_base(&build);
            /* Element 3 stands for the scalar. */
            const char *owner = element == 3 ? "a.flag" : "a.flags";
            uint64_t at = gguf_build_find(&build, owner, "value")->offset + element % 3;
            build.text.bytes[at] = (char)values[i];
            snprintf(name, sizeof(name), "bool %u in %s %u", values[i], owner,
                     (unsigned)element % 3);
            show(&build, name, "bool value", at, NULL, visit, context);
        }
    }
}

static void damage_alignment(damaged_visit visit, void *context)
{
    static const struct {
        uint32_t type;
        uint64_t bits;
        const char *field, *harmless;
    } rows[] = {
        { BUILD_U32, 0, "value", NULL },
        { BUILD_U32, 3, "value", NULL },
        { BUILD_U32, 33, "value", NULL },
        { BUILD_U32, 48, "value", NULL },
        { BUILD_U32, 0xFFFFFFFF, "value", NULL },
        { BUILD_U32, 0x80000000, "start", NULL }, /* a power of two, far past the end */
        { BUILD_U32, 65536, "start", NULL },
        { BUILD_U32, 8, NULL, "offsets of multiples of 32 are multiples of 8" },
        { BUILD_U8, 32, "value type", NULL },
        { BUILD_I32, 32, "value type", NULL },
        { BUILD_U64, 32, "value type", NULL },
        { BUILD_F32, 0x42000000, "value type", NULL },
        { BUILD_BOOL, 1, "value type", NULL },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gguf_build build;
        char name[64];
        gguf_build_init(&build, 3);
        gguf_build_number(&build, "general.alignment", rows[i].type, rows[i].bits);
        gguf_build_tensor(&build, "one", 1, (const uint64_t[]){ 8 }, BUILD_TENSOR_F32, 32);
        gguf_build_finish(&build);
        bool start = rows[i].field && strcmp(rows[i].field, "start") == 0;
        uint64_t at = !rows[i].field ? 0
                      : start        ? gguf_build_find(&build, "header", "start")->offset
                              : gguf_build_find(&build, "general.alignment", rows[i].field)->offset;
        snprintf(name, sizeof(name), "alignment %" PRIu64 " of type %u", rows[i].bits,
                 (unsigned)rows[i].type);
        show(&build, name, rows[i].field, at, rows[i].harmless, visit, context);
    }
    static const uint64_t elements[] = { 32 };
    struct gguf_build build;
    gguf_build_init(&build, 3);
    gguf_build_array(&build, "general.alignment", BUILD_U32, elements, 1);
    gguf_build_finish(&build);
    uint64_t at = gguf_build_find(&build, "general.alignment", "value type")->offset;
    show(&build, "alignment as array", "value type", at, NULL, visit, context);
    gguf_build_init(&build, 3);
    gguf_build_string(&build, "general.alignment", "32");
    gguf_build_finish(&build);
    at = gguf_build_find(&build, "general.alignment", "value type")->offset;
    show(&build, "alignment as string", "value type", at, NULL, visit, context);
}

/* ---- Tensors -------------------------------------------------------------------------------- */

static void damage_shapes(damaged_visit visit, void *context)
{
    static const struct {
        const char *name;
        uint32_t rank;
        uint64_t dims[4];
        uint32_t type;
        const char *field;
    } rows[] = {
        { "dims wrap to 0", 2, { 1ull << 32, 1ull << 32 }, BUILD_TENSOR_F32, "dims" },
        { "dims wrap to 8", 2, { 8, (1ull << 61) + 1 }, BUILD_TENSOR_I8, "dims" },
        { "bytes wrap to 32", 2, { 8, (1ull << 59) + 1 }, BUILD_TENSOR_F32, "dims" },
        { "dims wrap in the middle", 3, { 1ull << 32, 1ull << 32, 1 }, BUILD_TENSOR_I8, "dims" },
        { "four large dims", 4, { 65536, 65536, 65536, 65536 }, BUILD_TENSOR_I8, "dims" },
        { "half a block", 1, { 16 }, BUILD_TENSOR_Q8_0, "dims[0]" },
        { "a block and one", 1, { 33 }, BUILD_TENSOR_Q8_0, "dims[0]" },
        { "blocks across rows", 2, { 16, 2 }, BUILD_TENSOR_Q8_0, "dims[0]" },
        { "half a block of 256", 1, { 128 }, 12, "dims[0]" },
        { "scalar of a block type", 0, { 0 }, BUILD_TENSOR_Q8_0, "dims[0]" },
        { "one element past the data", 1, { 33 }, BUILD_TENSOR_I8, "offset" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gguf_build build;
        gguf_build_init(&build, 3);
        gguf_build_tensor(&build, "one", rows[i].rank, rows[i].dims, rows[i].type, 32);
        gguf_build_finish(&build);
        const struct gguf_field *rank = gguf_build_find(&build, "one", "n_dims");
        uint64_t at = strcmp(rows[i].field, "offset")
                          ? rank->offset + 4
                          : gguf_build_find(&build, "one", "offset")->offset;
        show(&build, rows[i].name, rows[i].field, at, NULL, visit, context);
    }
}

/* The base's tensors have 64 bytes each, at 0 and 64. */
static void damage_offsets(damaged_visit visit, void *context)
{
    static const struct {
        const char *name;
        uint64_t one, two;
        const char *reported; /* named in the message; of two equal ones, the later */
    } rows[] = {
        { "overlap by half", 0, 32, "two" },
        { "overlap by half, in reverse", 32, 0, "one" },
        { "overlap, both late", 32, 64, "two" },
        { "misaligned by 16", 0, 80, "two" },
        { "misaligned by 1", 1, 64, "one" },
        { "second past the end", 0, 96, "two" },
        { "second at the end", 0, 128, "two" },
        { "first past the end", 1024, 64, "one" },
        { "offset and size wrap to 32", 0, UINT64_MAX - 31, "two" },
        { "offset wraps around the start of the data", 0, UINT64_MAX - 223, "two" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gguf_build build;
        build_base(&build);
        gguf_build_patch(&build, "one", "offset", rows[i].one);
        gguf_build_patch(&build, "two", "offset", rows[i].two);
        show(&build, rows[i].name, "offset",
             gguf_build_find(&build, rows[i].reported, "offset")->offset, NULL, visit, context);
    }
}

/* As close as it gets: nothing but the alignment keeps tensors apart. */
static void damage_by_one_byte(damaged_visit visit, void *context)
{
    struct gguf_build build;
    gguf_build_init(&build, 3);
    gguf_build_align(&build, 1);
    gguf_build_tensor(&build, "one", 1, (const uint64_t[]){ 3 }, BUILD_TENSOR_I8, 3);
    gguf_build_tensor(&build, "two", 1, (const uint64_t[]){ 3 }, BUILD_TENSOR_I8, 3);
    gguf_build_patch(&build, "two", "offset", 2);
    gguf_build_finish(&build);
    uint64_t at = gguf_build_find(&build, "two", "offset")->offset;
    show_with(&build, "overlap by one byte", "offset", at, "they overlap", NULL, visit, context);
}

void gguf_damaged_rows(damaged_visit visit, void *context)
{
    damage_headers(visit, context);
    damage_strangers(visit, context);
    damage_keys(visit, context);
    damage_names(visit, context);
    damage_duplicates(visit, context);
    damage_flags(visit, context);
    damage_alignment(visit, context);
    damage_shapes(visit, context);
    damage_offsets(visit, context);
    damage_by_one_byte(visit, context);
}
