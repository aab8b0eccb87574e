# infer_taps_test.sh - values taken out of a run: taps, logits, diff-taps; and NaN that is named.
source "$(dirname "$0")/lib.sh"

expect_exit 0 "$GRETA" synth --shape tiny --type f32 --seed 4 --out tiny.gguf
run=("$GRETA" infer -m tiny.gguf -p "Once upon a time" --greedy -n 3)

# ---- Taps --------------------------------------------------------------------------------------
expect_exit 0 "${run[@]}"
cp "$captured/out" "$captured/text"
expect_exit 0 "${run[@]}" --tap hidden --tap attn@layer=3,step=0,head=2 --tap kv@layer=1 --tap-out one
expect_same_bytes "$captured/out" "$captured/text"
expect_exit 0 "${run[@]}" --tap hidden --tap attn@layer=3,step=0,head=2 --tap kv@layer=1 --tap-out other -t 1
cat >"$captured/check.py" <<'PYTHON'
import ast, json, math, os, struct, sys

def load(path):
    """An array and its shape, by NumPy's format alone."""
    with open(path, "rb") as file:
        assert file.read(8) == b"\x93NUMPY\x01\x00", path
        header = ast.literal_eval(file.read(struct.unpack("<H", file.read(2))[0]).decode())
        assert file.tell() % 64 == 0 and header["descr"] == "<f4" and not header["fortran_order"]
        values = file.read()
    assert len(values) == 4 * math.prod(header["shape"]), path
    return header["shape"], struct.unpack(f"<{len(values) // 4}f", values)
PYTHON
python3 - one "$captured" <<'PYTHON' || fail "the taps are not as their index says"
import json, os, sys
sys.path.insert(0, sys.argv[2])
from check import load
folder = sys.argv[1]
index = json.load(open(f"{folder}/index.json"))
assert index["format"] == "greta-taps" and not index["truncated"]
names = {tap["file"] for tap in index["taps"]}
assert names | {"index.json"} == set(os.listdir(folder)), "files"
for tap in index["taps"]:
    shape, values = load(f"{folder}/{tap['file']}")
    assert list(shape) == tap["shape"] and tap["dtype"] == "f4", tap
    assert tap["stats"]["nan"] == tap["stats"]["inf"] == 0, tap
    assert abs(min(values) - tap["stats"]["min"]) < 1e-6, tap
    assert abs(max(values) - tap["stats"]["max"]) < 1e-6, tap
head = [t for t in index["taps"] if t["tensor"].startswith("attn.")]
assert [t["tensor"] for t in head] == ["attn.q", "attn.k", "attn.v", "attn.out"], head
assert all(t["layer"] == 3 and t["step"] == 0 and t["head"] == 2 for t in head), head
kv = [t for t in index["taps"] if t["tensor"] == "kv.keys"]
assert [t["shape"][0] for t in kv] == [kv[0]["shape"][0] + n for n in range(3)], kv
assert all(t["source_dtype"] == "F16" for t in kv), kv
PYTHON
expect_exit 0 "$GRETA" diff-taps one other
expect_stdout "different  0"
[ "$(wc -l <"$captured/out")" -eq 3 ] || fail "expected three lines where nothing differs"
expect_exit 0 "$GRETA" diff-taps one other --json
expect_json "j['same'] and j['compared'] > 100 and j['differences'] == []"
expect_exit 0 "$GRETA" diff-taps one other --json --all
expect_json "j['same'] and j['compared'] == len(j['taps']) > 100 and j['taps'][0]['layer'] is None"

# ---- On a GPU, also while it decodes ------------------------------------------------------------
if [ -e "$GRETA_BUILD/fake_gpu/libcuda.so.1" ]; then
    gpu=(env LD_LIBRARY_PATH="$GRETA_BUILD/fake_gpu" "$GRETA" infer -m tiny.gguf -p Once --greedy -n 3 -ctk f32)
    expect_exit 0 "$GRETA" infer -m tiny.gguf -p Once --greedy -n 3 -ctk f32 --device host \
        --tap hidden --tap kv@layer=1 --tap-out of_host
    cp "$captured/out" "$captured/host_text"
    expect_exit 0 "${gpu[@]}" --device cuda:0 --tap hidden --tap kv@layer=1 --tap-out of_gpu
    expect_same_bytes "$captured/out" "$captured/host_text"
    expect_exit 0 "$GRETA" diff-taps of_host of_gpu --tolerance 1e-9 --json --all
    expect_json "j['same'] and {t['step'] for t in j['taps']} == {0, 1, 2}"
    expect_json "all(t['verdict'] == 'same' and t['values'] for t in j['taps']) and j['compared'] == 198"
