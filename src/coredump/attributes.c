/* attributes.c - the attributes of a kernel (.nv.info.NAME): how its arguments are laid out.
 *
 * An attribute is a format byte, a number, and a value whose size the format says. Those with
 * numbers that are not known are passed over. */
#include "base/size.h"
#include "coredump/image.h"

#include <stdlib.h>
#include <string.h>

enum {
    FORMAT_NONE = 1,
    FORMAT_BYTE = 2,
    FORMAT_HALF = 3,
    FORMAT_SIZED = 4,
    ATTRIBUTE_ARGUMENT = 0x17,
    ATTRIBUTE_ARGUMENTS_BYTES = 0x19,
    ATTRIBUTE_ARGUMENT_LARGE = 0x45, /* of kernels with more than 4 KiB of arguments */
    ARGUMENT_BYTES = 12
};

/* A kernel has at most 32,764 bytes of arguments. */
#define ARGUMENT_LIMIT 32768u

struct attribute {
    uint8_t format, number;
    uint16_t half;        /* of FORMAT_HALF */
    const uint8_t *value; /* of FORMAT_SIZED */
    uint16_t value_bytes;
};

static enum status next_attribute(struct bytes *in, struct attribute *attribute, struct error *err)
{
    *attribute = (struct attribute){ 0 };
    TRY(bytes_u8(in, "format of an attribute", &attribute->format, err));
    TRY(bytes_u8(in, "number of an attribute", &attribute->number, err));
    TRY(bytes_u16(in, "value of an attribute", &attribute->half, err));
    if (attribute->format == FORMAT_SIZED) {
        attribute->value_bytes = attribute->half;
        return bytes_take(in, "value of an attribute", attribute->value_bytes, &attribute->value,
                          err);
    }
    if (attribute->format < FORMAT_NONE || attribute->format > FORMAT_SIZED)
        return bytes_fail(in, in->at - 4, "format of an attribute", err,
                          "expected 1 to 4, found %u", attribute->format);
    return STATUS_OK;
}

/* A reserved word, then index (2 bytes), offset (2 bytes), and the size: in the upper 14 bits of a
 * word, or as 2 bytes. */
static bool read_argument(const struct attribute *attribute, struct coredump_argument *ret)
{
    if (attribute->format != FORMAT_SIZED || attribute->value_bytes != ARGUMENT_BYTES)
        return false;
    ret->offset = bytes_load_u16(attribute->value + 6);
    if (attribute->number == ATTRIBUTE_ARGUMENT)
        ret->bytes = bytes_load_u32(attribute->value + 8) >> 18;
    else if (attribute->number == ATTRIBUTE_ARGUMENT_LARGE)
        ret->bytes = bytes_load_u16(attribute->value + 8);
    else
        return false;
    return true;
}

static int compare_arguments(const void *a, const void *b)
{
    const struct coredump_argument *x = a, *y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static enum status read_attributes(struct bytes *in, struct kernel_attributes *attributes,
                                   struct error *err)
{
    while (bytes_left(in) > 0) {
        struct attribute attribute;
        struct coredump_argument argument;
        TRY(next_attribute(in, &attribute, err));
        if (attribute.format == FORMAT_HALF && attribute.number == ATTRIBUTE_ARGUMENTS_BYTES) {
            attributes->argument_bytes = attribute.half;
            attributes->size_known = true;
        }
        if (!read_argument(&attribute, &argument))
            continue;
        if (attributes->argument_count == ARGUMENT_LIMIT)
            return bytes_fail(in, in->at, "arguments", err, "expected at most %u", ARGUMENT_LIMIT);
        attributes->arguments[attributes->argument_count++] = argument;
    }
    return STATUS_OK;
}

/* Arguments must not overlap, and must lie inside what the kernel takes. */
static bool arguments_agree(const struct kernel_attributes *attributes)
{
    uint64_t end = 0;
    for (size_t i = 0; i < attributes->argument_count; i++) {
        const struct coredump_argument *argument = &attributes->arguments[i];
        if (argument->offset < end || argument->bytes == 0)
            return false;
        end = (uint64_t)argument->offset + argument->bytes;
    }
    return !attributes->size_known || end <= attributes->argument_bytes;
}

enum status image_attributes(const struct image *image, const struct function *function,
                             struct work *work, struct kernel_attributes *ret, bool *ret_known,
                             struct error *err)
{
    struct kernel_attributes attributes = { 0 };
    struct elf_section section;
    struct error ignored;
    struct bytes in;
    *ret_known = false;
    uint32_t index = image->info_sections[function->section];
    if (index == 0 || elf_section_at(&image->elf, index, &section, &ignored) ||
        work_spend(work, section.bytes, &ignored))
        return STATUS_OK;
    /* An argument takes 16 bytes. */
    uint64_t room = section.bytes / 16;
    attributes.arguments = calloc(min_u64(room, ARGUMENT_LIMIT) + 1, sizeof(*attributes.arguments));
    if (!attributes.arguments)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory for arguments", image->source);
    bytes_init(&in, image->elf.data + section.offset, section.bytes, image->source);
    if (read_attributes(&in, &attributes, &ignored)) {
        free(attributes.arguments);
        return STATUS_OK;
    }
    qsort(attributes.arguments, attributes.argument_count, sizeof(*attributes.arguments),
          compare_arguments);
    if (!arguments_agree(&attributes)) {
        free(attributes.arguments);
        return STATUS_OK;
    }
    *ret = attributes;
    *ret_known = true;
    return STATUS_OK;
}
