#!/usr/bin/env python3
"""What tests/defects/foreign/run.py takes for found, missed and falsely confirmed, on summaries
made here; and that every planted bug there says what is expected of it."""
import sys
from pathlib import Path

sys.dont_write_bytecode = True
FOLDER = Path(__file__).resolve().parent.parent / "defects" / "foreign"
sys.path.insert(0, str(FOLDER))
import run  # noqa: E402

WANTED = {"hypothesis": "use-after-free", "certainty": "direct",
          "cause": "cuMemcpyDtoH in copy_back", "other": "cuMemFree in give_back"}


def call(op, *functions):
    return {"op": op, "stack": [{"function": name} for name in functions]}


def summary(verdict="CONFIRMED", certainty="direct",
            cause=call("cuMemcpyDtoH_v2", "copy_back", "main"),
            other=call("cuMemFree_v2", "give_back", "main"), events=9, root="use-after-free",
            dump=None):
    finding = {"hypothesis": "use-after-free", "certainty": certainty, "cause": cause,
               "other": other, "dump": dump, "text": {"en": "text", "es": "texto"}}
    return {"analyses": [{"events": events}], "findings": [finding],
            "root_cause": root and {"hypothesis": root},
            "hypotheses": [{"slug": "use-after-free", "verdict": verdict},
                           {"slug": "hang", "verdict": "INCONCLUSIVE"}]}


ROWS = [  # name, expectation, summary, as expected
    ("found", WANTED, summary(), True),
    ("the other way round", WANTED, summary(cause=call("cuMemFree", "give_back"),
                                            other=call("cuMemcpyDtoH", "copy_back")), True),
    ("only possible", WANTED, summary(certainty="possible"), False),
    ("another call", WANTED, summary(cause=call("cuMemcpyHtoD", "copy_back")), False),
    ("another function", WANTED, summary(cause=call("cuMemcpyDtoH", "main")), False),
    ("no other side", WANTED, summary(other=None), False),
    ("another free", WANTED, summary(other=call("cuMemFree", "main")), False),
    ("another root", WANTED, summary(root="hang"), False),
    ("the line", dict(WANTED, line=7), summary(dump={"line": 7}), True),
    ("another line", dict(WANTED, line=7), summary(dump={"line": 8}), False),
    ("no line", dict(WANTED, line=7), summary(), False),
    ("nothing seen", WANTED, summary(events=0), False),
    ("possible wanted, confirmed", dict(WANTED, certainty="possible"),
     summary(certainty="possible"), False),
    ("possible wanted", dict(WANTED, certainty="possible"),
     summary("INCONCLUSIVE", "possible", root=None), True),
    ("clean, confirmed", None, summary(), False),
    ("clean, possible", None, summary("INCONCLUSIVE", "possible", root=None), True),
    ("clean, nothing seen", None, summary("INCONCLUSIVE", events=0), False),
]

failures = 0
for name, wanted, facts, expected in ROWS:
    if (not run.judge(wanted, facts)) != expected:
        print(f"{name}: {run.judge(wanted, facts)}")
        failures += 1

rows = run.programs()
bugs = [row for row in rows if row[2] is not None]
if len(bugs) < 12 or len(rows) - len(bugs) < 10:
    print(f"{len(bugs)} planted bugs, {len(rows) - len(bugs)} clean programs")
    failures += 1
for name, source, wanted in bugs:
    text = source.read_text()
    for key in ("cause", "other"):
        function = wanted.get(key, "").partition(" in ")[2]
        if function and f" {function}(" not in text.replace("*", " "):
            print(f"{name}: no function {function}")
            failures += 1
    if wanted.get("line") == 0:
        print(f"{name}: not one line has the words of 'line'")
        failures += 1
    if {"hypothesis", "certainty", "cause"} - wanted.keys() or "On hardware: " not in text:
        print(f"{name}: expectation or comment is not complete")
        failures += 1
sys.exit(1 if failures else 0)
