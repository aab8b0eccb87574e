/* trace_symbols.c - addresses become functions: from the symbol tables of the ELF files a traced
 * process had mapped. The files may be anybody's: offsets and sizes are checked, names are shown
 * printably. Files that cannot be read give the file's name and the offset. */
#include "campaign/trace/trace.h"

#include "base/dynlib.h"
#include "base/mapfile.h"

#include <dlfcn.h>
#include <elf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FILE_LIMIT 128u
#define SYMBOL_LIMIT (UINT64_C(1) << 22)

struct symbol_file {
    char path[FLIGHT_PATH_BYTES];
    struct mapfile map;
    bool good;
};

struct symbols {
    struct symbol_file files[FILE_LIMIT];
    size_t count;
    void *library; /* of C++ names; NULL: none */
    char *(*demangle)(const char *name, char *buffer, size_t *length, int *status);
};

enum status symbols_create(struct symbols **ret_symbols, struct error *err)
{
    struct symbols *symbols = calloc(1, sizeof(*symbols));
    if (!symbols)
        return error_set(err, STATUS_NO_MEMORY, "no memory for symbols");
    /* The one place that needs C++, and only where it is installed. */
    symbols->library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
    if (symbols->library)
        *(void **)&symbols->demangle = dlsym(symbols->library, "__cxa_demangle");
    *ret_symbols = symbols;
    return STATUS_OK;
}

void symbols_destroy(struct symbols *symbols)
{
    if (!symbols)
        return;
    for (size_t i = 0; i < symbols->count; i++)
        mapfile_release(&symbols->files[i].map);
    if (symbols->library)
        dlclose(symbols->library);
    free(symbols);
}

void symbols_demangle(struct symbols *symbols, const char *name, struct text *text)
{
    int status = -1;
    char *plain = NULL;
    if (symbols->demangle && strncmp(name, "_Z", 2) == 0)
        plain = symbols->demangle(name, NULL, NULL, &status);
    text_add_printable(text, text_view_of(plain && status == 0 ? plain : name), 400);
    free(plain);
}

/* ---- ELF ------------------------------------------------------------------------------------ */

/* Bytes of the file, or NULL where they are not all there. */
static const void *piece(const struct mapfile *map, uint64_t offset, uint64_t bytes)
{
    if (offset > map->size || bytes > map->size - offset)
        return NULL;
    return (const uint8_t *)map->data + offset;
}

static bool read_header(const struct mapfile *map, Elf64_Ehdr *header)
{
    const void *bytes = piece(map, 0, sizeof(*header));
    if (!bytes)
        return false;
    memcpy(header, bytes, sizeof(*header));
    return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
           header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB &&
           header->e_shentsize == sizeof(Elf64_Shdr);
}

static bool read_section(const struct mapfile *map, const Elf64_Ehdr *header, uint32_t index,
                         Elf64_Shdr *section)
{
    const void *bytes = index < header->e_shnum
                            ? piece(map, header->e_shoff + (uint64_t)index * sizeof(*section),
                                    sizeof(*section))
                            : NULL;
    if (!bytes)
        return false;
    memcpy(section, bytes, sizeof(*section));
    return true;
}

struct best {
    uint64_t address, value; /* asked for; start of the best one */
    uint64_t name_offset;
    Elf64_Shdr names;
    bool found;
};

/* The function that holds the address; one without a size counts where nothing else does. */
static void search(const struct mapfile *map, const Elf64_Shdr *table, const Elf64_Shdr *names,
                   struct best *best)
{
    uint64_t count = table->sh_size / sizeof(Elf64_Sym);
    const uint8_t *bytes = piece(map, table->sh_offset, table->sh_size);
    for (uint64_t i = 0; bytes && i < count && i < SYMBOL_LIMIT; i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, bytes + i * sizeof(symbol), sizeof(symbol));
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF ||
            symbol.st_value > best->address || best->address - symbol.st_value >= symbol.st_size)
            continue;
        if (best->found && symbol.st_value < best->value)
            continue;
        best->found = true;
        best->value = symbol.st_value;
        best->name_offset = symbol.st_name;
        best->names = *names;
    }
}

static const char *name_of(const struct mapfile *map, const struct best *best)
{
    const char *bytes = piece(map, best->names.sh_offset, best->names.sh_size);
    if (!bytes || best->name_offset >= best->names.sh_size)
        return NULL;
    const char *name = bytes + best->name_offset;
    return memchr(name, '\0', best->names.sh_size - best->name_offset) ? name : NULL;
}

static const char *find_function(const struct mapfile *map, uint64_t address, uint64_t *ret_start)
{
    Elf64_Ehdr header;
    struct best best = { .address = address };
    if (!read_header(map, &header))
        return NULL;
    for (uint32_t i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr section, names;
        if (!read_section(map, &header, i, &section))
            break;
        if ((section.sh_type == SHT_SYMTAB || section.sh_type == SHT_DYNSYM) &&
            read_section(map, &header, section.sh_link, &names))
            search(map, &section, &names, &best);
    }
    *ret_start = best.value;
    return best.found ? name_of(map, &best) : NULL;
}

/* ---- Files ---------------------------------------------------------------------------------- */

static const struct symbol_file *open_file(struct symbols *symbols, const char *path)
{
    for (size_t i = 0; i < symbols->count; i++)
        if (strcmp(symbols->files[i].path, path) == 0)
            return &symbols->files[i];
    if (symbols->count == FILE_LIMIT)
        return NULL;
    struct symbol_file *file = &symbols->files[symbols->count++];
    struct error unused;
    event_set_text(file->path, sizeof(file->path), path);
    file->good = path[0] == '/' && mapfile_open(&file->map, path, &unused) == STATUS_OK;
    return file;
}

bool symbols_add(struct symbols *symbols, const struct flight_module *module, uint64_t address,
                 struct text *text)
{
    const char *slash = strrchr(module->path, '/');
    const struct symbol_file *file = open_file(symbols, module->path);
    uint64_t start = 0, inside = address - module->bias;
    /* The return address is behind the call, which may be a function's last instruction. */
    const char *name = file && file->good ? find_function(&file->map, inside - 1, &start) : NULL;
    if (name) {
        symbols_demangle(symbols, name, text);
        text_addf(text, "+0x%" PRIx64 " (", inside - start);
        text_add_printable(text, text_view_of(slash ? slash + 1 : module->path), 120);
        text_add(text, ")");
        return true;
    }
    text_add_printable(text, text_view_of(slash ? slash + 1 : module->path), 120);
    text_addf(text, "+0x%" PRIx64, inside);
    return false;
}
