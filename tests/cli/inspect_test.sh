# inspect_test.sh - greta inspect: what it tells, what it refuses, manifests.
source "$(dirname "$0")/lib.sh"
"$GRETA" synth --shape tiny --type q8_0 --out tiny.gguf 2>/dev/null || exit 1

# ---- A good model ------------------------------------------------------------------------------
expect_exit 0 "$GRETA" inspect tiny.gguf
expect_no_stderr
expect_stdout "tiny.gguf"
expect_stdout "verdict  can run"
expect_stdout "embedding length        256"
expect_exit 0 "$GRETA" inspect --ctx 1000 tiny.gguf
expect_stdout "context       1000"
expect_exit 0 "$GRETA" inspect --tensors --metadata tiny.gguf
expect_stdout "blk.3.ffn_down.weight"
expect_stdout "[768, 256]"
expect_stdout "general.architecture"
expect_exit 0 "$GRETA" inspect --json --tensors --metadata tiny.gguf
expect_json 'j["guard_rail"]["verdict"] == "can run"'
expect_json 'j["configuration"]["block_count"] == 4'
expect_json 'j["model"]["architecture"] == "llama" and j["tokenizer"]["tokens"] == 1024'
expect_json 'len(j["tensor_list"]) == j["tensors"] == 39'
expect_json 'sum(t["size"] for t in j["tensor_list"]) == j["memory"]["weights"]'
expect_json 'j["tensor_list"][0]["shape"] == [256, 1024]'
expect_json 'j["size"] == __import__("os").path.getsize(j["file"])'
expect_exit 0 "$GRETA" inspect -- tiny.gguf
if [ -e /dev/full ]; then
    expect_exit 3 bash -c "'$GRETA' inspect tiny.gguf >/dev/full"
    expect_one_line_error "No space left on device"
    expect_exit 3 bash -c "'$GRETA' inspect --hash tiny.gguf >/dev/full"
    expect_one_line_error "cannot write the manifest"
fi

# ---- Not a model -------------------------------------------------------------------------------
echo "This is not a model, but it is long enough to be read as one." >text.gguf
: >empty.gguf
head -c 1000 tiny.gguf >cut.gguf
mkfifo pipe.gguf
expect_exit 3 "$GRETA" inspect missing.gguf
expect_one_line_error "missing.gguf: cannot open it: No such file"
for file in text.gguf empty.gguf cut.gguf; do
    expect_exit 3 "$GRETA" inspect $file
    expect_one_line_error "$file: "
    expect_no_stdout
done
expect_exit 3 "$GRETA" inspect "$folder"
expect_one_line_error "found a directory"
expect_exit 3 timeout 300 "$GRETA" inspect pipe.gguf
expect_one_line_error "expected a regular file"
expect_exit 2 "$GRETA" inspect
expect_one_line_error "expected FILE, found nothing"
expect_exit 2 "$GRETA" inspect tiny.gguf text.gguf
expect_one_line_error "found 'text.gguf' too"
expect_exit 2 "$GRETA" inspect --ctx many tiny.gguf
expect_one_line_error "--ctx: expected a whole number"

# ---- A model that cannot run -------------------------------------------------------------------
LC_ALL=C sed 's/blk\.1\.ffn_up\.weight/blk.1.ffn_uq.weight/' tiny.gguf >damaged.gguf
expect_exit 1 "$GRETA" inspect damaged.gguf
expect_stdout "verdict  refused"
expect_stdout "blk.1.ffn_up.weight: expected a tensor of shape [256, 768], found none"
expect_stdout "blk.1.ffn_uq.weight: expected no such tensor"
expect_exit 1 "$GRETA" inspect --json damaged.gguf
expect_json 'j["guard_rail"]["verdict"] == "refused" and len(j["guard_rail"]["problems"]) == 2'
LC_ALL=C sed 's/general\.architecture/general.architectura/' tiny.gguf >unknown.gguf
expect_exit 1 "$GRETA" inspect --json unknown.gguf
expect_json '"configuration" not in j and "no such key" in j["guard_rail"]["problems"][0]'

