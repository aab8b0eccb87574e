#!/usr/bin/env python3
"""words.py - comments, pages, help texts and messages in the words of docs/glossary.md.

usage: tools/words.py [ROOT]
       tools/words.py --commits BASE [ROOT]

Reads comments and string literals of C and Python, comments of shell and CMake files, and Markdown
pages. Prints each habit that CONTRIBUTING.md asks authors to avoid, with what to write instead.
Markdown lines have at most 120 characters (tables, code and lines that are one link excepted).

tools/words_allowed.txt has the exceptions.

--commits checks the subjects of the commits after BASE: at most 72 characters, an imperative with a
capital letter, no semicolon, no full stop at the end.

Exit status: 0 clean, 1 findings, 2 wrong usage or a damaged list.
"""

import argparse
import fnmatch
import pathlib
import re
import subprocess
import sys

ALLOWED = "tools/words_allowed.txt"
LINE_LIMIT = 120
SUBJECT_LIMIT = 72
# Generated, or text of other people.
LEFT_OUT = ("tests/data/*", "fuzz/corpus/*", "bench/results/*", "tools/words.py", "docs/film.txt",
            "docs/history.md", "tests/tools/words_test.py", "bench/peers/*", "docs/glossary.md")
SENTENCE = r"(?:^|(?<=[.;!?] )|(?<=\n\n))"
SUFFIXES = {".c": "c", ".h": "c", ".def": "c", ".inc": "c", ".cu": "c", ".py": "py", ".sh": "sh",
            ".cmake": "sh", ".txt": "sh", ".md": "md"}

# slug, pattern, what to write, the files it applies to (none: all; !: all but these).
RULES = [
    ("of-fragment", SENTENCE + r"Of (?!course)", "a sentence with a subject, not 'Of X: ...'", ()),
    ("who-fragment", SENTENCE + r"Who (?![^.;]*\?)", "'The caller', 'A thread that', not a bare 'who'", ()),
    ("who-fragment", r"\b(?:for|of|by|to|than|which|wakes all|let|and|as|with) who\b(?! (?:is|was|are)\b)",
     "'whoever', 'the caller', 'a thread that'", ()),
    ("so-much-of", SENTENCE + r"So (?:much|many) ", "'At most', 'The number of', 'Minimum'", ()),
    ("behind", r"(?<!look-)(?<!left )\b[Bb]ehind\b", "'after' or 'following'", ()),
    ("beside", r"\b[Bb]eside\b", "'next to', 'compared with', 'during'", ()),
    ("told", r"\b[Tt]old\b(?! apart)", "'reported', 'recorded', 'given', 'passed'", ()),
    ("nobody", r"\b[Nn]obody\b", "'no one', 'nothing', 'not'", ()),
    ("how-manieth", r"\bhow manieth\b|\bhow many-th\b", "'number, from 1'", ()),
    ("is-had", r"\b(?:is|are|be|was|were) had\b", "'is available', 'obtained', 'is'", ()),
    ("whether-it-pays", r"\b[Ww]hether (?:that|it|this) pays\b|\bwhere (?:that|it) pays\b",
     "'if that is faster'", ()),
    ("expected-to-work", r"\bexpected it to work\b", "what failed, with its code: 'cuInit failed: ...'", ()),
    ("held-against", r"\b(?:held|holds?(?: \S+){1,4}) against\b", "'compared with', 'compares ... with'", ()),
    ("for-so-long", r"\bfor so long\b", "'for longer', 'in that time', 'how long'", ()),
    ("of-them-those", r"\bof them those\b", "'those of them that'", ()),
    ("his-own", r"\b(?:of|in|on|by) his\b", "'its own', 'of their own'", ()),
    ("anew", r"\b[Aa]new\b", "'again'", ()),
    ("reading-prompts", r"\b[Rr]eading (?:a |the )?prompts?\b", "'prefill'",
     ("src/*.[ch]", "*.md", "bench/*", "cmake/*")),
    ("pieces", r"\b[Pp]ieces?\b", "'chunks', 'tiles', 'parts'",
     ("!src/tokenizer/*", "!tests/unit/tokenizer_*", "!src/convert/synth_vocabulary.c", "!fuzz/*")),
    ("team", r"\b[Tt]eams?\b", "'warp'", ()),
    ("product", r"\b(?<!dot )(?<!inner )[Pp]roducts?\b(?! (?:of|and (?:each )?sums?|is exact|are exact|rounded)\b)",
     "'matmul' (an op), 'GEMV', 'multiply-add', 'dot product'",
     ("!src/ops/host/*", "src/ops/*", "src/engine/*", "src/generate/*", "src/device/*", "src/analyze/*", "src/campaign/*",
      "src/report/*", "src/cli/*", "*.md", "bench/*", "cmake/*", "tests/fake_gpu/*", "tests/integration/*",
      "tests/cli/*", "tests/unit/ops_*")),
    ("levels", r"\b(?:bytes|pairs|nibbles|block|multiplied|packed|stored|4-bit|8-bit|6-bit|5-bit|bit)"
               r"(?: as| of|'s|s of)? levels?\b|\b[Ll]evels? of (?:Q\d|a block|weights|the block|blocks)",
     "'quants'", ()),
    ("seed-ticket", r"\bB3\.\d\d\b|\bH[1-9]\b(?!\d|00)", "name the thing; docs/history.md has the seeds", ()),
]
COMPILED = [(slug, re.compile(pattern), advice, files) for slug, pattern, advice, files in RULES]

