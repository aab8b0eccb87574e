# bench_test.sh - greta bench prints the table and the JSON people know; how fast is not tested.
source "$(dirname "$0")/lib.sh"

expect_exit 0 "$GRETA" synth --shape tiny --type q8_0 --out tiny.gguf
expect_exit 0 "$GRETA" bench -m tiny.gguf -p 9 -n 3 -r 2 -t 2
head -1 "$captured/out" | grep -qE '^\| model {26}\|       size \|     params \| backend    \| threads \| {12}test \| {18}t/s \|$' ||
    fail "expected the columns of llama-bench"
row='^\| llama [0-9.]+M Q8_0 +\| +[0-9.]+ MiB \| +[0-9.]+ M \| host       \|       2 \|'
grep -qE "$row +pp9 \| +[0-9.]+ ± [0-9.]+ \|\$" "$captured/out" || fail "no pp9 row"
grep -qE "$row +tg3 \| +[0-9.]+ ± [0-9.]+ \|\$" "$captured/out" || fail "no tg3 row"
expect_stdout "build: greta"
expect_exit 0 "$GRETA" bench -m tiny.gguf -p 0 -n 3 -r 1 --json
python3 - "$captured/out" <<'PYTHON' || fail "the JSON is not as expected"
import json, sys
(row,) = json.load(open(sys.argv[1]))
assert row["n_gen"] == 3 and row["n_prompt"] == 0 and row["avg_ts"] > 0, row
assert len(row["samples_ns"]) == len(row["samples_ts"]) == 1, row
keys = ("build_commit build_number cpu_info gpu_info backends model_filename model_type model_size "
        "model_n_params n_batch n_ubatch n_threads type_k type_v n_gpu_layers flash_attn use_mmap n_prompt n_gen "
        "n_depth test_time avg_ns stddev_ns avg_ts stddev_ts samples_ns samples_ts")
assert list(row) == keys.split(), list(row)
assert row["type_k"] == row["type_v"] == "f16" and row["n_batch"] == 2048, row
assert row["n_ubatch"] == (512 if row["backends"] == "host" else 2048), row
assert row["test_time"].endswith("Z") and row["model_filename"] == "tiny.gguf", row
PYTHON
expect_exit 0 "$GRETA" bench -m tiny.gguf -p 4,8 -n 2 -pg 4,2 -d 0,5 -r 2 -o jsonl -b 4 -ctk q8_0
python3 - "$captured/out" <<'PYTHON' || fail "the lines are not as expected"
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
tests = [(r["n_prompt"], r["n_gen"], r["n_depth"]) for r in rows]
assert tests == [(4, 0, 0), (4, 0, 5), (8, 0, 0), (8, 0, 5), (0, 2, 0), (0, 2, 5), (4, 2, 0), (4, 2, 5)], tests
assert all(r["n_ubatch"] == 4 and r["type_v"] == "q8_0" for r in rows), rows
for r in rows:
    mean = sum(r["samples_ns"]) / 2
    assert abs(r["avg_ns"] - mean) <= 1 and r["stddev_ns"] >= 0, r
    assert abs(r["samples_ts"][0] - 1e9 * (r["n_prompt"] + r["n_gen"]) / r["samples_ns"][0]) < 0.01 * r["avg_ts"], r
PYTHON
expect_exit 0 "$GRETA" bench -m tiny.gguf -p 4 -n 2 -d 3 -r 1 -o csv --no-warmup
python3 - "$captured/out" <<'PYTHON' || fail "the table is not as expected"
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
assert [(r["n_prompt"], r["n_gen"], r["n_depth"]) for r in rows] == [("4", "0", "3"), ("0", "2", "3")], rows
PYTHON
expect_exit 0 "$GRETA" bench -m tiny.gguf -p 4 -n 0 -d 3 -r 1
expect_stdout "pp4 @ d3 |"
expect_exit 0 "$GRETA" bench -m tiny.gguf -p 4 -n 2 -d 3 -npl 5 -r 1 -o jsonl
python3 - "$captured/out" <<'PYTHON' || fail "several sequences are not counted as expected"
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert [(r["n_prompt"], r["n_gen"], r["n_parallel"]) for r in rows] == [(4, 0, 5), (0, 2, 5)], rows
for r in rows:
    tokens = 5 * (r["n_prompt"] + r["n_gen"])
    assert abs(r["samples_ts"][0] - 1e9 * tokens / r["samples_ns"][0]) < 0.01 * r["avg_ts"], r
PYTHON
expect_exit 0 "$GRETA" bench -m tiny.gguf -p 0 -n 2 -npl 5 -r 1
expect_stdout "5 x tg2 |"
expect_exit 2 "$GRETA" bench -m tiny.gguf -npl 0
expect_one_line_error "--parallel: expected 1 to"
expect_exit 2 "$GRETA" bench -m tiny.gguf -p 4,x
expect_one_line_error "--n-prompt: expected up to"
expect_exit 2 "$GRETA" bench -m tiny.gguf -pg 4
expect_exit 2 "$GRETA" bench -m tiny.gguf -p 0 -n 0
expect_one_line_error "found only zeros"
expect_exit 2 "$GRETA" bench -m tiny.gguf -ctk f16 -ctv f32
# Without a name, the model that comes with greta.
expect_exit 0 "$GRETA" bench -p 0 -n 1 -r 1 --json
expect_json "j[0]['model_filename'].endswith('greta-stories-14m-q8_0.gguf')"
expect_exit 2 "$GRETA" bench -m tiny.gguf -r 0
expect_one_line_error "--repetitions: expected 1 to"
expect_exit 3 "$GRETA" bench -m nothing.gguf
# A fault that no call can carry is refused.
expect_exit 2 "$GRETA" bench -p 4 -n 2 -r 1 --inject rope-position@layer=99
expect_stderr "layer: found 99, expected 0 to"
expect_exit 2 "$GRETA" bench -p 4 -n 2 -r 1 --inject rope-position@step=9999
expect_stderr "step: found 9999, expected 0 to"
expect_exit 2 "$GRETA" bench -p 4 -n 2 -r 1 --inject flipped-bit@op=rope
expect_stderr "flipped-bit cannot be in rope"
expect_exit 2 "$GRETA" bench -p 4 -n 2 -r 1 --inject unequal-runs@run=2
expect_stderr "run: found 2, expected none"
expect_exit 0 "$GRETA" bench -p 4 -n 2 -r 1 --inject skipped-wait
grep -qx "greta bench: warning: no call matched skipped-wait: the fault was never planted" "$captured/err" ||
    fail "expected a warning that nothing was planted"
# A run that skipped accesses, or that a fault ended, is no success: recorded or not.
expect_exit 1 "$GRETA" bench -p 4 -n 2 -r 1 --inject rope-position@layer=1
expect_stderr "past its bound and the access was skipped"
expect_stderr "--audit log names the launch"
expect_exit 1 "$GRETA" bench -p 4 -n 2 -r 1 --inject wild-pointer@layer=1
expect_stderr "illegal memory access"
expect_exit 1 "$GRETA" bench -p 4 -n 2 -r 1 --audit log --inject wild-pointer@layer=1
expect_stderr "root cause: kernel-fault"
finish
