# trace_dump_test.sh - greta trace: what a GPU core dump proves of a fault, and what it does not; over an
# emulated driver that writes them (tests/fake_trace/fake_dump.c).
source "$(dirname "$0")/lib.sh"
fake=$GRETA_BUILD/fake_trace
program=$fake/trace_program
[ -x "$program" ] || exit 77
export LD_LIBRARY_PATH=$fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export FAKE_CUBIN=$GRETA_SOURCE/tests/data/coredump/faults.cubin
export TMPDIR=$captured/temporary
mkdir "$TMPDIR"
unset CUDA_INJECTION64_PATH LD_PRELOAD
trace() { "$GRETA" trace --backend cuda "$@"; }
none_left() { [ -z "$(ls -A "$TMPDIR")" ] || fail "expected nothing left, found $(ls -R "$TMPDIR")"; }
expect_no_stderr_text() { grep -qF -- "$1" "$captured/err" && fail "expected no '$1' on standard error"; }

# Among kernels of two streams, with memsets between them: the launch, the line, the thread, the
# caller, and what its pointers lead to. The program ends as it does untraced.
expect_exit 7 "$program" dump-streams
cp "$captured/out" "$captured/untraced"
expect_exit 7 trace -- "$program" dump-streams
cmp "$captured/untraced" "$captured/out" || fail "expected the program's own output"
line=$(grep -n "reads nothing's memory" "$GRETA_SOURCE/tests/fake_trace/scenes_dump.c" | cut -d: -f1)
expect_stderr "CONFIRMED kernel-fault: nest (event 16, stream 1, launch 7) made an illegal memory access"
expect_stderr "GPU core dump: warp illegal address in nest at /tmp/faults/faults.cu:15, block (0,0,0), thread (2,0,0)"
expect_stderr "dump_streams+0x"
expect_stderr "scenes_dump.c:$line"
expect_stderr "byte 0 of cuMemAlloc#1 (65536 bytes), allocated by"
made=$(grep -n "cuMemAlloc_v2(&scene->a, BYTES)" "$GRETA_SOURCE/tests/fake_trace/program.c" | cut -d: -f1)
grep -A1 "argument 0: " "$captured/err" | grep -q "program.c:$made\$" || fail "expected the call that made the memory"
expect_no_stderr_text "not everything was looked at"
none_left
expect_exit 7 trace --lang es -- "$program" dump-streams
expect_stderr "volcado de la GPU: dirección ilegal en un warp en nest en /tmp/faults/faults.cu:15, bloque (0,0,0), hilo (2,0,0)"
expect_stderr "byte 0 de cuMemAlloc#1 (65536 bytes), asignado por"
expect_exit 9 trace -- "$program" fault
expect_stderr "CONFIRMED kernel-fault: out_of_bounds (event 10, stream 0, launch 3)"
expect_stderr "in out_of_bounds at out_of_bounds+0x30" # no lines
expect_stderr "verdict: ROOT_CAUSE"
expect_exit 99 trace --error-exitcode 99 -- "$program" dump-streams

# The driver crashes when the process exits: the exit status is still the program's. A crash of the
# program's own stays one.
FAKE_CRASH=1 expect_exit 7 trace -- "$program" dump-streams
cmp "$captured/untraced" "$captured/out" || fail "expected the program's own output"
expect_stderr "end of the program: exited with 7"
expect_stderr "CONFIRMED kernel-fault: nest"
expect_exit 139 trace -- "$program" dump-callback
expect_exit 139 trace -- "$program" dump-crash
expect_stderr "CONFIRMED kernel-fault: nest"
if python3 -c "import ctypes" 2>/dev/null; then
    FAKE_CRASH=1 expect_exit 7 trace -- python3 "$GRETA_SOURCE/tests/fake_trace/catches.py"
    expect_stdout "caught: cuMemcpyDtoH returned 700"
    expect_stderr "CONFIRMED kernel-fault: out_of_bounds"
fi

# A program that ends before a call reports the fault.
expect_exit 3 trace -- "$program" dump-unreported
expect_stderr "CONFIRMED kernel-fault: nest (event 8, stream 0, launch 2)"

# Equal launches: only their numbers tell them apart, and memsets take numbers too.
expect_exit 7 trace -- "$program" dump-equal
expect_stderr "CONFIRMED kernel-fault: third_time (event 9, stream 0, launch 3)"
expect_exit 7 trace -- "$program" dump-equal-after-fill
expect_stderr "CONFIRMED kernel-fault: one of 2 launches made an illegal memory access"
expect_stderr "candidates: third_time (event 10, stream 0, launch 3); third_time (event 11, stream 0, launch 4)"
expect_stderr "each of these launches agrees with it in kernel, shape and arguments"
expect_stderr "verdict: DEFECT_SEEN"

