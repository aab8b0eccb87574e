/* writer.h - a file that is being written, shared by the files that do it. */
#ifndef GRETA_GGUF_WRITER_H
#define GRETA_GGUF_WRITER_H

#include "base/outfile.h"
#include "gguf/gguf_impl.h"

struct pending_entry {
    struct text key;
    struct text value; /* type and value, as in the file */
};

struct pending_tensor {
    struct text name;
    enum dtype dtype;
    struct shape shape;
    uint64_t bytes;
    uint64_t offset_bytes; /* from the start of the data */
};

struct gguf_writer {
    struct pending_entry *entries; /* owned */
    size_t entry_count, entry_capacity;
    struct pending_tensor *tensors; /* owned */
    size_t tensor_count, tensor_capacity;
    uint64_t data_bytes; /* of all tensors, padded */
    uint64_t size_bytes; /* of the file, once data has begun */
    struct outfile out;
    bool begun;
    bool failed;           /* out of memory */
    size_t current_tensor; /* being appended */
    uint64_t current_bytes;
};

/* Adds the low bytes of a number, little endian. */
void gguf_add_number(struct text *text, uint64_t value, size_t bytes);

#endif
