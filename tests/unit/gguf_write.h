/* gguf_write.h - a writer with a few tensors: what the tests of the writer share. */
#ifndef GRETA_TESTS_GGUF_WRITE_H
#define GRETA_TESTS_GGUF_WRITE_H

#include "gguf_open.h"
#include "gguf_walk.h"
#include "temp_folder.h"
#include "test.h"

static const struct planned {
    const char *name;
    enum dtype dtype;
    struct shape shape;
    uint32_t file_rank; /* trailing dimensions of 1 are not written */
    uint32_t file_type;
    uint64_t bytes;
} planned[] = {
    { "first", DTYPE_F32, { 1, { 5, 1, 1, 1 } }, 1, 0, 20 },
    { "exact", DTYPE_F32, { 2, { 4, 2, 1, 1 } }, 2, 0, 32 },
    { "empty", DTYPE_F32, { 1, { 0, 1, 1, 1 } }, 1, 0, 0 },
    { "blocks", DTYPE_Q4_K, { 2, { 256, 3, 1, 1 } }, 2, 12, 432 },
    { "scalar", DTYPE_I64, { 0, { 1, 1, 1, 1 } }, 1, 27, 8 },
    { "four", DTYPE_I8, { 4, { 3, 1, 5, 1 } }, 3, 24, 15 },
    { "empty last but one", DTYPE_F16, { 2, { 7, 0, 1, 1 } }, 2, 1, 0 },
    { "last", DTYPE_I8, { 4, { 33, 1, 1, 1 } }, 1, 24, 33 },
};

static inline struct gguf_writer *create_writer(void)
{
    struct gguf_writer *writer;
    struct error err;
    CHECK_OK(gguf_writer_create(&writer, &err), &err);
    return writer;
}

static inline void add_planned(struct gguf_writer *writer)
{
    struct error err;
    for (size_t i = 0; i < COUNT_OF(planned); i++)
        CHECK_OK(gguf_writer_add_tensor(writer, text_view_of(planned[i].name), planned[i].dtype,
                                        &planned[i].shape, &err),
                 &err);
}

static inline void finish_empty(struct gguf_writer *writer, const struct temp_folder *folder)
{
    struct error err;
    struct temp_path path = temp_folder_path(folder, "out.gguf");
    CHECK_OK(gguf_writer_begin_data(writer, path.text, true, &err), &err);
    CHECK_OK(gguf_writer_finish(writer, &err), &err);
    gguf_writer_destroy(writer);
}

#endif
