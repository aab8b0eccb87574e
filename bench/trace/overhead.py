#!/usr/bin/env python3
"""overhead.py GRETA [--tokens N] [--rounds N] [--cupti] [--program pytorch]
overhead.py GRETA --program llama.cpp --model FILE --libraries DIR [--peers PROGRAM] [--device cuda:N] ...

What `greta trace` costs a program that decodes: decode.py (PyTorch, a 1B-class model), or llama.cpp
alone in `bench_peers --generate` (a GGUF file, bench/peers.sh --cuda fetches the libraries).

Runs the program plain and traced in turn (each process repeats the decoding; the first repeat of each
is left out), compares the tokens, looks for CONFIRMED hypotheses, and prints the medians and what
tracing cost, as one JSON object on standard output and as text on standard error. Needs a GPU. Exit
status 1: other tokens with tracing, something CONFIRMED, or no GPU call seen."""
import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

DECODE = Path(__file__).resolve().parent / "decode.py"
REPEATS = "4"


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("greta")
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--cupti", action="store_true", help="trace with CUPTI as well, in turn")
    parser.add_argument("--program", choices=["pytorch", "llama.cpp"], default="pytorch")
    parser.add_argument("--model", help="of llama.cpp: a GGUF file")
    parser.add_argument("--libraries", help="of llama.cpp: the folder they are in")
    parser.add_argument("--peers", help="bench_peers (default: next to GRETA)")
    parser.add_argument("--device", default="cuda:0", help="of llama.cpp (default: cuda:0)")
    options = parser.parse_args()
    if options.program == "llama.cpp" and not (options.model and options.libraries):
        parser.error("llama.cpp: expected --model and --libraries")
    return options


def program(options):
    """A command that prints tokens to standard output and `N tokens/s` to standard error."""
    if options.program == "pytorch":
        return ["python3", str(DECODE), str(options.tokens), REPEATS]
    peers = options.peers or str(Path(options.greta).resolve().parent / "bench_peers")
    return [peers, "--libraries", options.libraries, "--device", options.device, "--generate", "llama.cpp",
            "--decode", str(options.tokens), "--repeats", REPEATS, options.model]


def rates(command):
    """Tokens, tokens per second of each repeat, what else was said."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
    found = [float(rate) for rate in re.findall(r"^([0-9.]+) tokens/s$", done.stderr, re.M)]
    return done.stdout, found[1:], done.stderr


def verdicts(artifacts):
    """What was CONFIRMED, and whether the GPU was seen at all."""
    found = sorted(artifacts.rglob("summary.json"))
    if not found:
        return [], False
    summary = json.loads(found[-1].read_text())
    confirmed = [row["slug"] for row in summary["hypotheses"] if row["verdict"] == "CONFIRMED"]
    return confirmed, sum(analysis["events"] for analysis in summary["analyses"]) > 0


def main():
    options = parse()
    command = program(options)
    ways = {"traced": [], **({"cupti": ["--cupti"]} if options.cupti else {})}
    plain, traced, outputs, confirmed, seen, said = [], {way: [] for way in ways}, set(), set(), True, ""
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(options.rounds):
            output, found, _ = rates(command)
            outputs.add(output)
            plain += found
            for way, flags in ways.items():
                artifacts = Path(folder) / way / str(turn)
                output, found, said = rates([options.greta, "trace", *flags, "--artifacts", str(artifacts), "--", *command])
                outputs.add(output)
                traced[way] += found
                now_confirmed, now_seen = verdicts(artifacts)
                confirmed |= set(now_confirmed)
                seen = seen and now_seen
    before = statistics.median(plain)
    after = {way: statistics.median(found) for way, found in traced.items()}
    result = {"program": options.program, "tokens": options.tokens, "plain_tokens_per_second": sorted(plain),
              **{f"{way}_tokens_per_second": sorted(found) for way, found in traced.items()},
              "overhead": before / after["traced"] - 1,
              "same_tokens": len(outputs) == 1, "confirmed": sorted(confirmed), "gpu_calls_seen": seen}
    print(json.dumps(result))
    print(said, file=sys.stderr)
    costs = ", ".join(f"{way} {rate:.1f}: {before / rate - 1:.1%} more time" for way, rate in after.items())
    print(f"plain {before:.1f} tokens/s, {costs}; "
          f"tokens {'the same' if result['same_tokens'] else 'DIFFER'}; "
          f"confirmed: {', '.join(sorted(confirmed)) or 'nothing'}{'' if seen else '; NO GPU CALL SEEN'}", file=sys.stderr)
    return 0 if result["same_tokens"] and seen and not confirmed else 1


sys.exit(main())
