#!/usr/bin/env python3
"""coverage - which lines of src/ the tests ran, by module.

usage: tools/coverage.py BUILD [--lines]

BUILD is a build with GRETA_COVERAGE whose tests have run with LLVM_PROFILE_FILE=BUILD/profiles/...;
./test --coverage does all of it. Prints a table, writes BUILD/coverage.json, and ends with status 1
where a module is below its threshold. --lines adds the lines that never ran, file by file.
"""

import json
import pathlib
import shutil
import subprocess
import sys

# Percent of lines; the modules that judge others, and the whole.
THRESHOLDS = {"analyze": 90.0, "event": 90.0, "gguf": 90.0}
WHOLE = 85.0


def tool(name):
    """The same version as the compiler, if it is there under that name."""
    version = subprocess.run(["clang", "-dumpversion"], capture_output=True, text=True, check=True)
    for candidate in (f"{name}-{version.stdout.split('.')[0]}", name):
        if shutil.which(candidate):
            return candidate
    raise SystemExit(f"error: {name} is not installed")


def programs_of(build):
    """Everything that was linked and counts."""
    found = []
    for path in [*build.iterdir(), *build.glob("fake_gpu/*.so*"), *build.glob("*.so*")]:
        if path.is_file() and not path.is_symlink() and path.open("rb").read(4) == b"\x7fELF":
            found.append(path)
    return sorted(set(found))


def export(build):
    profiles = sorted(build.glob("profiles/*.profraw"))
    if not profiles:
        raise SystemExit(f"error: {build}/profiles: no test has run")
    merged = build / "profiles.profdata"
    listed = build / "profiles.txt"
    listed.write_text("".join(f"{path}\n" for path in profiles), encoding="utf-8")
    subprocess.run([tool("llvm-profdata"), "merge", "-sparse", "--failure-mode=all",
                    f"--input-files={listed}", "-o", merged], check=True)
    programs = programs_of(build)
    command = [tool("llvm-cov"), "export", "-skip-expansions", "-skip-functions",
               f"-instr-profile={merged}", str(programs[0])]
    for path in programs[1:]:
        command += ["-object", str(path)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def missed_lines(segments):
    """Lines on which a region begins or goes on that never ran."""
    missed, ran = set(), set()
    for index, (line, _, count, has_count, _, is_gap) in enumerate(segments):
        if not has_count or is_gap:
            continue
        end = segments[index + 1][0] if index + 1 < len(segments) else line
        (missed if count == 0 else ran).update(range(line, end + 1) if count == 0 else [line])
    return sorted(missed - ran)


def ranges_of(lines):
    parts = []
    for line in lines:
        if parts and line == parts[-1][1] + 1:
            parts[-1][1] = line
        else:
            parts.append([line, line])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


def module_of(name):
    """src/ops/host/x.c is of ops/host; a folder in a module without subfolders of its own is its."""
    return "/".join(pathlib.PurePath(name).parts[1:-1]).replace("/kernels", "")


def cannot_run(name):
    """Kernels of a path that this processor does not have."""
    if "avx512" not in name:
        return False
    flags = pathlib.Path("/proc/cpuinfo")
    return not flags.exists() or " avx512f " not in flags.read_text(encoding="utf-8")


def main(arguments):
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    build = pathlib.Path(arguments[0])
    modules, files, left_out = {}, {}, {}
    for one in export(build)["data"][0]["files"]:
        name = one["filename"]
        if "/src/" not in name and not name.startswith("src/"):
            continue
        name = "src/" + name.split("src/")[-1]
        lines = one["summary"]["lines"]
        if cannot_run(name):
            left_out[name] = lines["count"]
            continue
        kept = files.setdefault(name, (lines["count"], lines["covered"]))
        if lines["covered"] > kept[1]:
            files[name] = (lines["count"], lines["covered"])
        if "--lines" in arguments:
            print(f"{name}: {ranges_of(missed_lines(one['segments']))}")
    for name, (count, covered) in files.items():
        for module in {module_of(name), module_of(name).split("/")[0]}:
            total = modules.setdefault(module, [0, 0])
            total[0] += count
            total[1] += covered
    whole = [sum(column) for column in zip(*files.values())]
    failed = []
    print(f"{'module':<20} {'lines':>7} {'ran':>7} {'percent':>8}")
    for module, (count, covered) in [*sorted(modules.items()), ("all of src/", whole)]:
        percent = 100.0 * covered / count if count else 100.0
        wanted = WHOLE if module == "all of src/" else THRESHOLDS.get(module)
        short = wanted is not None and percent < wanted
        if short:
            failed.append(module)
        note = f"   (expected {wanted:.0f}{', too low' if short else ''})" if wanted else ""
        print(f"{module:<20} {count:>7} {covered:>7} {percent:>7.1f}%{note}")
    if left_out:
        print(f"not counted: {sum(left_out.values())} lines of {len(left_out)} files for AVX-512, "
              "which this processor does not have")
    (build / "coverage.json").write_text(json.dumps(
        {"files": {name: {"lines": n, "ran": r} for name, (n, r) in sorted(files.items())},
         "lines": whole[0], "ran": whole[1]}, indent=1) + "\n", encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