fi

# ---- The first that diverges -------------------------------------------------------------------
"$GRETA" inspect --json --tensors tiny.gguf >"$captured/tensors" || fail "cannot inspect"
# poke FILE TENSOR INDEX VALUE: writes one float into a model.
poke()
{
    python3 - "$captured/tensors" "$@" <<'PYTHON' || fail "cannot change the model"
import json, struct, sys
tensors = {t["name"]: t for t in json.load(open(sys.argv[1]))["tensor_list"]}
with open(sys.argv[2], "r+b") as file:
    file.seek(tensors[sys.argv[3]]["offset"] + 4 * int(sys.argv[4]))
    file.write(struct.pack("<f", float(sys.argv[5])))
PYTHON
}
cp tiny.gguf changed.gguf
poke changed.gguf blk.2.ffn_up.weight 5 0.5
expect_exit 0 "$GRETA" infer -m changed.gguf -p "Once upon a time" --greedy -n 1 --tap hidden --tap-out changed
expect_exit 0 "$GRETA" infer -m tiny.gguf -p "Once upon a time" --greedy -n 1 --tap hidden --tap-out plain
expect_exit 1 "$GRETA" diff-taps plain changed --json
expect_json "(j['first']['tensor'], j['first']['layer'], j['first']['step']) == ('ffn_up', 2, 0)"
expect_json "not j['same'] and j['first']['max_abs'] > 0 and 0 < j['first']['nmse'] < 1"
expect_json "len(j['differences']) == j['different'] < j['compared']"
expect_exit 1 "$GRETA" diff-taps plain changed
expect_stdout "none"
! grep -qE '(^| )-1( |$)| same ' "$captured/out" || fail "expected 'none' for -1, and no row that is the same"
expect_exit 0 "$GRETA" diff-taps plain changed --tolerance 1000
expect_exit 1 "$GRETA" diff-taps one plain
expect_stdout "only left"

# ---- Bad folders and choices -------------------------------------------------------------------
expect_exit 2 "$GRETA" diff-taps one
expect_exit 3 "$GRETA" diff-taps one nothing
expect_one_line_error "nothing/index.json"
mkdir hollow && : >hollow/index.json
expect_exit 3 "$GRETA" diff-taps one hollow
expect_one_line_error "hollow/index.json: line 1: expected JSON"
expect_exit 0 "${run[@]}" --tap wo@step=1000 --tap-out late
expect_stderr "warning: taps: none of the requested layers and steps occurred in this run; nothing was written"
printf 'x' >>plain/step0.layer0.wo.npy
expect_exit 3 "$GRETA" diff-taps changed plain
expect_one_line_error "step0.layer0.wo.npy"
expect_exit 2 "$GRETA" diff-taps one other --tolerance -1
expect_exit 2 "${run[@]}" --tap wo
expect_one_line_error "--tap and --tap-out together"
expect_exit 2 "${run[@]}" --tap-out new
expect_exit 2 "${run[@]}" --tap all --tap-out new
expect_one_line_error "KIND is wo, norm, attn"
expect_exit 2 "${run[@]}" --tap wo@layer=99 --tap-out new
expect_one_line_error "a layer below the model's"
expect_exit 3 "${run[@]}" --tap wo --tap-out one
expect_one_line_error "expected a new or an empty folder"
expect_exit 3 "${run[@]}" --tap wo --tap-out tiny.gguf/new
[ ! -e new ] || fail "expected no folder of a run that did not begin"

# ---- Logits ------------------------------------------------------------------------------------
expect_exit 0 "${run[@]}" --tap logits --tap-out logits --logits-out logits.npy
expect_same_bytes "$captured/out" "$captured/text"
python3 - "$captured" <<'PYTHON' || fail "the logits are not as expected"
import sys
sys.path.insert(0, sys.argv[1])
from check import load
shape, values = load("logits.npy")
assert shape == (3, 1024), shape
taps = [load(f"logits/step{step}.logits.npy")[1] for step in range(3)]
assert values == sum(taps, ()), "taps"
PYTHON
expect_exit 3 "${run[@]}" --logits-out nowhere/logits.npy
expect_one_line_error "nowhere/logits.npy: cannot create it"
expect_no_stdout
expect_exit 2 "${run[@]}" -p two --logits-out two.npy
expect_one_line_error "--logits-out: expected one prompt, found 2"

