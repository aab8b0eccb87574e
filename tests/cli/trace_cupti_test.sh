# trace_cupti_test.sh - greta trace --cupti: CUDA calls as CUPTI reports them. What they mean is decided
# by the same code as for preloaded programs, so one scene of each kind is enough; and where CUPTI is
# found, and what is said where it is not.
source "$(dirname "$0")/lib.sh"
fake=$GRETA_BUILD/fake_trace
program=$fake/trace_program
[ -x "$program" ] || exit 77
export LD_LIBRARY_PATH=$fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
unset CUDA_INJECTION64_PATH CUDA_PATH CUDA_HOME LD_PRELOAD
trace() { "$GRETA" trace --backend cuda --records 4096 "$@"; }
with_cupti() { trace --cupti-library "$fake/libcupti.so.13" "$@"; }

# Both ways in say the same of every scene, down to the numbers of events and the stacks.
for scene in nothing past-end double-free rewritten unordered unordered-kernel wrong-way freed-async \
    stale-graph leak all-kinds all-shapes waits host-function stale-node changed-node after-reset \
    polled-flag staged; do
    expect_exit 0 trace -- "$program" "$scene"
    grep -v "observing took" "$captured/err" >"$captured/preloaded"
    expect_exit 0 with_cupti -- "$program" "$scene"
    grep -v "observing took" "$captured/err" >"$captured/called_back"
    diff "$captured/preloaded" "$captured/called_back" >"$captured/out" ||
        fail "expected the same of both ways in, found $(cat "$captured/out")"
done
expect_exit 7 with_cupti -- "$program" nothing 7
expect_exit 9 with_cupti --narrow -- "$program" fault
expect_stderr "CONFIRMED kernel-fault:"
expect_stderr "out_of_bounds"

# Where nothing could be seen nothing is clean.
FAKE_CUPTI_TAKEN=1 expect_exit 0 with_cupti -- "$program" nothing
expect_stderr "verdict: INCONCLUSIVE"
expect_stderr "another tool may be using it"
expect_stderr "(CUPTI "
FAKE_CUPTI_TAKEN=1 expect_exit 0 with_cupti --json -- "$program" nothing
sed -n '/^{/,/^}/p' "$captured/err" >"$captured/out"
expect_json "j['program']['looked_at'] == 'nothing' and any(
    'CUPTI refused: another tool may be using it (CUPTI ' in r['en'] for r in j['program']['reasons'])"
expect_exit 0 trace --cupti-library /nonexistent/libcupti.so -- "$program" nothing
expect_stderr "the file given with --cupti-library cannot be loaded as CUPTI (/nonexistent/libcupti.so)"
expect_stderr "verdict: INCONCLUSIVE"
CUDA_INJECTION64_PATH=/other.so expect_exit 3 with_cupti -- "$program" nothing
expect_stderr "another tool is in the program"

# Where CUPTI is found if it is not named: on the library path, in a toolkit that the environment
# names, next to the program's own CUDA runtime.
expect_exit 0 trace --cupti -- "$program" nothing
expect_stderr "verdict: CLEAN"
mkdir -p driver toolkit/extras/CUPTI/lib64 beside
cp -P "$fake"/libcuda.so* driver/
cp -L "$fake/libcupti.so.13" toolkit/extras/CUPTI/lib64/
cp -L "$fake/libcupti.so.13" beside/
cp -L "$fake/libcupti.so.13" beside/libcudart.so.13 # any library will do
export LD_LIBRARY_PATH=$PWD/driver
for variable in CUDA_PATH CUDA_HOME; do
    expect_exit 0 env "$variable=$PWD/toolkit" "$GRETA" trace --backend cuda --cupti -- "$program" nothing
    expect_stderr "verdict: CLEAN"
done
expect_exit 0 trace --cupti -- env "LD_PRELOAD=$PWD/beside/libcudart.so.13" "$program" nothing
expect_stderr "verdict: CLEAN"
rm -r driver toolkit beside
finish
