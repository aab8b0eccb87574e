# tokenize_test.sh - greta tokenize and detokenize: texts there and back, and what they refuse.
source "$(dirname "$0")/lib.sh"

expect_exit 0 "$GRETA" synth --out spm.gguf
expect_exit 0 "$GRETA" synth --shape custom --arch qwen2 --width 64 --layers 1 --ffn 64 --heads 4 \
    --kv-heads 2 --head-dim 16 --vocab 2000 --out bpe.gguf

# with_input FILE COMMAND...: expect_exit has nothing on standard input.
with_input()
{
    local input=$1
    shift
    "$@" <"$input"
}

# ---- What is printed ---------------------------------------------------------------------------
expect_exit 0 "$GRETA" tokenize --model spm.gguf "the dog"
expect_no_stderr
expect_stdout '      1  "<s>"'
expect_stdout '  " the"'
expect_stdout '  " dog"'
expect_exit 0 "$GRETA" tokenize -m spm.gguf --no-bos --ids ""
[ "$(cat "$captured/out")" = "" ] || fail "expected an empty line"
expect_exit 0 "$GRETA" tokenize -m spm.gguf --ids ""
[ "$(cat "$captured/out")" = "1" ] || fail "expected the begin token alone"
expect_exit 0 "$GRETA" tokenize -m spm.gguf --no-bos $'"\\\n\xff'
for line in '"\""' '"\\"' '"\n"' '"\xFF"'; do
    expect_stdout "  $line"
done
expect_exit 0 "$GRETA" tokenize -m spm.gguf --json "the dog"
expect_json 'j["count"] == 3 and [t["text"] for t in j["tokens"]] == ["<s>", " the", " dog"]'
expect_exit 0 "$GRETA" tokenize -m spm.gguf --json --ids "the dog"
expect_json 'j["count"] == 3 and j["ids"][0] == 1 and len(j["ids"]) == 3'

# ---- Special tokens ----------------------------------------------------------------------------
expect_exit 0 "$GRETA" tokenize -m spm.gguf --no-bos --ids --special "</s>"
[ "$(cat "$captured/out")" = "2" ] || fail "expected the end token"
expect_exit 0 "$GRETA" tokenize -m spm.gguf --no-bos --ids "</s>"
[ "$(wc -w <"$captured/out")" -gt 1 ] || fail "expected text"
expect_exit 0 "$GRETA" tokenize -m spm.gguf --special --ids "<s>the"
expect_stderr "warning: the text begins with a begin token"
expect_exit 0 "$GRETA" detokenize -m spm.gguf 1 2
expect_no_stdout
expect_exit 0 "$GRETA" detokenize -m spm.gguf --special 1 2
[ "$(cat "$captured/out")" = "<s></s>" ] || fail "expected both tokens"
expect_exit 0 "$GRETA" detokenize -m spm.gguf --special --json "[1, 2]"
expect_json 'j["text"] == "<s></s>"'

# ---- There and back ----------------------------------------------------------------------------
python3 -c 'import random, sys; sys.stdout.buffer.write(random.Random(1).randbytes(200000))' >bytes
printf 'Once upon a time\nthere was a  dog. \xc3\xa9\xf0\x9f\xa6\x99\n' >text
printf '' >empty
printf '\xc3' >half
for model in spm bpe; do
    for file in bytes text empty half; do
        expect_exit 0 with_input $file "$GRETA" tokenize -m $model.gguf --ids -
        cp "$captured/out" ids
        expect_exit 0 with_input ids "$GRETA" detokenize -m $model.gguf --raw -
        cp "$captured/out" back
        expect_same_bytes $file back
    done
    expect_exit 0 with_input half "$GRETA" tokenize -m $model.gguf --ids -
    cp "$captured/out" ids
    expect_exit 0 with_input ids "$GRETA" detokenize -m $model.gguf -
    [ "$(cat "$captured/out")" = $'\xef\xbf\xbd' ] || fail "expected U+FFFD"
done

# ---- Without a name, the model that comes with greta --------------------------------------------
expect_exit 0 "$GRETA" tokenize --ids "Once upon a time"
cp "$captured/out" ids
expect_exit 0 "$GRETA" tokenize -m "$GRETA_SOURCE/models/greta-stories-14m-q8_0.gguf" --ids "Once upon a time"
expect_same_bytes "$captured/out" ids
expect_exit 0 with_input ids "$GRETA" detokenize -
[ "$(cat "$captured/out")" = "Once upon a time" ] || fail "expected the text again"

# ---- Refusals ----------------------------------------------------------------------------------
for command in tokenize detokenize; do
    expect_exit 2 "$GRETA" $command -m spm.gguf
    expect_one_line_error "found nothing"
    expect_exit 3 "$GRETA" $command -m none.gguf 1
    expect_one_line_error "none.gguf"
    expect_exit 3 "$GRETA" $command -m text 1
    expect_one_line_error "text: "
done
expect_exit 2 "$GRETA" tokenize -m spm.gguf a b
expect_one_line_error "found 'b' too"
expect_exit 1 "$GRETA" detokenize -m spm.gguf 1 4000000000
expect_one_line_error "expected a token id below"
for word in x 1x 99999999999999999999 1.5 +1; do
    expect_exit 2 "$GRETA" detokenize -m spm.gguf 1 $word
    expect_one_line_error "expected a token id, found '$word'"
    expect_no_stdout
done
printf '1 \0 2' >zero
expect_exit 2 with_input zero "$GRETA" detokenize -m spm.gguf -
expect_one_line_error "found a byte 0"
if [ -e /dev/full ]; then
    expect_exit 3 bash -c "'$GRETA' tokenize -m spm.gguf the >/dev/full"
    expect_one_line_error "cannot write"
    expect_exit 3 bash -c "'$GRETA' detokenize -m spm.gguf 300 >/dev/full"
    expect_one_line_error "cannot write"
fi
finish
