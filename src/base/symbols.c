/* symbols.c - a sorted table of functions for each file that is asked about. */
#include "base/symbols.h"

#include "base/bytes.h"
#include "base/dynlib.h"
#include "base/mapfile.h"
#include "base/size.h"

#include <stdlib.h>
#include <string.h>

/* The part of the ELF format used here: section headers, and symbols of 24 bytes. */
enum {
    ELF_HEADER_BYTES = 64,
    ELF_SECTION_BYTES = 64,
    ELF_SYMBOL_BYTES = 24,
    ELF_SECTION_SYMBOLS = 2,
    ELF_SECTION_DYNAMIC_SYMBOLS = 11,
    ELF_FUNCTION = 2,
    ELF_INDIRECT_FUNCTION = 10
};

struct function {
    uint64_t address, bytes; /* bytes 0: not known */
    uint64_t name_at;        /* in the file; ends before name_end */
    uint64_t name_end;       /* of its string table */
};

struct symbol_file {
    char *path;
    struct mapfile map; /* names are read from it */
    struct function *functions;
    size_t function_count;
};

struct symbols {
    struct symbol_file *files;
    size_t file_count;
};

struct section {
    uint32_t type, link;
    uint64_t offset, bytes;
};

/* False: the section does not lie inside the file. */
static bool read_section(const struct mapfile *map, uint64_t table, uint64_t index,
                         struct section *section)
{
    uint64_t skipped, at;
    if (!size_mul(index, ELF_SECTION_BYTES, &skipped) || !size_add(table, skipped, &at) ||
        !size_range_inside(at, ELF_SECTION_BYTES, map->size))
        return false;
    const uint8_t *header = map->data + at;
    section->type = bytes_load_u32(header + 4);
    section->offset = bytes_load_u64(header + 24);
    section->bytes = bytes_load_u64(header + 32);
    section->link = bytes_load_u32(header + 40);
    return size_range_inside(section->offset, section->bytes, map->size);
}

/* Adds the functions of one table; false without memory. */
static bool add_functions(struct symbol_file *file, const struct section *table,
                          const struct section *names)
{
    size_t count = table->bytes / ELF_SYMBOL_BYTES;
    if (count == 0)
        return true;
    struct function *grown = realloc(file->functions,
                                     (file->function_count + count) * sizeof(*grown));
    if (!grown)
        return false;
    file->functions = grown;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *symbol = file->map.data + table->offset + i * ELF_SYMBOL_BYTES;
        uint32_t name = bytes_load_u32(symbol);
        unsigned type = symbol[4] & 15u;
        bool defined = bytes_load_u16(symbol + 6) != 0;
        if ((type != ELF_FUNCTION && type != ELF_INDIRECT_FUNCTION) || !defined ||
            name >= names->bytes)
            continue;
        file->functions[file->function_count++] = (struct function){
            .address = bytes_load_u64(symbol + 8),
            .bytes = bytes_load_u64(symbol + 16),
            .name_at = names->offset + name,
            .name_end = names->offset + names->bytes,
        };
    }
    return true;
}

/* Functions with equal addresses are ordered by the places of their names, so that the answer is
 * always the same. */
static int compare_functions(const void *a, const void *b)
{
    const struct function *x = a, *y = b;
    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    return (x->name_at > y->name_at) - (x->name_at < y->name_at);
}

static void read_tables(struct symbol_file *file)
{
    static const uint8_t magic[6] = { 0x7F, 'E', 'L', 'F', 2, 1 }; /* 64 bits, little endian */
    const struct mapfile *map = &file->map;
    if (map->size < ELF_HEADER_BYTES || memcmp(map->data, magic, sizeof(magic)) != 0 ||
        bytes_load_u16(map->data + 58) != ELF_SECTION_BYTES)
        return;
    uint64_t table = bytes_load_u64(map->data + 40);
    uint64_t count = bytes_load_u16(map->data + 60);
    for (uint64_t i = 0; i < count; i++) {
        struct section section, names;
        if (!read_section(map, table, i, &section) ||
            (section.type != ELF_SECTION_SYMBOLS && section.type != ELF_SECTION_DYNAMIC_SYMBOLS) ||
            !read_section(map, table, section.link, &names))
            continue;
        if (!add_functions(file, &section, &names))
            return;
    }
    if (file->function_count > 0)
        qsort(file->functions, file->function_count, sizeof(*file->functions), compare_functions);
}

