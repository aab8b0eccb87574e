/* interpose_hip_code.h - a code object by hand, for tests. */
#ifndef GRETA_TESTS_INTERPOSE_HIP_CODE_H
#define GRETA_TESTS_INTERPOSE_HIP_CODE_H

#include "interpose/hip/code_object.h"
#include "test.h"

#include <string.h>

struct image {
    uint8_t bytes[4096];
    size_t size;
};

static inline void add(struct image *image, const void *bytes, size_t count)
{
    assert_true(image->size + count <= sizeof(image->bytes));
    memcpy(image->bytes + image->size, bytes, count);
    image->size += count;
}

static inline void add_byte(struct image *image, unsigned byte)
{
    uint8_t value = (uint8_t)byte;
    add(image, &value, 1);
}

static inline void add_text(struct image *image, const char *text)
{
    add_byte(image, 0xA0u | (unsigned)strlen(text));
    add(image, text, strlen(text));
}

static inline void put(struct image *image, size_t at, uint64_t value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        image->bytes[at + i] = (uint8_t)(value >> 8 * i);
}

static inline void add_argument(struct image *image, unsigned offset, unsigned bytes,
                                const char *kind, const char *access)
{
    add_byte(image, access ? 0x85 : 0x84); /* a map of four or five */
    if (access) {
        add_text(image, ".actual_access");
        add_text(image, access);
    }
    add_text(image, ".address_space");
    add_text(image, "global");
    add_text(image, ".offset");
    add_byte(image, offset);
    add_text(image, ".size");
    add_byte(image, 0xCD); /* in 16 bits, highest first */
    add_byte(image, bytes >> 8);
    add_byte(image, bytes & 255);
    add_text(image, ".value_kind");
    add_text(image, kind);
}

static inline void add_metadata(struct image *image)
{
    add_byte(image, 0x82);
    add_text(image, "amdhsa.version");
    add_byte(image, 0x92);
    add_byte(image, 1);
    add_byte(image, 2);
    add_text(image, "amdhsa.kernels");
    add_byte(image, 0x92);
    add_byte(image, 0x83);
    add_text(image, ".name");
    add_text(image, "scale");
    add_text(image, ".args");
    add_byte(image, 0x94);
    add_argument(image, 0, 8, "global_buffer", "read_only");
    add_argument(image, 8, 4, "by_value", NULL);
    add_argument(image, 16, 600, "by_value", NULL);
    add_argument(image, 24, 8, "hidden_block_count_x", NULL);
    add_text(image, ".uses");
    add_byte(image, 0x91); /* lists in lists, to be passed over */
    add_byte(image, 0x91);
    add_byte(image, 0xC3);
    add_byte(image, 0x81);
    add_text(image, ".name");
    add_text(image, "empty");
}

/* Header, one segment, one note of another kind and the one that counts. */
static inline void build(struct image *image)
{
    memset(image, 0, sizeof(*image));
    memcpy(image->bytes, "\177ELF\2\1\1", 7);
    image->size = 64 + 56;
    put(image, 18, 224, 2); /* machine */
    put(image, 32, 64, 8);  /* segments */
    put(image, 54, 56, 2);
    put(image, 56, 1, 2);
    size_t note = image->size;
    add(image, "\4\0\0\0\2\0\0\0\1\0\0\0GNU\0hi\0\0", 20);
    size_t head = image->size;
    add(image, "\7\0\0\0\0\0\0\0\40\0\0\0AMDGPU\0\0", 20);
    size_t begin = image->size;
    add_metadata(image);
    put(image, head + 4, image->size - begin, 4);
    put(image, 64, 4, 4); /* a note segment */
    put(image, 64 + 8, note, 8);
    put(image, 64 + 32, image->size - note, 8);
}

/* The same in a bundle, after code for the host. ret_target: where the chip's name begins. */
static inline void build_bundle(struct image *bundle, size_t *ret_target)
{
    static const char host[] = "host-x86_64-unknown-linux-gnu-";
    static const char chip[] = "hipv4-amdgcn-amd-amdhsa--gfx942";
    struct image image;
    build(&image);
    memset(bundle, 0, sizeof(*bundle));
    add(bundle, "__CLANG_OFFLOAD_BUNDLE__\2\0\0\0\0\0\0", 32);
    size_t first = bundle->size, second = first + 24 + sizeof(host) - 1;
    put(bundle, first + 16, sizeof(host) - 1, 8); /* no bytes */
    memcpy(bundle->bytes + first + 24, host, sizeof(host) - 1);
    put(bundle, second, 512, 8);
    put(bundle, second + 8, image.size, 8);
    put(bundle, second + 16, sizeof(chip) - 1, 8);
    memcpy(bundle->bytes + second + 24, chip, sizeof(chip) - 1);
    bundle->size = 512;
    add(bundle, image.bytes, image.size);
    *ret_target = second + 24;
}

#endif
