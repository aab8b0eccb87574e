# trace_code_test.sh - greta trace: what the PTX of a program's kernels shows of their pointers, and the
# ranges that it marks, over an emulated driver (tests/fake_trace/scenes_ptx.c, scenes_ranges.c).
source "$(dirname "$0")/lib.sh"
fake=$GRETA_BUILD/fake_trace
program=$fake/trace_program
[ -x "$program" ] || exit 77
export LD_LIBRARY_PATH=$fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
unset CUDA_INJECTION64_PATH
trace() { "$GRETA" trace --backend cuda --records 4096 --error-exitcode 99 -- "$@"; }

clean()
{
    expect_exit 0 trace "$@"
    expect_stderr "verdict: CLEAN"
}

# possible WORDS PROGRAM SCENE: one finding, because of a kernel.
possible()
{
    local words=$1
    shift
    expect_exit 0 trace "$@"
    expect_stderr "verdict: INCONCLUSIVE"
    expect_stderr "possible missing-sync"
    expect_stderr "$words"
}

reads="the kernel's code reads through the pointer it was given"
unknown="whether it reads or writes there is not known"
clean "$program" proven-readers
possible "$unknown" "$program" unproven-readers
possible "$unknown" "$program" proven-writer
possible "$reads" "$program" proven-reader-overwritten
clean "$program" proven-struct
possible "$unknown" "$program" unproven-struct

# However the program finds the driver's functions.
for route in dlsym older nested; do
    FAKE_ROUTE=$route clean "$fake/trace_found" proven-readers
done
# Ranges of NVTX: the innermost one is named, and none after its end.
expect_exit 99 trace "$program" ranges
expect_stderr "cuMemcpyDtoH, range layer 3 (event "
expect_stderr "cuMemcpyDtoHAsync, range decode (event "
expect_stderr "cuMemcpyDtoDAsync (event "
NVTX_INJECTION64_PATH=/another/tool expect_exit 99 trace "$program" ranges
expect_stderr "cuMemcpyDtoH (event "
expect_exit 0 "$GRETA" trace --backend cuda --lang es -- "$program" ranges
expect_stderr "cuMemcpyDtoH, intervalo layer 3 (evento "
finish
