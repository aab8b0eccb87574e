/* image.c - see image.h. */
#include "coredump/image.h"

#include "base/size.h"

#include <stdlib.h>
#include <string.h>

enum {
    SYMBOL_BYTES = 24,
    SYMBOL_FUNCTION = 2,     /* type, the low 4 bits of st_info */
    SYMBOL_IS_KERNEL = 0x10, /* in st_other */
    SECTION_PROGRAM = 1,     /* types */
    SECTION_RELOCATIONS = 9,
    SECTION_EXECUTABLE = 4 /* flag */
};
#define SECTION_CUDA_INFO 0x70000000u /* type */

void image_init(struct image *image, const uint8_t *data, uint64_t bytes, const char *source)
{
    *image = (struct image){ .data = data, .bytes = bytes, .source = source };
}

void image_release(struct image *image)
{
    free(image->functions);
    free(image->info_sections);
    image->functions = NULL;
    image->info_sections = NULL;
    image->function_count = 0;
}

struct text_view image_function_name(const struct image *image, const struct function *function)
{
    struct text_view name = elf_string(image->symbol_names, function->name);
    /* A function that only one kernel calls is named $KERNEL$FUNCTION. */
    if (name.length == 0 || name.bytes[0] != '$')
        return name;
    size_t start = name.length;
    while (name.bytes[start - 1] != '$')
        start--;
    return (struct text_view){ name.bytes + start, name.length - start };
}

/* ---- Sections ------------------------------------------------------------------------------- */

/* Compares without looking for the end of a name from outside, which may be far away. */
static bool section_is_called(const struct elf *elf, const struct elf_section *section,
                              const char *name)
{
    size_t bytes = strlen(name) + 1;
    return size_range_inside(section->name, bytes, elf->names.length) &&
           memcmp(elf->names.bytes + section->name, name, bytes) == 0;
}

static void note_section(struct image *image, const struct elf_section *section)
{
    const struct elf *elf = &image->elf;
    bool is_code = section->type == SECTION_PROGRAM && section->flags & SECTION_EXECUTABLE;
    if (is_code)
        image->only_code = image->only_code ? UINT32_MAX : section->index;
    else if (section->type == ELF_SECTION_SYMBOLS && !image->symbols)
        image->symbols = section->index;
    else if (section->type == SECTION_CUDA_INFO && section->info != 0 &&
             section->info < elf->section_count)
        image->info_sections[section->info] = section->index;
    else if (section_is_called(elf, section, ".debug_line"))
        image->lines = section->index;
    else if (section_is_called(elf, section, ".debug_line_str"))
        image->line_names = section->index;
    else if (section_is_called(elf, section, ".debug_str"))
        image->strings = section->index;
    else if ((section->type == SECTION_RELOCATIONS &&
              section_is_called(elf, section, ".rel.debug_line")) ||
             (section->type == ELF_SECTION_ADDENDS &&
              section_is_called(elf, section, ".rela.debug_line")))
        image->line_relocations = section->index;
}

static enum status note_sections(struct image *image, struct work *work, struct error *err)
{
    const struct elf *elf = &image->elf;
    TRY(work_spend(work, (uint64_t)elf->section_count * 64, err));
    image->info_sections = calloc(elf->section_count, sizeof(*image->info_sections));
    if (!image->info_sections)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory for an image", image->source);
    for (uint32_t i = 1; i < elf->section_count; i++) {
        struct elf_section section;
        struct error ignored;
        /* A section that is cut short says nothing about the others. */
        if (elf_section_at(elf, i, &section, &ignored) == STATUS_OK)
            note_section(image, &section);
    }
    if (image->only_code == UINT32_MAX)
        image->only_code = 0;
    return STATUS_OK;
}

/* ---- Functions ------------------------------------------------------------------------------ */

