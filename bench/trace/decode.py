"""Greedy decoding of a 1B-class Llama-shaped model with random weights in plain PyTorch, eager,
with a key and value cache: what tracing costs is measured on it.

usage: decode.py [TOKENS [REPEATS]]: stdout: the tokens; stderr: tokens per second, each repeat"""
import sys
import time

import torch
import torch.nn.functional as F

DIM, LAYERS, HEADS, KV_HEADS, HIDDEN, VOCAB, CONTEXT = 2048, 16, 32, 8, 8192, 128256, 1024
HEAD = DIM // HEADS
TYPE = torch.bfloat16


def weight(rows, columns, generator):
    return torch.empty(rows, columns, dtype=TYPE, device="cuda").normal_(
        0, columns ** -0.5, generator=generator)


class Layer:
    def __init__(self, generator):
        self.qkv = weight((HEADS + 2 * KV_HEADS) * HEAD, DIM, generator)
        self.out = weight(DIM, DIM, generator)
        self.gate = weight(HIDDEN, DIM, generator)
        self.up = weight(HIDDEN, DIM, generator)
        self.down = weight(DIM, HIDDEN, generator)
        self.norms = [torch.ones(DIM, dtype=TYPE, device="cuda") for _ in range(2)]
        self.keys = torch.zeros(1, KV_HEADS, CONTEXT, HEAD, dtype=TYPE, device="cuda")
        self.values = torch.zeros_like(self.keys)


def rotate(x, cosine, sine):
    a, b = x.chunk(2, -1)
    return torch.cat((a * cosine - b * sine, b * cosine + a * sine), -1)


def attend(layer, x, start, cosine, sine):
    count = x.shape[0]
    q, k, v = F.linear(x, layer.qkv).split((DIM, KV_HEADS * HEAD, KV_HEADS * HEAD), -1)
    q = rotate(q.view(1, count, HEADS, HEAD).transpose(1, 2), cosine, sine)
    k = rotate(k.view(1, count, KV_HEADS, HEAD).transpose(1, 2), cosine, sine)
    end = start + count
    layer.keys[:, :, start:end] = k
    layer.values[:, :, start:end] = v.view(1, count, KV_HEADS, HEAD).transpose(1, 2)
    y = F.scaled_dot_product_attention(q, layer.keys[:, :, :end], layer.values[:, :, :end],
                                       is_causal=count > 1, enable_gqa=True)
    return F.linear(y.transpose(1, 2).reshape(count, DIM), layer.out)


class Model:
    def __init__(self):
        generator = torch.Generator("cuda").manual_seed(3)
        self.embedding = weight(VOCAB, DIM, generator)
        self.layers = [Layer(generator) for _ in range(LAYERS)]
        self.norm = torch.ones(DIM, dtype=TYPE, device="cuda")
        frequencies = 500000.0 ** (-torch.arange(0, HEAD, 2, device="cuda") / HEAD)
        angles = torch.arange(CONTEXT, device="cuda")[:, None] * frequencies
        self.cosine, self.sine = angles.cos().to(TYPE), angles.sin().to(TYPE)

    def step(self, tokens, start):
        x = F.embedding(tokens, self.embedding)
        cosine = self.cosine[start:start + len(tokens)]
        sine = self.sine[start:start + len(tokens)]
        for layer in self.layers:
            x = x + attend(layer, F.rms_norm(x, (DIM,), layer.norms[0]), start, cosine, sine)
            y = F.rms_norm(x, (DIM,), layer.norms[1])
            y = F.silu(F.linear(y, layer.gate)) * F.linear(y, layer.up)
            x = x + F.linear(y, layer.down)
        return F.linear(F.rms_norm(x[-1:], (DIM,), self.norm), self.embedding)


def generate(model, prompt, count):
    tokens = torch.tensor(prompt).cuda()
    start, made = 0, []
    for _ in range(count):
        token = model.step(tokens, start).argmax(-1)
        start += len(tokens)
        made.append(token.item())
        tokens = token
    return made


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with torch.inference_mode():
        model = Model()
        prompt = list(range(100, 132))
        generate(model, prompt, count)  # loads every kernel that will be used
        for _ in range(repeats):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            made = generate(model, prompt, count)
            rate = count / (time.perf_counter() - begin)
            print(f"{rate:.1f} tokens/s", file=sys.stderr, flush=True)
            print(*made, flush=True)


main()
