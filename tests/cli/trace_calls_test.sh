# trace_calls_test.sh - greta trace: the more uncommon calls of the CUDA driver, used rightly and with
# one thing wrong, in a program over an emulated driver (tests/fake_trace/scenes.c).
source "$(dirname "$0")/lib.sh"
fake=$GRETA_BUILD/fake_trace
program=$fake/trace_program
[ -x "$program" ] || exit 77
export LD_LIBRARY_PATH=$fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
unset CUDA_INJECTION64_PATH
trace() { "$GRETA" trace --backend cuda --records 4096 --error-exitcode 99 -- "$program" "$@"; }

# found SCENE WORDS...: a certain finding.
found()
{
    local scene=$1
    shift
    expect_exit 99 trace "$scene"
    expect_stderr "verdict: ROOT_CAUSE"
    for words in "$@"; do expect_stderr "$words"; done
    [ "$(grep -c CONFIRMED "$captured/err")" -eq 1 ] || fail "expected one finding"
}

clean()
{
    expect_exit 0 trace "$1"
    expect_stderr "verdict: CLEAN"
}

# Kinds of memory.
clean all-kinds
clean registered-twice
found pool-freed "CONFIRMED use-after-free: cuMemcpyDtoHAsync" "freed by cuMemFree"
found pool-freed-elsewhere "CONFIRMED use-after-free: cuMemcpyDtoHAsync" "freed by cuMemFreeAsync"
found unmapped "CONFIRMED use-after-free: cuMemcpyDtoH" "freed by cuMemUnmap"

# Shapes of copies and fills.
clean all-shapes
found rows-past-end "CONFIRMED size-mismatch: cuMemcpy2DAsync" "which has 65536 bytes: it goes up to byte 65792"
found planes-past-end "CONFIRMED size-mismatch: cuMemcpy3DAsync" "which has 65536 bytes: it goes up to byte 68864"
found fill-past-end "CONFIRMED size-mismatch: cuMemsetD32Async" "which has 65536 bytes: it goes up to byte 262144"
found peers-unordered "CONFIRMED overlapping-copies: cuMemcpyDtoHAsync" "cuMemcpyPeerAsync"

# Order.
clean waits
clean host-function
found asked-too-early "CONFIRMED overlapping-copies: cuMemcpyDtoHAsync" "cuMemcpyDtoDAsync"

# Graphs whose nodes were added by hand.
found stale-node "CONFIRMED stale-graph: cuGraphAddMemcpyNode" "destroyed after the graph was recorded"
expect_exit 0 trace changed-node # what it does now is not known
expect_stderr "verdict: INCONCLUSIVE"
expect_stderr "not decided: stale-graph: 1 of 2 replays looked at; not all of them could be checked"

# Memory that goes with its context is no leak, is not read any more, and is gone.
clean reset
found after-reset "CONFIRMED use-after-free: cuMemcpyDtoH" "freed by cuDevicePrimaryCtxReset"

# A fault is found whichever call reports it first.
found fault-at-free "CONFIRMED kernel-fault: out_of_bounds" "later at cuMemFree"
finish
