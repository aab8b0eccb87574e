/* gguf_impl.h - what the files of this module share. */
#ifndef GRETA_GGUF_GGUF_IMPL_H
#define GRETA_GGUF_GGUF_IMPL_H

#include "base/bytes.h"
#include "base/mapfile.h"
#include "gguf/gguf.h"

/* One file of a (possibly) split model. */
struct gguf_shard {
    char *path; /* owned */
    struct mapfile map;
    const uint8_t *data; /* the mapping, or the caller's memory */
    uint64_t size;
    uint32_t version;
    uint64_t alignment;
    uint64_t data_start; /* file offset of the tensor data */
    uint64_t entry_count;
    uint64_t tensor_count;
    struct gguf_entry *entries;  /* owned, in file order; only the first part keeps them */
    struct gguf_tensor *tensors; /* owned, in file order */
    uint64_t split_total;        /* split.tensors.count, 0 if the part does not say */
    uint64_t split_total_offset; /* where that number is in the file */
};

struct gguf_file {
    struct gguf_shard *shards; /* owned */
    uint32_t shard_count;
    const struct gguf_entry **entries_by_key; /* owned; of shard 0 */
    struct gguf_tensor *tensors;              /* owned; of all shards, in file order */
    const struct gguf_tensor **tensors_by_name;
    size_t tensor_count;
};

#define GGUF_SHOWN_NAME_BYTES 96 /* of a name in a message */

/* reader.c: header, metadata and tensor directory of shard->data. */
MUST_CHECK enum status gguf_read_shard(struct gguf_shard *shard, struct error *err);

/* directory.c: shard->tensors, from where `in` stands. */
MUST_CHECK enum status gguf_read_directory(struct bytes *in, struct gguf_shard *shard,
                                           struct error *err);

/* Size of one element in the file; 0 for strings and arrays. */
uint32_t gguf_type_bytes(enum gguf_type type);

/* validate.c: offsets, bounds and overlaps of the tensors of one shard. */
MUST_CHECK enum status gguf_validate_data(const struct gguf_shard *shard, struct error *err);
/* Sorts by key, refuses duplicates. */
MUST_CHECK enum status gguf_index_entries(struct gguf_shard *shard,
                                          const struct gguf_entry ***ret_index, struct error *err);
MUST_CHECK enum status gguf_index_tensors(struct gguf_file *file, struct error *err);
const struct gguf_value *gguf_index_find(const struct gguf_entry *const *index, uint64_t count,
                                         struct text_view key); /* or NULL */

/* split.c: "<prefix>-00002-of-00005.gguf". */
struct gguf_split_name {
    size_t prefix_length;
    uint32_t index; /* from 0 */
    uint32_t count;
};
/* False if the path is not of that form. */
bool gguf_split_parse(const char *path, struct gguf_split_name *ret);
/* Allocated; NULL without memory. */
char *gguf_split_path(const char *path, const struct gguf_split_name *name, uint32_t index);
/* Compares split.no and split.count of one part with its name (NULL: not the name of a part), and
 * stores split.tensors.count. */
MUST_CHECK enum status gguf_split_check_part(struct gguf_shard *shard,
                                             const struct gguf_split_name *name, uint32_t index,
                                             struct error *err);
/* Compares the stored counts with the tensors of all parts. */
MUST_CHECK enum status gguf_split_check_total(const struct gguf_file *file, struct error *err);

#endif