/* A value of a symbol, read in the two ways there are. */
static void place_symbol(uint64_t value, uint64_t bytes, const struct elf_section *section,
                         struct function *function)
{
    bool relative = size_range_inside(value, bytes, section->bytes);
    bool absolute = section->address != 0 && value >= section->address &&
                    size_range_inside(value - section->address, bytes, section->bytes);
    function->address_known = function->offset_known = false;
    if (absolute && relative)
        return;
    if (absolute) {
        function->address = value;
        function->section_offset = value - section->address;
        function->address_known = function->offset_known = true;
    } else if (relative) {
        function->section_offset = value;
        function->offset_known = true;
        function->address_known = section->address != 0 &&
                                  size_add(section->address, value, &function->address);
    } else if (section->address == 0 && value != 0) {
        function->address = value;
        function->address_known = true;
    }
}

static void read_symbol(struct image *image, const uint8_t *symbol)
{
    struct elf_section section;
    struct error ignored;
    uint32_t index = bytes_load_u16(symbol + 6);
    uint64_t bytes = bytes_load_u64(symbol + 16), end;
    if ((symbol[4] & 15u) != SYMBOL_FUNCTION || index == 0 || index >= image->elf.section_count ||
        elf_section_at(&image->elf, index, &section, &ignored))
        return;
    struct function function = { .bytes = bytes,
                                 .section = index,
                                 .name = bytes_load_u32(symbol),
                                 .is_kernel = (symbol[5] & SYMBOL_IS_KERNEL) != 0 };
    place_symbol(bytes_load_u64(symbol + 8), bytes, &section, &function);
    if (function.address_known && !size_add(function.address, bytes, &end))
        function.address_known = false;
    image->addressed_count += function.address_known;
    image->functions[image->function_count++] = function;
}

/* Functions without an address last; larger ones before those that they contain. */
static int compare_functions(const void *a, const void *b)
{
    const struct function *x = a, *y = b;
    if (x->address_known != y->address_known)
        return x->address_known ? -1 : 1;
    if (x->address_known && x->address != y->address)
        return x->address < y->address ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return (x->name > y->name) - (x->name < y->name);
}

/* A kernel's section is named after it and begins with it. */
static bool begins_section(const struct image *image, const struct function *function)
{
    static const char prefix[] = ".text.";
    size_t bytes = sizeof(prefix) - 1;
    struct elf_section section;
    struct error ignored;
    if (!function->is_kernel || elf_section_at(&image->elf, function->section, &section, &ignored))
        return false;
    struct text_view name = elf_string(image->symbol_names, function->name);
    struct text_view text = elf_section_name(&image->elf, &section);
    return text.length == bytes + name.length && memcmp(text.bytes, prefix, bytes) == 0 &&
           memcmp(text.bytes + bytes, name.bytes, name.length) == 0;
}

/* Offsets of functions whose symbols have addresses while the sections do not: they count from the
 * kernel that the section is named after. */
static enum status find_offsets(struct image *image, struct error *err)
{
    const struct function **kernels = calloc(image->elf.section_count, sizeof(*kernels));
    if (!kernels)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory for an image", image->source);
    for (size_t i = 0; i < image->addressed_count; i++) {
        const struct function *function = &image->functions[i];
        if (!function->offset_known && !kernels[function->section] &&
            begins_section(image, function))
            kernels[function->section] = function;
    }
    for (size_t i = 0; i < image->addressed_count; i++) {
        struct function *function = &image->functions[i];
        const struct function *kernel = kernels[function->section];
        if (!kernel || function->offset_known || function->address < kernel->address)
            continue;
        function->section_offset = function->address - kernel->address;
        function->offset_known = true;
    }
    free(kernels);
    return STATUS_OK;
}

static enum status read_symbols(struct image *image, struct work *work, struct error *err)
{
    struct elf_section symbols, names;
    if (!image->symbols)
        return STATUS_OK;
    TRY(elf_section_at(&image->elf, image->symbols, &symbols, err));
    if (symbols.link >= image->elf.section_count)
        return error_set(err, STATUS_BAD_FILE, "%s: symbols of an image: no section %u",
                         image->source, symbols.link);
    TRY(elf_section_at(&image->elf, symbols.link, &names, err));
    TRY(work_spend(work, symbols.bytes, err));
    image->symbol_names = (struct text_view){ (const char *)image->elf.data + names.offset,
                                              names.bytes };
    size_t count = symbols.bytes / SYMBOL_BYTES;
    image->functions = calloc(count + 1, sizeof(*image->functions));
    if (!image->functions)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory for an image", image->source);
    for (size_t i = 0; i < count; i++)
        read_symbol(image, image->elf.data + symbols.offset + i * SYMBOL_BYTES);
    if (image->function_count)
        qsort(image->functions, image->function_count, sizeof(*image->functions),
              compare_functions);
    return find_offsets(image, err);
}

