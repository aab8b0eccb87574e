#!/bin/bash
# gpu_limits_test.sh - a GPU with too little memory, one that is lost, and two processes on one: clear words, the right
# exit status, and nothing that was made on the device is left. On the emulated driver (tests/fake_gpu), which counts.
. "$(dirname "$0")/lib.sh"
: "${GRETA_BUILD:?build folder}"
[ -e "$GRETA_BUILD/fake_gpu/libcuda.so.1" ] || { echo "skipped: no emulated driver in this build"; exit 77; }
export LD_LIBRARY_PATH=$GRETA_BUILD/fake_gpu FAKE_GPU_LEFT=$folder/left

expect_nothing_left()
{
    grep -q '^memory 0, ranges 0, pinned 0, streams 0, events 0, graphs 0, bytes 0$' left ||
        fail "expected nothing left on the device, found: $(cat left)"
    rm -f left
}

expect_exit 0 "$GRETA" synth --shape tiny --type q8_0 --out tiny.gguf
run=("$GRETA" infer -m tiny.gguf -p "Hello there" --greedy -n 4 --device cuda:0)

expect_exit 0 "${run[@]}"
expect_nothing_left
expect_exit 0 "${run[@]}" --audit verify --flight ok.flight
expect_stderr "0 findings"
expect_nothing_left

# The model does not fit: refused before the first byte.
FAKE_GPU_MIB=1 expect_exit 3 "${run[@]}" -c 64
expect_stderr "expected at most the 1.00 MiB of the device"
expect_nothing_left

# It fits, but not with what the kernels need in addition.
FAKE_GPU_MIB=40 expect_exit 3 "${run[@]}" -c 64
expect_stderr "of free memory on the device, found less (it has 40.00 MiB"
expect_nothing_left
FAKE_GPU_MIB=40 expect_exit 3 "${run[@]}" -c 64 --audit guard --flight small.flight
expect_stderr "found less"
expect_nothing_left

# A fault: the first message names it, the process ends in order, and the device holds nothing of it.
expect_exit 1 "${run[@]}" --inject wild-pointer@op=rope,layer=1,step=2 --audit guard --flight lost.flight
expect_stderr "illegal memory access"
expect_stderr "rope, layer 1, step 2"
expect_nothing_left

# Memory vanishes under a kernel that is still queued. The next launch that would use it is checked before the fault has
# surfaced: the fault is the finding, not that launch.
vanished=(--inject memory-vanished@op=swiglu,layer=0,step=1)
FAKE_GPU_LATE=1 expect_exit 1 "${run[@]}" "${vanished[@]}" --audit guard --flight gone.flight
expect_stderr "kernel-fault: one of "
expect_stderr "candidates: swiglu, tensor ffn_swiglu, layer 0, step 1"
! has_text bad-pointer "$captured/err" || fail "expected no finding about the launch after it"
expect_nothing_left

# An index past its bound is seen whether the GPU writes its traps into the recording or into memory of its own.
for recorded in "" "--audit guard --flight trapped.flight"; do
    expect_exit 1 "${run[@]}" --allow-nan --inject bad-index@op=gather_rows $recorded
    expect_stderr "STATUS=FAILED"
    expect_stderr "do not trust the text"
    expect_nothing_left
done

# A driver that cannot map memory into ranges: guards are canaries. They find a byte after a buffer and one before it,
# and name the launch; a clean run has no finding.
export FAKE_GPU_NO_RANGES=1
expect_exit 0 "${run[@]}" --audit guard --flight zones.flight
expect_stderr "0 findings"
expect_nothing_left
for fault in overrun underrun; do
    expect_exit 1 "${run[@]}" --audit guard --flight $fault.flight --inject $fault@op=swiglu,layer=1,step=1
    expect_stderr "STATUS=FINDINGS"
    expect_stderr "silent-corruption"
    expect_stderr "swiglu, layer 1, step 1"
    expect_nothing_left
done
# A self-test that could plant nothing has not passed.
expect_exit 1 "$GRETA" audit --self-test --faults memory-vanished --device cuda:0
expect_stdout "not planted"
unset FAKE_GPU_NO_RANGES

# Two at once, and one that dies while the other lives.
"${run[@]}" -n 24 --ignore-eos >one.txt 2>/dev/null &
first=$!
expect_exit 1 "${run[@]}" --inject wild-pointer@op=rope,layer=1,step=2 --audit guard --flight other.flight
wait "$first" || fail "expected the first process to live"
"${run[@]}" -n 24 --ignore-eos >two.txt 2>/dev/null
cmp -s one.txt two.txt || fail "expected the same text beside a process that dies"
[ -s one.txt ] || fail "expected a text"
finish