# ---- NaN stops the run, greedy or not, and its origin is named ---------------------------------
for row in "blk.2.ffn_down.weight 7 nan|layer 2 ffn_down" "output_norm.weight 0 nan|output_norm.out" \
    "blk.1.attn_k.weight 0 inf|layer 1 attn_k" "blk.3.attn_norm.weight 3 nan|layer 3 attn_norm.out" \
    "output.weight 4096 nan|logits"; do
    cp tiny.gguf broken.gguf
    # shellcheck disable=SC2086 # tensor, index and value
    poke broken.gguf ${row%%|*}
    for how in --greedy "--seed 1" "-b 2 --greedy"; do
        # shellcheck disable=SC2086
        expect_exit 1 "$GRETA" infer -m broken.gguf -p "Once upon a time" -n 5 $how
        expect_stderr "STATUS=FAILED"
        expect_stderr "Generation error: logits of token 0: expected finite numbers"
        expect_stderr "first seen in: ${row##*|}, position"
        expect_stderr "Generated tokens: 0"
    done
    expect_exit 1 "$GRETA" infer -m broken.gguf -p "Once" --check-tensors
    expect_one_line_error "tensor ${row%% *}: expected finite weights"
    expect_exit 0 "$GRETA" infer -m broken.gguf -p "Once upon a time" -n 5 --greedy --allow-nan --ignore-eos
    expect_stderr "Generated tokens: 5"
    expect_exit 0 "$GRETA" infer -m broken.gguf -p "Once upon a time" -n 5 --seed 1 --allow-nan --ignore-eos
done
# A token that is met only later: greedy decoding notices at once.
expect_exit 0 "$GRETA" infer -m tiny.gguf -p "Once upon a time" --greedy -n 6 --json --ignore-eos
id=$(python3 -c 'import json, sys; print([json.loads(l) for l in open(sys.argv[1])][3]["id"])' "$captured/out")
cp tiny.gguf broken.gguf
poke broken.gguf token_embd.weight $((id * 256)) nan
expect_exit 1 "$GRETA" infer -m broken.gguf -p "Once upon a time" --greedy -n 6 --ignore-eos
expect_stderr "Generation error: logits of token 4: expected finite numbers, found 1024 NaN"
expect_stderr "first seen in: token_embd, position"
expect_stderr "(written before)"
# A single logit that overflows only later, and to the side that is never chosen: noticed as well.
expect_exit 0 "$GRETA" infer -m tiny.gguf -p "Once upon a time" --greedy -n 6 --ignore-eos --tap norm --tap-out norms
place=$(python3 - norms "$captured" <<'PYTHON'
import json, sys
sys.path.insert(0, sys.argv[2])
from check import load
steps = {}
for tap in json.load(open(f"{sys.argv[1]}/index.json"))["taps"]:
    if tap["tensor"] == "output_norm.out":
        steps[tap["step"]] = load(f"{sys.argv[1]}/{tap['file']}")[1][-256:]
rows = [steps[step] for step in sorted(steps)]
print(next(f"{c} {s}" for s in range(2, len(rows)) for c in range(256)
           if rows[s][c] < -1.2 and all(-0.8 < row[c] < 0 for row in rows[:s])))
PYTHON
) || fail "no column grows from small to large"
cp tiny.gguf overflow.gguf
poke overflow.gguf output.weight $((77 * 256 + ${place% *})) 3e38
expect_exit 1 "$GRETA" infer -m overflow.gguf -p "Once upon a time" --greedy -n 6 --ignore-eos
expect_stderr "Generation error: logits of token ${place#* }: expected finite numbers, found 0 NaN and 1 infinite of 1024, the first at 77"
# The model is not to blame for what the computation did once.
expect_exit 1 "$GRETA" infer -m tiny.gguf -p "Once upon a time" --greedy -n 6 --inject nan-output@step=2,op=rms_norm
expect_stderr "logits of token 2: expected finite numbers, found 1024 NaN and 0 infinite of 1024"
expect_stderr "the same tokens gave finite values when run again"
expect_stderr "Generated tokens: 2"
# A tap with NaN ends the run too; what led to it is in the folder.
expect_exit 1 "$GRETA" infer -m broken.gguf -p "Once upon a time" --greedy -n 6 --ignore-eos --tap hidden@step=4 \
    --tap-out nan
expect_stderr "step 4, token_embd: expected finite numbers, found 1 NaN and 0 infinite of 256, the first at row 0, column 0"
python3 -c 'import json, sys; t = json.load(open("nan/index.json"))["taps"]; sys.exit(t[-1]["stats"]["nan"] != 1)' ||
    fail "expected the tap with NaN to be the last"
expect_exit 0 "$GRETA" infer -m broken.gguf -p "Once upon a time" --greedy -n 6 --ignore-eos --tap wo --tap-out nan2 \
    --allow-nan
finish
