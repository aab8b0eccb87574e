/* gguf.h - GGUF model files: read from a mapping, written as a stream.
 *
 * Reading. gguf_open maps the file (and its siblings, if it is split), walks metadata and tensor
 * directory once and checks everything it will later rely on: lengths, counts, types, alignment,
 * offsets, overlaps, duplicates. It touches no tensor data. All views, values and data pointers are
 * borrowed from the mapping and live until gguf_close. A gguf_file does not change after it was
 * opened; any thread may read it.
 *
 * Writing. Add metadata, declare tensors, then append their bytes in the declared order. The file
 * is laid out as every GGUF reader requires: contiguous, padded, in order. */
#ifndef GRETA_GGUF_GGUF_H
#define GRETA_GGUF_GGUF_H

#include "base/progress.h"
#include "base/status.h"
#include "base/text.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Limits --------------------------------------------------------------------------------- */

/* Real models have some 50 keys and up to a few thousand tensors. The limits keep the tables of the
 * most hostile file under 64 MiB. */
#define GGUF_ENTRY_LIMIT 65536u
#define GGUF_TENSOR_LIMIT 262144u
#define GGUF_SHARD_LIMIT 1024u
#define GGUF_KEY_LIMIT_BYTES 65535u
#define GGUF_TENSOR_NAME_LIMIT_BYTES 63u
#define GGUF_STRING_LIMIT_BYTES (1u << 30)
#define GGUF_ALIGNMENT_DEFAULT 32u

/* ---- Values --------------------------------------------------------------------------------- */

/* The numbers are those of the file format. */
enum gguf_type {
    GGUF_U8 = 0,
    GGUF_I8,
    GGUF_U16,
    GGUF_I16,
    GGUF_U32,
    GGUF_I32,
    GGUF_F32,
    GGUF_BOOL,
    GGUF_STRING,
    GGUF_ARRAY,
    GGUF_U64,
    GGUF_I64,
    GGUF_F64,
    GGUF_TYPE_COUNT
};

const char *gguf_type_name(enum gguf_type type);

struct gguf_value {
    enum gguf_type type;
    enum gguf_type element_type; /* of an array; else equal to type */
    uint64_t count;              /* elements of an array; else 1 */
    const uint8_t *data;         /* first element, as in the file; a string starts at its length */
    uint64_t bytes;              /* of all elements */
    uint64_t offset_bytes;       /* of data in the file, for messages */
};

struct gguf_entry {
    struct text_view key;
    struct gguf_value value;
};

struct gguf_tensor {
    struct text_view name;
    enum dtype dtype;
    struct shape shape;
    uint64_t bytes;
    const uint8_t *data;   /* bytes long; unaligned beyond the file's alignment */
    uint64_t offset_bytes; /* of data in its shard */
    uint32_t shard_index;
};

/* ---- Reading -------------------------------------------------------------------------------- */

struct gguf_file;

/* path may be any shard of a split file; all are opened. */
MUST_CHECK enum status gguf_open(const char *path, struct gguf_file **ret_file, struct error *err);

/* bytes are borrowed until gguf_close; name is for messages. A split file cannot be opened this
 * way. */
MUST_CHECK enum status gguf_open_memory(const void *bytes, uint64_t size, const char *name,
                                        struct gguf_file **ret_file, struct error *err);
void gguf_close(struct gguf_file *file); /* NULL is fine */

/* STATUS_IO if the file was cut while it was open, so that the reader got zeros. Call it at the
 * end, whenever something was made from tensors or metadata. */
MUST_CHECK enum status gguf_check_whole(const struct gguf_file *file, struct error *err);

const char *gguf_path(const struct gguf_file *file); /* of the first shard */
uint32_t gguf_version(const struct gguf_file *file);
uint64_t gguf_alignment(const struct gguf_file *file);
uint64_t gguf_size_bytes(const struct gguf_file *file); /* of all shards */
uint32_t gguf_shard_count(const struct gguf_file *file);
/* True if path names one of the open files. */
bool gguf_is_same_file(const struct gguf_file *file, const char *path);

size_t gguf_entry_count(const struct gguf_file *file);
const struct gguf_entry *gguf_entry_at(const struct gguf_file *file, size_t index);
const struct gguf_value *gguf_find(const struct gguf_file *file, const char *key); /* or NULL */

size_t gguf_tensor_count(const struct gguf_file *file);
const struct gguf_tensor *gguf_tensor_at(const struct gguf_file *file, size_t index);
const struct gguf_tensor *gguf_tensor_find(const struct gguf_file *file,
                                           const char *name); /* or NULL */

/* Announces that a tensor will be read now: pages that are not in memory are requested at once. */
void gguf_tensor_ahead(const struct gguf_file *file, const struct gguf_tensor *tensor);
/* Copies bytes [at, at + bytes) of a tensor into the caller's memory without touching the mapping:
 * the fastest way if each byte is read once. STATUS_IO if the file was cut meanwhile. Any thread
 * may call it. */
MUST_CHECK enum status gguf_tensor_read(const struct gguf_file *file,
                                        const struct gguf_tensor *tensor, uint64_t at, void *target,
                                        uint64_t bytes, struct error *err);
/* Announces that the pages of a tensor will not be needed again soon. */
void gguf_tensor_drop(const struct gguf_file *file, const struct gguf_tensor *tensor);

