#!/usr/bin/env python3
"""check_sizes.py - functions of at most 70 lines, and few files of more than 350.

usage: tools/check_sizes.py [FOLDER]

A function or file that is longer usually holds a second subject with a name of its own. At most 15 files
of src/ and 40 in all may be longer than 350 lines. Exit status: 0 nothing to complain about, 1 complaints."""
import pathlib
import subprocess
import sys

FUNCTION_LINES = 70
FILE_LINES = 350
LONG_FILES_SRC, LONG_FILES = 15, 40


def c_files(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, text=True, check=False).stdout.split("\n")
    names = listed if any(listed) else [str(path.relative_to(root)) for path in root.rglob("*")]
    return sorted(name for name in names
                  if name.endswith((".c", ".h", ".def", ".cu")) and (root / name).is_file())


def functions(lines):
    """(line number of the signature's last line, lines with it) of each function. A function begins with
    a { alone on its line, and ends with such a }."""
    begin = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            begin = number - 1
        elif line == "}" and begin is not None:
            yield begin, number - begin + 1
            begin = None


def check(root):
    complaints, long_files = [], []
    for name in c_files(root):
        lines = (root / name).read_text(encoding="utf-8").split("\n")
        if len(lines) - 1 > FILE_LINES:
            long_files.append(name)
        complaints += [f"{name}:{number}: a function of {count} lines, expected at most {FUNCTION_LINES}"
                       for number, count in functions(lines) if count > FUNCTION_LINES]
    for folder, most in (("src/", LONG_FILES_SRC), ("", LONG_FILES)):
        found = [name for name in long_files if name.startswith(folder)]
        if len(found) > most:
            complaints.append(f"{folder or 'all folders'}: {len(found)} files of more than {FILE_LINES} lines, "
                              f"expected at most {most}: {' '.join(found)}")
    return complaints


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    complaints = check(root)
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
