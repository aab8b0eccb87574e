/* images.h - the PTX texts of an image that a program gives to the driver: PTX itself, or a fat
 * binary. Its layout is known from public descriptions of the format; NVIDIA documents none.
 *
 * Nothing is said of an image that has machine code for a chip without PTX for the same chip: the
 * machine code may come from other source text. */
#ifndef GRETA_INTERPOSE_CUDA_IMAGES_H
#define GRETA_INTERPOSE_CUDA_IMAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the caller's memory; all of the bytes, or false. */
struct image_reader {
    bool (*read)(void *context, uint64_t address, void *to, size_t bytes);
    void *context;
};

/* Bytes of PTX that are read of one image. */
#define IMAGE_TEXT_BYTES (UINT64_C(8) << 20)

/* Calls found for each text of the image at that address. False, and nothing is found, if there is
 * none, if one cannot be read, or if they do not stand for all of the image. */
bool image_read(const struct image_reader *reader, uint64_t address,
                void (*found)(void *context, const char *text, size_t bytes), void *context);

/* Expands an LZ4 block to exactly that many bytes. */
bool lz4_expand(const uint8_t *from, size_t from_bytes, uint8_t *to, size_t to_bytes);

#endif