C_TOKEN = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
PY_TOKEN = re.compile(r'"""(?:.|\n)*?"""|"(?:\\.|[^"\\\n])*"|' + r"'(?:\\.|[^'\\\n])*'|(?:#[^\n]*(?:\n[ \t]*#[^\n]*)*)")
SH_TOKEN = re.compile(r"(?<![$&\\\w\"'{])#[^\n]*(?:\n[ \t]*#[^\n]*)*")


def c_prose(text):
    """(offset, words) of comments and string literals; strings that follow each other are one."""
    joined, end = None, 0
    for token in C_TOKEN.finditer(text):
        word = token.group()
        if word[0] == "'":
            continue
        if word[0] == '"':
            # Something else between two strings: they are not one text.
            if joined and text[end:token.start()].strip():
                yield joined
                joined = None
            offset, before = joined or (token.start() + 1, "")
            joined, end = (offset, before + word[1:-1]), token.end()
            continue
        if joined:
            yield joined
            joined = None
        yield token.start(), word
    if joined:
        yield joined


def prose(kind, text):
    """(offset, text) of what is written for people, as it stands in the file."""
    if kind == "c":
        for offset, word in c_prose(text):
            yield offset, word
    elif kind == "md":
        yield 0, re.sub(r"^(```|~~~).*?^\1|`[^`\n]*`|\]\([^)\n]*\)|<!--.*?-->",
                        lambda hit: re.sub(r"[^\n]", "\0", hit.group()), text, flags=re.S | re.M)
    else:
        for token in (PY_TOKEN if kind == "py" else SH_TOKEN).finditer(text):
            yield token.start(), token.group()


def flat(raw):
    """raw with comment signs and line ends as blanks of one: (text, [offset of each character])."""
    text, places = [], []
    # An empty comment line or a Markdown list begins a sentence.
    for hit in re.finditer(r"\n(?:[ \t]*(?:\*|#|//)?[ \t]*\n)+(?:[ \t]*(?:\* |# |// |- ))?[ \t]*"
                           r"|\n[ \t]*(?:\*/|\* |# |// )?[ \t]*|[ \t]+|^/\*+ ?|^(?:# ?|// ?)|^\"\"\"|\*/$|\|[ ]*|(?s:.)", raw):
        word = hit.group()
        if word.startswith("\n") and (word.count("\n") > 1 or word.rstrip().endswith("-")):
            kept = "\n\n"
        elif word.startswith(("/*", "# ", "//", '"""')) and hit.start() == 0:
            kept = ""
        elif word[0] == "|":
            kept = "\n\n"
        elif word[0] in " \t\n":
            kept = " "
        elif word == "*/":
            kept = ""
        else:
            kept = word
        text.append(kept)
        places += [hit.start()] * len(kept)
    return "".join(text).rstrip(), places


def long_lines(text):
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(("```", "~~~")):
            fenced = not fenced
        single = re.fullmatch(r"\s*(?:[-*] )?!?\[[^]]*\]\(\S+\)[.,;]?", line)
        if len(line) > LINE_LIMIT and not fenced and not line.lstrip().startswith("|") and not single:
            yield number, "line-length", line[:40], f"at most {LINE_LIMIT} characters, {len(line)} here"


