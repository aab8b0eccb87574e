# trace_contents_test.sh - greta trace: memory that is read before anything wrote it, in a program over
# an emulated driver (tests/fake_trace/scenes_contents.c).
source "$(dirname "$0")/lib.sh"
fake=$GRETA_BUILD/fake_trace
program=$fake/trace_program
[ -x "$program" ] || exit 77
export LD_LIBRARY_PATH=$fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
unset CUDA_INJECTION64_PATH
trace() { "$GRETA" trace --backend cuda --records 4096 --error-exitcode 99 -- "$program" "$@"; }

# found SCENE WORDS...: a certain finding, and no other.
found()
{
    local scene=$1
    shift
    expect_exit 99 trace "$scene"
    expect_stderr "verdict: ROOT_CAUSE"
    for words in "$@"; do expect_stderr "$words"; done
    [ "$(grep -c -e CONFIRMED -e possible "$captured/err")" -eq 1 ] || fail "expected one finding"
}

# possible SCENE WORDS...
possible()
{
    local scene=$1
    shift
    expect_exit 0 trace "$scene"
    expect_stderr "verdict: INCONCLUSIVE"
    for words in "$@"; do expect_stderr "$words"; done
}

clean()
{
    expect_exit 0 trace "$1"
    expect_stderr "verdict: CLEAN"
}

found unwritten "CONFIRMED uninitialised-read: cuMemcpyDtoHAsync" \
    "read 65536 bytes of operand 1 (buffer cuMemAlloc#4) that nothing had written" "unwritten+0x"
found unwritten-within "CONFIRMED uninitialised-read: cuMemcpyDtoDAsync" "read 32768 bytes"
found unwritten-reused "CONFIRMED uninitialised-read: cuMemcpyDtoHAsync" "buffer cuMemAllocAsync#5"
possible unwritten-end "possible uninitialised-read: cuMemcpyDtoH" "read 1000 bytes" \
    "the rest may be room that the program does not use"
possible written-after-blob "possible uninitialised-read: cuMemcpyDtoHAsync" \
    "a large copy of which only the beginning was looked at"
clean written-by-kernel
clean written-through-table
clean written-in-part
clean written-elsewhere
clean written-through-map
clean written-from-array
finish
