/* model_file.h - small models with something changed, as open GGUF files in memory.
 *
 * The model unchanged is one that can run: 2 layers, width 64, 4 heads of 16 values, 2 of them for
 * keys, 8 tokens. An edit changes, adds or drops one key or one tensor. */
#ifndef GRETA_TESTS_MODEL_FILE_H
#define GRETA_TESTS_MODEL_FILE_H

#include "test.h"

#include "gguf_build.h"
#include "model/model.h"

#include <stdio.h>
#include <string.h>

enum model_edit_kind { EDIT_NONE, EDIT_KEY, EDIT_DROP_KEY, EDIT_TENSOR, EDIT_DROP_TENSOR };

#define MODEL_EDIT_ELEMENTS 9

struct model_edit {
    enum model_edit_kind kind;
    const char *name; /* of the key, or of the tensor */
    uint32_t type;    /* BUILD_*, of a key; BUILD_ARRAY: of element_type */
    double number;    /* value of a key, or elements of the array */
    const char *text; /* value of a key of type BUILD_STRING */
    uint32_t element_type;
    double elements[MODEL_EDIT_ELEMENTS];
    enum dtype dtype; /* of a tensor */
    struct shape shape;
};

#define PUT_U32(key, value)                                                                        \
    {                                                                                              \
        .kind = EDIT_KEY, .name = key, .type = BUILD_U32, .number = value                          \
    }
#define PUT_I32(key, value)                                                                        \
    {                                                                                              \
        .kind = EDIT_KEY, .name = key, .type = BUILD_I32, .number = value                          \
    }
#define PUT_F32(key, value)                                                                        \
    {                                                                                              \
        .kind = EDIT_KEY, .name = key, .type = BUILD_F32, .number = value                          \
    }
#define PUT_TEXT(key, value)                                                                       \
    {                                                                                              \
        .kind = EDIT_KEY, .name = key, .type = BUILD_STRING, .text = value                         \
    }
