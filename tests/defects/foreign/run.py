#!/usr/bin/env python3
"""run.py GRETA [NAME...] - the planted bugs and clean programs of this folder under `greta trace`.

Builds each .cu with nvcc (runtime linked statically), runs it plain and traced, and compares the
audit's summary with NAME.expect:

    hypothesis: use-after-free              what must be found
    certainty: direct                       direct: CONFIRMED; possible: never CONFIRMED
    cause: cuMemcpyDtoH in copy_back        the call: how its name begins, a function of its stack
    other: cuMemFree in give_back           the other side, likewise (optional)
    also: leak                              what else may be confirmed as well (optional)
    options: --narrow                       of greta trace (optional)
    line: the wild write                    the GPU's core dump must name the line of the source that
                                            has these words; the runner notes its number (optional)

A clean program (clean/) must have been seen, must print and return what it does without tracing,
and must leave no hypothesis CONFIRMED. Prints a table; exit status 0: all as expected, 1: not, 77:
nothing could be run, and why.

--trap-host traces the clean programs with that option: they must stay clean. --keep FOLDER keeps
programs, outputs and reports there; --list prints the names."""
import argparse
import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
SKIPPED = 77
RUN_SECONDS = 120


def line_with(source, words):
    """The number of the only line that has the words; 0: there is none, or several."""
    numbers = [number for number, line in enumerate(source.read_text().splitlines(), 1)
               if words in line]
    return numbers[0] if len(numbers) == 1 else 0


def expectations(source):
    wanted = {}
    for line in source.with_suffix(".expect").read_text().splitlines():
        key, _, value = line.partition(":")
        if value:
            wanted[key.strip()] = value.strip()
    if "line" in wanted:
        wanted["line"] = line_with(source, wanted["line"])
    return wanted


def programs():
    """(name, source, expectation or None if clean), planted bugs first."""
    planted = sorted(HERE.glob("*.cu")) + sorted(HERE.glob("torch_*.py"))
    found = [(path.stem, path, expectations(path)) for path in planted]
    for pattern in ("*.cu", "*.py"):
        found += [(path.stem, path, None) for path in sorted((HERE / "clean").glob(pattern))]
    return found


def find_nvcc():
    return shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")


def why_not_here():
    """None if there are a compiler and a GPU to run on."""
    if not find_nvcc():
        return "no nvcc"
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "no libcuda.so.1"
    count = ctypes.c_int(0)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        return "no NVIDIA GPU"
    return None


