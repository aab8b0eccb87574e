/* npy.h - arrays of f32 in NumPy's file format: version 1.0, '<f4', C order.
 *
 * A shape here has the fastest dimension first, as everywhere in greta; in the file it is the last
 * one, as NumPy wants it: [4096, 5] is written as shape (5, 4096). */
#ifndef GRETA_TENSOR_NPY_H
#define GRETA_TENSOR_NPY_H

#include "base/mapfile.h"
#include "tensor/shape.h"

/* The header of a file. Its length depends on nothing but this constant, so that it can be
 * overwritten by a header with another shape. */
#define NPY_HEADER_BYTES 128
void npy_header(const struct shape *shape, uint8_t header[NPY_HEADER_BYTES]);

/* Writes the whole file at once; values has the elements of shape. An existing file is refused; one
 * that could not be completed is removed. The file is not forced to the disk: whatever names it (an
 * index) is written later. */
MUST_CHECK enum status npy_write(const char *path, const struct shape *shape, const float *values,
                                 struct error *err);

/* A file being read. values are borrowed from the mapping, little endian, aligned to 4 bytes. */
struct npy {
    struct mapfile map;
    struct shape shape;
    uint64_t count; /* of values */
    const float *values;
};

/* Accepts damaged and hostile files: STATUS_BAD_FILE says what was expected. Reads versions 1 to 3;
 * STATUS_UNSUPPORTED for other types, Fortran order and more than SHAPE_RANK_LIMIT dimensions.
 * Initialises *npy whatever the outcome. */
MUST_CHECK enum status npy_open(struct npy *npy, const char *path, struct error *err);
/* The same for bytes in memory, aligned to 4, which must outlive *npy; name is for messages. */
MUST_CHECK enum status npy_read(struct npy *npy, const void *bytes, uint64_t count,
                                const char *name, struct error *err);
void npy_release(struct npy *npy); /* an empty struct is fine */

#endif
