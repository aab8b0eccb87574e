# absurd_models_test.sh - models whose bytes are in order and whose numbers are not: refused with the
# reason, or stopped with it; never a crash, never silence.
source "$(dirname "$0")/lib.sh"

expect_exit 0 "$GRETA" synth --shape tiny --type f32 --seed 4 --out tiny.gguf
expect_exit 0 "$GRETA" inspect --json --tensors tiny.gguf
cp "$captured/out" "$captured/tensors"
cat >"$captured/change.py" <<'PYTHON'
"""change.py KEY VALUE [INDEX]: absurd.gguf is tiny.gguf with one number of its metadata changed."""
import struct, sys

FORMS = {4: "<I", 5: "<i", 6: "<f", 7: "<B", 10: "<Q", 11: "<q"}

def value_at(model, key):
    """Place and form of a scalar, or of an array's first element."""
    name = struct.pack("<Q", len(key)) + key.encode()
    at = model.index(name) + len(name)
    kind, = struct.unpack_from("<I", model, at)
    if kind == 9:
        kind, = struct.unpack_from("<I", model, at + 4)
        return at + 16, FORMS[kind]
    return at + 4, FORMS[kind]

def change(key, value, index=0):
    model = bytearray(open("tiny.gguf", "rb").read())
    at, form = value_at(model, key)
    number = float(value) if form == "<f" else int(value)
    struct.pack_into(form, model, at + index * struct.calcsize(form), number)
    open("absurd.gguf", "wb").write(model)

if __name__ == "__main__":
    change(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0)
PYTHON

# ---- Refused, with what was expected and what was found ----------------------------------------
while IFS='|' read -r key value words; do
    python3 "$captured/change.py" "$key" $value || fail "cannot change $key"
    expect_exit 1 "$GRETA" infer -m absurd.gguf -p "Once upon a time" -n 2
    expect_one_line_error "the guard rail refuses it: $words"
    expect_no_stdout
    expect_exit 1 "$GRETA" inspect absurd.gguf
    expect_exit 1 "$GRETA" bench -m absurd.gguf -p 4 -n 0 -r 1
done <<'ROWS'
llama.block_count|1000000000|llama.block_count: expected 1 to 4096, found 1000000000
llama.block_count|0|llama.block_count: expected 1 to 4096, found 0
llama.block_count|5|blk.4.
llama.attention.layer_norm_rms_epsilon|nan|llama.attention.layer_norm_rms_epsilon: expected a number above 0 and at most 1, found nan
llama.attention.layer_norm_rms_epsilon|-0.00001|llama.attention.layer_norm_rms_epsilon: expected a number above 0
llama.attention.layer_norm_rms_epsilon|0|llama.attention.layer_norm_rms_epsilon: expected a number above 0
llama.attention.layer_norm_rms_epsilon|inf|llama.attention.layer_norm_rms_epsilon: expected a number above 0
llama.rope.freq_base|0|llama.rope.freq_base: expected a number above 0
llama.rope.freq_base|nan|llama.rope.freq_base: expected a number above 0
llama.rope.freq_base|-10000|llama.rope.freq_base: expected a number above 0
llama.rope.dimension_count|31|llama.rope.dimension_count: expected
llama.embedding_length|4294967295|llama.embedding_length: expected 1 to
llama.embedding_length|255|
llama.attention.head_count|0|llama.attention.head_count: expected
llama.attention.head_count_kv|3|llama.attention.head_count_kv: expected
llama.feed_forward_length|769|
llama.context_length|0|llama.context_length: expected 1 to
tokenizer.ggml.bos_token_id|1024|tokenizer.ggml.bos_token_id: expected an id below the vocabulary size 1024, found 1024
tokenizer.ggml.bos_token_id|4000000000|tokenizer.ggml.bos_token_id: expected an id below
tokenizer.ggml.eos_token_id|99999|tokenizer.ggml.eos_token_id: expected an id below
tokenizer.ggml.token_type|77 5|tokenizer.ggml.token_type: expected 0 to 6 for token 5, found 77
tokenizer.ggml.token_type|-9 1000|tokenizer.ggml.token_type: expected 0 to 6 for token 1000, found -9
tokenizer.ggml.scores|nan 700|tokenizer.ggml.scores: expected a number for token 700, found nan
ROWS

# ---- Whatever number is absurd: an answer in order ---------------------------------------------
cp "$captured/change.py" change.py
last="every number, absurd"
python3 - "$GRETA" <<'PYTHON' >"$captured/out" 2>"$captured/err" || fail "expected an answer in order"
import struct, subprocess, sys
from change import change
whole = ["context_length", "embedding_length", "block_count", "feed_forward_length", "attention.head_count",
         "attention.head_count_kv", "attention.key_length", "attention.value_length", "rope.dimension_count"]
keys = [(f"llama.{key}", v) for key in whole for v in (0, 1, 7, 0x7FFFFFFF, 0xFFFFFFFF)]
keys += [(f"llama.{key}", v) for key in ("rope.freq_base", "attention.layer_norm_rms_epsilon")
         for v in ("1e-45", "3e38", "-inf", "1")]
keys += [(f"tokenizer.ggml.{key}_token_id", v) for key in ("bos", "eos") for v in (0, 1023, 0xFFFFFFFF)]
bad = 0
for key, value in keys:
    change(key, value)
    run = subprocess.run([sys.argv[1], "infer", "-m", "absurd.gguf", "-p", "Once upon", "-n", "2", "--greedy"],
                         capture_output=True, timeout=600)
    reason = b"greta infer: " in run.stderr or b"Generation error: " in run.stderr
    if run.returncode not in (0, 1, 2, 3) or (run.returncode and not reason):
        bad += 1
        print(key, value, run.returncode, run.stderr[-300:], file=sys.stderr)
sys.exit(bad != 0)
PYTHON
rm -rf change.py __pycache__

# ---- Weights that are no numbers: infer_taps_test.sh has them where they arise; here they are many
python3 - "$captured/tensors" <<'PYTHON' || fail "cannot break the model"
import json, struct, sys
tensors = {t["name"]: t for t in json.load(open(sys.argv[1]))["tensor_list"]}
model = bytearray(open("tiny.gguf", "rb").read())
for name in ("blk.0.attn_q.weight", "blk.1.ffn_gate.weight"):
    at = tensors[name]["offset"]
    model[at:at + 65536] = b"\xff" * 65536
open("absurd.gguf", "wb").write(model)
PYTHON
expect_exit 1 "$GRETA" infer -m absurd.gguf -p "Once upon a time" -n 2
expect_stderr "first seen in: layer 0 attn_q, position 0"
expect_exit 1 "$GRETA" infer -m absurd.gguf -p "Once upon a time" -n 2 --check-tensors
expect_one_line_error "tensor blk.0.attn_q.weight: expected finite weights, found NaN or infinity at value 0 of 65536"
finish
