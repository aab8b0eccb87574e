# default_model_test.sh - the model that comes with greta: it is found from the program's own
# place, in a build folder and installed, and a message says where it was looked for.
source "$(dirname "$0")/lib.sh"
model=$GRETA_SOURCE/models/greta-stories-14m-q8_0.gguf

expect_exit 0 "$GRETA" infer -p "Once upon a time" --greedy -n 40
grep -qE '^, there was a [a-z]+ [a-z]+' "$captured/out" || fail "expected the beginning of a story"
cp "$captured/out" "$captured/story"
expect_exit 0 "$GRETA" infer -m "$model" -p "Once upon a time" --greedy -n 40
expect_same_bytes "$captured/out" "$captured/story"

# ---- Installed, and called by a link -----------------------------------------------------------
mkdir -p prefix/bin prefix/share/greta links
cp "$GRETA" prefix/bin/greta
expect_exit 2 prefix/bin/greta infer -p hello
expect_one_line_error "expected --model FILE, found none"
expect_stderr "greta-stories-14m-q8_0.gguf"
for command in bench "tokenize hello" "detokenize 1"; do
    # shellcheck disable=SC2086 # a command and its operand
    expect_exit 2 prefix/bin/greta $command
    expect_one_line_error "expected --model FILE, found none"
done
cp "$model" prefix/share/greta/
ln -s ../prefix/bin/greta links/greta
expect_exit 0 links/greta infer -p "Once upon a time" --greedy -n 40
expect_same_bytes "$captured/out" "$captured/story"

# ---- What it is --------------------------------------------------------------------------------
size=$(wc -c <"$model")
last="$model"
[ "$size" -le 16000000 ] || fail "expected at most 16,000,000 bytes, found $size"
expect_exit 0 "$GRETA" inspect --json "$model"
expect_json "j['model']['name'] == 'greta-stories-14m'"
sum=$(sha256sum <"$model")
grep -q "${sum%% *}" "$GRETA_SOURCE/models/README.md" || fail "expected its SHA-256 in models/README.md"

finish
