/* gguf_damaged_numbers.c - every length, count, type, dimension and offset of the specimen set to
 * numbers that are easy to get wrong: 0, 1, 2^31, 2^32 - 1, 2^63, 2^64 - 1. */
#include "gguf_damaged.h"

#include "base/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const uint64_t extremes[] = { 0, 1, 1ull << 31, 0xFFFFFFFFull, 1ull << 63, UINT64_MAX };

static bool is(const struct gguf_field *field, const char *name)
{
    return strcmp(field->name, name) == 0;
}

static uint64_t field_value(const struct gguf_build *build, const struct gguf_field *field)
{
    uint64_t value = 0;
    for (uint64_t i = 0; i < field->bytes; i++)
        value |= (uint64_t)(uint8_t)build->text.bytes[field->offset + i] << (8 * i);
    return value;
}

static void expect(struct damaged *damaged, const char *field, uint64_t at)
{
    snprintf(damaged->field, sizeof(damaged->field), "%s", field);
    damaged->at = at;
}

/* Shows the file with this field set; puts the old value back. */
static void show(struct gguf_build *build, const struct gguf_field *field, uint64_t value,
                 struct damaged *damaged, damaged_visit visit, void *context)
{
    uint64_t before = field_value(build, field);
    for (uint64_t i = 0; i < field->bytes; i++)
        build->text.bytes[field->offset + i] = (char)(value >> (8 * i));
    gguf_damaged_name(damaged, "%s %s at %" PRIu64 " is %" PRIu64, field->owner, field->name,
                      field->offset, value);
    damaged->bytes = build->text.bytes;
    damaged->size = build->text.length;
    visit(context, damaged);
    for (uint64_t i = 0; i < field->bytes; i++)
        build->text.bytes[field->offset + i] = (char)(before >> (8 * i));
}

/* ---- Lengths: what 0 and 1 lead to ---------------------------------------------------------- */

/* The field that is read next if the bytes of this length end early. */
static const char *field_behind(const struct gguf_field *length)
{
    if (is(length, "key length"))
        return "value type";
    if (is(length, "name length"))
        return "n_dims";
    const struct gguf_field *next = length + 2; /* over the bytes */
    if (is(length, "array length") && is(next, "string"))
        return "key"; /* a string of the array is taken for one, and has a space in it */
    return next->name;
}

/* Bytes that were meant as text or elements are then read as that field, and are no such thing. */
static void expect_short_length(const struct gguf_field *length, uint64_t value,
                                struct damaged *damaged)
{
    if (value == 0 && (is(length, "key length") || is(length, "name length"))) {
        expect(damaged, length->name, length->offset);
        return;
    }
    expect(damaged, field_behind(length), length->offset + 8 + value);
    damaged->at_or_after = true;
}

static void set_lengths(struct gguf_build *build, damaged_visit visit, void *context)
{
    for (size_t i = 0; i < build->field_count; i++) {
        const struct gguf_field *field = &build->fields[i];
        if (!is(field, "key length") && !is(field, "string length") && !is(field, "array length") &&
            !is(field, "name length"))
            continue;
        for (size_t j = 0; j < COUNT_OF(extremes); j++) {
            struct damaged damaged = { 0 };
            if (extremes[j] == field_value(build, field))
                continue;
            if (extremes[j] <= 1)
                expect_short_length(field, extremes[j], &damaged);
            else
                expect(&damaged, field->name, field->offset);
            show(build, field, extremes[j], &damaged, visit, context);
        }
    }
}

/* ---- Counts --------------------------------------------------------------------------------- */

