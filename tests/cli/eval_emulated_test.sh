# eval_emulated_test.sh - the quality gate of eval_test.sh for GPU kernels, where there is no GPU: on
# the emulated driver a small model in every type predicts a text as it does on the host.
source "$(dirname "$0")/lib.sh"
text=$GRETA_SOURCE/tests/data/held_out_stories.txt
[ -e "$GRETA_BUILD/fake_gpu/libcuda.so.1" ] || exit 77

# The mean divergence of the GPU's predictions from the host's. Both quantize activations, each in
# its way, and that is all they may differ by: ten times what was seen.
for row in f32:0.000000001 f16:0.00003 bf16:0.00003 q8_0:0.0001 q6_k:0.0001 q5_k_m:0.0002 \
    q4_k_m:0.0003 q4_0:0.0001; do
    type=${row%:*}
    expect_exit 0 "$GRETA" synth --shape tiny --type "$type" --seed 5 --out "$type.gguf"
    expect_exit 0 "$GRETA" eval -m "$type.gguf" "$text" -c 16 --chunks 1 --device host -ctk f32 \
        --kl-save "$type.logits"
    expect_exit 0 env LD_LIBRARY_PATH="$GRETA_BUILD/fake_gpu" "$GRETA" eval -m "$type.gguf" "$text" \
        -c 16 --device cuda:0 -ctk f32 --kl-base "$type.logits" --max-kl "${row#*:}" --json
    expect_json "j['device'] == 'cuda' and j['scored_tokens'] == 7"
done
# What it would say of a model that is not the same.
expect_exit 1 env LD_LIBRARY_PATH="$GRETA_BUILD/fake_gpu" "$GRETA" eval -m q4_0.gguf "$text" -c 16 \
    --device cuda:0 -ctk f32 --kl-base f32.logits --max-kl 0.0001
expect_one_line_error "divergence: expected at most 0.0001, found"

finish
