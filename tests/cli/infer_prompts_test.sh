# infer_prompts_test.sh - several prompts in one run: each one's text whole, in order, and the same as
# alone; files of prompts; escapes; the names llama.cpp's users type.
source "$(dirname "$0")/lib.sh"

expect_exit 0 "$GRETA" synth --shape tiny --type q4_0 --seed 9 --out tiny.gguf
prompts=("Once upon a time" "Hello" "a third one" "x y z" "Hello")

# ---- The same text with others as alone - ------------------------------------------------------
for sampling in "--greedy" "--seed 11 --ignore-eos"; do
    : >"$captured/alone"
    arguments=()
    number=0
    for prompt in "${prompts[@]}"; do
        one=$sampling
        [ "$sampling" = "--greedy" ] || one="--seed $((11 + number)) --ignore-eos"
        # shellcheck disable=SC2086 # options and their values
        expect_exit 0 "$GRETA" infer -m tiny.gguf -p "$prompt" -n $((7 + 0)) $one
        cat "$captured/out" >>"$captured/alone"
        arguments+=(-p "$prompt")
        number=$((number + 1))
    done
    for parallel in 1 2 3 9; do
        # shellcheck disable=SC2086
        expect_exit 0 "$GRETA" infer -m tiny.gguf "${arguments[@]}" -n 7 --parallel $parallel $sampling
        expect_same_bytes "$captured/out" "$captured/alone"
        expect_stderr "== prompt 5 of 5"
        expect_stderr "Generated tokens: 35"
        expect_stderr "prompt 5: 7 tokens, length"
    done
done
expect_exit 0 "$GRETA" infer -m tiny.gguf "${arguments[@]}" -n 7 -np 2 --greedy --json
python3 - "$captured/out" <<'PYTHON' || fail "the JSON lines are not as expected"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
end = lines.pop()
steps = {n: [t["step"] for t in lines if t["sequence"] == n] for n in range(5)}
assert steps == {n: list(range(7)) for n in range(5)}, steps
ids = {n: [t["id"] for t in lines if t["sequence"] == n] for n in range(5)}
assert ids[1] == ids[4] != ids[0], ids
assert [s["generated_tokens"] for s in end["sequences"]] == [7] * 5, end
PYTHON

# ---- Copies of one prompt ----------------------------------------------------------------------
: >"$captured/alone"
for seed in 5 6 7; do
    expect_exit 0 "$GRETA" infer -m tiny.gguf -p "Once upon a time" -n 6 --seed $seed --ignore-eos
    cat "$captured/out" >>"$captured/alone"
done
expect_exit 0 "$GRETA" infer -m tiny.gguf -p "Once upon a time" -n 6 --seed 5 --ignore-eos --parallel 3
expect_same_bytes "$captured/out" "$captured/alone"

