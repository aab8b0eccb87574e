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

import story_long
import story_model
import story_text
from story_lesson import DEVICE, Group, Lesson
from story_train import BEGAN, Trainer, say, score

ENDING_SECONDS = 13  # scoring, samples and files


# ---- Stories of the models' own -----------------------------------------------------------------


def half_precision(model):
    return copy.deepcopy(model).to(torch.bfloat16).eval()


def synthesize(teachers, recipe, prompt, generator):
    """Rows of tokens that each go on after the prompt, to the end of a document and to others. Where a
    row ends in the middle of one, nothing false is learned from it: only the teachers' distribution
    is, never the next token."""
    rows = []
    prompts = torch.tensor([prompt], device=DEVICE).expand(recipe["rows"], -1)
    for turn in range(recipe["rounds"]):
        ids = story_model.sample(half_precision(teachers[turn % len(teachers)]), prompts,
                                 recipe["length"], recipe["temperature"], generator)
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
        recipe = settings["long"]
        stories = story_long.of_corpus([document for key in recipe["of"] for document in texts[key]],
                                       recipe["least"], recipe["most"])
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

    def trainer(self, model, recipe, sources):
        return Trainer(model, recipe, sources, self.held_out, self.settings, self.tables,
                       self.generator)

    def train(self, model, phase, sources, number=0):
        """number: which of the models of the phase it is."""
        recipe = self.settings[phase]
        trainer = self.trainer(model, recipe, sources)
        each = trainer.step_seconds()
        parts_left = len(recipe["steps"]) - number
        steps = recipe["steps"][number] or max(1, int(self.left(phase) / parts_left / each))
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
        recipe = settings["student_training"]
        self.trainer(student, recipe, {key: lesson for key in recipe["hard"]}).run(2, "rehearsal")
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
        recipe = dict(self.settings[phase], **changes)
        prompt = [story_text.END_ID] + self.tokenizer.encode(recipe["prompt"]).ids
        rows = synthesize(teachers, recipe, prompt, self.generator)
        say(f"{phase}: {len(rows)} rows, {sum(map(len, rows)):,} tokens")
        return rows

    def good(self, rows):
        """The stories in rows that are whole, and as long and as good as those of `long` should be."""
        recipe = self.settings["long_synthesis"]
        whole = story_text.documents(rows, whole=True)
        texts = self.tokenizer.decode_batch([document[1:].tolist() for document in whole])
        kept = [document for document, text in zip(whole, texts)
                if story_long.good(text, recipe["least"], recipe["most"], recipe["repeats"])]
        long = sum(recipe["least"] <= len(text.split()) <= recipe["most"] for text in texts)
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
