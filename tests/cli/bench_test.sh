# bench_test.sh - greta bench prints the table and the JSON people know; how fast is not tested.
source "$(dirname "$0")/lib.sh"

expect_exit 0 "$GRETA" synth --shape tiny --type q8_0 --out tiny.gguf
expect_exit 0 "$GRETA" bench -m tiny.gguf -p 9 -n 3 -r 2
expect_stdout "| model            |"
grep -qE '^\| tiny +\| .* \| host +\| +pp9 \| +[0-9.]+ ± [0-9.]+ \|$' "$captured/out" || fail "no pp9 row"
grep -qE '^\| tiny +\| .* \| host +\| +tg3 \| +[0-9.]+ ± [0-9.]+ \|$' "$captured/out" || fail "no tg3 row"
expect_exit 0 "$GRETA" bench -m tiny.gguf -p 0 -n 3 -r 1 --json
python3 - "$captured/out" <<'PYTHON' || fail "the JSON is not as expected"
import json, sys
(row,) = json.load(open(sys.argv[1]))["results"]
assert row["n_gen"] == 3 and row["n_prompt"] == 0 and row["avg_ts"] > 0, row
assert len(row["samples_ns"]) == len(row["samples_ts"]) == 1, row
for key in ("model_type", "model_size", "model_n_params", "stddev_ns", "backends", "cpu_info"):
    assert key in row, key
PYTHON
expect_exit 2 "$GRETA" bench
expect_one_line_error "expected --model FILE"
expect_exit 2 "$GRETA" bench -m tiny.gguf -r 0
expect_one_line_error "--repetitions: expected 1 to"
expect_exit 3 "$GRETA" bench -m nothing.gguf
finish
