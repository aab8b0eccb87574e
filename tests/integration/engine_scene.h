/* engine_scene.h - a small model in a file, and an engine on it, for tests of whole models. */
#ifndef GRETA_TESTS_ENGINE_SCENE_H
#define GRETA_TESTS_ENGINE_SCENE_H

#include "convert/convert.h"
#include "engine/engine.h"
#include "temp_folder.h"

struct scene {
    struct temp_folder folder;
    struct gguf_file *file;
    struct model_report report;
    struct device *device;
    struct ops ops;
    struct engine *engine;
    struct error err;
};

/* Three layers or more, 320 tokens, a context of 64; what differs between architectures differs. */
struct model_shape scene_shape(enum model_arch arch);

/* What no file says and is longer than a test: chunks of 6 tokens, where the model has chunks. */
void scene_shorten(struct model_config *config);

/* Six experts, two of them used, where an architecture may have them. */
void scene_give_experts(struct model_shape *shape);

/* Writes the model and reads it; scene_end closes it. */
void scene_write(struct scene *scene, const struct model_shape *shape, enum convert_type type);
void scene_end(struct scene *scene);

/* Writes into the model's file and reads it again, before there is an engine. */
void scene_poke(struct scene *scene, uint64_t at, const void *bytes, size_t count);

/* In token_embd.weight: makes the logits of a token and of all tokens after it NaN; in
 * output.weight: the token's own logit, always. */
void scene_poke_nan(struct scene *scene, const char *name, uint32_t id);

/* An engine on the host device, with guards and poison; scene_stop closes it and checks that
 * nothing is left on the device. */
void scene_start(struct scene *scene, enum cpu_path path, uint32_t threads,
                 struct engine_options options);
void scene_stop(struct scene *scene);

#endif
