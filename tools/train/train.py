#!/usr/bin/env python3
"""train.py - makes greta's story model: tokenizer, teacher, the teacher's own stories, student.

The corpus is small (66 MB, of which 6 MB are simple stories), so a model of the size that ships
would learn it by heart before it had learned from it. A larger teacher is trained first, with
dropout and strong weight decay; it writes new stories; the student learns the teacher's whole
distribution of each next token, on the corpus and on those stories.

    train.py --corpus FOLDER --out FOLDER [--settings settings.json] [--seconds N]

Needs one CUDA GPU, torch, numpy and tokenizers. Where `steps` (`rounds`) in the settings is 0, it is
chosen so that the phases share the time in proportion to their `seconds` and everything takes N
seconds; the log and run.json say what was chosen."""
import argparse
import copy
import hashlib
import json
import math
import pathlib
import time

import numpy
import torch
import torch._dynamo
import torch.nn.functional as F

import story_model
import story_text

DEVICE = "cuda"
# Values that do not change between calls are compiled in; every phase has variants of its own.
torch._dynamo.config.specialize_float = True
torch._dynamo.config.recompile_limit = 64
BEGAN = time.monotonic()
RESHUFFLE_STEPS = 500
REPORT_STEPS = 500
WARMUP_STEPS = 150
ENDING_SECONDS = 13  # scoring, samples and files


def say(text):
    print(f"[{time.monotonic() - BEGAN:6.1f} s] {text}", flush=True)


# ---- Text -----------------------------------------------------------------------------------


class Group:
    """Documents to take windows of tokens from. Short documents are put in a new order now and
    then, and windows begin where a document does; in long ones they begin anywhere."""

    def __init__(self, encoded, short, window, random):
        self.encoded, self.short, self.window, self.random = encoded, short, window, random
        self.shuffle()

    def shuffle(self):
        order = self.random.permutation(len(self.encoded))
        ordered = [self.encoded[i] for i in order]
        ids = story_text.stream(ordered)
        self.ids = torch.from_numpy(ids.astype(numpy.int32)).to(DEVICE)
        last = len(ids) - self.window
        assert last > 0
        starts = numpy.cumsum([0] + [len(document) for document in ordered[:-1]])
        starts = starts[starts <= last]
        self.starts = torch.from_numpy(starts).to(DEVICE) if self.short else None
        self.last = last

    def take(self, count, generator):
        if self.short:
            chosen = torch.randint(len(self.starts), (count,), device=DEVICE, generator=generator)
            begin = self.starts[chosen]
        else:
            begin = torch.randint(self.last + 1, (count,), device=DEVICE, generator=generator)
        return self.ids[begin[:, None] + torch.arange(self.window, device=DEVICE)].long()


def shares(first, last, progress, rows):
    """How many of `rows` rows each group has: weights go from first to last; none is left over."""
    exact = {key: rows * (first[key] + (last[key] - first[key]) * progress) for key in first}
    counts = {key: int(value) for key, value in exact.items()}
    by_rest = sorted(exact, key=lambda key: counts[key] - exact[key])
    for key in by_rest[:rows - sum(counts.values())]:
        counts[key] += 1
    return counts


# ---- Losses ---------------------------------------------------------------------------------


def hard_loss(hidden, head, targets):
    logits = F.linear(hidden, head.to(hidden.dtype)).float()
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def soft_loss(hidden, head, targets, teacher_hidden, teacher_head, hard):
    """hard: [batch], the weight of the text itself; the rest is of the teacher's distribution."""
    logits = F.linear(hidden, head.to(hidden.dtype)).float()
    teacher = F.linear(teacher_hidden, teacher_head.to(teacher_hidden.dtype)).float().softmax(-1)
    log_sum = logits.logsumexp(-1)
    from_text = log_sum - logits.gather(-1, targets[..., None])[..., 0]
    from_teacher = log_sum - (teacher * logits).sum(-1)
    return (hard[:, None] * from_text + (1 - hard[:, None]) * from_teacher).mean()


compiled_hard_loss = torch.compile(hard_loss, dynamic=False)
compiled_soft_loss = torch.compile(soft_loss, dynamic=False)


@torch.no_grad()
def score(model, ids, context, batch, tables, exact=False):
    """Nats of the second half of each chunk of `context` tokens, as greta eval scores them, and
    how many tokens those are. exact: in float32, without compiling."""
    model.eval()
    cos, sin = tables
    count = len(ids) // context
    chunks = torch.from_numpy(ids[:count * context].astype(numpy.int64)).view(count, context)
    chunks[:, 0] = story_text.END_ID
    half, total = context // 2, 0.0
    for at in range(0, count, batch):
        rows = chunks[at:at + batch].to(DEVICE)
        used = len(rows)
        if used < batch and not exact:  # one shape, so that nothing is compiled again
            rows = torch.cat((rows, rows[:1].expand(batch - used, -1)))
        hidden = model.hidden(rows, cos, sin, story_model.block if exact else None,
                              torch.float32 if exact else torch.bfloat16)
        hidden = hidden[:used, half:-1]
        logits = F.linear(hidden, model.token_embd.to(hidden.dtype)).float()
        total += F.cross_entropy(logits.flatten(0, 1), rows[:used, half + 1:].flatten(),
                                 reduction="sum").double().item()
    return total, count * (context - half - 1)


