# trace_hip_test.sh - greta trace over HIP programs, with no GPU: one that finds no device in the
# vendor's runtime, one that works on the emulated one, with one thing wrong at a time, and greta
# itself, which opens the runtime by hand.
source "$(dirname "$0")/lib.sh"
code=$GRETA_KERNELS/gfx942.co
programs=$GRETA_BUILD/hip_program
over=$GRETA_BUILD/hip_over_cuda:$GRETA_BUILD/fake_gpu
trace() { "$GRETA" trace --backend hip "$@"; }

# The vendor's runtime without a device: its errors are recorded, the program's exit code is kept.
if [ -x "$programs/hip_program_vendor" ] && ! [ -e /dev/kfd ]; then
    expect_exit 7 trace -- "$programs/hip_program_vendor" "$code" clean
    expect_no_stdout
    expect_stderr "devices: hipErrorNoDevice"
    expect_stderr "verdict: INCONCLUSIVE"
else
    echo "skipped: the vendor's runtime (libamdhip64-dev is not installed, or there is an AMD GPU)"
fi

if [ ! -x "$programs/hip_program_over" ]; then
    echo "skipped: the emulated one (HIP's headers or kernels for GPUs are missing)"
    [ "$failures" -eq 0 ] && exit 77
    finish
fi
export LD_LIBRARY_PATH=$over
program=("$programs/hip_program_over" "$code")
expect_exit 0 trace --error-exitcode 99 -- "${program[@]}" clean
expect_stdout "the sum is right"
[ "$(wc -l <"$captured/out")" -eq 1 ] || fail "expected the program's line and no more"
expect_stderr "verdict: CLEAN"

# found MISTAKE WORDS...: a certain finding.
found()
{
    local mistake=$1
    shift
    expect_exit 99 trace --error-exitcode 99 -- "${program[@]}" "$mistake"
    expect_stderr "verdict: ROOT_CAUSE"
    for words in "$@"; do expect_stderr "$words"; done
}
found past-end "CONFIRMED size-mismatch: hipMemcpyAsync" "which has 4096 bytes: it goes up to byte 4160"
found freed "CONFIRMED use-after-free: hipMemcpyAsync" "freed by hipFree"
found missing-wait "CONFIRMED overlapping-copies: hipMemcpyAsync"

# Found by dlsym; launches with their names and the pointers in a struct that goes by value. The
# library of a sanitizer must be the first in its program: greta itself only if it has none.
if grep -q -e __asan_init -e __tsan_init "$GRETA"; then
    echo "skipped: greta as the program (it is sanitized)"
    finish
fi
model=$GRETA_SOURCE/models/greta-stories-14m-q8_0.gguf
expect_exit 0 trace --artifacts traced --error-exitcode 99 -- "$GRETA" infer --model "$model" \
    --device hip:0 --prompt "Once upon a time" --max-tokens 2 --greedy
expect_stdout ", there"
expect_stderr "STATUS=OK"
recording=$(find traced -name "*.hip.flight.zst" | head -1)
expect_exit 0 "$GRETA" flight list --op rope "$recording"
expect_stdout "rw:0x"
finish