# ---- Files -------------------------------------------------------------------------------------
printf 'Once upon a time\n---\nHello\n---\na third one\n' >three.txt
expect_exit 0 "$GRETA" infer -m tiny.gguf -p "Once upon a time" -p Hello -p "a third one" -n 5 --greedy
cp "$captured/out" "$captured/three"
expect_exit 0 "$GRETA" infer -m tiny.gguf -f three.txt --prompt-separator '---\n' -n 5 --greedy
expect_same_bytes "$captured/out" "$captured/three"
printf 'Hello\n' >newline.txt
expect_exit 0 "$GRETA" infer -m tiny.gguf -p Hello -n 5 --greedy
cp "$captured/out" "$captured/hello"
expect_exit 0 "$GRETA" infer -m tiny.gguf -f newline.txt -n 5 --greedy
expect_same_bytes "$captured/out" "$captured/hello"
expect_exit 0 "$GRETA" infer -m tiny.gguf -p 'Hello\n' -n 5 --greedy
cp "$captured/out" "$captured/escaped"
! cmp -s "$captured/escaped" "$captured/hello" || fail "expected a newline to make a difference"
expect_exit 0 "$GRETA" infer -m tiny.gguf -bf newline.txt -n 5 --greedy
expect_same_bytes "$captured/out" "$captured/escaped"
expect_exit 0 "$GRETA" infer -m tiny.gguf -p '\x48ello\x0A' -e -n 5 --greedy
expect_same_bytes "$captured/out" "$captured/escaped"
expect_exit 0 "$GRETA" infer -m tiny.gguf -p 'Hello\n' --no-escape -n 5 --greedy
! cmp -s "$captured/out" "$captured/escaped" || fail "expected --no-escape to make a difference"
cp "$captured/out" "$captured/literal"
expect_exit 0 "$GRETA" infer -m tiny.gguf -p 'Hello\n' --no-escape -e -n 5 --greedy
expect_same_bytes "$captured/out" "$captured/escaped"
expect_exit 0 "$GRETA" infer -m tiny.gguf -p 'Hello\n' -e --no-escape -n 5 --greedy
expect_same_bytes "$captured/out" "$captured/literal"
last="- reads standard input"
"$GRETA" infer -m tiny.gguf -n 5 --greedy - <newline.txt >"$captured/out" 2>"$captured/err" ||
    fail "expected exit status 0"
expect_same_bytes "$captured/out" "$captured/hello"
: >nothing.txt
expect_exit 2 "$GRETA" infer -m tiny.gguf -f nothing.txt
expect_one_line_error "expected some text"

# ---- Names llama.cpp's users type --------------------------------------------------------------
expect_exit 0 "$GRETA" infer -m tiny.gguf -p Hello -n 5 --greedy -ngl 99 -fa on -tb 2 -no-cnv --no-mmap \
    --no-display-prompt -dev CPU -ctk f16 -ctv f16 --repeat-last-n -1
expect_same_bytes "$captured/out" "$captured/hello"
expect_exit 0 "$GRETA" infer -m tiny.gguf -p Hello -n 5 --greedy --display-prompt
[ "$(cat "$captured/out")" = "Hello$(cat "$captured/hello")" ] || fail "expected the prompt first"
expect_exit 0 "$GRETA" infer -m tiny.gguf -p Hello -n 5 --greedy --display-prompt --no-display-prompt
expect_same_bytes "$captured/out" "$captured/hello"
expect_exit 3 "$GRETA" infer -m tiny.gguf -p Hello -dev ROCm7
expect_one_line_error "hip:7"
expect_exit 0 "$GRETA" infer --list-devices
expect_stdout "host"
expect_exit 0 "$GRETA" infer -m tiny.gguf -p Hello -n 0
expect_stderr "Generated tokens: 0"
expect_exit 0 "$GRETA" infer -m tiny.gguf -p Hello -n 5 --greedy --check-tensors
expect_same_bytes "$captured/out" "$captured/hello"
# ---- A prompt out of a pipe --------------------------------------------------------------------
expect_exit 0 "$GRETA" infer -m tiny.gguf -p "Hello" --greedy -n 7
cp "$captured/out" "$captured/alone"
expect_exit 0 "$GRETA" infer -m tiny.gguf -f <(echo Hello) --greedy -n 7
expect_same_bytes "$captured/out" "$captured/alone"
expect_exit 0 "$GRETA" infer -m tiny.gguf --binary-file <(printf Hello) --greedy -n 7
expect_same_bytes "$captured/out" "$captured/alone"
# One without an end is not read to it.
expect_exit 3 "$GRETA" infer -m tiny.gguf -f /dev/zero --greedy -n 7
expect_one_line_error "/dev/zero: expected at most"
expect_exit 3 "$GRETA" infer -m tiny.gguf -f . --greedy -n 7
expect_one_line_error ".: cannot read it"
expect_exit 3 "$GRETA" infer -m tiny.gguf -f absent.txt --greedy -n 7
expect_one_line_error "absent.txt: cannot open it"

finish
