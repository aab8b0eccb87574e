# eval_test.sh - greta eval: the bundled model in every type on every device predicts a text it
# never saw as well as it should; numbers as JSON, recordings, limits, and what goes wrong.
source "$(dirname "$0")/lib.sh"
model=$GRETA_SOURCE/models/greta-stories-14m-q8_0.gguf
text=$GRETA_SOURCE/tests/data/held_out_stories.txt

# ---- Quality of every type ---------------------------------------------------------------------
# The largest mean divergence from F32 is at least a third above what it was when this was written
# (results do not vary from run to run): a kernel that loses precision, not only one that is wrong,
# exceeds it.
rows="f32:0.0000005 f16:0.0000005 bf16:0.0000185 q8_0:0.0003 q6_k:0.0019 q5_k_m:0.005
    q4_k_m:0.0235 q4_0:0.0385"
# Without optimisation kernels are many times slower, and say the same.
grep -q '^CMAKE_BUILD_TYPE:STRING=Release' "$GRETA_BUILD/CMakeCache.txt" ||
    rows="f32:0.0000005 q8_0:0.0003 q4_0:0.0385"
expect_exit 0 "$GRETA" quantize "$model" f32.gguf f32
expect_exit 0 "$GRETA" eval -m f32.gguf "$text" --special -c 128 --chunks 2 -ctk f32 --device host \
    --kl-save base.logits --max-perplexity 12
expect_stdout "perplexity"
expect_stdout "bits per byte"
devices=$("$GRETA" devices --json | python3 -c '
import json, sys
print(*[d["device"] for d in json.load(sys.stdin)["devices"] if d["available"]])')
last="greta devices"
[[ " $devices " == *" host "* ]] || fail "expected the host among the devices, found '$devices'"
for device in $devices; do
    for row in $rows; do
        type=${row%:*} limit=${row#*:}
        # A processor that multiplies BF16 itself rounds activations to it too: 0.000025 there.
        [ "$type $device" != "bf16 host" ] || ! grep -qw avx512_bf16 /proc/cpuinfo ||
            limit=0.000034
        [ -e "$type.gguf" ] || expect_exit 0 "$GRETA" quantize "$model" "$type.gguf" "$type"
        expect_exit 0 "$GRETA" eval -m "$type.gguf" "$text" --special --device "$device" \
            --kl-base base.logits --max-kl "$limit" --max-perplexity 12 --json
        expect_json "j['against_base']['same_top'] > 0.82 and j['scored_tokens'] == 126"
        expect_json "abs(j['bits_per_byte'] - 0.815) < 0.02 and 0 < j['bits_per_byte_error'] < 0.2"
    done
    # An 8-bit cache of keys and values.
    expect_exit 0 "$GRETA" eval -m f32.gguf "$text" --special --device "$device" -ctk q8_0 \
        --kl-base base.logits --max-kl 0.0001
done

# ---- The default model, and the numbers against each other -------------------------------------
expect_exit 0 "$GRETA" eval "$text" -c 64 --chunks 2 --json
expect_json "j['model'].endswith('greta-stories-14m-q8_0.gguf') and j['context'] == 64"
expect_json "j['chunks'] == 2 and j['scored_tokens'] == 62 and 'against_base' not in j"
expect_json "abs(2.718281828 ** j['nats_per_token'] - j['perplexity']) < 1e-4"
expect_json "abs(j['nats_per_token'] * j['scored_tokens'] / 0.693147 / j['scored_bytes'] - j['bits_per_byte']) < 1e-4"
python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); del j["seconds"]; print(j)' \
    "$captured/out" >"$captured/first"
# The same numbers whatever the threads and batches.
for variant in "-t 1" "-b 7" "-t 3 -ub 20"; do
    # shellcheck disable=SC2086 # options and their values
    expect_exit 0 "$GRETA" eval "$text" -c 64 --chunks 2 --json $variant
    python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); del j["seconds"]; print(j)' \
        "$captured/out" >"$captured/again"
    expect_same_bytes "$captured/first" "$captured/again"
