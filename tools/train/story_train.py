"""story_train.py - one model through one phase: losses, scores, the steps and their schedule, the
log."""
import math
import time

import numpy
import torch
import torch._dynamo
import torch.nn.functional as F

import story_model
import story_optim
import story_text
from story_lesson import DEVICE, Group, in_batches, shares

# Values that do not change between calls are compiled in; every phase has variants of its own.
torch._dynamo.config.specialize_float = True
torch._dynamo.config.recompile_limit = 64
BEGAN = time.monotonic()
RESHUFFLE_STEPS = 500
REPORT_STEPS = 500


def say(text):
    print(f"[{time.monotonic() - BEGAN:6.1f} s] {text}", flush=True)


# ---- Losses ---------------------------------------------------------------------------------


def hard_loss(hidden, head, targets):
    logits = F.linear(hidden, head.to(hidden.dtype)).float()
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def lesson_loss(hidden, head, targets, values, choices, hard):
    """hard: [batch], the weight of the text itself; the rest is of the teachers' distribution, whose
    tokens that were not noted count as one."""
    logits = F.linear(hidden, head.to(hidden.dtype)).float()
    log_sum = logits.logsumexp(-1)
    from_text = log_sum - logits.gather(-1, targets[..., None])[..., 0]
    known = logits.gather(-1, choices.long()) - log_sum[..., None]
    values = values.float()
    rest = (1 - values.sum(-1)).clamp(min=0)
    own_rest = (1 - known.exp().sum(-1)).clamp(min=1e-6)
    from_teachers = -(values * known).sum(-1) - rest * own_rest.log()
    return (hard[:, None] * from_text + (1 - hard[:, None]) * from_teachers).mean()


compiled_hard_loss = torch.compile(hard_loss, dynamic=False)
compiled_lesson_loss = torch.compile(lesson_loss, dynamic=False)


@torch.no_grad()
def score(model, ids, context, batch, tables, exact=False):
    """Nats of the second half of each chunk of `context` tokens, as greta eval scores them, and
    how many tokens those are. exact: in float32, without compiling."""
    model.eval()
    cos, sin = tables
    count = len(ids) // context
    chunks = ids[:count * context].astype(numpy.int64).reshape(count, context)
    chunks[:, 0] = story_text.END_ID
    half, total = context // 2, 0.0
    for rows, used in in_batches(chunks, batch):
        hidden = model.hidden(rows, cos, sin, story_model.block if exact else None,
                              torch.float32 if exact else torch.bfloat16)
        hidden = hidden[:used, half:-1]
        logits = F.linear(hidden, model.token_embd.to(hidden.dtype)).float()
        total += F.cross_entropy(logits.flatten(0, 1), rows[:used, half + 1:].flatten(),
                                 reduction="sum").double().item()
    return total, count * (context - half - 1)


# ---- Training -------------------------------------------------------------------------------


class Trainer:
    """One model through one phase. sources: Groups (hard labels) or Lessons (those and notes)."""

    def __init__(self, model, recipe, sources, held_out, settings, tables, generator):
        self.model, self.recipe, self.sources, self.held_out = model, recipe, sources, held_out
        self.settings, self.tables, self.generator = settings, tables, generator
        self.hard = {}
        named = list(model.named_parameters())
        matrices = [p for name, p in named if p.ndim == 2 and name != "token_embd"]
        others = [p for name, p in named if p.ndim != 2 or name == "token_embd"]
        decayed = [{"params": matrices, "weight_decay": recipe["decay"]}]
        self.muon = None
        if recipe["muon"]:
            self.muon = story_optim.Muon(matrices, recipe["rate"], recipe["decay"])
            decayed = []
        self.adam = torch.optim.AdamW(decayed + [{"params": others, "weight_decay": 0.0}],
                                      lr=recipe["rate"], betas=(0.9, 0.95), fused=DEVICE == "cuda")

    def rate(self, step, steps):
        """Warm-up, a share of the steps at full rate, then linearly to nothing."""
        held = self.recipe["hold"] * steps
        rate = min(1.0, (steps - step) / max(1.0, steps - held))
        return self.recipe["rate"] * rate * min(1.0, (step + 1) / self.recipe["warmup"])

    def loss(self, progress):
        counts = shares(self.recipe["first"], self.recipe["last"], progress, self.settings["batch"])
        counts = {key: count for key, count in counts.items() if count}
        cos, sin = self.tables
        if "hard" not in self.recipe:
            rows = torch.cat([self.sources[key].take(count, self.generator)
                              for key, count in counts.items()])
            hidden = self.model.hidden(rows[:, :-1], cos, sin)
            return compiled_hard_loss(hidden, self.model.token_embd, rows[:, 1:].contiguous())
        taken = [self.sources[key].take(count) for key, count in counts.items()]
        rows, values, choices = (torch.cat(parts) for parts in zip(*taken))
        hard = self.hard_weights(counts)
        hidden = self.model.hidden(rows[:, :-1], cos, sin)
        return compiled_lesson_loss(hidden, self.model.token_embd, rows[:, 1:].contiguous(), values,
                                    choices, hard)

    def hard_weights(self, counts):
        """Kept on the device: a copy in every step would make the host wait for the one before."""
        weights = tuple(self.recipe["hard"][key] for key in counts for _ in range(counts[key]))
        if weights not in self.hard:
            self.hard[weights] = torch.tensor(weights, device=DEVICE)
        return self.hard[weights]

    def step(self, step, steps):
        rate = self.rate(step, steps)
        for group in self.adam.param_groups:
            group["lr"] = rate
        self.model.train()
        loss = self.loss(step / steps)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        if self.muon:
            self.muon.rate = rate
            self.muon.step()
        self.adam.step()
        self.adam.zero_grad(set_to_none=True)
        self.model.zero_grad(set_to_none=True)
        return loss.detach()

    def validate(self):
        losses = {}
        for key, ids in self.held_out.items():
            nats, count = score(self.model, ids, self.settings["context"], self.settings["batch"],
                                self.tables)
            losses[key] = nats / count
        return losses

    def step_seconds(self):
        """Runs a few steps: compiles what there is to compile, and says what a step takes."""
        for step in range(3):
            self.step(step, 1000)
        synchronize()
        began = time.monotonic()
        for step in range(10):
            self.step(step, 1000)
        synchronize()
        return (time.monotonic() - began) / 10

    def run(self, steps, name):
        running = None
        for step in range(steps):
            if step % RESHUFFLE_STEPS == 0 and step:
                for source in self.sources.values():
                    if isinstance(source, Group):
                        source.shuffle()
            loss = self.step(step, steps)
            running = loss if running is None else 0.98 * running + 0.02 * loss
            if (step + 1) % REPORT_STEPS == 0 or step + 1 == steps:
                losses = self.validate()
                parts = " ".join(f"{key} {value:.4f}" for key, value in losses.items())
                say(f"{name} step {step + 1}/{steps}: loss {running.item():.4f}; held out: {parts}")
                assert math.isfinite(running.item()), "training diverged"
        self.model.eval()
        return self.validate()


def synchronize():
    if DEVICE == "cuda":
        torch.cuda.synchronize()
