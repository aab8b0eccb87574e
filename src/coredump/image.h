/* image.h - a relocated cubin inside a dump: its functions, and how a kernel's arguments are laid
 * out.
 *
 * The driver relocates images: a symbol's value may be an address of the device, or an offset in
 * its section whose address is in the section's header. Both are accepted; where a value could be
 * read both ways, the function has no known address. All reading is paid for from the dump's work.
 */
#ifndef GRETA_COREDUMP_IMAGE_H
#define GRETA_COREDUMP_IMAGE_H

#include "coredump/coredump.h"
#include "coredump/table.h"

struct function {
    uint64_t address; /* on the device, if address_known */
    uint64_t bytes;
    uint64_t section_offset; /* in its section, if offset_known */
    uint32_t section;
    uint32_t name; /* offset in the image's table of symbol names */
    bool address_known, offset_known;
    bool is_kernel; /* can be launched */
};

enum image_state { IMAGE_UNREAD, IMAGE_READ, IMAGE_BAD };

struct image {
    enum image_state state;
    const uint8_t *data; /* borrowed from the dump */
    uint64_t bytes;
    const char *source;
    struct elf elf;
    struct text_view symbol_names;
    uint32_t symbols;           /* section; 0: none */
    uint32_t lines, line_names; /* sections .debug_line, .debug_line_str; 0: none */
    uint32_t strings;           /* section .debug_str; 0: none */
    uint32_t line_relocations;  /* section; 0: none */
    uint32_t only_code;         /* the one section with code; 0: there are more, or none */
    struct function *functions; /* by address; those without one last */
    size_t function_count, addressed_count;
    uint32_t *info_sections; /* by section of code: section with the kernel's attributes; 0: none */
};

void image_init(struct image *image, const uint8_t *data, uint64_t bytes, const char *source);
void image_release(struct image *image);

/* Sets state to IMAGE_READ, or to IMAGE_BAD with the reason. */
MUST_CHECK enum status image_read(struct image *image, struct work *work, struct error *err);

struct text_view image_function_name(const struct image *image, const struct function *function);

/* Functions that hold the address: the innermost ones, which begin last. Returns how many there
 * are, and copies at most COREDUMP_CANDIDATE_LIMIT of them. */
size_t image_find(const struct image *image, uint64_t address,
                  const struct function *ret_functions[COREDUMP_CANDIDATE_LIMIT]);
/* Kernels that begin at the address. */
size_t image_find_kernel(const struct image *image, uint64_t address,
                         const struct function *ret_functions[COREDUMP_CANDIDATE_LIMIT]);

/* What a section of the image says about a place in it that is named by a symbol. */
bool image_symbol_place(const struct image *image, uint32_t symbol, uint32_t *ret_section,
                        uint64_t *ret_offset);

/* ---- attributes.c: .nv.info of a kernel ------------------------------------------------------ */

struct kernel_attributes {
    bool size_known;
    uint32_t argument_bytes;             /* of all, if size_known */
    struct coredump_argument *arguments; /* owned by the caller; by offset */
    size_t argument_count;
};
/* False: the image has none for this function, or they break their own format. */
MUST_CHECK enum status image_attributes(const struct image *image, const struct function *function,
                                        struct work *work, struct kernel_attributes *ret,
                                        bool *ret_known, struct error *err);

#endif
