#!/usr/bin/env python3
"""Does tools/check_layers.py find what it should? Each case is a small tree with one thing wrong."""
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAYERS = ("base+\nanalyze base\ngguf base\nmodel base gguf\ndevice base\ndevice/host base device+impl\n"
          "ops base device+kernel\ncli base gguf model device ops\n")
GOOD = {
    "base/text.h": "",
    "analyze/names.c": '/* a "comment of words" */ const char *x = "kernel-fault";\n'
                       'f(err) { return error_set(err, STATUS_LIMIT, "no room left"); }\n',
    "gguf/gguf.h": '#include "base/text.h"\n',
    "gguf/gguf_impl.h": "",
    "gguf/reader.c": '#include "gguf/gguf_impl.h"\n#include <stdio.h>\n',
    "model/model.c": '#include "gguf/gguf.h"\n',
    "device/device.h": "",
    "device/device_impl.h": "",
    "device/kernel.h": '#include "device/device.h"\n',
    "ops/ops.h": '#include "device/device.h"\n',
    "ops/launch.c": '#include "device/kernel.h"\n',
    "device/host/stream.c": '#include "device/device_impl.h"\n',
    "cli/run.c": 'const char *x = getenv("HOME");\n',
}

# name, files added or replaced, words the complaint must have (None: no complaint)
CASES = [
    ("a clean tree", {}, None),
    ("upward include", {"gguf/reader.c": '#include "model/model.h"\n'}, "gguf may not use model"),
    ("past the door", {"model/model.c": '#include "gguf/gguf_impl.h"\n'}, "not a door of gguf"),
    ("implementation without +impl", {"cli/run.c": '#include "device/device_impl.h"\n'},
     "not a door of device for cli"),
    ("implementation with another door", {"ops/launch.c": '#include "device/device_impl.h"\n'},
     "not a door of device for ops (device/device.h, device/kernel.h)"),
    ("second door that the line does not name", {"cli/run.c": '#include "device/kernel.h"\n'},
     "not a door of device for cli (device/device.h)"),
    ("unknown module", {"cli/run.c": '#include "nowhere/x.h"\n'}, "belongs to no module"),
    ("folder without a line", {"extra/x.c": ""}, "no line in layers.txt"),
    ("getenv below cli", {"gguf/reader.c": 'char *x = getenv("X");\n'}, "read the environment"),
    ("vendor header", {"device/device.h": "#include <cuda.h>\n"}, "vendor header"),
    ("a sentence in analyze", {"analyze/names.c": 'const char *x = "wrote past";\n'},
     '"wrote past" is a sentence'),
    ("a Spanish one, over two lines", {"analyze/names.c": 'f("leyó "\n  "después");\n'},
     '"leyó después" is a sentence'),
    ("one in a table after an error", {"analyze/names.c": 'error_set(e, "no room");\n'
                                       't x[] = { { "slug", "two words" } };\n'},
     '"two words" is a sentence'),
    ("commented space", {"gguf/reader.c": '  #  include "model/model.h"\n'}, "may not use model"),
]


def run(files, layers=LAYERS):
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "src"
        for name, text in files.items():
            path = source / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (source / "layers.txt").write_text(layers)
        return subprocess.run([sys.executable, ROOT / "tools/check_layers.py", folder],
                              capture_output=True, text=True, check=False)


def main():
    failures = 0
    for name, changed, words in CASES:
        result = run({**GOOD, **changed})
        good = result.returncode == 0 if words is None else (
            result.returncode == 1 and words in result.stdout)
        if not good:
            failures += 1
            print(f"FAILED: {name}: status {result.returncode}\n{result.stdout}{result.stderr}")
    result = run(GOOD, "gguf base\nbase+\n")
    if result.returncode != 1 or "no earlier line" not in result.stdout:
        failures += 1
        print(f"FAILED: order of lines\n{result.stdout}")
    result = run({**GOOD, "ops/launch.c": ""}, LAYERS.replace("+kernel", "+kernels"))
    if result.returncode != 1 or "device has no door device/kernels.h" not in result.stdout:
        failures += 1
        print(f"FAILED: a door that does not exist\n{result.stdout}")
    print(f"{len(CASES) + 2} cases, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