done
# With --special the end of a document is one token, which has no bytes; else it is text.
printf 'Once upon a time there was a little girl. The end.<|endoftext|>Once upon' >end.txt
expect_exit 0 "$GRETA" eval end.txt -c 16 --special --json
expect_json "j['scored_tokens'] == 7 and j['scored_bytes'] == len(' girl. The end.Once')"
with=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["perplexity"])' "$captured/out")
expect_exit 0 "$GRETA" eval end.txt -c 16 --json
expect_json "j['perplexity'] > 2 * $with"

# ---- Limits ------------------------------------------------------------------------------------
expect_exit 1 "$GRETA" eval "$text" -c 64 --chunks 1 --max-perplexity 5
expect_one_line_error "greta eval: FAILED: perplexity: expected at most 5, found"
expect_stdout "perplexity"
expect_exit 1 "$GRETA" eval "$text" -c 64 --chunks 1 --max-perplexity 5 --json
expect_json "j['passed'] is False and j['gates'] == [{'what': 'perplexity', 'limit': 5, 'found': j['perplexity'], 'result': 'FAILED'}]"
expect_exit 0 "$GRETA" eval "$text" -c 64 --chunks 1 --max-perplexity 5000 --json
expect_json "j['passed'] is True and j['gates'][0]['result'] == 'passed'"
expect_exit 1 "$GRETA" eval -m q4_0.gguf "$text" --special --kl-base base.logits --max-kl 0.0001
expect_one_line_error "divergence: expected at most 0.0001, found"

# ---- What goes wrong ---------------------------------------------------------------------------
expect_exit 2 "$GRETA" eval
expect_exit 2 "$GRETA" eval "$text" --max-kl 1
expect_one_line_error "--kl-base FILE"
expect_exit 2 "$GRETA" eval "$text" --max-perplexity -1
expect_one_line_error "limits above 0"
expect_exit 2 "$GRETA" eval "$text" --kl-base base.logits --kl-save other.logits
expect_one_line_error "found both"
expect_exit 2 "$GRETA" eval "$text" -c 3
expect_one_line_error "at least 4, found 3"
printf 'Too short.' >short.txt
expect_exit 2 "$GRETA" eval short.txt
expect_one_line_error "at least a chunk of 512 tokens"
expect_exit 3 "$GRETA" eval nothing.txt
expect_one_line_error "nothing.txt"
expect_exit 3 "$GRETA" eval "$text" --kl-base "$text"
expect_one_line_error "magic"
sed 's/mouse/horse/' "$text" >other.txt
expect_exit 2 "$GRETA" eval other.txt --special --kl-base base.logits
expect_one_line_error "the tokens of this text, found others"
expect_exit 2 "$GRETA" eval "$text" --special -c 64 --kl-base base.logits
expect_one_line_error "chunks of 64 tokens, found 128"
expect_exit 3 "$GRETA" eval "$text" -c 128 --kl-save base.logits
expect_one_line_error "base.logits"
expect_exit 0 "$GRETA" eval "$text" -c 64 --chunks 1 --kl-save base.logits --force
[ "$(wc -c <base.logits)" -eq $((64 + 31 * 4096 * 4)) ] || fail "expected 31 rows of 4096"
expect_exit 0 "$GRETA" synth --shape tiny --type q8_0 --seed 3 --out tiny.gguf
expect_exit 2 "$GRETA" eval -m tiny.gguf "$text" --kl-base base.logits
expect_one_line_error "a vocabulary of 1024 as the model's, found 4096"
head -c 2000 f32.gguf >cut.gguf
expect_exit 3 "$GRETA" eval -m cut.gguf "$text"
expect_interrupted INT slow.logits "$GRETA" eval -m f32.gguf "$text" -c 8 -b 1 -t 1 --kl-save slow.logits

finish
