/* keys.c - see keys.h. Some files give one number for each layer; greta runs models whose layers
 * are equal. */
#include "model/keys.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

const char *model_keys_full(const struct model_keys *keys, const char *key, char *buffer,
                            size_t bytes)
{
    snprintf(buffer, bytes, "%s.%s", keys->arch, key);
    return buffer;
}

void model_keys_problem(struct model_keys *keys, const struct error *err)
{
    model_problem_add(keys->report, MODEL_PROBLEM_CANNOT_RUN, "%s; convert the model again",
                      err->text);
    keys->complete = false;
}

/* Some files give one number per layer. That is accepted if all are equal. */
static bool uniform_array(struct model_keys *keys, const char *key, const struct gguf_value *value,
                          uint64_t *ret)
{
    uint64_t first = 0;
    for (uint64_t i = 0; i < value->count; i++) {
        uint64_t number;
        if (!gguf_value_u64(value, i, &number)) {
            model_problem_add(keys->report, MODEL_PROBLEM_CANNOT_RUN,
                              "%s: expected whole numbers, found an array of %s; convert the model "
                              "again",
                              key, gguf_type_name(value->element_type));
            return false;
        }
        if (i == 0)
            first = number;
        if (number != first) {
            model_problem_add(keys->report, MODEL_PROBLEM_CANNOT_RUN,
                              "%s: expected one value for all layers, found %" PRIu64
                              " for layer 0 and %" PRIu64 " for layer %" PRIu64
                              "; greta cannot run models whose layers differ",
                              key, first, number, i);
            return false;
        }
    }
    if (value->count == 0) {
        model_problem_add(keys->report, MODEL_PROBLEM_CANNOT_RUN,
                          "%s: expected one value per layer, found an empty array; convert the "
                          "model again",
                          key);
        return false;
    }
    *ret = first;
    return true;
}

uint32_t model_keys_whole(struct model_keys *keys, const char *short_key, uint32_t least,
                          uint32_t most, const uint32_t *fallback)
{
    char key[128];
    model_keys_full(keys, short_key, key, sizeof(key));
    const struct gguf_value *value = gguf_find(keys->file, key);
    if (!value && fallback)
        return *fallback;
    uint64_t number = 0;
    if (value && value->type == GGUF_ARRAY) {
        if (!uniform_array(keys, key, value, &number)) {
            keys->complete = false;
            return least;
        }
    } else {
        struct error err;
        if (gguf_get_u64(keys->file, key, &number, &err)) {
            model_keys_problem(keys, &err);
            return least;
        }
    }
    if (number < least || number > most) {
        model_problem_add(keys->report, MODEL_PROBLEM_CANNOT_RUN,
                          "%s: expected %" PRIu32 " to %" PRIu32 ", found %" PRIu64
                          "; the file is damaged, get or convert it again",
                          key, least, most, number);
        keys->complete = false;
        return least;
    }
    return (uint32_t)number;
}

uint32_t model_keys_by_layer(struct model_keys *keys, const char *short_key, uint32_t least,
                             uint32_t most, const uint32_t *fallback, uint32_t layers,
                             uint32_t numbers[MODEL_UNLIKE_LIMIT])
{
    char key[128];
    model_keys_full(keys, short_key, key, sizeof(key));
    const struct gguf_value *value = gguf_find(keys->file, key);
    if (!value || value->type != GGUF_ARRAY)
        return model_keys_whole(keys, short_key, least, most, fallback);
    uint32_t largest = least;
    bool fits = value->count == layers && layers <= MODEL_UNLIKE_LIMIT;
    for (uint32_t layer = 0; fits && layer < layers; layer++) {
        uint64_t number;
        fits = gguf_value_u64(value, layer, &number) && number >= least && number <= most;
        numbers[layer] = fits ? (uint32_t)number : least;
        largest = numbers[layer] > largest ? numbers[layer] : largest;
    }
    if (!fits) {
        model_problem_add(keys->report, MODEL_PROBLEM_CANNOT_RUN,
                          "%s: expected %" PRIu32 " numbers from %" PRIu32 " to %" PRIu32
                          ", one for each of at most %u layers, found an array of %" PRIu64
                          " %s; convert the model again",
                          key, layers, least, most, MODEL_UNLIKE_LIMIT, value->count,
                          gguf_type_name(value->element_type));
        keys->complete = false;
    }
    return largest;
}

float model_keys_real(struct model_keys *keys, const char *short_key, double above, double most,
                      float fallback)
{
    char key[128];
    model_keys_full(keys, short_key, key, sizeof(key));
    if (!gguf_find(keys->file, key) && !isnan(fallback))
        return fallback;
    double number;
    struct error err;
    if (gguf_get_f64(keys->file, key, &number, &err)) {
        model_keys_problem(keys, &err);
        return 1.0f;
    }
    if (!(number > above && number <= most)) {
        model_problem_add(keys->report, MODEL_PROBLEM_CANNOT_RUN,
                          "%s: expected a number above %g and at most %g, found %g; the file is "
                          "damaged, get or convert it again",
                          key, above, most, number);
        keys->complete = false;
        return 1.0f;
    }
    return (float)number;
}
