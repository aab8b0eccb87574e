#!/usr/bin/env python3
"""Makes the picture in the README from what ./demo --fault rope prints.

    tools/film.py             runs ./demo --fault rope, writes docs/film.txt and docs/film.svg
    tools/film.py --render    draws docs/film.svg from docs/film.txt again
    tools/film.py --check     says whether it is what docs/film.txt gives (exit status 1: no)

The text is kept as it was printed, from the planted fault on. The picture shows all of it.
"""
import pathlib
import re
import subprocess
import sys
import textwrap
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEXT, PICTURE = ROOT / "docs/film.txt", ROOT / "docs/film.svg"
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


def main():
    choice = sys.argv[1:] or [""]
    if choice not in ([""], ["--render"], ["--check"]):
        sys.exit(__doc__)
    if choice == [""]:
        run = subprocess.run(["./demo", "--fault", "rope"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, check=False)
        if run.returncode:
            sys.exit(run.stdout[-2000:] + f"film.py: ./demo ended with {run.returncode}")
        TEXT.write_text(cut(run.stdout))
    picture = draw(TEXT.read_text())
    if choice == ["--check"]:
        if not PICTURE.exists() or PICTURE.read_text() != picture:
            sys.exit("docs/film.svg is not what docs/film.txt gives: run tools/film.py --render")
        return
    PICTURE.write_text(picture)
    print(f"wrote {PICTURE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
