#!/usr/bin/env python3
"""third_opinion.py MODEL.gguf LOGITS.npy ID [ID ...]

The forward pass of a small Llama, written once more with PyTorch, against the logits greta wrote with
--logits-out --greedy: a row for the last id of the prompt (the IDs) and for each id chosen after it, which is the
row's likeliest. Reads the GGUF file by itself (F32, F16, BF16 and Q8_0 tensors), so that nothing of greta's
is trusted but the ids it was given. Computes in float64 on the GPU where there is one.

Prints the normalised squared error of all rows and the worst row, and where the likeliest ids differ; exits
1 if the error is not below LIMIT, 77 where PyTorch is not installed.
"""
import math
import struct
import sys

LIMIT = 1e-4
TYPES = {0: "f32", 1: "f16", 8: "q8_0", 30: "bf16"}
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        value = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return value[0]

    def text(self):
        length = self.take("Q")
        self.at += length
        return self.data[self.at - length : self.at].decode("utf-8", "replace")

    def value(self, kind):
        if kind == 8:
            return self.text()
        if kind == 9:
            inner, count = self.take("I"), self.take("Q")
            return [self.value(inner) for _ in range(count)]
        return self.take(SCALARS[kind])


def read_gguf(path, numpy):
    data = open(path, "rb").read()
    reader = Reader(data)
    if data[:4] != b"GGUF":
        sys.exit(f"{path}: expected a GGUF file")
    reader.at = 8
    tensor_count, pair_count = reader.take("Q"), reader.take("Q")
    keys = {}
    for _ in range(pair_count):
        name = reader.text()
        keys[name] = reader.value(reader.take("I"))
    places = []
    for _ in range(tensor_count):
        name, rank = reader.text(), reader.take("I")
        dims = [reader.take("Q") for _ in range(rank)]
        kind, offset = reader.take("I"), reader.take("Q")
        places.append((name, dims, TYPES.get(kind), kind, offset))
    step = keys.get("general.alignment", 32)
    start = (reader.at + step - 1) // step * step
    tensors = {}
    for name, dims, kind, number, offset in places:
        count = math.prod(dims)
        if kind is None:
            sys.exit(f"{name}: type {number} is not read here")
        at = start + offset
        if kind == "f32":
            values = numpy.frombuffer(data, "<f4", count, at)
        elif kind == "f16":
            values = numpy.frombuffer(data, "<f2", count, at)
        elif kind == "bf16":
            values = (numpy.frombuffer(data, "<u2", count, at).astype("<u4") << 16).view("<f4")
        else:
            block = numpy.dtype([("scale", "<f2"), ("levels", "i1", 32)])
            blocks = numpy.frombuffer(data, block, count // 32, at)
            values = blocks["levels"].astype("f8") * blocks["scale"].astype("f8")[:, None]
        tensors[name] = values.astype("f8").reshape(dims[::-1])
    return keys, tensors


def rope(torch, x, base, dims):
    """Neighbouring pairs, as Llama's GGUF files have them. x: [tokens, heads, head_dim]."""
    tokens = x.shape[0]
    pairs = torch.arange(0, dims, 2, dtype=x.dtype, device=x.device)
    angles = torch.arange(tokens, dtype=x.dtype, device=x.device)[:, None] * base ** (-pairs / dims)
    cos, sin = torch.cos(angles)[:, None, :], torch.sin(angles)[:, None, :]
    even, odd = x[..., 0:dims:2], x[..., 1:dims:2]
    turned = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)
    return torch.cat((turned, x[..., dims:]), dim=-1)


def forward(torch, keys, weights, ids):
    arch = keys["general.architecture"]
    if arch != "llama":
        sys.exit(f"expected architecture llama, found {arch}")
    heads = keys["llama.attention.head_count"]
    kv_heads = keys.get("llama.attention.head_count_kv", heads)
    epsilon = keys["llama.attention.layer_norm_rms_epsilon"]
    base = keys.get("llama.rope.freq_base", 10000.0)
    width = keys["llama.embedding_length"]
    head_dim = keys.get("llama.attention.key_length", width // heads)
    dims = keys.get("llama.rope.dimension_count", head_dim)

    def norm(x, weight):
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + epsilon) * weight

    x = weights["token_embd.weight"][ids]
    tokens = x.shape[0]
    mask = torch.full((tokens, tokens), float("-inf"), dtype=x.dtype, device=x.device).triu(1)
    for layer in range(keys["llama.block_count"]):
        part = {n.split(".", 2)[2]: w for n, w in weights.items() if n.startswith(f"blk.{layer}.")}
        h = norm(x, part["attn_norm.weight"])
        q = (h @ part["attn_q.weight"].T).view(tokens, heads, head_dim)
        k = (h @ part["attn_k.weight"].T).view(tokens, kv_heads, head_dim)
        v = (h @ part["attn_v.weight"].T).view(tokens, kv_heads, head_dim)
        q, k = rope(torch, q, base, dims), rope(torch, k, base, dims)
        k = k.repeat_interleave(heads // kv_heads, dim=1)
        v = v.repeat_interleave(heads // kv_heads, dim=1)
        scores = torch.einsum("qhd,khd->hqk", q, k) / math.sqrt(head_dim) + mask
        mixed = torch.einsum("hqk,khd->qhd", torch.softmax(scores, -1), v).reshape(tokens, -1)
        x = x + mixed @ part["attn_output.weight"].T
        h = norm(x, part["ffn_norm.weight"])
        gate = h @ part["ffn_gate.weight"].T
        x = x + (gate * torch.sigmoid(gate) * (h @ part["ffn_up.weight"].T)) @ part["ffn_down.weight"].T
    x = norm(x, weights["output_norm.weight"])
    return x @ weights.get("output.weight", weights["token_embd.weight"]).T


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    try:
        import numpy
        import torch
    except ImportError as missing:
        print(f"skipped: {missing}")
        sys.exit(77)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    keys, tensors = read_gguf(sys.argv[1], numpy)
    found = torch.tensor(numpy.load(sys.argv[2]).astype("f8"), device=device)
    prompt = [int(i) for i in sys.argv[3:]]
    ids = torch.tensor(prompt + found.argmax(-1).tolist()[:-1], device=device)
    weights = {name: torch.tensor(values, device=device) for name, values in tensors.items()}
    wanted = forward(torch, keys, weights, ids)[len(prompt) - 1 :]
    if found.shape != wanted.shape:
        sys.exit(f"expected logits {list(wanted.shape)}, found {list(found.shape)}")
    errors = ((found - wanted) ** 2).sum(-1) / (wanted**2).sum(-1)
    error = float(((found - wanted) ** 2).sum() / (wanted**2).sum())
    same = int((found.argmax(-1) == wanted.argmax(-1)).sum())
    print(
        f"PyTorch {torch.__version__} on {device}: {len(ids)} tokens, normalised error {error:.2e}"
        f" (worst row {float(errors.max()):.2e}), likeliest id the same in {same} of {found.shape[0]} rows"
    )
    sys.exit(0 if error < LIMIT and not math.isnan(error) else 1)


if __name__ == "__main__":
    main()
