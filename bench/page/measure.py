"""The sections of the page: which commands are run. What they print is kept, not interpreted."""
import datetime
import functools
import json
import pathlib
import shlex
import shutil
import subprocess
import time

from page import machine

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LIBRARIES = "node_modules/@node-llama-cpp/linux-x64/bins/linux-x64"
CUDA_LIBRARIES = "node_modules/@node-llama-cpp/linux-x64-cuda/bins/linux-x64-cuda"
BUNDLED = ROOT / "models/greta-stories-14m-q8_0.gguf"


class Skipped(Exception):
    """This machine cannot run the section; says why."""


class Failed(Exception):
    """A command that should have run did not."""


class Bench:
    """What a section uses to run commands."""

    def __init__(self, options, machines, keep):
        """keep: called with the runs so far after each of them, so that those before one that is cut off stay."""
        self.keep = keep
        self.build = pathlib.Path(options.build).resolve()
        self.models = pathlib.Path(options.models).resolve()
        self.full = options.full
        self.only = options.only
        self.seconds = options.seconds
        self.gpu = machines["gpu"]["device"] if machines["gpu"] else None
        self.commit = options.commit or machine.commit(ROOT)
        self.runs = []

    def times(self, quick, full):
        return str(full if self.full else quick)

    def prepare(self, *command):
        done = subprocess.run([str(word) for word in command], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise Skipped(done.stderr.strip().split("\n")[-1] or f"{command[0]}: exit {done.returncode}")

    def model(self, shape, kind):
        """The name of a synthetic model in the folder of models, made where it is missing."""
        name = f"{shape}-{kind}.gguf"
        if not (self.models / name).exists():
            self.models.mkdir(parents=True, exist_ok=True)
            self.prepare(self.build / "greta", "synth", "--shape", shape, "--type", kind, "--out", self.models / name)
        return name

    def bundled(self):
        """The model that comes with greta, under its name in the folder of models."""
        self.models.mkdir(parents=True, exist_ok=True)
        if not (self.models / BUNDLED.name).exists():
            shutil.copy(BUNDLED, self.models / BUNDLED.name)
        return BUNDLED.name

    def run(self, key, program, *words, last_line=False, under=()):
        """Runs build/PROGRAM, or one of the system's, and keeps its JSON."""
        if self.only not in key:
            return
        path = self.build / program
        begin = time.monotonic()
        done = subprocess.run([*under, str(path), *words], cwd=self.models, capture_output=True, text=True, check=False)
        command = shlex.join([*under, program, *words])
        lines = [line for line in done.stdout.split("\n") if line.startswith("{")] if last_line else [done.stdout]
        try:
            if done.returncode:
                raise ValueError(f"exit {done.returncode}")
            output = json.loads(lines[-1])
        except (ValueError, IndexError) as error:
            summary = [line for line in done.stdout.split("\n") if "ERROR SUMMARY" in line]  # of compute-sanitizer
            raise Failed(f"{command}: {error}: {' '.join([*summary, done.stderr.strip()[-400:]])}") from error
        self.runs.append({
            "key": key, "command": command, "commit": self.commit,
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "seconds": round(time.monotonic() - begin, 1), "output": output})
        self.keep(self.runs)
        print(f"  {command}: {self.runs[-1]['seconds']} s", flush=True)


# ---- The processor -----------------------------------------------------------------------------

def peers_ready(bench, *words):
    """Libraries and models; words: further options of peers.sh, and types."""
    if not (bench.build / "bench_peers").exists():
        raise Skipped(f"{bench.build}/bench_peers is not built")
    bench.prepare(ROOT / "bench/peers.sh", "--prepare", "--build", bench.build, "--folder", bench.models, *words)


def peers(bench):
    kinds = ["q4_k_m", "q4_0", "q8_0", "q6_k"]
    peers_ready(bench, *[kind for kind in kinds if bench.only in kind])
    for kind in kinds:
        bench.run(kind, "bench_peers", "--libraries", LIBRARIES, "--seconds", str(bench.seconds or bench.times(40, 70)), "--json",
                  f"tinyllama-{kind}.gguf")


def starts(bench):
    peers_ready(bench, "q4_k_m", "q8_0")
    for kind in ["q4_k_m", "q8_0"]:
        for i in range(int(bench.times(3, 7))):
            for engine in ["greta", "llama.cpp"]:
                bench.run(f"{kind} {engine} {i + 1}", "bench_peers", "--libraries", LIBRARIES, "--first-token", engine,
                          "--prompt", "8", f"tinyllama-{kind}.gguf")


def audit_cost(bench):
    model = bench.model("tinyllama", "q4_k_m")
    bench.run("q4_k_m", "greta", "bench", "-m", model, "--device", "host", "-t", "2", "--audit-cost", "-n", "16",
              "-r", bench.times(12, 40), "--json")


def context(bench):
    model = bench.model("tinyllama", "q4_k_m")
    bench.run("q4_k_m", "greta", "bench", "-m", model, "--device", "host", "-t", "2", "-p", "0", "-n", "8",
              "-d", "0,256,512,1024,1792", "-r", bench.times(3, 5), "--json")


def many(bench, counts, *words):
    """Runs for each number of sequences, several of each, in turn: what changes with time meets all of them."""
    for i in range(int(bench.times(3, 7))):
        for count in counts:
            bench.run(f"{count} {i + 1}", "greta", "infer", *words, "--greedy", "--ignore-eos", "-np", str(count), "--json",
                      last_line=True)


def sequences(bench):
    model = bench.model("tinyllama", "q4_k_m")
    many(bench, [1, 2, 4, 8, 16], "-m", model, "--device", "host", "-t", "2", "-p", "Once upon a time", "-n", bench.times(12, 32), "-c", "256")


# ---- The GPU -----------------------------------------------------------------------------------

def gpu_speed(bench):
    for shape, kind, tests in [("llama3-8b", "q4_k_m", "512,4096"), ("llama3-8b", "q8_0", "512,4096"),
                               ("llama3-8b", "bf16", "512,4096"), ("llama3-1b", "q4_k_m", "4096")]:
        bench.run(f"{shape} {kind}", "greta", "bench", "-m", bench.model(shape, kind), "--device", bench.gpu,
                  "-p", tests, "-n", "128", "-r", bench.times(3, 7), "--json")


def gpu_peers(bench):
    if not bench.gpu.startswith("cuda:"):
        raise Skipped(f"llama.cpp's libraries are for CUDA, and the GPU is {bench.gpu}")
    kinds = [kind for kind in ["q4_k_m", "q8_0", "bf16"] if bench.only in kind]
    if not kinds:
        return
    peers_ready(bench, "--cuda", *kinds)
    # A token of llama.cpp alone: a library it misses, or a driver it does not run on, is reported here.
    bench.prepare(bench.build / "bench_peers", "--libraries", bench.models / CUDA_LIBRARIES, "--device", bench.gpu,
                  "--first-token", "llama.cpp", "--prompt", "1", bench.models / f"llama3-8b-{kinds[0]}.gguf")
    for kind in kinds:
        bench.run(kind, "bench_peers", "--libraries", CUDA_LIBRARIES, "--device", bench.gpu,
                  "--seconds", str(bench.seconds or bench.times(10, 30)), "--json", f"llama3-8b-{kind}.gguf")


def gpu_sequences(bench):
    model = bench.model("llama3-8b", "q4_k_m")
    prompt = "Once upon a time there was a little girl who lived near the woods. " * 8
    many(bench, [1, 2, 4, 8, 16, 32, 64], "-m", model, "--device", bench.gpu, "-p", prompt.strip(), "-n", bench.times(64, 128), "-c", "1024")


def gpu_audit_cost(bench):
    model = bench.model("llama3-8b", "q4_k_m")
    bench.run("q4_k_m", "greta", "bench", "-m", model, "--device", bench.gpu, "--audit-cost", "-n", "64",
              "-r", bench.times(7, 15), "--json")


def gpu_context(bench):
    model = bench.model("llama3-8b", "q4_k_m")
    bench.run("q4_k_m", "greta", "bench", "-m", model, "--device", bench.gpu, "-p", "0", "-n", "64",
              "-d", "0,1024,2048,4096,8192", "-r", bench.times(3, 5), "--json")


def gpu_starts(bench):
    for shape, kind in [("llama3-8b", "q4_k_m"), ("llama3-8b", "q8_0")]:
        for i in range(int(bench.times(2, 5))):
            bench.run(f"{shape} {kind} {i + 1}", "greta", "infer", "-m", bench.model(shape, kind), "--device", bench.gpu,
                      "-p", "Once upon a time", "-n", "1", "--greedy", "--ignore-eos", "--json", last_line=True)


def gpu_sanitizer(bench):
    if not shutil.which("compute-sanitizer"):
        raise Skipped("compute-sanitizer is not installed")
    model = bench.bundled()
    words = ["infer", "-m", model, "--device", bench.gpu, "-p", "Once upon a time", "-n", "64", "--greedy",
             "--ignore-eos", "--json"]
    for level in ["off", "log", "guard"]:
        bench.run(f"greta {level}", "greta", *words, "--audit", level, last_line=True)
    for tool in ["memcheck", "initcheck"]:
        bench.run(f"compute-sanitizer {tool}", "greta", *words, last_line=True,
                  under=("compute-sanitizer", "--tool", tool, "--error-exitcode", "9"))  # a speed with errors is none


class Section:
    def __init__(self, name, device, summary, function):
        self.name, self.device, self.summary, self.function = name, device, summary, function


SECTIONS = {section.name: section for section in [
    Section("peers", "host", "greta and llama.cpp in turn on the same files", peers),
    Section("start", "host", "time to the first token and memory, compared with llama.cpp", starts),
    Section("audit-cost", "host", "what an audit level adds to a token", audit_cost),
    Section("context", "host", "speed with ever more tokens before", context),
    Section("sequences", "host", "several sequences at once", sequences),
    Section("gpu-speed", "gpu", "decode and prefill", gpu_speed),
    Section("gpu-peers", "gpu", "greta and llama.cpp in turn on the same files", gpu_peers),
    Section("gpu-sequences", "gpu", "several sequences at once", gpu_sequences),
    Section("gpu-audit-cost", "gpu", "what an audit level adds to a token", gpu_audit_cost),
    Section("gpu-context", "gpu", "speed with ever more tokens before", gpu_context),
    Section("gpu-start", "gpu", "time to the first token and memory", gpu_starts),
    Section("gpu-sanitizer", "gpu", "audit levels compared with compute-sanitizer", gpu_sanitizer),
]}


def store(options, machines, section, runs):
    """Writes the section's raw file; of runs that were not made again, the earlier ones stay."""
    described, folder = machine.of_section(machines, section.device)
    path = pathlib.Path(options.results) / folder / f"{section.name}.json"
    kept = []
    if path.exists():
        earlier = json.loads(path.read_text())
        if earlier["machine"] == described and options.only:
            kept = [run for run in earlier["runs"] if run["key"] not in {made["key"] for made in runs}]
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = {"section": section.name, "summary": section.summary, "device": section.device,
           "machine": described, "runs": kept + runs}
    path.write_text(json.dumps(raw, indent=1) + "\n")


def run(options, machines):
    """Measures; returns how many sections failed. What is skipped is printed with its reason."""
    failed = 0
    for section in SECTIONS.values():
        if options.sections and section.name not in options.sections:
            continue
        if options.device not in ("all", section.device):
            continue
        print(f"{section.name}: {section.summary}", flush=True)
        if section.device == "gpu" and not machines["gpu"]:
            print(f"  skipped: {machines['gpu_missing']}")
            continue
        bench = Bench(options, machines, functools.partial(store, options, machines, section))
        try:
            section.function(bench)
        except Skipped as reason:
            print(f"  skipped: {reason}")
        except Failed as reason:
            print(f"  failed: {reason}")
            failed += 1
    return failed
