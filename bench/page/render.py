"""The page and its plots, from raw files alone: the same files always give the same page."""
import json
import pathlib
import sys
import textwrap

from page.sections import ORDER, SECTIONS, describe
from page.summary import readme_block, summary_table

INTRO = """# Results

`bench/run` makes this page from the raw files under `bench/results/`; nothing on it was typed (`bench/run --render` makes it
again, a test compares). Figures of a processor are ratios within one run, because such machines differ from minute to minute;
only GPUs have absolute figures. Every figure belongs to the machine that its part names. How things are measured, and figures
whose raw output was not kept: [README.md](README.md)."""

SUMMARY = """A star marks figures of other programs on an H200 whose raw output was not kept
([README.md](README.md#others-on-the-same-work))."""

README_BEGIN, README_END = "<!-- measured: begin (bench/run --render) -->\n", "<!-- measured: end -->\n"


def source_lines(raw, path):
    """Which commands, when, of what: the first of them in full."""
    runs = raw["runs"]
    dates, commits = sorted({run["date"] for run in runs}), sorted({run["commit"] for run in runs})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    command = runs[0]["command"]
    return ["", "```", command if len(command) < 150 else command[:147] + "...", "```", "",
            (f"And {len(runs) - 1} more; " if len(runs) > 1 else "") + f"{when}; commit {', '.join(commits)}; [raw]({path})"]


def wrapped(text):
    """text with its paragraphs wrapped; tables, headings, pictures and code as they are."""
    lines, paragraph, code = [], [], False
    for line in [*text.split("\n"), None]:
        if line is not None and line and not line.startswith(("|", "#", "!", "```")) and not code:
            paragraph.append(line)
            continue
        if paragraph:
            lines += textwrap.wrap(" ".join(paragraph), 118, break_long_words=False, break_on_hyphens=False)
            paragraph = []
        if line is not None:
            code ^= line.startswith("```")
            lines.append(line)
    return "\n".join(lines)


def make(results):
    """The page's text, and the plots by path below the results."""
    results = pathlib.Path(results)
    lines, plots = [INTRO, "", "## Summary", "", SUMMARY, "", *summary_table(results)], {}
    for folder in sorted(path for path in results.glob("*") if path.is_dir()):
        files = [folder / f"{name}.json" for name in ORDER if (folder / f"{name}.json").exists()]
        machines = []
        for path in files:
            raw = json.loads(path.read_text())
            if raw["machine"] not in machines:
                machines.append(raw["machine"])
                lines += ["", f"## {folder.name}", "", describe(raw["machine"]) + "."]
            title, body, made = SECTIONS[raw["section"]](raw)
            lines += ["", f"### {title} ({folder.name})", ""] + body
            lines += source_lines(raw, f"results/{folder.name}/{path.name}")
            for name, svg in made.items():
                plots[f"{folder.name}/{name}.svg"] = svg
                lines += ["", f"![{title}](results/{folder.name}/{name}.svg)"]
    return wrapped("\n".join(lines) + "\n"), plots


def readme_with(readme, results):
    head, rest = readme.split(README_BEGIN, 1)
    return head + README_BEGIN + readme_block(results) + README_END + rest.split(README_END, 1)[1]


def outputs(results, page, readme):
    """Everything that is made: path -> text."""
    text, plots = make(results)
    made = {str(page): text, **{str(pathlib.Path(results) / path): svg for path, svg in plots.items()}}
    if pathlib.Path(readme).exists():
        made[str(readme)] = readme_with(pathlib.Path(readme).read_text(), results)
    return made


def write(results, page, readme):
    made = outputs(results, page, readme)
    for path, text in made.items():
        pathlib.Path(path).write_text(text)
    print(f"wrote {page} and {len(made) - 1} more")


def check(results, page, readme):
    made = outputs(results, page, readme)
    wrong = [path for path, text in made.items() if not pathlib.Path(path).exists() or pathlib.Path(path).read_text() != text]
    stray = sorted(str(path) for path in pathlib.Path(results).glob("*/*.svg") if str(path) not in made)
    for path in wrong + stray:
        print(f"{path}: not what the raw files give; run bench/run --render", file=sys.stderr)
    return 1 if wrong or stray else 0
