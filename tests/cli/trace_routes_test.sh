# trace_routes_test.sh - greta trace: however a program finds the driver's functions, its calls are
# seen, once, and it behaves as it does untraced; over an emulated driver (tests/fake_trace/routes.c).
source "$(dirname "$0")/lib.sh"
fake=$GRETA_BUILD/fake_trace
found=$fake/trace_found
[ -x "$found" ] || exit 77
export LD_LIBRARY_PATH=$fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
unset CUDA_INJECTION64_PATH LD_PRELOAD
trace() { "$GRETA" trace --backend cuda "$@"; }

# said COMMAND...: what greta says of a program, without stacks, times and addresses.
said() { "$@" 2>&1 >/dev/null </dev/null | sed -e "s/surfaced [0-9.]* ms/surfaced/" -e "s/: 0x[0-9a-f]*,/:/" |
    grep -v -e "+0x" -e "observing took"; }

# As the program that is linked with the driver: the same events, findings and verdict.
for scene in nothing past-end unordered freed-async stale-graph all-kinds all-shapes waits \
    stale-node after-reset fault-at-free; do
    said trace -- "$fake/trace_program" "$scene" >"$captured/linked"
    for route in dlsym older nested; do
        last="$route $scene"
        FAKE_ROUTE=$route said trace -- "$found" "$scene" >"$captured/err"
        diff "$captured/linked" "$captured/err" >"$captured/out" ||
            fail "expected what is said of the linked program, found $(cat "$captured/out")"
    done
done

# A driver of CUDA 11 cannot be asked what a kernel is called: the program said it.
for route in dlsym older; do
    expect_exit 0 env "LD_LIBRARY_PATH=$GRETA_BUILD/fake_trace_old" "FAKE_ROUTE=$route" \
        "$GRETA" trace --backend cuda -- "$found" unordered-kernel
    expect_stderr "possible missing-sync: cuMemcpyDtoHAsync"
    expect_stderr "demo::add(float*, float const*, int)"
done

# A program that wraps dlsym itself goes through both.
FAKE_ROUTE=nested expect_exit 0 trace -- "$fake/trace_own_dlsym" unordered
expect_stderr "CONFIRMED overlapping-copies: cuMemcpyDtoHAsync"
grep "^asked " "$captured/out" >"$captured/traced" || fail "expected the program's own dlsym"
FAKE_ROUTE=nested expect_exit 0 "$fake/trace_own_dlsym" unordered
grep "^asked " "$captured/out" | cmp - "$captured/traced" || fail "expected the same calls of it"

# Stream 0 is one stream, or one of each thread.
FAKE_ROUTE=nested expect_exit 0 trace -- "$found" default-streams
expect_stderr "verdict: CLEAN"
FAKE_ROUTE=threads expect_exit 0 trace -- "$found" default-streams
expect_stderr "CONFIRMED overlapping-copies: cuMemcpyDtoHAsync"

# Eight threads whose first calls come at once: none is lost, none is recorded twice. Each makes five
# calls in each of 20 rounds and one after them, the scene around them twelve.
for route in dlsym nested threads; do
    FAKE_ROUTE=$route expect_exit 0 trace -- "$found" crowd
    expect_stderr "verdict: CLEAN"
    expect_stderr "  $((8 * (20 * 5 + 1) + 12)) calls recorded"
done

# What the user preloads comes after ours, is called as often as without it, and is not recorded a
# second time.
LD_PRELOAD=$fake/libshim.so expect_exit 0 "$fake/trace_program" leak
untraced=$(cat "$captured/out")
said trace -- "$fake/trace_program" leak >"$captured/linked"
for route in linked nested; do
    program=$found
    [ "$route" = linked ] && program=$fake/trace_program
    expect_exit 0 env "LD_PRELOAD=$fake/libshim.so" "FAKE_ROUTE=$route" "$GRETA" trace \
        --backend cuda -- "$program" leak
    [ "$route" = nested ] || [ "$(cat "$captured/out")" = "$untraced" ] || fail "expected: $untraced"
    grep -v -e "+0x" -e "observing took" "$captured/err" | diff "$captured/linked" - >"$captured/out" ||
        fail "expected each allocation once, found $(cat "$captured/out")"
done

# Another tool may be loaded by the driver at the same time.
CUDA_INJECTION64_PATH=/other.so expect_exit 0 trace -- "$fake/trace_program" nothing
expect_stderr "verdict: CLEAN"

# The dynamic linker takes no path with a space; that is said before the program starts.
mkdir "a folder"
cp "$GRETA" "$(dirname "$GRETA")"/libgreta_trace_*.so "a folder/"
expect_exit 3 "a folder/greta" trace --backend cuda -- "$fake/trace_program" nothing
expect_stderr "LD_PRELOAD takes no path with a space or a colon"
expect_no_stdout
rm -r "a folder"

# same COMMAND...: a program prints and returns the same traced and untraced. What greta says of it
# comes last.
same()
{
    local code
    last="$*"
    "$@" >"$captured/plain_out" 2>"$captured/plain_err" </dev/null
    code=$?
    expect_exit "$code" "$GRETA" trace -- "$@"
    cmp "$captured/plain_out" "$captured/out" || fail "expected the same standard output"
    head -c "$(wc -c <"$captured/plain_err")" "$captured/err" | cmp - "$captured/plain_err" ||
        fail "expected the same standard error"
}

# The error is caught, printed and turned into an exit status.
if python3 -c "import ctypes" 2>/dev/null; then
    same python3 "$GRETA_SOURCE/tests/fake_trace/catches.py"
    expect_stdout "caught: cuMemcpyDtoH returned 700"
    expect_stderr "end of the program: exited with 7"
    expect_stderr "kernel-fault: out_of_bounds"
fi

# No GPU at all: nothing is changed, neither by the CUDA library nor by the HIP library after it.
same "$fake/trace_plain"
expect_stderr "no GPU call was seen"
same bash -c 'echo out; echo err >&2; exit 5'
trap "" HUP USR1 # stay ignored in the program
same "$fake/trace_plain"
trap - HUP USR1

# Nothing can be preloaded, and only then is that said.
if [ -x "$fake/trace_static" ]; then
    expect_exit 0 trace -- "$fake/trace_static"
    expect_stderr "statically linked: no library can be preloaded; --cupti lets the CUDA driver load one"
    expect_exit 0 trace --cupti -- "$fake/trace_static"
    expect_stderr "no GPU call was seen"
else
    echo "skipped: a static program (there is no static C library)"
fi
finish
