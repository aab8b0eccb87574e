#!/usr/bin/env python3
"""Which calls that can fail were made to fail.

usage: sites.py UNREACHED FOLDER:EXECUTABLE:SITES...

The executables hold whole modules (src/FOLDER...) with their calls of malloc, open and so on
replaced by __wrap_malloc, __wrap_open64 ...; SITES is what tests/faults/fail_nth.c wrote of a run:
where the calls return to that it made fail. Every call of the folder's sources must be among them,
or be named in UNREACHED with its reason. Needs a build that keeps lines and inlines nothing but
what must be (the debug preset). Exit status 1 if the sets differ.
"""

import pathlib
import re
import subprocess
import sys

# Calls that are counted, not failed.
HARMLESS = {"free", "munmap", "pthread_join"}
CALL = re.compile(r"^\s*[0-9a-f]+:\s+callq?\s+[0-9a-f]+ <__wrap_(\w+)>")
INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):")


def output_of(*command, text=None):
    return subprocess.run(command, input=text, check=True, capture_output=True, text=True).stdout


def calls_in(executable):
    """{return address: name of the call} of all that are wrapped."""
    calls, name = {}, None
    for line in output_of("objdump", "-d", "--no-show-raw-insn", executable).splitlines():
        instruction = INSTRUCTION.match(line)
        if name and instruction:
            calls[int(instruction[1], 16)] = name
            name = None
        call = CALL.match(line)
        if call:
            name = call[1]
    return {at: call for at, call in calls.items() if call not in HARMLESS}


def places_of(executable, addresses):
    """{address: (file, function, line)}: the innermost place that is not a helper in a header."""
    places = {}
    if not addresses:
        return places
    asked = "\n".join(f"{at - 1:#x}" for at in addresses)
    at, frames = None, []

    def close():
        for function, where in frames:
            name, line = where.split(" ")[0].rsplit(":", 1)
            if name.endswith(".c") and "src/" in name:
                places[at] = ("src/" + name.split("src/")[-1], function, line)
                return

    lines = output_of("addr2line", "-a", "-i", "-f", "-e", executable, text=asked).splitlines()
    while lines:
        line = lines.pop(0)
        if line.startswith("0x"):
            close()
            at, frames = int(line, 16) + 1, []
        else:
            frames.append((line, lines.pop(0)))
    close()
    return places


def read_unreached(path):
    """{(file, function, call): reason}; lines 'FILE FUNCTION CALL: reason', # comments."""
    rows = {}
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            key, reason = line.split(":", 1)
            rows[tuple(key.split())] = reason.strip()
    return rows


def main(arguments):
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    unreached = read_unreached(arguments[0])
    sites, reached = {}, set()
    for triple in arguments[1:]:
        folder, executable, written = triple.split(":")
        calls = calls_in(executable)
        places = places_of(executable, list(calls))
        for at, (name, function, line) in places.items():
            if name.startswith(f"src/{folder}"):
                sites[(name, function, line, calls[at])] = (name, function, calls[at])
        hits = {int(row.split()[0], 16) for row in pathlib.Path(written).read_text().splitlines()}
        reached |= {(*places[at], calls[at]) for at in hits if at in places}
    problems = []
    open_sites = {key: short for key, short in sites.items() if key not in reached}
    for (name, function, line, call), short in sorted(open_sites.items()):
        if short not in unreached:
            problems.append(f"{name}:{line}: {call} in {function} was never made to fail")
    for short in sorted(set(unreached) - set(open_sites.values())):
        problems.append(f"{arguments[0]}: {' '.join(short)} is reached, or is not there")
    print(f"{len(sites)} calls that can fail, {len(sites) - len(open_sites)} made to fail, "
          f"{len(open_sites)} out of reach for a reason")
    for problem in problems:
        print(problem)
    return 1 if problems or not sites else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
