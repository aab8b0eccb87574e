#!/usr/bin/env python3
"""Makes the picture in the README from what ./demo --fault rope prints.

    tools/film.py             runs ./demo --fault rope, writes docs/film.txt and what is made from it
    tools/film.py --from LOG  takes what it printed from a file
    tools/film.py --render    makes docs/film.svg and the excerpt in the README from docs/film.txt again
    tools/film.py --check     says whether they are what docs/film.txt gives (exit status 1: no)

The text is kept as it was printed, from the planted fault on. The picture shows all of it.
"""
import pathlib
import re
import subprocess
import sys
import textwrap
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEXT, PICTURE, README = ROOT / "docs/film.txt", ROOT / "docs/film.svg", ROOT / "README.md"
README_BEGIN, README_END = "<!-- film: begin (tools/film.py --render) -->\n", "<!-- film: end -->\n"
BEGIN = "Now a fault is planted"

COLUMNS = 118
LINE, CHARACTER, MARGIN, BAR = 17, 7.25, 16, 30
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
WORDS = [("CONFIRMED", "#fc8181"), ("INCONCLUSIVE", "#f6e05e"), ("REFUTED", "#68d391"),
         ("ROOT CAUSE FOUND", "#fc8181"), ("STATUS=FAILED", "#fc8181")]


def cut(output):
    """From the planted fault to the end, without what a shell's time adds."""
    begin = output.find(BEGIN)
    if begin < 0:
        sys.exit(f"film.py: expected '{BEGIN}' in the output, found it nowhere")
    return output[begin:].split("\nreal\t")[0].rstrip() + "\n"


def rows(text):
    """Lines as a terminal of COLUMNS would break them; what continues is indented."""
    for line in text.rstrip("\n").split("\n"):
        if len(line) <= COLUMNS:
            yield line, line.startswith("$ ")
            continue
        for i, part in enumerate(textwrap.wrap(line, COLUMNS, subsequent_indent="    ",
                                               break_on_hyphens=False)):
            yield part, i == 0 and line.startswith("$ ")


def coloured(line):
    for word, colour in WORDS:
        pattern = rf"(^|\s){re.escape(word)}(?=\s|$)"
        found = re.search(pattern, line)
        if found:
            start = found.end() - len(word)
            return (escape(line[:start]) + f'<tspan fill="{colour}" font-weight="bold">{escape(word)}</tspan>'
                    + escape(line[found.end():]))
    return escape(line)


def draw(text):
    lines = list(rows(text))
    width = int(MARGIN * 2 + COLUMNS * CHARACTER)
    height = BAR + MARGIN * 2 + len(lines) * LINE
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
             f'font-family="{FONT}" font-size="12">',
             f'<rect width="{width}" height="{height}" rx="8" fill="#1a202c"/>']
    for i, colour in enumerate(["#fc8181", "#f6e05e", "#68d391"]):
        parts.append(f'<circle cx="{MARGIN + 4 + i * 18}" cy="{BAR / 2 + 3}" r="5" fill="{colour}"/>')
    parts.append(f'<text x="{width / 2}" y="{BAR / 2 + 7}" fill="#a0aec0" text-anchor="middle">./demo --fault rope</text>')
    for i, (line, command) in enumerate(lines):
        style = ' fill="#90cdf4" font-weight="bold"' if command else ' fill="#e2e8f0"'
        parts.append(f'<text x="{MARGIN}" y="{BAR + MARGIN + i * LINE + 8}" xml:space="preserve"{style}>{coloured(line)}</text>')
    return "\n".join(parts + ["</svg>"]) + "\n"


def excerpt(text):
    """How the run died, and what the audit says of it; long lines broken."""
    lines = text.split("\n")
    died = [line for line in lines if line.startswith(("STATUS=", "Generation error"))]
    told = [line for line in lines if line.startswith(("Outcome", "Root cause"))]
    if len(died) != 2 or len(told) != 2:
        sys.exit("film.py: expected a run that failed and an audit's outcome, found something else")
    broken = ["\n".join(textwrap.wrap(line, 150, break_on_hyphens=False)) for line in died + ["..."] + told]
    return "```\n" + "\n".join(broken) + "\n```\n"


def made(text):
    """Path -> content."""
    head, rest = README.read_text().split(README_BEGIN, 1)
    return {PICTURE: draw(text), README: head + README_BEGIN + excerpt(text) + README_END + rest.split(README_END, 1)[1]}


def film():
    run = subprocess.run(["./demo", "--fault", "rope"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True, check=False)
    if run.returncode:
        sys.exit(run.stdout[-2000:] + f"film.py: ./demo ended with {run.returncode}")
    return run.stdout


def main():
    words = sys.argv[1:]
    if words not in ([], ["--render"], ["--check"]) and not (len(words) == 2 and words[0] == "--from"):
        sys.exit(__doc__)
    if not words or words[0] == "--from":
        TEXT.write_text(cut(film() if not words else pathlib.Path(words[1]).read_text()))
    for path, content in made(TEXT.read_text()).items():
        if words != ["--check"]:
            path.write_text(content)
        elif not path.exists() or path.read_text() != content:
            sys.exit(f"{path.relative_to(ROOT)} is not what docs/film.txt gives: run tools/film.py --render")


if __name__ == "__main__":
    main()
