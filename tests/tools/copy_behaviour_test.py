#!/usr/bin/env python3
"""copy_behaviour_test.py - docs/copy-behaviour.md has every row of src/interpose/copy_behaviour.def,
and no other."""
import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MEMORY = ["pageable", "pinned", "registered", "managed", "device"]
FREED = ["device", "pool", "mapped", "managed", "pinned", "registered"]
FORMS = {'without "Async" in the name': "sync", 'with "Async" in the name': "async"}


def rows_of_code(text):
    """{(runtime, kind, form or "", source or "", target): behaviour}"""
    rows = {}
    plain = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    for kind, inside in re.findall(r"^(COPIES|MEMSETS|FREES)\((.*?)\)", plain, flags=re.M | re.S):
        words = [word.strip().lower() for word in inside.split(",")]
        if kind == "COPIES":
            keys = [(words[0], "copies", words[1], words[2], target) for target in MEMORY]
            values = words[3:]
        elif kind == "MEMSETS":
            keys = [(words[0], "memsets", words[1], "", target) for target in MEMORY[1:]]
            values = words[2:]
        else:
            keys = [(words[0], "frees", "", "", target) for target in FREED]
            values = words[1:]
        assert len(keys) == len(values), inside
        rows.update(zip(keys, values))
    return rows


def rows_of_page(text):
    rows = {}
    for title, body in re.findall(r"^### (.*?)\n\n(.*?)(?=\n\n|\Z)", text, flags=re.M | re.S):
        runtime, _, rest = title.partition(", ")
        kind = rest.split()[0]
        table = [[cell.strip() for cell in line.strip("|").split("|")] for line in body.splitlines()]
        for line in table[2:]:
            for target, cell in zip(table[0][1:], line[1:]):
                form, source = "", ""
                if kind == "copies":
                    form, source = FORMS[rest.partition(" ")[2]], line[0]
                elif kind == "memsets":
                    form = line[0]
                rows[runtime.lower(), kind, form, source, target] = cell.rstrip("*")
    return rows


class CopyBehaviour(unittest.TestCase):
    def test_page(self):
        code = rows_of_code((ROOT / "src/interpose/copy_behaviour.def").read_text())
        page = rows_of_page((ROOT / "docs/copy-behaviour.md").read_text())
        self.assertEqual(len(code), 2 * (2 * 25 + 2 * 4 + 6))
        self.assertEqual(page, code)

    def test_a_slip_is_seen(self):
        page = rows_of_page((ROOT / "docs/copy-behaviour.md").read_text().replace("staged |", "waits |"))
        code = rows_of_code((ROOT / "src/interpose/copy_behaviour.def").read_text())
        self.assertNotEqual(page, code)


if __name__ == "__main__":
    sys.exit(unittest.main())