# ---- Pins --------------------------------------------------------------------------------------
expect_exit 0 "$GRETA" inspect --expect tiny tiny.gguf
expect_exit 1 "$GRETA" inspect --expect llama2-7b tiny.gguf
expect_stdout "feed_forward_length: expected 11008, found 768"
expect_stdout "verdict  refused"
expect_exit 0 env GRETA_DISABLE_GUARD_RAIL=1 "$GRETA" inspect --expect llama2-7b tiny.gguf
expect_stdout "can run, but is not the expected model"
expect_stderr "greta inspect: warning: feed_forward_length: expected 11008, found 768"
expect_exit 1 env GRETA_DISABLE_GUARD_RAIL=0 "$GRETA" inspect --expect llama2-7b tiny.gguf
expect_exit 1 env GRETA_DISABLE_GUARD_RAIL= "$GRETA" inspect --expect llama2-7b tiny.gguf
# It waves through pins, never what cannot run.
expect_exit 1 env GRETA_DISABLE_GUARD_RAIL=1 "$GRETA" inspect --expect tiny damaged.gguf
expect_exit 1 env GRETA_DISABLE_GUARD_RAIL=1 "$GRETA" inspect --expect llama2-7b damaged.gguf
expect_exit 1 env GRETA_DISABLE_GUARD_RAIL=1 "$GRETA" inspect damaged.gguf
expect_exit 2 "$GRETA" inspect --expect llama9 tiny.gguf
expect_one_line_error "--expect: expected one of: tiny"

# ---- Manifests ---------------------------------------------------------------------------------
expect_exit 0 "$GRETA" inspect --hash tiny.gguf
cp "$captured/out" tiny.manifest
[ "$(grep -c '^sha256 ' tiny.manifest)" -eq 39 ] || fail "expected a line for each tensor"
[ "$(grep -c '^xxh64 ' tiny.manifest)" -eq 39 ] || fail "expected a line for each tensor"
expect_exit 0 "$GRETA" inspect --hash --check tiny.manifest tiny.gguf
expect_stdout "verdict               same"
expect_exit 0 "$GRETA" inspect --hash --check tiny.manifest --json tiny.gguf
expect_json 'j["verdict"] == "same" and j["same"] == 39 and len(j["tensors"]) == 39'
expect_exit 0 "$GRETA" inspect --hash --json tiny.gguf
expect_json 'all(len(t["sha256"]) == 64 and len(t["xxh64"]) == 16 for t in j["tensors"])'

cp tiny.gguf changed.gguf
printf '\377' | dd of=changed.gguf bs=1 seek=3000000 conv=notrunc 2>/dev/null
expect_exit 1 "$GRETA" inspect --hash --check tiny.manifest --json changed.gguf
expect_json 'j["verdict"] == "different" and j["different"] == 1 and j["same"] == 38'
grep -v 'output_norm' tiny.manifest >shorter.manifest
expect_exit 1 "$GRETA" inspect --hash --check shorter.manifest --json tiny.gguf
expect_json 'j["not_in_the_manifest"] == 1 and j["only_in_the_manifest"] == 0'
sed 's/output_norm/output_nurm/' tiny.manifest >other.manifest
expect_exit 1 "$GRETA" inspect --hash --check other.manifest --json tiny.gguf
expect_json 'j["not_in_the_manifest"] == 1 and j["only_in_the_manifest"] == 1'
expect_exit 2 "$GRETA" inspect --check tiny.manifest tiny.gguf
expect_one_line_error "--check: expected together with --hash"
expect_exit 3 "$GRETA" inspect --hash --check missing.manifest tiny.gguf
expect_one_line_error "missing.manifest"
expect_exit 3 "$GRETA" inspect --hash --check text.gguf tiny.gguf
expect_one_line_error "text.gguf"
# What an architecture has of its own is shown where a model has it.
expect_exit 0 "$GRETA" synth --arch gemma2 --out gemma2.gguf
expect_exit 0 "$GRETA" inspect gemma2.gguf
for words in "sliding window  *[1-9]" "attention logit cap  *50" " logit cap  *30"; do
    grep -qE "$words" "$captured/out" || fail "expected '$words'"
done
expect_exit 0 "$GRETA" inspect tiny.gguf
! grep -qE "window|logit cap" "$captured/out" || fail "expected no window and no cap"

finish