# ---- Training -------------------------------------------------------------------------------


class Trainer:
    def __init__(self, model, plan, groups, held_out, settings, tables, generator, teacher=None):
        self.model, self.plan, self.groups, self.held_out = model, plan, groups, held_out
        self.settings, self.tables, self.generator = settings, tables, generator
        self.teacher = teacher
        decayed = [p for name, p in model.named_parameters()
                   if p.ndim == 2 and name != "token_embd"]
        plain = [p for name, p in model.named_parameters()
                 if p.ndim != 2 or name == "token_embd"]
        self.optimizer = torch.optim.AdamW(
            [{"params": decayed, "weight_decay": plan["decay"]},
             {"params": plain, "weight_decay": 0.0}],
            lr=plan["rate"], betas=(0.9, 0.95), fused=True)

    def batch(self, progress):
        counts = shares(self.plan["first"], self.plan["last"], progress, self.settings["batch"])
        rows = torch.cat([self.groups[key].take(count, self.generator)
                          for key, count in counts.items() if count])
        hard = [self.plan["hard"][key] for key, count in counts.items() for _ in range(count)] \
            if self.teacher else None
        return rows[:, :-1], rows[:, 1:].contiguous(), hard

    def step(self, step, steps):
        progress = step / steps
        rate = self.plan["rate"] * min(1.0, (step + 1) / WARMUP_STEPS)
        rate *= 0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * progress))
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        ids, targets, hard = self.batch(progress)
        self.model.train()
        cos, sin = self.tables
        if self.teacher:
            with torch.no_grad():
                teacher_hidden = self.teacher.hidden(ids, cos, sin)
            hidden = self.model.hidden(ids, cos, sin)
            loss = compiled_soft_loss(hidden, self.model.token_embd, targets, teacher_hidden,
                                      self.teacher.token_embd.detach(),
                                      torch.tensor(hard, device=DEVICE))
        else:
            hidden = self.model.hidden(ids, cos, sin)
            loss = compiled_hard_loss(hidden, self.model.token_embd, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
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
        torch.cuda.synchronize()
        began = time.monotonic()
        for step in range(10):
            self.step(step, 1000)
        torch.cuda.synchronize()
        return (time.monotonic() - began) / 10

    def run(self, steps, name):
        running, best, best_state = 0.0, math.inf, None
        for step in range(steps):
            if step % RESHUFFLE_STEPS == 0 and step:
                for group in self.groups.values():
                    if group.short:
                        group.shuffle()
            loss = self.step(step, steps)
            running = loss if step == 0 else 0.98 * running + 0.02 * loss
            if (step + 1) % REPORT_STEPS == 0 or step + 1 == steps:
                losses = self.validate()
                parts = " ".join(f"{key} {value:.4f}" for key, value in losses.items())
                say(f"{name} step {step + 1}/{steps}: loss {running.item():.4f}; held out: {parts}")
                if losses["tinystories"] < best and step > steps // 2:
                    best = losses["tinystories"]
                    best_state = copy.deepcopy(self.model.state_dict())
                assert math.isfinite(running.item()), "training diverged"
        if best_state:
            self.model.load_state_dict(best_state)
        self.model.eval()
        return self.validate()


# ---- The teacher's stories --------------------------------------------------------------------


def half_precision(model):
    return copy.deepcopy(model).to(torch.bfloat16).eval()


def synthesize(teacher, plan, generator):
    """Rows of tokens that each begin a document and go on to others. Where a row ends in the middle
    of one, nothing false is learned: only the teacher's distribution is, never the next token."""
    model, rows, rounds = half_precision(teacher), [], 0
    prompts = torch.full((plan["rows"], 1), story_text.END_ID, device=DEVICE)
    began = time.monotonic()
    while rounds < plan["rounds"] or (not plan["rounds"] and
                                      time.monotonic() - began < plan["seconds"] or not rounds):
        ids = story_model.sample(model, prompts, plan["length"], plan["temperature"], generator)
        rows += list(ids.cpu().numpy().astype(numpy.uint16))
        rounds += 1
    return rows, rounds


# ---- Everything -------------------------------------------------------------------------------


def fresh(settings, kind):
    model = story_model.Llama(settings["vocab"], context=settings["context"], **settings[kind])
    return model.to(DEVICE)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seconds", type=float, default=565)
    parser.add_argument("--settings", default=pathlib.Path(__file__).parent / "settings.json")
    arguments = parser.parse_args()
    settings = json.loads(pathlib.Path(arguments.settings).read_text())
    out = pathlib.Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(settings["seed"])
    torch.set_float32_matmul_precision("highest")
    random = numpy.random.default_rng(settings["seed"])
    generator = torch.Generator(DEVICE).manual_seed(settings["seed"])
    say(f"torch {torch.__version__} on {torch.cuda.get_device_name()}")

    texts = {key: story_text.read(arguments.corpus, key) for key in settings["groups"]}
    tokenizer = story_text.make_tokenizer(
        [document for key, group in settings["groups"].items()
         for document in texts[key] * group["tokenizer_copies"]], settings["vocab"])
    tokenizer_json = tokenizer.to_str()
    (out / "tokenizer.json").write_text(tokenizer_json)
    say("tokenizer made")
    window = settings["context"] + 1
    groups = {}
    for key, group in settings["groups"].items():
        encoded = story_text.encode(tokenizer, texts[key])
        groups[key] = Group(encoded, group["short"], window, random)
        say(f"{key}: {len(texts[key])} documents, {sum(map(len, texts[key])):,} bytes, "
            f"{len(groups[key].ids):,} tokens")
    held_texts = {key: story_text.read(arguments.corpus, f"valid_{key}")
                  for key in ("tinystories", "childrens_simple", "fairy_tales", "all")}
    held_streams = {key: story_text.stream(story_text.encode(tokenizer, text))
                    for key, text in held_texts.items()}
    held_out = {key: held_streams[key][:settings["context"] * settings["batch"] * limit]
                for key, limit in (("tinystories", 2), ("childrens_simple", 2), ("fairy_tales", 2))}
    tables = story_model.rope_tables(settings["context"], DEVICE)

    # What is left of the time is shared out when a phase begins.
    phases = ["teacher_training", "synthesis", "student_training"]
    run = {phase: {} for phase in phases}

    def share(phase):
        left = arguments.seconds - ENDING_SECONDS - (time.monotonic() - BEGAN)
        later = phases[phases.index(phase):]
        return left * settings[phase]["seconds"] / sum(settings[key]["seconds"] for key in later)

    def train(model, phase, teacher=None):
        plan = settings[phase]
        trainer = Trainer(model, plan, groups, held_out, settings, tables, generator, teacher)
        each = trainer.step_seconds()
        steps = plan["steps"] or int(share(phase) / each)
        say(f"{phase}: {model.parameter_count():,} parameters, {each * 1e3:.1f} ms a step, "
            f"{steps} steps")
        run[phase] = {"steps": steps, "held_out": trainer.run(steps, phase)}

    teacher = fresh(settings, "teacher")
    synthesize(teacher, dict(settings["synthesis"], rounds=1, rows=8, length=4), generator)
    train(teacher, "teacher_training")
    teacher.requires_grad_(False)

    plan = dict(settings["synthesis"], seconds=share("synthesis"))
    rows, run["synthesis"]["rounds"] = synthesize(teacher, plan, generator)
    say(f"synthesis: {run['synthesis']['rounds']} rounds, {sum(map(len, rows)):,} tokens")
    for row in rows[:3]:
        print(tokenizer.decode(row.tolist(), skip_special_tokens=False), "\n---", flush=True)
    groups["synthetic"] = Group(rows, True, window, random)

    student = fresh(settings, "student")
    train(student, "student_training", teacher)

    path = out / f"{settings['name']}-f32.gguf"
    story_model.export(path, student, settings["name"], tokenizer_json,
                       "Tells simple stories in English. Trained from nothing for greta.")
    say(f"{path.name}: {path.stat().st_size:,} bytes, "
        f"sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}")
    run["held_out"] = {}
    for key, ids in held_streams.items():
        nats, count = score(student, ids, settings["context"], 16, tables, exact=True)
        run["held_out"][key] = {
            "tokens": len(ids), "ids_sha256": hashlib.sha256(ids.tobytes()).hexdigest(),
            "scored_tokens": count, "nats": nats, "perplexity": math.exp(nats / count)}
        say(f"{key}: {run['held_out'][key]}")
    (out / "run.json").write_text(json.dumps(run, indent=2) + "\n")
    prompts = torch.tensor([[story_text.END_ID] + tokenizer.encode("Once upon a time").ids] * 4,
                           device=DEVICE)
    rows = story_model.sample(half_precision(student), prompts, 400, 0.7, generator)
    for row in rows.tolist():
        end = row.index(story_text.END_ID, 1) if story_text.END_ID in row[1:] else len(row)
        print(tokenizer.decode(row[:end], skip_special_tokens=True), "\n---", flush=True)
    say("done")


if __name__ == "__main__":
    main()
