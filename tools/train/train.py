#!/usr/bin/env python3
"""train.py - makes greta's story model: tokenizer, teachers, the teachers' stories, student.

The corpus is small (66 MB, of which 6 MB are simple stories), so a model of the size that ships
would learn it by heart before it had learned from it. Several larger teachers are trained first,
with dropout and strong weight decay; they write new stories; what they foretell together for each
next token, of the corpus and of those stories, is noted once, and the student learns from those
notes.

    train.py --corpus FOLDER --out FOLDER [--settings settings.json] [--seconds N]

Needs one CUDA GPU, torch, numpy and tokenizers. Where `steps` (one number for each model of a phase)
in the settings is 0, it is chosen so that the phases take about their `seconds` and everything takes
N; the log and run.json say what was chosen."""
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

import story_long
import story_model
import story_optim
import story_text

DEVICE = "cuda"
# Values that do not change between calls are compiled in; every phase has variants of its own.
torch._dynamo.config.specialize_float = True
torch._dynamo.config.recompile_limit = 64
BEGAN = time.monotonic()
RESHUFFLE_STEPS = 500
REPORT_STEPS = 500
NOTED = 64  # tokens of each teachers' distribution that are noted one by one
ENDING_SECONDS = 13  # scoring, samples and files


def say(text):
    print(f"[{time.monotonic() - BEGAN:6.1f} s] {text}", flush=True)


# ---- Text -----------------------------------------------------------------------------------


class Group:
    """Documents to take windows of tokens from, in a new order now and then. A share of the windows
    begins where a document does, the others anywhere."""

    def __init__(self, encoded, begin_share, window, random):
        self.encoded, self.begin_share = encoded, begin_share
        self.window, self.random = window, random
        self.shuffle()

    def shuffle(self):
        order = self.random.permutation(len(self.encoded))
        ordered = [self.encoded[i] for i in order]
        ids = story_text.stream(ordered)
        self.ids = torch.from_numpy(ids.astype(numpy.int32)).to(DEVICE)
        self.last = len(ids) - self.window
        assert self.last > 0
        starts = numpy.cumsum([0] + [len(document) for document in ordered[:-1]])
        self.starts = torch.from_numpy(starts[starts <= self.last]).to(DEVICE)

    def take(self, count, generator):
        chosen = torch.randint(len(self.starts), (count,), device=DEVICE, generator=generator)
        anywhere = torch.randint(self.last + 1, (count,), device=DEVICE, generator=generator)
        at_start = torch.rand(count, device=DEVICE, generator=generator) < self.begin_share
        begin = torch.where(at_start, self.starts[chosen], anywhere)
        return self.ids[begin[:, None] + torch.arange(self.window, device=DEVICE)].long()


def shares(first, last, progress, rows):
    """How many of `rows` rows each group has: weights go from first to last; none is left over."""
    exact = {key: rows * (first[key] + (last[key] - first[key]) * progress) for key in first}
    counts = {key: int(value) for key, value in exact.items()}
    by_rest = sorted(exact, key=lambda key: counts[key] - exact[key])
    for key in by_rest[:rows - sum(counts.values())]:
        counts[key] += 1
    return counts


# ---- What the teachers foretell ---------------------------------------------------------------


@torch.no_grad()
def distribution(teachers, ids, tables):
    """The mean of the teachers' distributions of each next token."""
    total = 0
    for teacher in teachers:
        hidden = teacher.hidden(ids, *tables)
        total = total + F.linear(hidden, teacher.token_embd.to(hidden.dtype)).float().softmax(-1)
    return total / len(teachers)


def in_batches(rows, batch):
    """Rows [count, time] in batches of one shape, so that nothing is compiled again; each with how
    many of its rows count."""
    for at in range(0, len(rows), batch):
        part = torch.from_numpy(numpy.asarray(rows[at:at + batch], dtype=numpy.int64)).to(DEVICE)
        used = len(part)
        if used < batch:
            part = torch.cat((part, part[:1].expand(batch - used, -1)))
        yield part, used