/* Typed access. STATUS_NOT_FOUND if the key is absent; STATUS_BAD_FILE if the value cannot be read
 * as the requested type. Integers of any width and sign are accepted if the number fits, and so are
 * floats of any width. An integer may be read as a float, never the reverse. */
MUST_CHECK enum status gguf_get_u64(const struct gguf_file *file, const char *key,
                                    uint64_t *ret_value, struct error *err);
MUST_CHECK enum status gguf_get_f64(const struct gguf_file *file, const char *key,
                                    double *ret_value, struct error *err);
MUST_CHECK enum status gguf_get_flag(const struct gguf_file *file, const char *key, bool *ret_value,
                                     struct error *err);
MUST_CHECK enum status gguf_get_text(const struct gguf_file *file, const char *key,
                                     struct text_view *ret_value, struct error *err);

/* Reads one number of a scalar or array. False if index is past the end, or if the element is of
 * another kind or does not fit. */
bool gguf_value_u64(const struct gguf_value *value, uint64_t index, uint64_t *ret);
bool gguf_value_i64(const struct gguf_value *value, uint64_t index, int64_t *ret);
bool gguf_value_f64(const struct gguf_value *value, uint64_t index, double *ret);

/* Walks a string or an array of strings: initialise with gguf_strings_of, then call next until it
 * returns false. */
struct gguf_strings {
    const uint8_t *data;
    uint64_t bytes_left;
    uint64_t strings_left;
};
struct gguf_strings gguf_strings_of(const struct gguf_value *value);
bool gguf_strings_next(struct gguf_strings *strings, struct text_view *ret);

/* ---- Writing -------------------------------------------------------------------------------- */

struct gguf_writer;

/* Nothing is written before gguf_writer_begin_data. Destroying a writer that was not finished
 * removes its file. */
MUST_CHECK enum status gguf_writer_create(struct gguf_writer **ret_writer, struct error *err);
void gguf_writer_destroy(struct gguf_writer *writer); /* NULL is fine */

/* An existing key is replaced where it stands. Running out of memory is reported by
 * gguf_writer_begin_data. */
void gguf_writer_put_u32(struct gguf_writer *writer, const char *key, uint32_t value);
void gguf_writer_put_f32(struct gguf_writer *writer, const char *key, float value);
void gguf_writer_put_flag(struct gguf_writer *writer, const char *key, bool value);
void gguf_writer_put_text(struct gguf_writer *writer, const char *key, const char *value);
/* value: as in a gguf_file, of any type. */
void gguf_writer_put_value(struct gguf_writer *writer, struct text_view key,
                           const struct gguf_value *value);
/* elements: count elements of a fixed-size type, little endian as in the file. */
void gguf_writer_put_array(struct gguf_writer *writer, const char *key, enum gguf_type element_type,
                           const void *elements, uint64_t count);
/* strings: the concatenation of count strings, each added by gguf_add_string. */
void gguf_writer_put_strings(struct gguf_writer *writer, const char *key,
                             const struct text *strings, uint64_t count);
/* Adds length and bytes as a GGUF string. */
void gguf_add_string(struct text *text, struct text_view string);

/* Declares the next tensor. Refuses a bad or repeated name, and a shape that is not whole blocks.
 */
MUST_CHECK enum status gguf_writer_add_tensor(struct gguf_writer *writer, struct text_view name,
                                              enum dtype dtype, const struct shape *shape,
                                              struct error *err);

/* Creates the file (see base/outfile.h) and writes everything up to the data. */
MUST_CHECK enum status gguf_writer_begin_data(struct gguf_writer *writer, const char *path,
                                              bool replace, struct error *err);
/* Size of the whole file, known after gguf_writer_begin_data. */
uint64_t gguf_writer_size_bytes(const struct gguf_writer *writer);

/* Appends bytes of the current tensor. Padding and the step to the next tensor happen here. More
 * bytes than were declared is an ASSERT. */
MUST_CHECK enum status gguf_writer_append(struct gguf_writer *writer, const void *bytes,
                                          size_t count, struct error *err);

/* All tensors must be complete. The file appears under its name. */
MUST_CHECK enum status gguf_writer_finish(struct gguf_writer *writer, struct error *err);

/* ---- Hashes --------------------------------------------------------------------------------- */

#define GGUF_SHA256_BYTES 32

struct gguf_hash {
    uint64_t xxh64; /* seed 0, over the tensor's bytes */
    uint8_t sha256[GGUF_SHA256_BYTES];
};

/* Hashes every tensor on all processors: ret_hashes has gguf_tensor_count entries. */
MUST_CHECK enum status gguf_hash_tensors(const struct gguf_file *file,
                                         const struct progress *progress,
                                         struct gguf_hash *ret_hashes, struct error *err);

/* A manifest: the hashes a file should have, as printed by `greta inspect --hash` and others. */
struct gguf_manifest;

enum gguf_match { GGUF_MATCH_SAME, GGUF_MATCH_DIFFERENT, GGUF_MATCH_UNLISTED };

MUST_CHECK enum status gguf_manifest_open(const char *path, struct gguf_manifest **ret_manifest,
                                          struct error *err);
void gguf_manifest_close(struct gguf_manifest *manifest);         /* NULL is fine */
size_t gguf_manifest_count(const struct gguf_manifest *manifest); /* tensors listed */
/* Compares every hash that the manifest has for the tensor. */
enum gguf_match gguf_manifest_compare(const struct gguf_manifest *manifest, struct text_view tensor,
                                      const struct gguf_hash *hash);

#endif
