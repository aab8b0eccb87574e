# synth_test.sh - greta synth: files that can run, same seed same bytes, nothing left half done.
source "$(dirname "$0")/lib.sh"

# ---- What is written ---------------------------------------------------------------------------
expect_exit 0 "$GRETA" synth --out a.gguf
expect_no_stdout
expect_stderr "wrote a.gguf: "
expect_exit 0 "$GRETA" synth --shape tiny --type q8_0 --seed 1 --out b.gguf
expect_same_bytes a.gguf b.gguf
expect_exit 0 "$GRETA" synth --seed=2 -o c.gguf
cmp -s a.gguf c.gguf && fail "expected another seed to give other bytes"
expect_exit 0 "$GRETA" synth --out d.gguf --json
expect_json 'j["file"] == "d.gguf" and j["bytes"] == __import__("os").path.getsize("d.gguf")'
rm -f ./*.gguf

for type in f32 f16 bf16 q8_0 q4_0 q4_k_m q5_k_m q6_k mxfp4; do
    expect_exit 0 "$GRETA" synth --type $type --layers 1 --out $type.gguf
    expect_exit 0 "$GRETA" inspect --json $type.gguf
    expect_json 'j["guard_rail"]["verdict"] == "can run"'
    rm -f $type.gguf
done
for arch in llama qwen2 qwen3 qwen2moe qwen3moe granitemoe gpt-oss llama4; do
    expect_exit 0 "$GRETA" synth --shape custom --arch $arch --width 64 --layers 3 --ffn 96 \
        --heads 4 --kv-heads 2 --head-dim 16 --vocab 300 --context 64 --tied --out x.gguf --force
    expect_exit 0 "$GRETA" inspect --json x.gguf
    expect_json "j['model']['architecture'] == '$arch' and j['configuration']['tied_embeddings']"
    expect_json 'j["configuration"]["head_count_kv"] == 2 and j["tokenizer"]["tokens"] == 300'
done
expect_exit 0 "$GRETA" synth --shape deepseek2-lite --layers 2 --experts 8 --vocab 300 --ffn 256 -o x.gguf --force
expect_exit 0 "$GRETA" inspect --json x.gguf
expect_json "j['guard_rail']['verdict'] == 'can run' and j['configuration']['head_count_kv'] == 1"
rm -f x.gguf
expect_exit 0 "$GRETA" synth --shape llama3-8b --layers 1 --vocab 1000 --ffn 256 --type q4_k_m -o x.gguf
rm -f x.gguf

# ---- Refusals ----------------------------------------------------------------------------------
expect_exit 2 "$GRETA" synth
expect_one_line_error "expected --out FILE"
expect_exit 2 "$GRETA" synth --out=
expect_one_line_error "expected the name of a file"
expect_exit 2 "$GRETA" synth --out x.gguf extra
expect_one_line_error "found 'extra' too"
expect_exit 2 "$GRETA" synth --shape llama4 --out x.gguf
expect_one_line_error "--shape: expected one of"
expect_exit 2 "$GRETA" synth --type q3 --out x.gguf
expect_one_line_error "--type: expected one of"
expect_exit 2 "$GRETA" synth --kv-heads 3 --out x.gguf
expect_one_line_error "--kv-heads: expected a divisor"
expect_exit 2 "$GRETA" synth --vocab 10 --out x.gguf
expect_one_line_error "--vocab: expected 259"
expect_exit 3 "$GRETA" synth --out no-such-folder/x.gguf
expect_one_line_error "no-such-folder/x.gguf: cannot create it"
expect_exit 3 "$GRETA" synth --out "$folder"
expect_one_line_error "is a directory"
expect_exit 3 "$GRETA" synth --out /dev/null --force
expect_one_line_error "not a regular file"
expect_files
if [ "$(id -u)" -ne 0 ]; then
    mkdir -m 500 closed
    expect_exit 3 "$GRETA" synth --out closed/x.gguf
    expect_one_line_error "Permission denied"
    rmdir closed
fi

echo mine >taken.gguf
expect_exit 3 "$GRETA" synth --out taken.gguf
expect_one_line_error "taken.gguf: exists already; use --force"
[ "$(cat taken.gguf)" = mine ] || fail "expected the file to stay"
expect_exit 0 "$GRETA" synth --out taken.gguf --force --layers 1
expect_exit 0 "$GRETA" inspect taken.gguf
expect_files taken.gguf
rm taken.gguf

# A limit on the size of files stands for a full disk; it is reported before any work.
expect_exit 3 bash -c "trap '' XFSZ; ulimit -f 100; exec '$GRETA' synth --out full.gguf"
expect_one_line_error "full.gguf: cannot reserve 3.75 MiB: "
expect_files

# ---- Interrupted -------------------------------------------------------------------------------
long="--shape custom --layers 400 --type q4_k_m --out long.gguf"
# shellcheck disable=SC2086 # words on purpose
expect_interrupted INT long.gguf "$GRETA" synth $long
# shellcheck disable=SC2086
expect_interrupted TERM long.gguf "$GRETA" synth $long
expect_files

# Under nohup the terminal may go away.
nohup "$GRETA" synth --shape custom --layers 40 --type q4_k_m --out kept.gguf \
    >"$captured/out" 2>"$captured/err" </dev/null &
wait_for_file "kept.gguf*"
kill -HUP $! 2>/dev/null
last="synth under nohup"
wait $! || fail "expected it to go on"
expect_files kept.gguf
finish
