"""story_lesson.py - what a model learns from: windows of tokens of the texts (Group), and rows with
what the teachers foretell for each next token (Lesson)."""
import numpy
import torch
import torch.nn.functional as F

import story_text

DEVICE = "cuda"
NOTED = 64  # tokens of each teachers' distribution that are noted one by one


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