def with_ends(foretold, targets):
    """The distributions with no end of a document in them but where the text has one: there, nothing
    else."""
    foretold[..., story_text.END_ID] = 0
    foretold /= foretold.sum(-1, keepdim=True)
    ends = targets == story_text.END_ID
    foretold *= ~ends[..., None]
    foretold[..., story_text.END_ID] = ends.float()
    return foretold


class Lesson:
    """Rows of text with the likeliest tokens the teachers foretell after each of theirs. own_ends: that
    a document ends is taken from the text, so that what is chosen by its length is learned with it."""

    def __init__(self, rows, teachers, batch, tables, generator, own_ends=False):
        self.generator = generator
        self.ids, values, choices = [], [], []
        for part, used in in_batches(rows, batch):
            foretold = distribution(teachers, part[:, :-1], tables)
            if own_ends:
                foretold = with_ends(foretold, part[:, 1:])
            top = foretold.topk(NOTED, sorted=False)
            self.ids.append(part[:used].short())
            values.append(top.values[:used].half())
            choices.append(top.indices[:used].short())
        self.ids, self.values, self.choices = map(torch.cat, (self.ids, values, choices))
        self.at = len(self.ids)

    def take(self, count):
        if self.at + count > len(self.ids):
            self.order = torch.randperm(len(self.ids), device=DEVICE, generator=self.generator)
            if len(self.ids) < count:
                self.order = self.order.repeat(count // len(self.ids) + 1)
            self.at = 0
        rows = self.order[self.at:self.at + count]
        self.at += count
        return self.ids[rows].long(), self.values[rows], self.choices[rows]


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

    def __init__(self, model, plan, sources, held_out, settings, tables, generator):
        self.model, self.plan, self.sources, self.held_out = model, plan, sources, held_out
        self.settings, self.tables, self.generator = settings, tables, generator
        self.hard = {}
        named = list(model.named_parameters())
        matrices = [p for name, p in named if p.ndim == 2 and name != "token_embd"]
        others = [p for name, p in named if p.ndim != 2 or name == "token_embd"]
        decayed = [{"params": matrices, "weight_decay": plan["decay"]}]
        self.muon = None
        if plan["muon"]:
            self.muon = story_optim.Muon(matrices, plan["rate"], plan["decay"])
            decayed = []
        self.adam = torch.optim.AdamW(decayed + [{"params": others, "weight_decay": 0.0}],
                                      lr=plan["rate"], betas=(0.9, 0.95), fused=DEVICE == "cuda")

    def rate(self, step, steps):
        """Warm-up, a share of the steps at full rate, then linearly to nothing."""
        held = self.plan["hold"] * steps
        rate = min(1.0, (steps - step) / max(1.0, steps - held))
        return self.plan["rate"] * rate * min(1.0, (step + 1) / self.plan["warmup"])

    def loss(self, progress):
        counts = shares(self.plan["first"], self.plan["last"], progress, self.settings["batch"])
        counts = {key: count for key, count in counts.items() if count}
        cos, sin = self.tables
        if "hard" not in self.plan:
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
        weights = tuple(self.plan["hard"][key] for key in counts for _ in range(counts[key]))
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


# ---- Stories of the models' own -----------------------------------------------------------------


def half_precision(model):
    return copy.deepcopy(model).to(torch.bfloat16).eval()


def synthesize(teachers, plan, prompt, generator):
    """Rows of tokens that each go on after the prompt, to the end of a document and to others. Where a
    row ends in the middle of one, nothing false is learned from it: only the teachers' distribution
    is, never the next token."""
    rows = []
    prompts = torch.tensor([prompt], device=DEVICE).expand(plan["rows"], -1)
    for turn in range(plan["rounds"]):
        ids = story_model.sample(half_precision(teachers[turn % len(teachers)]), prompts,
                                 plan["length"], plan["temperature"], generator)
        rows += list(ids.cpu().numpy().astype(numpy.uint16))
    return rows


# ---- Everything -------------------------------------------------------------------------------


class Run:
    """The corpus, the settings and the clock, as all phases share them."""

    def __init__(self, arguments):
        self.settings = json.loads(pathlib.Path(arguments.settings).read_text())
        self.seconds, self.corpus = arguments.seconds, arguments.corpus
        self.out = pathlib.Path(arguments.out)
        self.out.mkdir(parents=True, exist_ok=True)
        self.random = numpy.random.default_rng(self.settings["seed"])
        self.generator = torch.Generator(DEVICE).manual_seed(self.settings["seed"])
        self.window = self.settings["context"] + 1
        self.tables = story_model.rope_tables(self.settings["context"], DEVICE)
        self.log = {}

    def left(self, phase):
        """Seconds left for a phase: what the later ones need is kept for them."""
        order = ["teacher_training", "synthesis", "notes", "student_training"]
        later = order[order.index(phase) + 1:]
        kept = ENDING_SECONDS + sum(self.settings["seconds"][key] for key in later)
        return self.seconds - kept - (time.monotonic() - BEGAN)

    def read(self):
        settings = self.settings
        texts = {key: story_text.read(self.corpus, key) for key in settings["groups"]}
        self.tokenizer = story_text.make_tokenizer(
            [document for key, group in settings["groups"].items()
             for document in texts[key] * group["tokenizer_copies"]], settings["vocab"])
        (self.out / "tokenizer.json").write_text(self.tokenizer.to_str())
        say("tokenizer made")
        self.groups = {}
        for key, group in settings["groups"].items():
            encoded = story_text.encode(self.tokenizer, texts[key])
            self.groups[key] = Group(encoded, group["begin_share"], self.window, self.random)
            say(f"{key}: {len(texts[key])} documents, {sum(map(len, texts[key])):,} bytes, "
                f"{len(self.groups[key].ids):,} tokens")
        plan = settings["long"]
        stories = story_long.of_corpus([document for key in plan["of"] for document in texts[key]],
                                       plan["least"], plan["most"])
        self.groups["long"] = Group(story_text.encode(self.tokenizer, stories), 1.0, self.window,
                                    self.random)
        say(f"long: {len(stories)} documents, {len(self.groups['long'].ids):,} tokens")
        self.held_streams = {
            key: story_text.stream(story_text.encode(self.tokenizer,
                                                     story_text.read(self.corpus, f"valid_{key}")))
            for key in ("tinystories", "childrens_simple", "fairy_tales", "all")}
        self.held_out = {key: self.held_streams[key][:settings["context"] * settings["batch"] * 2]
                         for key in ("tinystories", "childrens_simple", "fairy_tales")}

    def fresh(self, kind):
        model = story_model.Llama(self.settings["vocab"], context=self.settings["context"],
                                  **self.settings[kind])
        return model.to(DEVICE)

    def trainer(self, model, plan, sources):
        return Trainer(model, plan, sources, self.held_out, self.settings, self.tables,
                       self.generator)

    def train(self, model, phase, sources, number=0):
        """number: which of the models of the phase it is."""
        plan = self.settings[phase]
        trainer = self.trainer(model, plan, sources)
        each = trainer.step_seconds()
        parts_left = len(plan["steps"]) - number
        steps = plan["steps"][number] or max(1, int(self.left(phase) / parts_left / each))
        say(f"{phase}: {model.parameter_count():,} parameters, {each * 1e3:.1f} ms a step, "
            f"{steps} steps")
        self.log.setdefault(phase, []).append(
            {"steps": steps, "held_out": trainer.run(steps, phase)})

    def rehearse(self):
        """A little of every phase: what fails, fails before the time is spent. What is compiled
        here stays compiled."""
        settings = self.settings
        teachers = [self.fresh("teacher").eval().requires_grad_(False)]
        student = self.fresh("student")
        encoded = self.groups["tinystories"].encoded
        self.synthesize("synthesis", teachers, rounds=1, rows=8, length=24)
        self.synthesize("long_synthesis", teachers, rounds=1, rows=8, length=24)
        self.good([story_text.stream(encoded[:100])])
        rows = story_text.cut(encoded, self.window)[:settings["batch"] + 1]
        self.teach(rows, teachers, own_ends=True)
        lesson = self.teach(rows, teachers)
        plan = settings["student_training"]
        self.trainer(student, plan, {key: lesson for key in plan["hard"]}).run(2, "rehearsal")
        self.export(student, "rehearsal")

    def train_teachers(self):
        teachers = []
        for number in range(len(self.settings["teacher_training"]["steps"])):
            teacher = self.fresh("teacher")
            self.train(teacher, "teacher_training", self.groups, number)
            teachers.append(teacher.requires_grad_(False))
        return teachers

    def teach(self, rows, teachers, own_ends=False):
        return Lesson(rows, teachers, self.settings["batch"], self.tables, self.generator, own_ends)

    def synthesize(self, phase, teachers, **changes):
        plan = dict(self.settings[phase], **changes)
        prompt = [story_text.END_ID] + self.tokenizer.encode(plan["prompt"]).ids
        rows = synthesize(teachers, plan, prompt, self.generator)
        say(f"{phase}: {len(rows)} rows, {sum(map(len, rows)):,} tokens")
        return rows

    def good(self, rows):
        """The stories in rows that are whole, and as long and as good as those of `long` should be."""
        plan = self.settings["long_synthesis"]
        whole = story_text.documents(rows, whole=True)
        texts = self.tokenizer.decode_batch([document[1:].tolist() for document in whole])
        kept = [document for document, text in zip(whole, texts)
                if story_long.good(text, plan["least"], plan["most"], plan["repeats"])]
        long = sum(plan["least"] <= len(text.split()) <= plan["most"] for text in texts)
        self.log["long_synthesis"] = {"whole": len(whole), "long": long, "kept": len(kept)}
        say(f"stories: {len(whole)} whole, {long} long, {len(kept)} kept")
        return kept

    def notes(self, teachers):
        """What the student learns from. `long` are the corpus's long stories and the teachers'."""
        own = self.synthesize("synthesis", teachers)
        opened = self.synthesize("long_synthesis", teachers)
        texts = {key: group.encoded for key, group in self.groups.items()}
        texts["synthetic"] = story_text.documents(own)
        texts["long"] = texts["long"] + self.good(own + opened)
        self.random.shuffle(texts["long"])
        lessons = {key: self.teach(story_text.cut(encoded, self.window), teachers, key == "long")
                   for key, encoded in texts.items()}
        say("notes: " + ", ".join(f"{key} {len(lesson.ids)} rows"
                                  for key, lesson in lessons.items()))
        return lessons

    def export(self, student, name):
        path = self.out / f"{name}-f32.gguf"
        story_model.export(path, student, self.settings["name"], self.tokenizer.to_str(),
                           "Tells simple stories in English. Trained from nothing for greta.")
        say(f"{path.name}: {path.stat().st_size:,} bytes, "
            f"sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}")

    def score(self, student):
        scores = {}
        for key, ids in self.held_streams.items():
            nats, count = score(student, ids, self.settings["context"], 16, self.tables, exact=True)
            scores[key] = {
                "tokens": len(ids), "ids_sha256": hashlib.sha256(ids.tobytes()).hexdigest(),
                "scored_tokens": count, "nats": nats, "perplexity": math.exp(nats / count)}
            say(f"{key}: {scores[key]}")
        return scores

    def show(self, student):
        prompt = [story_text.END_ID] + self.tokenizer.encode("Once upon a time").ids
        prompts = torch.tensor([prompt] * 4, device=DEVICE)
        rows = story_model.sample(half_precision(student), prompts,
                                  min(700, self.settings["context"]), 0.7, self.generator)
        for row in rows.tolist():
            end = row.index(story_text.END_ID, 1) if story_text.END_ID in row[1:] else len(row)
            print(self.tokenizer.decode(row[:end], skip_special_tokens=True), "\n---", flush=True)

    def write_log(self):
        (self.out / "run.json").write_text(json.dumps(self.log, indent=2) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seconds", type=float, default=430)
    parser.add_argument("--settings", default=pathlib.Path(__file__).parent / "settings.json")
    run = Run(parser.parse_args())
    torch.manual_seed(run.settings["seed"])
    torch.set_float32_matmul_precision("highest")
    say(f"torch {torch.__version__} on {DEVICE}")
    run.read()
    run.rehearse()
    teachers = run.train_teachers()
    lessons = run.notes(teachers)
    student = run.fresh("student")
    run.train(student, "student_training", lessons)
    run.export(student, run.settings["name"])
    run.log["held_out"] = run.score(student)
    run.write_log()
    run.show(student)
    say("done")


if __name__ == "__main__":
    main()
