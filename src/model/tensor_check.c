/* tensor_check.c - a file's directory against the table of tensors: what is missing, what has
 * another shape or type, what no such model has. */
#include "model/model_impl.h"

#include "base/size.h"
#include "tensor/quant.h"

#include <inttypes.h>
#include <string.h>

static void check_one(const struct gguf_tensor *tensor, const struct model_tensor *wanted,
                      struct model_report *report)
{
    char expected[SHAPE_TEXT_BYTES], found[SHAPE_TEXT_BYTES];
    if (!shape_equal(&tensor->shape, &wanted->shape)) {
        bool vocabulary = wanted->is_matrix && tensor->shape.dims[0] == wanted->shape.dims[0] &&
                          wanted->shape.dims[1] == report->config.vocab_size &&
                          strncmp(wanted->name, "blk.", 4) != 0;
        model_problem_add(
            report, MODEL_PROBLEM_CANNOT_RUN, "%s: expected shape %s, found %s; %s", wanted->name,
            shape_text(&wanted->shape, expected), shape_text(&tensor->shape, found),
            vocabulary ? "vocabulary and embedding do not match, convert the model "
                         "again with its own tokenizer"
                       : "metadata and tensors do not belong together, get or convert "
                         "the model again");
    }
    if (!model_dtype_allowed(wanted->is_matrix, tensor->dtype))
        model_problem_add(
            report, MODEL_PROBLEM_CANNOT_RUN, "%s: expected %s, found %s; %s", wanted->name,
            wanted->is_matrix ? "a type greta can decode (F32 F16 BF16 Q8_0 Q4_0 Q4_1 "
                                "Q5_0 Q5_1 Q2_K to Q6_K IQ4_NL IQ4_XS MXFP4)"
                              : "F32",
            dtype_name(tensor->dtype),
            quant_can_decode(tensor->dtype) ? "greta quantize writes it as F32"
                                            : "get the model in one of these types");
}

/* An optional tensor is present in all layers or in none. */
static void check_optional_layers(const struct gguf_file *file, enum model_role role,
                                  uint32_t present_count, struct model_report *report)
{
    uint32_t layers = report->config.block_count;
    if (present_count == 0 || present_count == layers)
        return;
    for (uint32_t layer = 0; layer < layers; layer++) {
        struct model_tensor wanted = model_tensor(&report->config, role, layer);
        if (gguf_tensor_find(file, wanted.name))
            continue;
        model_problem_add(report, MODEL_PROBLEM_CANNOT_RUN,
                          "%s: expected in all %" PRIu32 " layers or in none, found in %" PRIu32
                          "; the file is incomplete, get or convert it again",
                          wanted.name, layers, present_count);
        return;
    }
}

static void check_role(const struct gguf_file *file, enum model_role role,
                       struct model_report *report)
{
    bool per_layer = model_role_is_per_layer(role);
    uint32_t layers = per_layer ? report->config.block_count : 1;
    uint32_t present_count = 0, missing_count = 0;
    for (uint32_t layer = 0; layer < layers; layer++) {
        struct model_tensor wanted = model_tensor(&report->config, role, layer);
        const struct gguf_tensor *tensor = gguf_tensor_find(file, wanted.name);
        if (tensor && wanted.presence != MODEL_ABSENT) {
            present_count++;
            check_one(tensor, &wanted, report);
        } else if (!tensor && wanted.presence == MODEL_REQUIRED && missing_count++ == 0) {
            char shape[SHAPE_TEXT_BYTES];
            model_problem_add(report, MODEL_PROBLEM_CANNOT_RUN,
                              "%s: expected a tensor of shape %s, found none; the file is "
                              "incomplete, get or convert it again",
                              wanted.name, shape_text(&wanted.shape, shape));
        }
    }
    if (missing_count > 1)
        model_problem_add(report, MODEL_PROBLEM_CANNOT_RUN,
                          "%s: missing in %" PRIu32 " of %" PRIu32 " layers",
                          model_role_name(&report->config, role), missing_count, layers);
    /* Values may be keys in some layers and not in others. */
    if (per_layer && role != MODEL_ATTN_V &&
        model_tensor(&report->config, role, 0).presence == MODEL_OPTIONAL)
        check_optional_layers(file, role, present_count, report);
}

/* The part after "blk.N." of a layer's tensor; false for other names. N must have no leading zeros.
 */
static bool split_layer_name(struct text_view name, uint64_t *ret_layer, struct text_view *ret_rest)
{
    if (name.length < 5 || memcmp(name.bytes, "blk.", 4) != 0)
        return false;
    size_t at = 4;
    uint64_t layer = 0;
    while (at < name.length && name.bytes[at] >= '0' && name.bytes[at] <= '9' && at < 14)
        layer = layer * 10 + (uint64_t)(name.bytes[at++] - '0');
    if (at == 4 || at >= name.length || name.bytes[at] != '.' || (name.bytes[4] == '0' && at > 5))
        return false;
    *ret_layer = layer;
    *ret_rest = (struct text_view){ name.bytes + at + 1, name.length - at - 1 };
    return true;
}

static bool is_in_table(const struct model_config *config, struct text_view name)
{
    uint64_t layer = 0;
    struct text_view rest = name;
    bool in_layer = split_layer_name(name, &layer, &rest);
    for (size_t i = 0; i < MODEL_ROLE_COUNT; i++) {
        enum model_role role = (enum model_role)i;
        if (model_role_is_per_layer(role) == in_layer &&
            text_view_is(rest, model_role_name(config, role)) &&
            (!in_layer || layer < config->block_count) &&
            model_tensor(config, role, (uint32_t)min_u64(layer, UINT32_MAX)).presence != MODEL_ABSENT)
            return true;
    }
    return in_layer && layer >= config->block_count &&
           layer < (uint64_t)config->block_count + config->skipped_block_count;
}

static void check_surplus(const struct gguf_file *file, struct model_report *report)
{
    size_t surplus_count = 0;
    for (size_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *tensor = gguf_tensor_at(file, i);
        if (is_in_table(&report->config, tensor->name) || surplus_count++ > 0)
            continue;
        char shown[96], shape[SHAPE_TEXT_BYTES];
        model_problem_add(report, MODEL_PROBLEM_CANNOT_RUN,
                          "%s: expected no such tensor in a %s model of %" PRIu32
                          " layers, found one of shape %s; greta would have to ignore it, and the "
                          "result would be wrong",
                          text_printable(tensor->name, shown, sizeof(shown)),
                          model_arch_info(report->config.arch)->name, report->config.block_count,
                          shape_text(&tensor->shape, shape));
    }
    if (surplus_count > 1)
        model_problem_add(report, MODEL_PROBLEM_CANNOT_RUN,
                          "surplus tensors: expected none, found %zu", surplus_count);
}

void model_tensors_check(const struct gguf_file *file, struct model_report *report)
{
    if (gguf_tensor_count(file) == 0) {
        model_problem_add(report, MODEL_PROBLEM_CANNOT_RUN,
                          "tensors: expected those of a %s model of %" PRIu32
                          " layers, found none: the file holds a vocabulary only; name the model "
                          "itself",
                          model_arch_info(report->config.arch)->name, report->config.block_count);
        return;
    }
    for (size_t role = 0; role < MODEL_ROLE_COUNT; role++)
        check_role(file, (enum model_role)role, report);
    check_surplus(file, report);
}
