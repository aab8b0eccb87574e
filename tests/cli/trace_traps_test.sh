# trace_traps_test.sh - greta trace --trap-host: which accesses of the host are found, which are not, and
# that the program notices nothing; over an emulated driver (tests/fake_trace/scenes_traps*.c) whose
# copies are done late, through a mapping of its own.
source "$(dirname "$0")/lib.sh"
fake=$GRETA_BUILD/fake_trace
program=$fake/trace_program
[ -x "$program" ] || exit 77
[ "$(uname -m)" = x86_64 ] || exit 77 # there are no traps on other machines
export LD_LIBRARY_PATH=$fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export FAKE_TRACE_LATE=1
unset CUDA_INJECTION64_PATH
trace() { "$GRETA" trace --trap-host --backend cuda --records 32768 --error-exitcode 99 "$@"; }

# The program prints what it prints without tracing.
same_output()
{
    "$program" "$1" >"$captured/plain" 2>/dev/null
    cmp -s "$captured/plain" "$captured/out" || fail "expected the program's own output"
}

# confirmed SCENE WORDS...
confirmed()
{
    local scene=$1
    shift
    expect_exit 99 trace -- "$program" "$scene"
    same_output "$scene"
    expect_stderr "verdict: ROOT_CAUSE"
    for words in "$@"; do expect_stderr "$words"; done
}

# once WORDS: on one line.
once()
{
    [ "$(grep -cF -- "$1" "$captured/err")" = 1 ] || fail "expected '$1' once"
}

clean()
{
    local scene=$1
    shift
    expect_exit 0 trace -- "$program" "$scene"
    same_output "$scene"
    expect_stderr "verdict: CLEAN"
    grep -q -e CONFIRMED -e possible "$captured/err" && fail "expected no finding"
    for words in "$@"; do expect_stderr "$words"; done
}

# Too early and too late: the instruction, and what it collided with.
confirmed early-read "CONFIRMED missing-sync: host access" \
    "read byte 5000 of the 65536 bytes of host memory that are the target of cuMemcpyDtoHAsync" \
    "look_at+" "early_read+"
once "CONFIRMED missing-sync" # the second access tells nothing new
confirmed early-write "CONFIRMED missing-sync: host access" "wrote byte 3 of the 65536 bytes" \
    "put_into+" "early_write+"
confirmed late-write "CONFIRMED staging-reuse: host access" \
    "wrote byte 100 of the 65536 bytes of host memory that cuMemcpyHtoDAsync" "put_into+" "late_write+"
once "staging-reuse" # that its bytes changed is the same finding
confirmed neighbour-then-early "read byte 50 of the 100 bytes"
confirmed early-read-of-own "CONFIRMED missing-sync: host access" "read byte 4096 of the 65536 bytes"
expect_exit 0 trace -- "$program" early-read-of-few
same_output early-read-of-few
expect_stderr "possible missing-sync: host access"
expect_stderr "so few bytes may be a flag"

# The innermost line is that of the access.
if "$GRETA" trace --help 2>&1 | grep -q libdw && [ -e /usr/lib/x86_64-linux-gnu/libdw.so.1 ]; then
    confirmed early-read "scenes_traps.c:"
fi

# Twins that are right.
for scene in read-after-waits read-after-flag source-read neighbours edges-of-own given-again \
    waited-elsewhere neighbour-system-calls; do
    clean $scene
done

# The verdict says whether all that the host may read early was watched.
clean read-after-waits "CLEAN: copies, order, lifetimes, host reads"
clean kernel-other-fields "CLEAN: copies, order, lifetimes, host reads. Not inside kernels"
clean edges-of-own "CLEAN: copies, order, lifetimes. Not host reads"

# Memory that a kernel writes: what counts is what changed after the program read it.
confirmed kernel-early "CONFIRMED missing-sync: host access" \
    "bytes of host memory that fill_late" "was given a pointer to" "what it read was changed after that" \
    "look_at+" "kernel_early+"
confirmed managed-early "CONFIRMED missing-sync: host access" "managed_early+"
expect_exit 0 trace -- "$program" kernel-looked-once
same_output kernel-looked-once
expect_stderr "possible missing-sync: host access"
expect_stderr "so few bytes may be a flag or a counter"
for scene in kernel-polled kernel-input kernel-other-fields kernel-let-go managed-after-wait; do
    clean $scene
done

# Traps do not fit: that is said, and nothing else is wrong.
# (So many ranges are more than the order of copies is kept for.)
expect_exit 0 trace -- "$program" many-traps
same_output many-traps
expect_stderr "verdict: INCONCLUSIVE"
expect_stderr "did not fit into the process's mappings (vm.max_map_count)"
grep -q -e CONFIRMED -e possible "$captured/err" && fail "expected no finding"

# The program's own signals, threads, processes.
confirmed own-handler "CONFIRMED missing-sync: host access" "own_handler+"
expect_stdout "mine -1 1"
expect_stdout "early 0, caught 2"
expect_stdout "own stack 1, mask 1"
expect_stdout "ignored 1"
clean own-step-handler
expect_stdout "steps 2"
confirmed blocked-signals "CONFIRMED missing-sync: host access"
expect_stdout "was blocked 1"
confirmed trap-crowd "CONFIRMED missing-sync: host access" "read_often+"
clean forked
expect_stdout "child 0"
expect_exit 139 trace -- "$program" null-read
grep -q "CONFIRMED missing-sync" "$captured/err" && fail "expected no early read"

# System calls on such memory: they work, and count as accesses.
confirmed early-system-write "CONFIRMED missing-sync: host access" "read byte 0 of the 65536 bytes" \
    "early_system_write+"
expect_stdout "written 65536"
confirmed late-system-read "CONFIRMED staging-reuse: host access" "wrote byte 0 of the 65536 bytes"
expect_stdout "at the end 0"
confirmed early-file-write "CONFIRMED missing-sync: host access" "early_file_write+"
expect_stdout "written 65536"

# What would fail on protected memory switches the traps off, and that is said.
clean ring "the program uses io_uring" "Not host reads"
clean signal-taken "the program took SIGSEGV by a system call of its own" "Not host reads"

# Without the option nothing is protected, and nothing said.
expect_exit 0 "$GRETA" trace --backend cuda -- "$program" early-read
grep -q "host access" "$captured/err" && fail "expected no host access"
expect_stderr "Not host reads"
expect_exit 2 "$GRETA" trace --trap-host --cupti -- "$program" nothing
expect_one_line_error "--trap-host"

# All else is found as without traps, and only once.
expect_exit 0 trace -- "$program" polled-copy
expect_stderr "possible staging-reuse: cuMemcpyHtoDAsync"
confirmed rewritten-before-flag "CONFIRMED staging-reuse: host access"
once "staging-reuse"
expect_exit 99 trace -- "$program" double-free
expect_stderr "CONFIRMED use-after-free"
clean nothing
finish