static void set_counts(struct gguf_build *build, damaged_visit visit, void *context)
{
    /* Entries and tensors are mistaken for each other: where that begins, and as what. */
    static const struct {
        const char *count;
        uint64_t value;
        const char *owner, *field, *read_as, *words, *harmless;
    } rows[] = {
        { "tensor_count", 0, NULL, NULL, NULL, NULL, "what follows is not looked at" },
        { "tensor_count", 1, NULL, NULL, NULL, NULL, "one tensor, which lies where it says" },
        { "tensor_count", 5, NULL, NULL, NULL, NULL, "the last tensor is not looked at" },
        { "tensor_count", 7, "header", "start", "name length", NULL, NULL },
        { "tensor_count", 262144, "header", "tensor_count", "tensor_count", "bytes left", NULL },
        { "tensor_count", 262145, "header", "tensor_count", "tensor_count", "most 262144", NULL },
        { "metadata_kv_count", 0, "general.architecture", "value type", "n_dims", NULL, NULL },
        { "metadata_kv_count", 1, "t.u8", "value", "type", NULL, NULL },
        { "metadata_kv_count", 26, "scalar.f32", "n_dims", "name length", NULL, NULL },
        { "metadata_kv_count", 65536, "header", "metadata_kv_count", "metadata_kv_count",
          "bytes left", NULL },
        { "metadata_kv_count", 65537, "header", "metadata_kv_count", "metadata_kv_count",
          "most 65536", NULL },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct damaged damaged = { .words = rows[i].words, .harmless = rows[i].harmless };
        if (!rows[i].harmless) {
            const struct gguf_field *near = gguf_build_find(build, rows[i].owner, rows[i].field);
            expect(&damaged, rows[i].read_as, near->offset);
            damaged.at_or_after = strcmp(rows[i].field, rows[i].read_as) != 0;
        }
        show(build, gguf_build_find(build, "header", rows[i].count), rows[i].value, &damaged, visit,
             context);
    }
    for (size_t i = 2; i < COUNT_OF(extremes); i++) {
        static const char *const counts[] = { "tensor_count", "metadata_kv_count" };
        for (size_t j = 0; j < COUNT_OF(counts); j++) {
            const struct gguf_field *field = gguf_build_find(build, "header", counts[j]);
            struct damaged damaged = { 0 };
            expect(&damaged, field->name, field->offset);
            show(build, field, extremes[i], &damaged, visit, context);
        }
    }
}

/* ---- Types ---------------------------------------------------------------------------------- */

static void set_types(struct gguf_build *build, damaged_visit visit, void *context)
{
    static const struct {
        const char *field;
        const char *words;
        uint64_t values[12];
    } rows[] = {
        { "value type", "expected 0 to 12", { 13, 255, 1ull << 31, 0xFFFFFFFF } },
        { "array element type", "expected 0 to 12", { 13, 1ull << 31, 0xFFFFFFFF } },
        { "array element type", "nested arrays", { 9 } },
        { "type", "withdrawn from the format", { 4, 5, 31, 32, 33, 36, 37, 38 } },
        { "type", "may be newer than", { 43, 1ull << 31, 0xFFFFFFFF } },
        { "n_dims", "expected at most 4", { 5, 6, 1ull << 31, 0xFFFFFFFF } },
    };
    for (size_t i = 0; i < build->field_count; i++) {
        const struct gguf_field *field = &build->fields[i];
        for (size_t j = 0; j < COUNT_OF(rows); j++) {
            for (size_t k = 0; is(field, rows[j].field) && rows[j].values[k]; k++) {
                struct damaged damaged = { .words = rows[j].words };
                expect(&damaged, field->name, field->offset);
                show(build, field, rows[j].values[k], &damaged, visit, context);
            }
        }
    }
}

/* ---- Shapes --------------------------------------------------------------------------------- */

/* Ranks 0 and 1 where the file has another: dimensions are read as a type, or a type as dimensions.
 */