def applies(files, name):
    """True if a rule for these file patterns looks at the file."""
    without = [one[1:] for one in files if one.startswith("!")]
    only = [one for one in files if not one.startswith("!")]
    return (not any(fnmatch.fnmatchcase(name, one) for one in without)
            and (not only or any(fnmatch.fnmatchcase(name, one) for one in only)))


def findings(name, text):
    """(line, slug, excerpt, advice) of one file."""
    kind = SUFFIXES.get(pathlib.PurePath(name).suffix, "sh")
    found = []
    for offset, raw in prose(kind, text):
        words, places = flat(raw)
        for slug, pattern, advice, files in COMPILED:
            if not applies(files, name):
                continue
            for hit in pattern.finditer(words):
                line = text.count("\n", 0, offset + places[min(hit.start(), len(places) - 1)]) + 1
                around = words[max(0, hit.start() - 30):hit.end() + 30].replace("\n", " ").replace("\0", "~")
                found.append((line, slug, around, advice))
    if kind == "md":
        found += long_lines(text)
    return sorted(found)


def git(root, *words):
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def sources(root):
    listed = git(root, "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    names = listed or [str(path.relative_to(root)) for path in root.rglob("*")
                       if "build" not in path.relative_to(root).parts]
    for name in sorted(names):
        path = root / name
        wanted = path.suffix in SUFFIXES or name in ("test", "demo", "tools/lint", "bench/run")
        if (wanted and path.is_file() and not name.startswith((".git/", "build/"))
                and not any(fnmatch.fnmatchcase(name, one) for one in LEFT_OUT)):
            yield name


def rows(path, columns):
    """Lines of a list, split; ValueError where one has fewer columns."""
    if not path.exists():
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            row = line.split(None, columns - 1)
            if len(row) < columns:
                raise ValueError(f"{path}:{number}: expected {columns} columns, found '{line}'")
            yield row


def check_files(root):
    allowed = [(one, re.compile(pattern)) for one, pattern, _ in rows(root / ALLOWED, 3)]
    count = 0
    for name in sources(root):
        text = (root / name).read_text(encoding="utf-8", errors="replace")
        for line, slug, around, advice in findings(name, text):
            if any(fnmatch.fnmatchcase(name, one) and pattern.search(around) for one, pattern in allowed):
                continue
            print(f"{name}:{line}: {slug}: \"{around.strip()}\"; better: {advice}")
            count += 1
    print(f"words: {count} findings")
    return 1 if count else 0


def subject_faults(subject):
    if len(subject) > SUBJECT_LIMIT:
        yield f"{len(subject)} characters, at most {SUBJECT_LIMIT}"
    if ";" in subject:
        yield "a semicolon: one thing in each commit"
    if subject.endswith("."):
        yield "a full stop at the end"
    if not re.match(r"[A-Z][a-z]", subject):
        yield "does not begin with a verb and a capital letter"
    elif re.match(r"\w+(?:ed|ing|[^s]s) ", subject) and not re.match(
            r"(?:Embed|Feed|Need|Speed|Seed|Proceed|Bring|String|Focus) ", subject):
        yield "not an imperative: 'Add', not 'Added', 'Adds' or 'Adding'"


def check_commits(root, base):
    listed = subprocess.run(["git", "-C", str(root), "log", "--no-merges", "--format=%h %s", f"{base}..HEAD"],
                            capture_output=True, text=True, check=False)
    if listed.returncode:
        print(f"words: {listed.stderr.strip()}", file=sys.stderr)
        return 2
    found = 0
    for line in listed.stdout.splitlines():
        commit, _, subject = line.partition(" ")
        for fault in subject_faults(subject):
            print(f"commit {commit}: \"{subject}\": {fault}")
            found += 1
    print(f"words: {found} findings in the subjects of {len(listed.stdout.splitlines())} commits")
    return 1 if found else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--commits", metavar="BASE")
    parser.add_argument("root", nargs="?", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    arguments = parser.parse_args()
    try:
        if arguments.commits:
            return check_commits(arguments.root, arguments.commits)
        return check_files(arguments.root)
    except ValueError as problem:
        print(f"words: {problem}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
