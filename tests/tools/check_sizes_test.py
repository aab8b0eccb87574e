#!/usr/bin/env python3
"""Does tools/check_sizes.py find what it should? Each case is a small tree."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def function(lines):
    """A function of that many lines, with its signature and braces."""
    return "void f(void)\n{\n" + "    f();\n" * (lines - 3) + "}\n"


def complaints(tree):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in tree.items():
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        done = subprocess.run([sys.executable, ROOT / "tools/check_sizes.py", folder], capture_output=True,
                              text=True, check=False)
    return done.returncode, done.stdout


class Sizes(unittest.TestCase):
    def test_functions(self):
        self.assertEqual(complaints({"src/a.c": function(70)}), (0, ""))
        code, text = complaints({"src/a.c": "int x;\n" + function(71)})
        self.assertEqual(code, 1)
        self.assertIn("src/a.c:2: a function of 71 lines", text)
        self.assertEqual(complaints({"tests/a.c": "static const int x[] = {\n" + "    1,\n" * 90 + "};\n"})[0], 0)

    def test_files(self):
        long_file = "int x;\n" * 351
        self.assertEqual(complaints({f"src/{i}.c": long_file for i in range(15)})[0], 0)
        code, text = complaints({f"src/{i}.c": long_file for i in range(16)})
        self.assertEqual(code, 1)
        self.assertIn("src/: 16 files of more than 350 lines", text)
        self.assertEqual(complaints({f"src/{i}.c": "int x;\n" * 350 for i in range(16)})[0], 0)
        tree = {f"src/{i}.c": long_file for i in range(15)} | {f"tests/{i}.c": long_file for i in range(25)}
        self.assertEqual(complaints(tree)[0], 0)
        code, text = complaints(tree | {"fuzz/a.c": long_file})
        self.assertEqual(code, 1)
        self.assertIn("all folders: 41 files", text)

    def test_the_project(self):
        done = subprocess.run([sys.executable, ROOT / "tools/check_sizes.py"], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
