"""bench/run: pages made from raw files, what is kept, skipped and printed. bench_page_test.py SOURCE"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import xml.etree.ElementTree

SOURCE = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(SOURCE / "bench"))
sys.dont_write_bytecode = True

from page import measure, plot, render  # noqa: E402 (the folder has to be known first)

HOST = {"processor": "Test", "cores": 2, "instructions": "AVX2", "memory_gib": 8.0, "system": "Debian"}
GPU = {**HOST, "gpu": "Test GPU", "driver": "1.0"}
MEMORY = {"weights": 1 << 30, "kv_cache": 1 << 28, "scratch": 1 << 20, "peak": 1 << 31, "resident_peak": 1 << 29}


def speed(depth=0, prompt=0, generate=0, *samples):
    return {"n_depth": depth, "n_prompt": prompt, "n_gen": generate, "samples_ts": list(samples)}


def infer(rate):
    return {"decode_per_second": rate, "load_ms": 600.0, "first_token_ms": 20.0, "memory": MEMORY}


def test(name, threads, ratio):
    return {"test": name, "threads": threads, "cores": "one die", "pairs": 3, "of": 4, "ratio": ratio,
            "ratio_low": ratio - 0.1, "ratio_high": ratio + 0.1}


def gpu_test(name, sequences, tokens, ratio):
    return {"test": name, "sequences": sequences, "tokens": tokens, "llama_cpp_way": "micro batches of 512", "pairs": 4, "of": 4,
            **{f"{of}{end}": value for of, value in (("greta", 1000 * ratio), ("llama_cpp", 1000.0), ("ratio", ratio)) for end in ("", "_low", "_high")}}


COST = {"tokens": 16, "rounds": 5, "levels": [
    {"level": "off", "added_percent": 0, "added_percent_low": 0, "added_percent_high": 0, "cpu_added_percent": 0},
    {"level": "log", "added_percent": 1.9, "added_percent_low": -0.4, "added_percent_high": 3.0, "cpu_added_percent": 1.5}]}
START = {"first_token_ms": 100.0, "processor_ms": 150.0, "peak_resident_bytes": 1 << 30}
RAW = {
    "peers": [("q4_0", {"files": [{"logits_nmse": 1e-6, "tests": [test("decode", 2, 1.25), test("decode", 1, 1.5), test("prefill", 2, 2.0)]}]})],
    "start": [("q4_0 greta 1", START), ("q4_0 llama.cpp 1", {**START, "first_token_ms": 300.0})],
    "audit-cost": [("q4_k_m", COST)],
    "context": [("q4_k_m", [speed(0, 0, 8, 10.0), speed(512, 0, 8, 9.0)])],
    "sequences": [("1 1", infer(10.0)), ("4 1", infer(35.0)), ("1 2", infer(5.0)), ("4 2", infer(20.0)), ("4 3", infer(99.0))],
    "gpu-speed": [("llama3-8b q4_k_m", [speed(0, 512, 0, 9000.0), speed(0, 0, 128, 700.0, 701.0, 690.0)])],
    "gpu-peers": [("q4_k_m", {"files": [{"logits_nmse": 2e-5, "tests": [
        gpu_test("decode", 1, 64, 2.5), gpu_test("decode", 64, 64, 1.75), gpu_test("prefill", 1, 4096, 2.25)]}]}),
                  ("bf16", {"files": [{"logits_nmse": 1e-6, "tests": [gpu_test("decode", 1, 64, 1.25)]}]})],
    "gpu-sequences": [("1 1", infer(700.0)), ("64 1", infer(9000.0)), ("64 2", infer(9500.0)), ("64 3", infer(8000.0))],
    "gpu-audit-cost": [("q4_k_m", COST)],
    "gpu-context": [("q4_k_m", [speed(0, 0, 64, 700.0), speed(8192, 0, 64, 600.0)])],
    "gpu-start": [("llama3-8b q4_k_m 1", infer(1.0))],
    "gpu-sanitizer": [("greta off", infer(500.0)), ("compute-sanitizer memcheck", infer(10.0))],
}


def write_raw(folder):
    for section, runs in RAW.items():
        gpu = section.startswith("gpu-")
        path = pathlib.Path(folder) / ("test-gpu" if gpu else "cpu-avx2") / f"{section}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({
            "section": section, "summary": "", "device": "gpu" if gpu else "host", "machine": GPU if gpu else HOST,
            "runs": [{"key": key, "command": "greta x", "commit": "abc", "date": "2026-01-01 00:00 UTC", "seconds": 1, "output": output}
                     for key, output in runs]}))


def run(*words):
    return subprocess.run([sys.executable, "-B", str(SOURCE / "bench/run"), *words], capture_output=True, text=True, check=False)


class Page(unittest.TestCase):
    def setUp(self):
        self.kept = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.kept.name)
        self.addCleanup(self.kept.cleanup)
        write_raw(self.folder / "results")
        (self.folder / "README.md").write_text(f"before\n{render.README_BEGIN}old\n{render.README_END}after\n")
        self.words = ["--results", str(self.folder / "results"), "--page", str(self.folder / "R.md"), "--readme", str(self.folder / "README.md")]

    def test_every_section_is_on_the_page(self):
        self.assertEqual(set(RAW), set(measure.SECTIONS))
        self.assertEqual(run("--render", *self.words).returncode, 0)
        page = (self.folder / "R.md").read_text()
        for figure in ["**1.25** (1.15 to 1.35)", "**3.00** (3.00 to 3.00; 1)", "**+1.9 %** (-0.4 to +3.0)", "| speed | 1.00 | 0.90 |",
                       "| speed | **1.00** (1.00 to 1.00) | **3.75** (3.50 to 4.00) |", "median of 2 rounds", "**700** (690 to 701)", "| tokens a second | **700** (700 to 700) | **9,000** (8,000 to 9,500) |", "| tokens a second | 700 | 600 |", "median of 3 runs", "| 10.0 | 50.00 |",
                       "| Q4_K_M | 64 sequences | 1,750 (1,750 to 1,750) | 1,000 (1,000 to 1,000) | **1.75** (1.75 to 1.75) | micro batches of 512 | 4 | 2.0e-05 |",
                       "| Q4_K_M | prompt of 4,096 | 2,250", "| BF16 | decode | 1,250",
                       "2 cores of Test (AVX2)", "**Test GPU**", "commit abc"]:
            self.assertIn(figure, page)
        readme = (self.folder / "README.md").read_text()
        self.assertTrue(readme.startswith("before\n") and readme.endswith("after\n") and "old" not in readme)
        self.assertIn("9,000 tokens a second; llama.cpp 4,406 *", (self.folder / "R.md").read_text())
        measured = [line for line in readme.splitlines() if "bench/run" in line and line.startswith("| ")]
        self.assertTrue(0 < len(measured) <= 10, measured)
        self.assertIn("decode, Llama-3-8B shape, Q4_K_M, BF16 | 1.25 to 2.50 x as fast as llama.cpp", readme)
        plots = list((self.folder / "results").glob("*/*.svg"))
        self.assertGreater(len(plots), 6)
        for path in plots:
            xml.etree.ElementTree.parse(path)
            self.assertIn(f"results/{path.parent.name}/{path.name}", page)

    def test_check(self):
        self.assertEqual(run("--check", *self.words).returncode, 1)
        run("--render", *self.words)
        self.assertEqual(run("--check", *self.words).returncode, 0)
        page = self.folder / "R.md"
        page.write_text(page.read_text().replace("**1.25**", "**9.99**"))
        checked = run("--check", *self.words)
        self.assertEqual(checked.returncode, 1)
        self.assertIn("not what the raw files give", checked.stderr)

    def measure(self, script, *words):
        build = self.folder / "build"
        build.mkdir(exist_ok=True)
        program = build / "greta"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return run(*words, *self.words, "--build", str(build), "--models", str(self.folder / "models"), "--commit", "abc")

    def test_what_cannot_run_is_told(self):
        done = self.measure("echo '{\"devices\": []}'", "gpu-speed")
        self.assertEqual(done.returncode, 0)
        self.assertIn("skipped: no GPU", done.stdout)
        before = (self.folder / "results/cpu-avx2/context.json").read_text()
        done = self.measure("[ $1 = bench ] && { echo broken >&2; exit 3; }; exit 0", "context")
        self.assertEqual(done.returncode, 1)
        self.assertIn("failed: greta bench -m tinyllama-q4_k_m.gguf", done.stdout)
        self.assertIn("exit 3: broken", done.stdout)
        self.assertEqual((self.folder / "results/cpu-avx2/context.json").read_text(), before)

    def test_peers_on_a_gpu(self):
        devices = '{"devices": [{"device": "%s", "available": true, "name": "Test GPU", "driver": "1.0"}]}'
        script = f"[ $1 = devices ] && echo '{devices % 'cuda:0'}' && exit 0; exit 1"
        self.assertIn("bench_peers is not built", self.measure(script, "gpu-peers").stdout)
        models = self.folder / "models"
        (models / measure.CUDA_LIBRARIES).mkdir(parents=True)
        for kind in ["q4_k_m", "q8_0", "bf16"]:
            (models / f"llama3-8b-{kind}.gguf").touch()
        peers = self.folder / "build/bench_peers"
        peers.write_text("#!/bin/sh\necho 'bench_peers: llama.cpp: no CUDA0' >&2\nexit 3\n")
        peers.chmod(0o755)
        done = self.measure(script, "gpu-peers")
        self.assertEqual(done.returncode, 0)
        self.assertIn("skipped: bench_peers: llama.cpp: no CUDA0", done.stdout)
        output = {"words": "WORDS", "files": [{"logits_nmse": 1e-6, "tests": [gpu_test("decode", 1, 64, 1.5)]}]}
        peers.write_text(f"#!/bin/sh\nsed \"s#WORDS#$*#\" <<'END'\n{json.dumps(output)}\nEND\n")
        done = self.measure(script, "gpu-peers", "--only", "q8_0", "--seconds", "3")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        runs = json.loads((self.folder / "results/test-gpu/gpu-peers.json").read_text())["runs"]
        made = next(run["output"] for run in runs if run["key"] == "q8_0")
        self.assertEqual(made["words"], f"--libraries {measure.CUDA_LIBRARIES} --device cuda:0 --seconds 3 --json llama3-8b-q8_0.gguf")
        self.assertIn("for CUDA, and the GPU is hip:0", self.measure(script.replace("cuda:0", "hip:0"), "gpu-peers").stdout)

    def test_what_the_sanitizer_finds_fails(self):
        devices = '{"devices": [{"device": "cuda:0", "available": true, "name": "Test GPU", "driver": "1.0"}]}'
        script = f"[ $1 = devices ] && echo '{devices}' && exit 0; [ $1 = infer ] && echo '{json.dumps(infer(10.0))}'; exit 0"
        tools = self.folder / "tools"
        tools.mkdir()
        sanitizer = tools / "compute-sanitizer"
        sanitizer.write_text("#!/bin/sh\ncode=0\nwhile [ \"${1#--}\" != \"$1\" ]; do\n[ $1 = --error-exitcode ] && code=$2\nshift 2\ndone\n"
                             "\"$@\"\necho \"========= ERROR SUMMARY: $ERRORS errors\"\n[ $ERRORS = 0 ] || exit $code\n")
        sanitizer.chmod(0o755)
        for errors, code in (("0", 0), ("3", 1)):
            with unittest.mock.patch.dict(os.environ, {"PATH": f"{tools}:{os.environ['PATH']}", "ERRORS": errors}):
                done = self.measure(script, "gpu-sanitizer")
            self.assertEqual(done.returncode, code, done.stdout + done.stderr)
            self.assertEqual("ERROR SUMMARY: 3 errors" in done.stdout, code == 1, done.stdout)

    def test_raw_output_is_kept_as_it_was(self):
        done = self.measure("[ $1 = infer ] && echo '{\"token\": 1}' && echo '{\"decode_per_second\": 5.5, \"memory\": {}}'; exit 0", "sequences", "--only", "16")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        raw = [json.loads(path.read_text()) for path in (self.folder / "results").glob("*/sequences.json")]
        made = [r for file in raw for r in file["runs"] if r["key"].startswith("16 ")]
        self.assertEqual([r["key"] for r in made], ["16 1", "16 2", "16 3"])
        self.assertEqual([r["output"] for r in made], [{"decode_per_second": 5.5, "memory": {}}] * 3)
        self.assertIn("-np 16", made[0]["command"])
        self.assertNotIn(str(self.folder), made[0]["command"])


    def test_runs_before_one_that_fails_are_kept(self):
        done = self.measure("case \"$*\" in *'-np 4 '*) exit 3;; infer*) echo '{\"decode_per_second\": 5.5, \"memory\": {}}';; esac; exit 0", "sequences")
        self.assertEqual(done.returncode, 1)
        made = [r["key"] for path in (self.folder / "results").glob("*/sequences.json") for r in json.loads(path.read_text())["runs"]
                if r["output"]["decode_per_second"] == 5.5]
        self.assertEqual(made, ["1 1", "2 1"])


class Plots(unittest.TestCase):
    def test_ticks(self):
        for most in [0.001, 0.97, 1.3, 9, 101, 428, 22000]:
            ticks = plot.nice_ticks(most)
            self.assertTrue(ticks[0] == 0 and ticks[-1] >= most * 0.999 and ticks[-1] <= 2.6 * most and 2 <= len(ticks) <= 11, (most, ticks))

    def test_words_are_escaped(self):
        svg = plot.bars("a < b & c", "x", ["<g>"], ["s"], [[(1, None, None)]])
        xml.etree.ElementTree.fromstring(svg)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
