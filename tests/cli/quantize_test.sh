# quantize_test.sh - greta quantize: other types, the same model, nothing left half done.
source "$(dirname "$0")/lib.sh"
"$GRETA" synth --type f16 --layers 2 --out f16.gguf 2>/dev/null || exit 1

# ---- Every type --------------------------------------------------------------------------------
for type in f32 f16 bf16 q8_0 q4_0 q4_k_m q5_k_m q6_k mxfp4 Q4_K q5_k; do
    expect_exit 0 "$GRETA" quantize f16.gguf out.gguf $type
    expect_no_stdout
    expect_stderr "wrote out.gguf: "
    expect_exit 0 "$GRETA" inspect out.gguf
    expect_files f16.gguf out.gguf
    rm -f out.gguf
done
expect_exit 0 "$GRETA" quantize f16.gguf q4.gguf q4_k_m --json
expect_json 'j["converted"] == 16 and j["copied"] == 5 and j["requantized"] == 0'
expect_json 'j["output_bytes"] == __import__("os").path.getsize("q4.gguf")'
expect_json 'j["input_bytes"] == __import__("os").path.getsize("f16.gguf")'
expect_exit 0 "$GRETA" inspect --json q4.gguf
expect_json 'j["model"]["file_type"] == "Q4_K - Medium"'
expect_json '{t["type"] for t in j["types"]} == {"F32", "Q4_K", "Q6_K"}'

# Not by the number of threads, and not by what was there before.
expect_exit 0 "$GRETA" quantize -t 1 f16.gguf one.gguf q4_k_m
expect_same_bytes q4.gguf one.gguf
expect_exit 0 "$GRETA" quantize --threads=3 --force f16.gguf one.gguf q4_k_m
expect_same_bytes q4.gguf one.gguf
# F16 to F16 is a copy of every tensor.
expect_exit 0 "$GRETA" quantize f16.gguf same.gguf f16
"$GRETA" inspect --hash f16.gguf >"$captured/manifest"
expect_exit 0 "$GRETA" inspect --hash --check "$captured/manifest" same.gguf
rm -f one.gguf same.gguf

expect_exit 0 "$GRETA" quantize q4.gguf twice.gguf q8_0
expect_stderr "warning: 16 tensors were quantized before"
rm -f twice.gguf

# ---- Refusals ----------------------------------------------------------------------------------
expect_exit 2 "$GRETA" quantize f16.gguf x.gguf q3_k
expect_one_line_error "TYPE: expected one of: f32 f16 bf16 q8_0 q4_0 q4_k_m q5_k_m q6_k mxfp4; found 'q3_k'"
expect_exit 2 "$GRETA" quantize f16.gguf x.gguf
expect_one_line_error "expected IN OUT TYPE, found x.gguf"
expect_exit 3 "$GRETA" quantize missing.gguf x.gguf q8_0
expect_one_line_error "missing.gguf"
echo text >text.gguf
expect_exit 3 "$GRETA" quantize text.gguf x.gguf q8_0
expect_one_line_error "text.gguf"
expect_exit 3 "$GRETA" quantize f16.gguf q4.gguf q8_0
expect_one_line_error "q4.gguf: exists already; use --force"
expect_exit 3 "$GRETA" quantize f16.gguf ./f16.gguf q8_0
expect_one_line_error "is the input"
ln -s f16.gguf link.gguf
expect_exit 3 "$GRETA" quantize f16.gguf link.gguf q8_0
expect_one_line_error "is the input"
expect_exit 3 "$GRETA" quantize f16.gguf no-such-folder/x.gguf q8_0
expect_one_line_error "cannot create it"
expect_exit 3 bash -c "trap '' XFSZ; ulimit -f 100; exec '$GRETA' quantize f16.gguf full.gguf q8_0"
expect_one_line_error "full.gguf: cannot reserve"
expect_files f16.gguf q4.gguf text.gguf link.gguf
rm -f text.gguf link.gguf

# In place, when that is asked for.
cp f16.gguf own.gguf
expect_exit 0 "$GRETA" quantize --force own.gguf own.gguf q4_k_m
expect_same_bytes own.gguf q4.gguf
rm -f own.gguf

# ---- Interrupted -------------------------------------------------------------------------------
"$GRETA" synth --type f16 --shape custom --layers 100 --out large.gguf 2>/dev/null
expect_interrupted INT out.gguf "$GRETA" quantize -t 1 large.gguf out.gguf q4_k_m
expect_interrupted TERM out.gguf "$GRETA" quantize -t 1 large.gguf out.gguf q5_k_m
expect_files f16.gguf q4.gguf large.gguf
finish