static enum status read_parts(struct image *image, struct work *work, struct error *err)
{
    TRY(elf_open(image->data, image->bytes, image->source, &image->elf, err));
    if (image->elf.machine != ELF_MACHINE_CUDA)
        return error_set(err, STATUS_UNSUPPORTED, "%s: image: ELF machine: expected %u, found %u",
                         image->source, ELF_MACHINE_CUDA, image->elf.machine);
    TRY(note_sections(image, work, err));
    return read_symbols(image, work, err);
}

enum status image_read(struct image *image, struct work *work, struct error *err)
{
    ASSERT(image->state == IMAGE_UNREAD);
    enum status status = read_parts(image, work, err);
    if (status)
        image_release(image);
    image->state = status ? IMAGE_BAD : IMAGE_READ;
    return status;
}

/* ---- Look-ups ------------------------------------------------------------------------------- */

/* The number of functions that begin at or before the address. */
static size_t count_before(const struct image *image, uint64_t address)
{
    size_t low = 0, high = image->addressed_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (image->functions[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Functions that only one kernel calls lie inside it, next to each other: few of them begin between
 * an address of the kernel and the kernel itself. */
#define LOOK_BACK 64

size_t image_find(const struct image *image, uint64_t address,
                  const struct function *ret_functions[COREDUMP_CANDIDATE_LIMIT])
{
    size_t first = count_before(image, address), found = 0;
    for (size_t back = 0; back < LOOK_BACK && first > 0; back++) {
        const struct function *function = &image->functions[--first];
        bool smaller = found == 0 || (function->address == ret_functions[0]->address &&
                                      function->bytes == ret_functions[0]->bytes);
        if (found && function->address != ret_functions[0]->address)
            break;
        if (!smaller || address - function->address >= function->bytes)
            continue;
        if (found < COREDUMP_CANDIDATE_LIMIT)
            ret_functions[found] = function;
        found++;
    }
    return found;
}

size_t image_find_kernel(const struct image *image, uint64_t address,
                         const struct function *ret_functions[COREDUMP_CANDIDATE_LIMIT])
{
    size_t first = count_before(image, address), found = 0;
    while (first > 0 && image->functions[first - 1].address == address) {
        const struct function *function = &image->functions[--first];
        if (!function->is_kernel)
            continue;
        if (found < COREDUMP_CANDIDATE_LIMIT)
            ret_functions[found] = function;
        found++;
    }
    return found;
}

bool image_symbol_place(const struct image *image, uint32_t symbol, uint32_t *ret_section,
                        uint64_t *ret_offset)
{
    struct elf_section symbols, section;
    const struct function *functions[COREDUMP_CANDIDATE_LIMIT];
    struct function function = { 0 };
    struct error ignored;
    if (!image->symbols || elf_section_at(&image->elf, image->symbols, &symbols, &ignored) ||
        symbol >= symbols.bytes / SYMBOL_BYTES)
        return false;
    const uint8_t *bytes = image->elf.data + symbols.offset + (uint64_t)symbol * SYMBOL_BYTES;
    uint32_t index = bytes_load_u16(bytes + 6);
    if (index == 0 || index >= image->elf.section_count ||
        elf_section_at(&image->elf, index, &section, &ignored))
        return false;
    place_symbol(bytes_load_u64(bytes + 8), bytes_load_u64(bytes + 16), &section, &function);
    *ret_section = index;
    *ret_offset = function.section_offset;
    /* An address alone: the function that is there has its offset (find_offsets). */
    if (!function.offset_known && function.address_known &&
        image_find(image, function.address, functions) == 1 && functions[0]->section == index &&
        functions[0]->offset_known) {
        *ret_offset = functions[0]->section_offset + (function.address - functions[0]->address);
        return true;
    }
    return function.offset_known;
}
