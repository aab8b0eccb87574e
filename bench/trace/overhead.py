#!/usr/bin/env python3
"""overhead.py GRETA [--tokens N] [--rounds N] - what `greta trace` costs decode.py.

Runs decode.py plain and traced in turn (each process repeats the decoding; the first repeat of each
is left out), compares the tokens, and prints the medians and what tracing cost, as one JSON object
on standard output and as text on standard error. Needs PyTorch and a GPU. Exit status 1: other
tokens with tracing."""
import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

DECODE = Path(__file__).resolve().parent / "decode.py"


def rates(command):
    """Tokens, tokens per second of each repeat."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
    found = [float(rate) for rate in re.findall(r"^([0-9.]+) tokens/s$", done.stderr, re.M)]
    return done.stdout, found[1:], done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("greta")
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    command = ["python3", str(DECODE), str(options.tokens), "4"]
    plain, traced, outputs, said = [], [], set(), ""
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(options.rounds):
            output, found, _ = rates(command)
            outputs.add(output)
            plain += found
            output, found, said = rates([options.greta, "trace", "--artifacts", f"{folder}/{turn}",
                                         "--", *command])
            outputs.add(output)
            traced += found
    before, after = statistics.median(plain), statistics.median(traced)
    result = {"tokens": options.tokens, "plain_tokens_per_second": sorted(plain),
              "traced_tokens_per_second": sorted(traced), "overhead": before / after - 1,
              "same_tokens": len(outputs) == 1}
    print(json.dumps(result))
    print(said, file=sys.stderr)
    print(f"plain {before:.1f} tokens/s, traced {after:.1f}: {result['overhead']:.1%} more time; "
          f"tokens {'the same' if result['same_tokens'] else 'DIFFER'}", file=sys.stderr)
    return 0 if result["same_tokens"] else 1


sys.exit(main())
