"""story_model.py - the Llama architecture in PyTorch: for training, for sampling, and as GGUF.

RoPE turns adjacent pairs, as GGUF files of this architecture have it, so weights are exported as
they are."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import gguf_file
import story_text

HEAD = 64
EPSILON = 1e-5
ROPE_BASE = 10000.0


def norm(x, weight):
    x32 = x.float()
    return (x32 * torch.rsqrt(x32.square().mean(-1, keepdim=True) + EPSILON) * weight).to(x.dtype)


def rope(x, cos, sin):
    """x: [batch, time, heads, HEAD]; cos, sin: [time, 1, HEAD / 2]."""
    even, odd = x.float().unflatten(-1, (HEAD // 2, 2)).unbind(-1)
    turned = torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1)
    return turned.flatten(-2).to(x.dtype)


def rope_tables(length, device):
    rates = ROPE_BASE ** (-torch.arange(0, HEAD, 2, dtype=torch.float64) / HEAD)
    angles = torch.arange(length, dtype=torch.float64)[:, None, None] * rates
    return angles.cos().float().to(device), angles.sin().float().to(device)


def linear(x, weight):
    return F.linear(x, weight.to(x.dtype))


def drop(x, dropout):
    return F.dropout(x, dropout) if dropout > 0 else x


def project(x, w, cos, sin):
    """Queries, keys and values: [batch, heads, time, HEAD] each."""
    h = norm(x, w["attn_norm"])
    q = linear(h, w["attn_q"]).unflatten(-1, (-1, HEAD))
    k = linear(h, w["attn_k"]).unflatten(-1, (-1, HEAD))
    v = linear(h, w["attn_v"]).unflatten(-1, (-1, HEAD))
    return (rope(q, cos, sin).transpose(1, 2), rope(k, cos, sin).transpose(1, 2),
            v.transpose(1, 2))


def spread(kv, heads):
    """A key or value head for each of `heads` query heads."""
    return kv.repeat_interleave(heads // kv.shape[1], 1) if kv.shape[1] != heads else kv


def finish(x, attended, w, dropout):
    x = x + drop(linear(attended.transpose(1, 2).flatten(2), w["attn_output"]), dropout)
    h = norm(x, w["ffn_norm"])
    inner = F.silu(linear(h, w["ffn_gate"])) * linear(h, w["ffn_up"])
    return x + drop(linear(inner, w["ffn_down"]), dropout)


def block(x, w, cos, sin, dropout):
    q, k, v = project(x, w, cos, sin)
    heads = q.shape[1]
    attended = F.scaled_dot_product_attention(q, spread(k, heads), spread(v, heads), is_causal=True)
    return finish(x, attended, w, dropout)


# cuDNN's attention makes a plan for every length, and in sampling each token has another length.
SAMPLING_KERNELS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
compiled_block = torch.compile(block, dynamic=False)


class Llama(nn.Module):
    def __init__(self, vocab, dim, layers, heads, kv_heads, ffn, context, dropout=0.0):
        super().__init__()
        self.shape = dict(vocab=vocab, dim=dim, layers=layers, heads=heads, kv_heads=kv_heads,
                          ffn=ffn, context=context)
        self.dropout = dropout
        assert dim == heads * HEAD

        def matrix(rows, columns, deviation=0.02):
            return nn.Parameter(torch.randn(rows, columns) * deviation)
        residual = 0.02 / math.sqrt(2 * layers)
        self.token_embd = matrix(vocab, dim)
        self.output_norm = nn.Parameter(torch.ones(dim))
        self.blocks = nn.ModuleList(nn.ParameterDict({
            "attn_norm": nn.Parameter(torch.ones(dim)),
            "attn_q": matrix(dim, dim),
            "attn_k": matrix(kv_heads * HEAD, dim),
            "attn_v": matrix(kv_heads * HEAD, dim),
            "attn_output": matrix(dim, dim, residual),
            "ffn_norm": nn.Parameter(torch.ones(dim)),
            "ffn_gate": matrix(ffn, dim),
            "ffn_up": matrix(ffn, dim),
            "ffn_down": matrix(dim, ffn, residual)}) for _ in range(layers))

    def hidden(self, ids, cos, sin, run=None, dtype=torch.bfloat16):
        """The normed residual stream of ids [batch, time]; logits are its products with
        token_embd."""
        run = run or compiled_block
        dropout = self.dropout if self.training else 0.0
        x = drop(F.embedding(ids, self.token_embd).to(dtype), dropout)
        for weights in self.blocks:
            x = run(x, dict(weights.items()), cos, sin, dropout)
        return norm(x, self.output_norm)

    def parameter_count(self):
        return sum(p.numel() for p in self.parameters())


@torch.no_grad()
def sample(model, prompts, length, temperature, generator):
    """Rows of ids as they go on after prompts [batch, time]; `model` in the type to compute in."""
    shape, device = model.shape, prompts.device
    batch, begun = prompts.shape
    dtype, kv_heads = model.token_embd.dtype, shape["kv_heads"]
    cos, sin = rope_tables(length, device)
    cache = [[torch.zeros(batch, kv_heads, length, HEAD, dtype=dtype, device=device)
              for _ in range(2)] for _ in model.blocks]
    ids = torch.zeros(batch, length, dtype=torch.long, device=device)
    ids[:, :begun] = prompts
    for at in range(length - 1):
        x = F.embedding(ids[:, at:at + 1], model.token_embd)
        for weights, (keys, values) in zip(model.blocks, cache):
            w = dict(weights.items())
            q, k, v = project(x, w, cos[at:at + 1], sin[at:at + 1])
            keys[:, :, at:at + 1] = k
            values[:, :, at:at + 1] = v
            # Query heads that share keys stand as if they were queries of several positions:
            # the past is the same for all of them, and nothing has to be copied.
            with sdpa_kernel(SAMPLING_KERNELS):
                attended = F.scaled_dot_product_attention(
                    q.reshape(batch, kv_heads, -1, HEAD), keys[:, :, :at + 1],
                    values[:, :, :at + 1])
            x = finish(x, attended.reshape(batch, -1, 1, HEAD), w, 0.0)
        if at + 1 < begun:
            continue
        logits = linear(norm(x[:, 0], model.output_norm), model.token_embd).float()
        noise = torch.empty_like(logits).exponential_(generator=generator)
        ids[:, at + 1] = ((logits / temperature).softmax(-1) / noise).argmax(-1)
    return ids


def export(path, model, name, tokenizer_json, description):
    shape = model.shape
    metadata = [("general.architecture", "str", "llama"),
                ("general.type", "str", "model"),
                ("general.name", "str", name),
                ("general.description", "str", description),
                ("general.license", "str", "apache-2.0"),
                ("general.languages", "[str]", ["en"]),
                ("general.file_type", "u32", 0),
                ("llama.context_length", "u32", shape["context"]),
                ("llama.embedding_length", "u32", shape["dim"]),
                ("llama.block_count", "u32", shape["layers"]),
                ("llama.feed_forward_length", "u32", shape["ffn"]),
                ("llama.attention.head_count", "u32", shape["heads"]),
                ("llama.attention.head_count_kv", "u32", shape["kv_heads"]),
                ("llama.attention.layer_norm_rms_epsilon", "f32", EPSILON),
                ("llama.rope.dimension_count", "u32", HEAD),
                ("llama.rope.freq_base", "f32", ROPE_BASE),
                ("llama.vocab_size", "u32", shape["vocab"])]

    def entry(tensor_name, tensor):
        data = tensor.detach().float().cpu().contiguous()
        return f"{tensor_name}.weight", tuple(data.shape), data.numpy().tobytes()
    tensors = [entry("token_embd", model.token_embd), entry("output_norm", model.output_norm)]
    for layer, weights in enumerate(model.blocks):
        tensors += [entry(f"blk.{layer}.{key}", weight) for key, weight in weights.items()]
    gguf_file.write(path, metadata + story_text.metadata(tokenizer_json), tensors)