static struct symbol_file *find_file(struct symbols *symbols, const char *path)
{
    for (size_t i = 0; i < symbols->file_count; i++)
        if (strcmp(symbols->files[i].path, path) == 0)
            return &symbols->files[i];
    char *copy = strdup(path);
    struct symbol_file *grown =
        copy ? realloc(symbols->files, (symbols->file_count + 1) * sizeof(*grown)) : NULL;
    if (!grown) {
        free(copy);
        return NULL;
    }
    symbols->files = grown;
    struct symbol_file *file = &grown[symbols->file_count++];
    *file = (struct symbol_file){ .path = copy };
    struct error err;
    if (mapfile_open(&file->map, path, &err) == STATUS_OK && file->map.data)
        read_tables(file);
    return file;
}

/* A function whose size is not known (assembly) is taken to be no longer than this. */
#define UNSIZED_BYTES 4096

static bool reaches(const struct function *function, uint64_t address)
{
    return address - function->address < (function->bytes ? function->bytes : UNSIZED_BYTES);
}

/* Returns the first function that reaches the address among those that begin last at or before it.
 */
static const struct function *find_function(const struct symbol_file *file, uint64_t address)
{
    size_t low = 0, high = file->function_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (file->functions[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    const struct function *found = NULL;
    for (size_t i = low; i > 0; i--) {
        const struct function *function = &file->functions[i - 1];
        if (function->address != file->functions[low - 1].address)
            break;
        if (reaches(function, address))
            found = function;
    }
    return found;
}

struct symbols *symbols_create(void)
{
    return calloc(1, sizeof(struct symbols));
}

void symbols_destroy(struct symbols *symbols)
{
    if (!symbols)
        return;
    for (size_t i = 0; i < symbols->file_count; i++) {
        mapfile_release(&symbols->files[i].map);
        free(symbols->files[i].functions);
        free(symbols->files[i].path);
    }
    free(symbols->files);
    free(symbols);
}

bool symbols_find(struct symbols *symbols, const char *path, uint64_t address, char *name,
                  size_t name_bytes, uint64_t *ret_offset)
{
    name[0] = '\0';
    struct symbol_file *file = find_file(symbols, path);
    const struct function *function = file ? find_function(file, address) : NULL;
    if (!function)
        return false;
    const char *text = (const char *)file->map.data + function->name_at;
    size_t length = strnlen(text, function->name_end - function->name_at);
    if (length >= name_bytes)
        length = name_bytes - 1;
    memcpy(name, text, length);
    name[length] = '\0';
    *ret_offset = address - function->address;
    return length > 0;
}

/* Up to the parameter list: the first parenthesis that is not part of a name such as "operator()"
 * or "(anonymous namespace)", at no depth of template arguments. */
static void cut_parameters(char *text)
{
    int depth = 0;
    for (char *at = text; *at; at++) {
        if (*at == '<')
            depth++;
        else if (*at == '>' && depth > 0)
            depth--;
        else if (*at == '(' && depth == 0) {
            static const char anonymous[] = "(anonymous namespace)";
            if (strncmp(at, anonymous, sizeof(anonymous) - 1) == 0)
                at += sizeof(anonymous) - 2;
            else if (strncmp(at, "()", 2) == 0 && at - text >= 8 &&
                     memcmp(at - 8, "operator", 8) == 0)
                at++;
            else {
                *at = '\0';
                return;
            }
        }
    }
}

void symbols_demangle(const char *mangled, bool short_form, char *text, size_t text_bytes)
{
    static const char *const names[] = { "libstdc++.so.6", "libc++abi.so.1", NULL };
    struct {
        char *(*demangle)(const char *, char *, size_t *, int *);
    } table = { 0 };
    static const struct dynlib_symbol wanted = { "__cxa_demangle", 0, false };
    struct dynlib *library = NULL;
    struct error err;
    char *written = NULL;
    int code = 0;
    if (strncmp(mangled, "_Z", 2) == 0 && dynlib_open(names, &library, &err) == STATUS_OK &&
        dynlib_resolve(library, &wanted, 1, &table, &err) == STATUS_OK)
        written = table.demangle(mangled, NULL, NULL, &code);
    if (written && short_form)
        cut_parameters(written);
    const char *result = written ? written : mangled;
    size_t length = strnlen(result, text_bytes - 1);
    memcpy(text, result, length);
    text[length] = '\0';
    free(written);
    dynlib_close(library);
}
