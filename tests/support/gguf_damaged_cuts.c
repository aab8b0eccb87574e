/* gguf_damaged_cuts.c - files that end too early: before and inside every field. */
#include "gguf_damaged.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define HEADER_BYTES 24u
/* The least an entry and a tensor take: the reader checks the counts against them. */
#define ENTRY_BYTES_MIN 14u
#define TENSOR_BYTES_MIN 25u

void gguf_damaged_name(struct damaged *damaged, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(damaged->name, sizeof(damaged->name), format, arguments);
    va_end(arguments);
    for (char *c = damaged->name; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '.')
            *c = '-';
}

void gguf_damaged_all(damaged_visit visit, void *context)
{
    gguf_damaged_rows(visit, context);
    gguf_damaged_numbers(visit, context);
    gguf_damaged_cuts(visit, context);
}

static void expect(struct damaged *damaged, const char *field, uint64_t at)
{
    snprintf(damaged->field, sizeof(damaged->field), "%s", field);
    damaged->at = at;
}

static void expect_field(struct damaged *damaged, const struct gguf_field *field)
{
    expect(damaged, field->name, field->offset);
}

static bool is(const struct gguf_field *field, const char *name)
{
    return strcmp(field->name, name) == 0;
}

/* The length of the array this string is in, or NULL. */
static const struct gguf_field *array_of(const struct gguf_field *string)
{
    while (is(string, "string") || is(string, "string length"))
        string--;
    return is(string, "array length") ? string : NULL;
}

/* The field in which a cut shows: that of bytes which belong to a length shows in the length, which
 * is then too large. */
static const struct gguf_field *field_reported(const struct gguf_build *build,
                                               const struct gguf_field *field, uint64_t cut)
{
    if (is(field, "string") || is(field, "string length")) {
        /* Strings of an array are at least their lengths: too few bytes for those show at once. */
        const struct gguf_field *array = array_of(field);
        if (array && (cut - array->offset - 8) / 8 < (uint8_t)build->text.bytes[array->offset])
            return array;
        return is(field, "string") ? field - 1 : field;
    }
    if (is(field, "key") || is(field, "name"))
        return field - 1;
    if (is(field, "value") && is(field - 1, "array length"))
        return field - 1;
    if (is(field, "data"))
        return gguf_build_find(build, field->owner, "offset");
    return field;
}

static void expect_cut(const struct gguf_build *build, const struct gguf_field *field, uint64_t cut,
                       struct damaged *damaged)
{
    uint64_t entries_least = build->entry_count * ENTRY_BYTES_MIN;
    uint64_t least = entries_least + build->tensor_count * TENSOR_BYTES_MIN;
    if (cut < HEADER_BYTES)
        expect_field(damaged, field);
    else if (cut - HEADER_BYTES < entries_least)
        expect(damaged, "metadata_kv_count", 16);
    else if (cut - HEADER_BYTES < least)
        expect(damaged, "tensor_count", 8);
    else
        expect_field(damaged, field_reported(build, field, cut));
}

static void cut_at(const struct gguf_build *build, const struct gguf_field *field, uint64_t into,
                   const char *file, damaged_visit visit, void *context)
{
    uint64_t cut = field->offset + into;
    struct damaged damaged = { .bytes = build->text.bytes, .size = (size_t)cut };
    gguf_damaged_name(&damaged, "cut %s %s %s at %u", file, field->owner, field->name,
                      (unsigned)cut);
    expect_cut(build, field, cut, &damaged);
    visit(context, &damaged);
}

/* Before each field from first_field on and, where it has an inside, in its middle and before its
 * last byte. */
static void cut_from(const struct gguf_build *build, size_t first_field, const char *file,
                     damaged_visit visit, void *context)
{
    for (size_t i = first_field; i < build->field_count; i++) {
        const struct gguf_field *field = &build->fields[i];
        if (field->bytes == 0)
            continue;
        if (is(field, "data") && strcmp(field->owner, "header") == 0)
            continue; /* each tensor's part of it has a field of its own */
        cut_at(build, field, 0, file, visit, context);
        if (field->bytes > 1)
            cut_at(build, field, field->bytes - 1, file, visit, context);
        if (field->bytes > 3)
            cut_at(build, field, field->bytes / 2, file, visit, context);
    }
}

/* magic, version, tensor_count, metadata_kv_count: cut once, in the specimen. */
#define HEADER_FIELDS 4

/* A file of one entry, so that the header's counts do not give the cut away. */
static void cut_entry(uint32_t type, bool array, damaged_visit visit, void *context)
{
    static const uint64_t numbers[] = { 1, 1, 1, 1 };
    static const char *const words[] = { "one", "two", "three" };
    char key[64], file[32];
    snprintf(file, sizeof(file), "%s of type %u", array ? "array" : "entry", (unsigned)type);
    snprintf(key, sizeof(key), "a.key.of.an.%s.%u", array ? "array" : "entry", (unsigned)type);
    struct gguf_build build;
    gguf_build_init(&build, 3);
    if (type == BUILD_STRING && array)
        gguf_build_strings(&build, key, words, 3);
    else if (type == BUILD_STRING)
        gguf_build_string(&build, key, "words");
    else if (array)
        gguf_build_array(&build, key, type, numbers, 4);
    else
        gguf_build_number(&build, key, type, 1);
    gguf_build_finish(&build);
    cut_from(&build, HEADER_FIELDS, file, visit, context);
    gguf_build_release(&build);
}

static void cut_tensor(uint32_t rank, damaged_visit visit, void *context)
{
    static const uint64_t dims[] = { 3, 1, 2, 1 };
    static const uint64_t elements[] = { 1, 3, 3, 6, 6 };
    struct gguf_build build;
    gguf_build_init(&build, 3);
    char file[32];
    snprintf(file, sizeof(file), "tensor of rank %u", (unsigned)rank);
    gguf_build_tensor(&build, file, rank, dims, BUILD_TENSOR_F32, 4 * elements[rank]);
    gguf_build_finish(&build);
    cut_from(&build, HEADER_FIELDS, file, visit, context);
    gguf_build_release(&build);
}

/* Some writers leave out the padding after the last tensor; no reader needs it. */
static void cut_last_padding(const struct gguf_build *build, damaged_visit visit, void *context)
{
    const struct gguf_field *data = gguf_build_find(build, "hyper.i8", "data");
    struct damaged damaged = { .bytes = build->text.bytes,
                               .size = (size_t)(data->offset + data->bytes),
                               .harmless = "padding after the last tensor is not needed" };
    gguf_damaged_name(&damaged, "cut after the last tensor");
    visit(context, &damaged);
}

void gguf_damaged_cuts(damaged_visit visit, void *context)
{
    struct gguf_build specimen;
    gguf_build_specimen(&specimen, 3);
    cut_from(&specimen, 0, "specimen", visit, context);
    cut_last_padding(&specimen, visit, context);
    gguf_build_release(&specimen);
    for (uint32_t type = BUILD_U8; type <= BUILD_F64; type++) {
        if (type == BUILD_ARRAY)
            continue;
        cut_entry(type, false, visit, context);
        cut_entry(type, true, visit, context);
    }
    for (uint32_t rank = 0; rank <= 4; rank++)
        cut_tensor(rank, visit, context);
}