#define PUT_ARRAY(key, of, count, ...)                                                             \
    {                                                                                              \
        .kind = EDIT_KEY, .name = key, .type = BUILD_ARRAY, .number = count, .element_type = of,   \
        .elements = {                                                                              \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define DROP_KEY(key)                                                                              \
    {                                                                                              \
        .kind = EDIT_DROP_KEY, .name = key                                                         \
    }
#define PUT_VECTOR(tensor, type, length)                                                           \
    {                                                                                              \
        .kind = EDIT_TENSOR, .name = tensor, .dtype = type, .shape = { 1, { length, 1, 1, 1 } }    \
    }
#define PUT_MATRIX(tensor, type, in, out)                                                          \
    {                                                                                              \
        .kind = EDIT_TENSOR, .name = tensor, .dtype = type, .shape = { 2, { in, out, 1, 1 } }      \
    }
#define DROP_TENSOR(tensor)                                                                        \
    {                                                                                              \
        .kind = EDIT_DROP_TENSOR, .name = tensor                                                   \
    }

/* A test's model: initialise, look at file and report, release. */
struct model_file {
    const struct model_edit *edits; /* up to the first EDIT_NONE */
    bool used[8];                   /* which edits changed something that is there unchanged */
    struct gguf_build build;
    struct gguf_file *file;
    struct model_report report;
};

static inline struct model_config model_file_config(enum model_arch arch)
{
    return (struct model_config){ .arch = arch,
                                  .context_length = 128,
                                  .embedding_length = 64,
                                  .block_count = 2,
                                  .feed_forward_length = 96,
                                  .head_count = 4,
                                  .head_count_kv = 2,
                                  .head_dim = 16,
                                  .vocab_size = 8,
                                  .rope = { .dimension_count = 16 } };
}

static inline const struct model_edit *model_file_edit(struct model_file *model, const char *name)
{
    for (size_t i = 0; model->edits && model->edits[i].kind; i++) {
        if (strcmp(model->edits[i].name, name) == 0) {
            model->used[i] = true;
            return &model->edits[i];
        }
    }
    return NULL;
}

static inline uint64_t model_file_bits(uint32_t type, double number)
{
    uint64_t bits = 0;
    float single = (float)number;
    if (type == BUILD_F32)
        memcpy(&bits, &single, sizeof(single));
    else if (type == BUILD_F64)
        memcpy(&bits, &number, sizeof(number));
    else
        bits = number < 0 ? (uint64_t)(int64_t)number : (uint64_t)number;
    return bits;
}

static inline void model_file_put(struct model_file *model, const struct model_edit *edit)
{
    uint64_t elements[MODEL_EDIT_ELEMENTS];
    if (edit->kind == EDIT_DROP_KEY)
        return;
    if (edit->type == BUILD_STRING) {
        gguf_build_string(&model->build, edit->name, edit->text);
    } else if (edit->type == BUILD_ARRAY) {
        for (size_t i = 0; i < MODEL_EDIT_ELEMENTS; i++)
            elements[i] = model_file_bits(edit->element_type, edit->elements[i]);
        gguf_build_array(&model->build, edit->name, edit->element_type, elements,
                         (uint64_t)edit->number);
    } else {
        gguf_build_number(&model->build, edit->name, edit->type,
                          model_file_bits(edit->type, edit->number));
    }
}

/* The key as it is unchanged, or what an edit makes of it. */
static inline void model_file_key(struct model_file *model, const char *arch,
                                  struct model_edit unchanged)
{
    char name[96];
    snprintf(name, sizeof(name), "%s%s%s", arch, arch[0] ? "." : "", unchanged.name);
    unchanged.name = name;
    const struct model_edit *edit = model_file_edit(model, name);
    model_file_put(model, edit ? edit : &unchanged);
}

static inline void model_file_keys(struct model_file *model, const struct model_config *config)
{
    static const char *const tokens[] = { "<unk>", "<s>", "</s>", "a", "b", "c", "d", "e" };
    const char *arch = model_arch_info(config->arch)->name;
    uint32_t reads = model_arch_info(config->arch)->reads;
    bool rms = model_arch_info(config->arch)->norm == MODEL_NORM_RMS;
    const struct model_edit keys[] = {
        PUT_U32("context_length", config->context_length),
        PUT_U32("embedding_length", config->embedding_length),
        PUT_U32("block_count", config->block_count),
        PUT_U32("feed_forward_length", config->feed_forward_length),
        PUT_U32("attention.head_count", config->head_count),
        PUT_U32("attention.head_count_kv", config->head_count_kv),
        PUT_F32(rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon", 1e-5),
        PUT_U32("attention.sliding_window", 64),
        PUT_F32("logit_scale", 0.5),
    };
    const uint32_t needed[COUNT_OF(keys)] = { [COUNT_OF(keys) - 2] = MODEL_NEEDS_WINDOW,
                                              [COUNT_OF(keys) - 1] = MODEL_NEEDS_LOGIT_SCALE };
    model_file_key(model, "", (struct model_edit)PUT_TEXT("general.architecture", arch));
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (!needed[i] || reads & needed[i])
            model_file_key(model, arch, keys[i]);
    if (reads & MODEL_LAYERS_DIFFER)
        model_file_key(
            model, arch,
            (struct model_edit)PUT_ARRAY("attention.sliding_window_pattern", BUILD_BOOL, 2, 1, 0));
    const struct model_edit *edit = model_file_edit(model, "tokenizer.ggml.tokens");
    if (edit)
        model_file_put(model, edit);
    else
        gguf_build_strings(&model->build, "tokenizer.ggml.tokens", tokens, COUNT_OF(tokens));
    model_file_key(model, "", (struct model_edit)PUT_U32("tokenizer.ggml.bos_token_id", 1));
    for (size_t i = 0; model->edits && model->edits[i].kind; i++)
        if (model->edits[i].kind == EDIT_KEY && !model->used[i])
            model_file_put(model, &model->edits[i]);
}

static inline void model_file_tensor(struct model_file *model, const char *name, enum dtype dtype,
                                     const struct shape *shape)
{
    uint64_t bytes;
    if (!shape_bytes(shape, dtype, &bytes))
        fail_msg("%s: not whole blocks", name);
    gguf_build_tensor(&model->build, name, shape->rank, shape->dims, dtype_info(dtype)->file_id,
                      bytes);
}

static inline void model_file_tensors(struct model_file *model, const struct model_config *config)
{
    for (size_t i = 0; i < MODEL_ROLE_COUNT; i++) {
        enum model_role role = (enum model_role)i;
        uint32_t layers = model_role_is_per_layer(role) ? config->block_count : 1;
        for (uint32_t layer = 0; layer < layers; layer++) {
            struct model_tensor planned = model_tensor(config, role, layer);
            if (planned.presence == MODEL_ABSENT ||
                (planned.presence != MODEL_REQUIRED && role != MODEL_OUTPUT))
                continue;
            const struct model_edit *edit = model_file_edit(model, planned.name);
            if (!edit)
                model_file_tensor(model, planned.name, DTYPE_F32, &planned.shape);
            else if (edit->kind == EDIT_TENSOR)
                model_file_tensor(model, edit->name, edit->dtype, &edit->shape);
        }
    }
    for (size_t i = 0; model->edits && model->edits[i].kind; i++)
        if (model->edits[i].kind == EDIT_TENSOR && !model->used[i])
            model_file_tensor(model, model->edits[i].name, model->edits[i].dtype,
                              &model->edits[i].shape);
}

/* edits may be NULL; fails the test where the file cannot be opened. */
static inline void model_file_init(struct model_file *model, enum model_arch arch,
                                   const struct model_edit *edits)
{
    struct error err;
    struct model_config config = model_file_config(arch);
    *model = (struct model_file){ .edits = edits };
    gguf_build_init(&model->build, 3);
    model_file_keys(model, &config);
    model_file_tensors(model, &config);
    gguf_build_finish(&model->build);
    CHECK_OK(gguf_open_memory(text_get(&model->build.text), model->build.text.length, "m.gguf",
                              &model->file, &err),
             &err);
    model_check(model->file, NULL, &model->report);
}

static inline void model_file_release(struct model_file *model)
{
    gguf_close(model->file);
    gguf_build_release(&model->build);
}

/* True if one problem of the report holds all of the words (up to the first NULL). */
static inline bool model_report_says(const struct model_report *report, const char *const *words)
{
    for (size_t i = 0; i < report->problem_count; i++) {
        size_t found = 0;
        while (words[found] && strstr(report->problems[i].text, words[found]))
            found++;
        if (!words[found])
            return true;
    }
    return false;
}

#endif
