# trace_order_test.sh - greta trace: which calls wait, what order it cannot see, and what memory that
# is kept means; in a program over an emulated driver (tests/fake_trace/scenes_order.c). An order that
# is not seen makes a finding possible, and nothing else does.
source "$(dirname "$0")/lib.sh"
fake=$GRETA_BUILD/fake_trace
program=$fake/trace_program
[ -x "$program" ] || exit 77
export LD_LIBRARY_PATH=$fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
unset CUDA_INJECTION64_PATH
trace() { "$GRETA" trace --backend cuda --records 4096 --error-exitcode 99 "$@"; }

# confirmed SCENE WORDS...
confirmed()
{
    local scene=$1
    shift
    expect_exit 99 trace -- "$program" "$scene"
    expect_stderr "verdict: ROOT_CAUSE"
    for words in "$@"; do expect_stderr "$words"; done
}

# possible SCENE WORDS...: never more than that.
possible()
{
    local scene=$1
    shift
    expect_exit 0 trace -- "$program" "$scene"
    expect_stderr "verdict: INCONCLUSIVE"
    for words in "$@"; do expect_stderr "$words"; done
    grep -q CONFIRMED "$captured/err" && fail "expected nothing certain"
}

clean()
{
    expect_exit 0 trace -- "$program" "$1"
    expect_stderr "verdict: CLEAN"
    grep -q -e CONFIRMED -e possible "$captured/err" && fail "expected no finding"
}

# Copies that wait, that do not, and of which that is documented nowhere.
clean host-to-host # a ROOT_CAUSE use-after-free, once
clean peers-ordered
possible staged "possible overlapping-copies: cuMemcpyDtoHAsync" "cuMemcpyHtoD"
possible managed-copy "possible overlapping-copies: cuMemcpyHtoDAsync"

# The host may have read a flag: a CONFIRMED staging-reuse, once.
flag="the program may have learned that this work was done"
possible polled-flag "possible staging-reuse: cuMemcpyHtoDAsync" "$flag"
possible polled-flag-elsewhere "possible staging-reuse: cuMemcpyHtoDAsync" "$flag"
possible polled-copy "possible staging-reuse: cuMemcpyHtoDAsync" "$flag"
possible held-back "possible staging-reuse: cuMemcpyHtoDAsync"
possible unordered-flag "possible overlapping-copies: cuMemcpyDtoHAsync" "$flag"

possible graph-with-function "possible overlapping-copies: cuMemcpyDtoHAsync"

# No flag can have said so: as certain as before.
confirmed rewritten-before-flag "CONFIRMED staging-reuse: cuMemcpyHtoDAsync"
confirmed rewritten-after-kernel "CONFIRMED staging-reuse: cuMemcpyHtoDAsync"
confirmed graph-unordered "CONFIRMED overlapping-copies: cuMemcpyDtoHAsync"
confirmed flag-of-another "CONFIRMED staging-reuse: cuMemcpyHtoDAsync"

# The runtime may wait in the call that frees (it does on an H200, and no document promises it): both
# were CONFIRMED once.
possible host-freed "possible use-after-free: cuMemcpyDtoHAsync" "freed by cuMemFreeHost" \
    "the call may wait for this work by itself"
possible unregistered "possible use-after-free: cuMemcpyDtoHAsync" "freed by cuMemHostUnregister" \
    "the call may wait for this work by itself"

# Memory that is kept is none; what grows may be one, and calls cannot prove more.
clean weights
possible leak "possible leak: cuMemAlloc" "10 allocations of this call, 10000 bytes" \
    "memory kept on purpose looks the same"
possible graph-taken-again "possible stale-graph: cuMemcpyDtoHAsync" "memory was allocated at that address since"
finish