# A graph: the node, and which replay it was if the program waited for the others.
expect_exit 7 trace -- "$program" dump-graph
expect_stderr "CONFIRMED kernel-fault: one of 3 launches"
expect_stderr "(event 12, stream 0, graph node 2, replay 1); third_time (event 13, stream 0, graph node 2, replay 2)"
expect_exit 7 trace -- "$program" dump-graph-waited
expect_stderr "CONFIRMED kernel-fault: third_time (event 16, stream 0, graph node 2, replay 3)"

# Two contexts have the same numbers.
expect_exit 7 trace -- "$program" dump-contexts
expect_stderr "candidates: third_time (event 8, stream 0, launch 2); third_time (event 11, stream 1, launch 5)"
expect_exit 7 trace -- "$program" dump-contexts-apart
expect_stderr "CONFIRMED kernel-fault: third_time (event 11, stream 1, launch 5)"

# unproved MODE WORDS...: with such a dump nothing is certain, and the reason is given.
unproved()
{
    FAKE_DUMP=$1 expect_exit 7 trace -- "$program" dump-streams
    shift
    grep -q "possible kernel-fault: " "$captured/err" || fail "expected a possible fault"
    expect_no_stderr_text "CONFIRMED kernel-fault"
    for words in "$@"; do expect_stderr "$words"; done
    none_left
}
unproved none "one of 9 launches" "the driver wrote no GPU core dump of the fault"
unproved refused "one of 9 launches" \
    "no GPU core dump that can be used: cuCoredumpSetAttributeGlobal(GENERATION_FLAGS): CUDA error 801"
unproved cut "one of 9 launches" "no GPU core dump that can be used:" "the file was cut short"
unproved garbage "one of 9 launches" "not an ELF file"
unproved foreign "one of 9 launches" "no launch that may have run agrees with the GPU core dump"
unproved unnamed "nest (event 16, stream 1, launch 7) may have made" "does not show all that is needed to name one"
unproved no-arguments "candidates: nest (event 16, stream 1, launch 7); nest (event 17, stream 0, launch 8)" \
    "does not show all that is needed to name one"

# A driver without the call.
if [ -e "$GRETA_BUILD/fake_trace_old/libcuda.so.1" ]; then
    FAKE_ROUTE=dlsym expect_exit 7 env "LD_LIBRARY_PATH=$GRETA_BUILD/fake_trace_old" "$GRETA" trace \
        --backend cuda -- "$fake/trace_found" dump-streams
    expect_stderr "the driver has no cuCoredumpSetAttributeGlobal"
fi

# The caller's own settings are the caller's; with CUPTI there are none; and they can be switched off.
CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1 expect_exit 7 trace -- "$program" dump-streams
expect_stderr "CUDA_ENABLE_COREDUMP_ON_EXCEPTION is set, so GPU core dumps are the caller's"
expect_stderr "possible kernel-fault: one of 9 launches"
CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1 expect_exit 0 trace -- "$program" nothing
expect_no_stderr_text "core dump" # there was no fault
expect_exit 7 trace --cupti-library "$fake/libcupti.so.13" -- "$program" dump-streams
expect_stderr "with --cupti the driver writes no GPU core dumps"
expect_exit 7 trace --no-coredump -- "$program" dump-streams
expect_stderr "possible kernel-fault: one of 9 launches"
expect_no_stderr_text "core dump"
expect_exit 2 trace --keep-core -- "$program" dump-streams
expect_stderr "--keep-core: expected --artifacts DIR as well"
expect_exit 2 trace --keep-core --no-coredump --artifacts kept -- "$program" dump-streams
expect_stderr "expected GPU core dumps, found --no-coredump"

# Kept, privately, and readable by anyone's means; removed otherwise. The facts are in the JSON.
expect_exit 7 trace --artifacts removed -- "$program" dump-streams
[ -z "$(find removed -name '*.core')" ] || fail "expected no dump"
cp removed/*/*/summary.json "$captured/out"
expect_json "[f['dump'] for f in j['findings'] if f['hypothesis'] == 'kernel-fault'][0]['line'] == 15"
expect_json "(lambda d: (d['exception'], d['kernel'], d['block'], d['thread'], d['pc_is_exact']) ==
    ('warp-illegal-address', 'nest(float*, float const*, int)', [0, 0, 0], [2, 0, 0], True))(
    [f['dump'] for f in j['findings'] if f['dump']][0])"
expect_json "(lambda p: (p['buffer'], p['buffer_bytes'], p['stack'][0]['line']) ==
    ('cuMemAlloc#1', 65536, $made))([f['dump'] for f in j['findings'] if f['dump']][0]['pointers'][0])"
expect_exit 7 trace --artifacts kept --keep-core -- "$program" dump-streams
core=$(find kept -name '*.core')
[ -f "$core" ] || fail "expected one dump, found '$core'"
[ "$(stat -c %a "$(dirname "$core")")" = 700 ] || fail "expected a private folder"
expect_exit 1 "$GRETA" coredump show "$core" # it has an exception
expect_stdout "nest failed at /tmp/faults/faults.cu:15: warp illegal address"
finish
