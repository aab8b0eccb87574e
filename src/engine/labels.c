/* labels.c - the labels that calls of the forward pass carry (struct event_scope). */
#include "engine/engine.h"

const char *const engine_labels[] = {
    "indices",        "token_embd",       "attn_norm",        "attn_qkv",
    "attn_head_norm", "rope_qk",          "kv_append",        "attention",
    "attn_output",    "ffn_norm",         "ffn_gate_up",      "ffn_swiglu",
    "ffn_down",       "output_norm",      "logits",           "clear",
    "attn_post_norm", "ffn_post_norm",    "attn_scale",       "ffn_scale",
    "attn_add",       "embd_scale",       "ffn_gelu",         "logits_scale",
    "layer_inputs",   "layer_input_gate", "layer_input_proj", "layer_scale",
};
const size_t engine_label_count = COUNT_OF(engine_labels);
