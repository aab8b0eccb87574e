#!/usr/bin/env python3
"""Checks src/ against src/layers.txt.

A module may include only the modules its line names, and of those only the door header
(module/module.h) and the doors the line names after a '+' (device+kernel: device/kernel.h as well),
unless the module is a toolbox ('+' after its own name). Vendor headers stand only under ops/gpu; the
environment is read only in cli and interpose; every folder has a line. analyze holds no sentence
that a user reads: report makes them.

usage: check_layers.py [ROOT]      exit status 0 if everything holds, 1 otherwise
"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
VENDOR = re.compile(r"^(cuda|cublas|cupti|nvml|hip/|hsa/|rocblas|cuda\.h)")
GETENV = re.compile(r"\b(secure_)?getenv\s*\(")
ENVIRONMENT_READERS = {"cli", "interpose"}
IMPLEMENTS = "impl"
NO_SENTENCES = "analyze"
MESSAGE_TAKERS = {"error_set", "error_set_os", "error_wrap", "_Static_assert", "ASSERT"}
LITERALS = re.compile(r'"(?:\\.|[^"\\\n])*"(?:\s*"(?:\\.|[^"\\\n])*")*')
SENTENCE = re.compile(r"[^\W\d_]{2,} [^\W\d_]{2,}")


def read_layers(path):
    """Returns {module: ({allowed module: its doors beyond module.h}, is_toolbox)} and complaints."""
    layers, complaints = {}, []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        name, allowed = words[0], {}
        for word in words[1:]:
            # "device+impl": all headers of the module; "device+kernel": also device/kernel.h.
            base, *doors = word.split("+")
            if base not in layers:
                complaints.append(f"{path}:{number}: {name} uses {base}, which stands on no earlier line")
            for door in doors:
                if door != IMPLEMENTS and not (path.parent / base / f"{door}.h").exists():
                    complaints.append(f"{path}:{number}: {base} has no door {base}/{door}.h")
            allowed[base] = set(doors)
        layers[name.rstrip("+")] = (allowed, name.endswith("+"))
    return layers, complaints


def module_of(relative, layers):
    """The deepest folder of the path that has a line, or None."""
    folders = list(relative.parts[:-1])
    while folders:
        if "/".join(folders) in layers:
            return "/".join(folders)
        folders.pop()
    return None


def check_include(module, header, layers):
    """Why module may not include header, or None."""
    target = module_of(pathlib.PurePosixPath(header), layers)
    if target is None:
        return f'"{header}" belongs to no module of layers.txt'
    if target == module:
        return None
    allowed, _ = layers[module]
    if target not in allowed:
        return f'"{header}": {module} may not use {target}'
    _, toolbox = layers[target]
    if toolbox or IMPLEMENTS in allowed[target]:
        return None
    names = [target.split("/")[-1], *sorted(allowed[target])]
    doors = [f"{target}/{name}.h" for name in names]
    if header not in doors:
        return f'"{header}" is not a door of {target} for {module} ({", ".join(doors)})'
    return None


def code_of(text):
    """The text with its comments blanked out; every place stays where it is."""
    def blank(match):
        found = match.group(0)
        return found if found[0] == '"' else re.sub(r"[^\n]", " ", found)
    return re.sub(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*', blank, text, flags=re.DOTALL)


def caller_of(code, place):
    """The name of the call, or the macro, that the place is an argument of; None."""
    depth = 0
    for at in range(place - 1, -1, -1):
        if code[at] in ")}":
            depth += 1
        elif code[at] in "({":
            depth -= 1
            if depth < 0:
                name = re.search(r"(\w+)\s*$", code[:at])
                return name.group(1) if code[at] == "(" and name else None
    return None


def check_sentences(path, text):
    """Literals with two words in a row that are no message of an error or an assertion."""
    code = code_of(text)
    for match in LITERALS.finditer(code):
        words = "".join(re.findall(r'"((?:\\.|[^"\\])*)"', match.group(0)))
        if SENTENCE.search(words) and caller_of(code, match.start()) not in MESSAGE_TAKERS:
            line = code.count("\n", 0, match.start()) + 1
            yield f'{path}:{line}: "{words}" is a sentence, which {NO_SENTENCES} leaves to report'


def check_file(path, relative, layers):
    module = module_of(relative, layers)
    if module is None:
        yield f"{path}: its folder has no line in layers.txt"
        return
    text = path.read_text(errors="replace")
    for match in INCLUDE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        quote, header = match.groups()
        if quote == '"':
            complaint = check_include(module, header, layers)
            if complaint:
                yield f"{path}:{line}: {complaint}"
        elif VENDOR.match(header) and not str(relative).startswith("ops/gpu/"):
            yield f"{path}:{line}: vendor header <{header}> outside ops/gpu"
    if module == NO_SENTENCES:
        yield from check_sentences(path, text)
    match = GETENV.search(text)
    if match and module not in ENVIRONMENT_READERS:
        line = text.count("\n", 0, match.start()) + 1
        yield f"{path}:{line}: only {' and '.join(sorted(ENVIRONMENT_READERS))} read the environment"


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else ".")
    source = root / "src"
    layers, complaints = read_layers(source / "layers.txt")
    files = sorted(p for p in source.rglob("*") if p.suffix in (".c", ".h", ".def"))
    for path in files:
        complaints.extend(check_file(path, path.relative_to(source), layers))
    for complaint in complaints:
        print(complaint)
    print(f"{len(files)} files in {len(layers)} modules, {len(complaints)} complaints")
    return 1 if complaints or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