static void set_ranks(struct gguf_build *build, damaged_visit visit, void *context)
{
    static const struct {
        const char *tensor;
        uint64_t rank;
        const char *field; /* where it shows */
    } rows[] = {
        { "scalar.f32", 1, "name length" }, { "vector.f32", 0, "type" },
        { "matrix.q8_0", 0, "type" },       { "matrix.q8_0", 1, "name length" },
        { "empty.f32", 0, "type" },         { "empty.f32", 1, "name length" },
        { "cube.f16", 0, "type" },          { "cube.f16", 1, "dims[0]" },
        { "hyper.i8", 0, "dims[0]" },       { "hyper.i8", 1, "dims[0]" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct gguf_field *field = gguf_build_find(build, rows[i].tensor, "n_dims");
        struct damaged damaged = { .at_or_after = true };
        expect(&damaged, rows[i].field, field->offset + 4);
        show(build, field, rows[i].rank, &damaged, visit, context);
    }
}

struct layout {
    const char *tensor;
    uint32_t rank, block_elements, block_bytes;
};
static const struct layout layouts[] = {
    { "vector.f32", 1, 1, 4 }, { "matrix.q8_0", 2, 32, 34 }, { "empty.f32", 2, 1, 4 },
    { "cube.f16", 3, 1, 2 },   { "hyper.i8", 4, 1, 1 },
};

/* a * b, or all ones where that needs more than 64 bits. */
static uint64_t multiply(uint64_t a, uint64_t b)
{
    return a && b > UINT64_MAX / a ? UINT64_MAX : a * b;
}

/* With dims[0] * dims[1] ... as given: what is wrong, in the order in which it must be noticed. */
static void expect_shape(const struct gguf_build *build, const struct layout *layout,
                         const uint64_t *dims, struct damaged *damaged)
{
    const struct gguf_field *first = gguf_build_find(build, layout->tensor, "dims[0]");
    uint64_t bytes = multiply(dims[0] / layout->block_elements, layout->block_bytes);
    bool wraps = bytes == UINT64_MAX;
    for (uint32_t i = 1; i < layout->rank; i++)
        bytes = multiply(bytes, dims[i]);
    if (dims[0] % layout->block_elements)
        expect(damaged, "dims[0]", first->offset);
    else if (wraps || bytes == UINT64_MAX)
        expect(damaged, "dims", first->offset);
    else if (bytes > gguf_build_find(build, layout->tensor, "data")->bytes)
        expect(damaged, "offset", gguf_build_find(build, layout->tensor, "offset")->offset);
    else
        damaged->harmless = "a smaller tensor; the rest of its data is not looked at";
}

static void set_dims(struct gguf_build *build, damaged_visit visit, void *context)
{
    for (size_t i = 0; i < COUNT_OF(layouts); i++) {
        for (uint32_t j = 0; j < layouts[i].rank * COUNT_OF(extremes); j++) {
            const struct gguf_field *first = gguf_build_find(build, layouts[i].tensor, "dims[0]");
            uint32_t which = j / COUNT_OF(extremes);
            uint64_t value = extremes[j % COUNT_OF(extremes)], dims[4] = { 0 };
            for (uint32_t k = 0; k < layouts[i].rank; k++)
                dims[k] = field_value(build, first + k);
            if (dims[which] == value)
                continue;
            dims[which] = value;
            struct damaged damaged = { 0 };
            expect_shape(build, &layouts[i], dims, &damaged);
            show(build, first + which, value, &damaged, visit, context);
        }
    }
}

/* ---- Offsets -------------------------------------------------------------------------------- */

static void set_offsets(struct gguf_build *build, damaged_visit visit, void *context)
{
    /* Past the end and wrapping ones are multiples of the alignment, the others are not. */
    static const uint64_t values[] = {
        0, 1, 31, 960, 992, 1ull << 31, 0xFFFFFFFF, 1ull << 63, UINT64_MAX - 31, UINT64_MAX
    };
    for (size_t i = 0; i < build->field_count; i++) {
        const struct gguf_field *field = &build->fields[i];
        if (!is(field, "offset"))
            continue;
        bool empty = gguf_build_find(build, field->owner, "data")->bytes == 0;
        for (size_t j = 0; j < COUNT_OF(values); j++) {
            struct damaged damaged = { 0 };
            if (values[j] == field_value(build, field))
                continue;
            if (empty && (values[j] == 0 || values[j] == 960))
                damaged.harmless = "a tensor without bytes may lie anywhere in the data";
            expect(&damaged, field->name, field->offset);
            show(build, field, values[j], &damaged, visit, context);
        }
    }
}

void gguf_damaged_numbers(damaged_visit visit, void *context)
{
    struct gguf_build specimen;
    gguf_build_specimen(&specimen, 3);
    set_lengths(&specimen, visit, context);
    set_counts(&specimen, visit, context);
    set_types(&specimen, visit, context);
    set_ranks(&specimen, visit, context);
    set_dims(&specimen, visit, context);
    set_offsets(&specimen, visit, context);
    gguf_build_release(&specimen);
}