def build(source, folder):
    """The command that runs the program."""
    if source.suffix == ".py":
        return ["python3", str(source)]
    flags = []
    first = source.read_text().splitlines()[0]
    if first.startswith("/* build:"):
        flags = first.removeprefix("/* build:").split()
    binary = folder / source.stem
    done = subprocess.run([find_nvcc(), "-arch=native", "-O1", "-g", "-cudart", "static",
                           "-Xcompiler", "-rdynamic", *flags, "-o", str(binary), str(source)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError(f"{source.name} does not build:\n{done.stdout}")
    return [str(binary)]


def run(command, log):
    """Exit status (None: hung), standard output."""
    with open(log, "wb") as errors:
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=errors, timeout=RUN_SECONDS)
        except subprocess.TimeoutExpired:
            return None, ""
    return done.returncode, done.stdout.decode(errors="replace")


def names_call(call, wanted):
    """Whether a call of the summary is the one meant by 'NAME in FUNCTION'."""
    if not call:
        return False
    name, _, function = wanted.partition(" in ")
    if not any(str(call.get(key) or "").startswith(name) for key in ("op", "kernel", "tensor", "kind")):
        return False
    return not function or any(function == frame["function"]
                               for frame in call.get("stack") or [])


def is_meant(finding, wanted):
    if any(finding[key] != wanted[key] for key in ("hypothesis", "certainty")):
        return False
    if "other" not in wanted:
        return names_call(finding["cause"], wanted["cause"])
    # Which of two calls is the cause and which the other side is a matter of words.
    return any(names_call(one, wanted["cause"]) and names_call(two, wanted["other"])
               for one, two in ((finding["cause"], finding["other"]),
                                (finding["other"], finding["cause"])))


def told(finding):
    return f"{finding['hypothesis']} ({finding['certainty']}): {finding['text']['en']}"


def judge(wanted, summary):
    """What is wrong with a summary, as lines; none if it is as expected."""
    wrong = []
    if not sum(analysis["events"] for analysis in summary["analyses"]):
        return ["no GPU call was seen"]
    allowed = set()
    if wanted:
        meant = [finding for finding in summary["findings"] if is_meant(finding, wanted)]
        if not meant:
            wrong.append(f"not found: {wanted['hypothesis']} ({wanted['certainty']}), "
                         f"{wanted['cause']}")
            wrong += ["  found: " + told(finding) for finding in summary["findings"]]
        lines = [finding["dump"]["line"] for finding in meant if finding.get("dump")]
        if meant and wanted.get("line") is not None and wanted["line"] not in lines:
            wrong.append(f"line {wanted['line']} is not named: {lines}")
        if wanted["certainty"] == "direct":
            allowed = {wanted["hypothesis"]} | set(wanted.get("also", "").split())
            root = summary["root_cause"]
            if meant and (not root or root["hypothesis"] != wanted["hypothesis"]):
                wrong.append(f"root cause: {root and root['hypothesis']}")
    for row in summary["hypotheses"]:
        if row["verdict"] == "CONFIRMED" and row["slug"] not in allowed:
            wrong.append(f"confirmed, and should not be: {row['slug']}")
            wrong += ["  " + told(finding) for finding in summary["findings"]
                      if finding["hypothesis"] == row["slug"]]
    return wrong


def trace(greta, name, command, wanted, folder, clean_options):
    """(problems, seconds plain, seconds traced)."""
    begin = time.monotonic()
    plain = run(command, folder / f"{name}.plain.log")
    middle = time.monotonic()
    artifacts = folder / f"{name}.trace"
    options = wanted.get("options", "").split() if wanted else clean_options
    traced = run([greta, "trace", *options, "--artifacts", str(artifacts), "--", *command],
                 folder / f"{name}.traced.log")
    times = (middle - begin, time.monotonic() - middle)
    problems = []
    if traced[0] != plain[0]:
        problems.append(f"exit status {plain[0]} plain, {traced[0]} traced")
    if not wanted and plain[0] != 0:
        problems.append(f"fails without tracing: {plain[1].strip()}")
    if not wanted and traced[1] != plain[1]:  # what a race printed may differ
        problems.append(f"printed {plain[1].strip()!r} plain, {traced[1].strip()!r} traced")
    found = sorted(artifacts.rglob("summary.json"))
    if not found:
        return problems + ["no summary.json"], *times
    return problems + judge(wanted, json.loads(found[-1].read_text())), *times


def torch_is_here():
    return subprocess.run(["python3", "-c", "import torch; assert torch.cuda.is_available()"],
                          stderr=subprocess.DEVNULL).returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("greta")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--trap-host", action="store_true")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    chosen = [row for row in programs() if not options.names or row[0] in options.names]
    if options.list:
        print(*(row[0] for row in chosen), sep="\n")
        return 0
    if not chosen:
        parser.error("no such program")
    reason = why_not_here()
    if reason:
        print(f"skipped: {reason}")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="greta-foreign-") as temporary:
        folder = options.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        clean_options = ["--trap-host"] if options.trap_host else []
        return run_all(os.path.abspath(options.greta), chosen, folder, clean_options)


def run_all(greta, chosen, folder, clean_options):
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        commands = list(pool.map(lambda row: build(row[1], folder), chosen))
    has_torch = any(row[1].suffix == ".py" for row in chosen) and torch_is_here()
    failed = skipped = 0
    print(f"{'program':30} {'expected':34} {'plain':>8} {'traced':>8}")
    for (name, source, wanted), command in zip(chosen, commands):
        expected = "nothing confirmed"
        if wanted:
            expected = f"{wanted['hypothesis']}, {wanted['certainty']}"
        if source.suffix == ".py" and not has_torch:
            print(f"{name:30} {expected:34} skipped: no PyTorch that sees the GPU")
            skipped += 1
            continue
        problems, plain, traced = trace(greta, name, command, wanted, folder, clean_options)
        print(f"{name:30} {expected:34} {plain:6.2f} s {traced:6.2f} s  "
              f"{'FAILED' if problems else 'ok'}")
        for problem in problems:
            print("    " + problem)
        sys.stdout.flush()
        failed += bool(problems)
    print(f"{len(chosen) - failed - skipped} as expected, {failed} not, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
