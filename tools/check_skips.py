#!/usr/bin/env python3
"""check_skips.py - a test that is skipped has a reason, or the check fails.

usage: tools/check_skips.py ALLOWED [--skipped NAME]... JUNIT...

ALLOWED has a line for each kind of test that may be skipped: a pattern of names (* and ?), blanks, the
reason. JUNIT are the files that ctest writes. Prints every skipped test without a line, and every line
without a skipped test (fewer skips are fine: a machine may have a GPU). Exit status: 0 if all have a
line, 1 if not, 2 if a file cannot be read.
"""

import argparse
import fnmatch
import pathlib
import sys
import xml.etree.ElementTree


def allowed_rows(path):
    """[(pattern, reason)]; ValueError where a line has no reason."""
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            pattern, _, reason = line.partition(" ")
            if not reason.strip():
                raise ValueError(f"{path}:{number}: expected a pattern and a reason, found '{line}'")
            rows.append((pattern, reason.strip()))
    return rows


def skipped_tests(path):
    """[(name, what it printed last)] of a JUnit file."""
    found = []
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        if case.get("status") in ("notrun", "disabled") or case.find("skipped") is not None:
            words = (case.findtext("system-out") or "").strip().splitlines()
            found.append((case.get("name"), words[-1] if words else "no reason printed"))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("allowed", type=pathlib.Path)
    parser.add_argument("--skipped", action="append", default=[], metavar="NAME")
    parser.add_argument("junit", nargs="*", type=pathlib.Path)
    arguments = parser.parse_intermixed_args()
    skipped = [("", name, "skipped") for name in arguments.skipped]
    try:
        rows = allowed_rows(arguments.allowed)
        for path in arguments.junit:
            skipped += [(f"{path.parent.name}: ", *test) for test in skipped_tests(path)]
    except (OSError, ValueError, xml.etree.ElementTree.ParseError) as problem:
        print(f"check_skips: {problem}", file=sys.stderr)
        return 2
    used, unlisted = set(), 0
    for build, name, words in skipped:
        matching = [pattern for pattern, _ in rows if fnmatch.fnmatchcase(name, pattern)]
        used.update(matching)
        if not matching:
            print(f"skipped without a line in {arguments.allowed}: {build}{name}: {words}")
            unlisted += 1
    for pattern, _ in rows:
        if pattern not in used:
            print(f"note: nothing was skipped that matches '{pattern}' in {arguments.allowed}")
    print(f"{len(skipped)} skipped, {unlisted} of them without a reason")
    return 1 if unlisted else 0


if __name__ == "__main__":
    sys.exit(main())
