# hip_test.sh - the HIP backend, unchanged, through a libamdhip64 over the emulated CUDA driver.
source "$(dirname "$0")/lib.sh"
over=${GRETA_BUILD:-/nowhere}/hip_over_cuda
fake=${GRETA_BUILD:-/nowhere}/fake_gpu
if [ ! -e "$over/libamdhip64.so" ] || [ ! -e "$fake/libcuda.so.1" ]; then
    echo "skipped: this build has no kernels for GPUs"
    exit 77
fi

expect_exit 0 env LD_LIBRARY_PATH="$over:$fake" "$GRETA" devices
expect_stdout "hip:0"
expect_stdout "Fake GPU"

# The same text as on the host.
run=(infer --model "$GRETA_SOURCE/models/greta-stories-14m-q8_0.gguf"
    --prompt "Once upon a time" --max-tokens 6 --temperature 0)
expect_exit 0 "$GRETA" "${run[@]}" --device host
cp "$captured/out" "$folder/host"
[ -s "$folder/host" ] || fail "expected text"
expect_exit 0 env LD_LIBRARY_PATH="$over:$fake" "$GRETA" "${run[@]}" --device hip:0
cmp -s "$captured/out" "$folder/host" || fail "expected the host's text"

# Without a driver below it is a HIP runtime without a device.
expect_exit 3 env LD_LIBRARY_PATH="$over" "$GRETA" "${run[@]}" --device hip:0
expect_one_line_error "expected an AMD GPU, found none"
finish
