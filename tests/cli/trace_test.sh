# trace_test.sh - greta trace: a program over an emulated driver, one thing wrong at a time.
source "$(dirname "$0")/lib.sh"
fake=$GRETA_BUILD/fake_trace
program=$fake/trace_program
[ -x "$program" ] || exit 77
export LD_LIBRARY_PATH=$fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
unset CUDA_INJECTION64_PATH
trace() { "$GRETA" trace --backend cuda "$@"; }

# Input, output and exit code are the program's own.
expect_exit 0 trace -- "$program" nothing
expect_stdout "out of nothing"
[ "$(wc -l <"$captured/out")" -eq 1 ] || fail "expected the program's line and no more"
expect_stderr "err of nothing"
expect_stderr "verdict: CLEAN: copies, order, lifetimes. Not inside kernels; not host reads"
expect_stderr "calls recorded; observing took"
expect_stderr "end of the program: exited with 0"
expect_exit 7 trace -- "$program" nothing 7
expect_stderr "end of the program: exited with 7"
expect_exit 0 trace --quiet -- "$program" nothing
grep -q greta "$captured/err" && fail "expected nothing of greta"
expect_files # nothing is left

# found SCENE WORDS...: a certain finding.
found()
{
    local scene=$1
    shift
    expect_exit 99 trace --error-exitcode 99 -- "$program" "$scene"
    expect_stderr "verdict: ROOT_CAUSE"
    for words in "$@"; do expect_stderr "$words"; done
    expect_exit 0 trace -- "$program" "$scene"
}
found past-end "CONFIRMED size-mismatch: cuMemcpyDtoH" "which has 65536 bytes: it goes up to byte 65600" \
    "past_end+0x"
grep -q "past_end+0x.*program\.c:[0-9]" "$captured/err" || fail "expected the line in program.c"
found double-free "CONFIRMED use-after-free: cuMemFree" "is freed a second time" "double_free+0x"
found rewritten "CONFIRMED staging-reuse: cuMemcpyHtoDAsync" \
    "rewritten before anything waited for the copy" "rewritten+0x"
found unordered "CONFIRMED overlapping-copies: cuMemcpyDtoHAsync" "cuMemcpyDtoDAsync" "unordered+0x"
found wrong-way "CONFIRMED bad-pointer: cuMemcpyHtoD" "goes the wrong way" "wrong_way+0x"
found freed-async "CONFIRMED use-after-free: cuMemcpyDtoHAsync" "was freed before" \
    "freed by cuMemFreeAsync"
found stale-graph "CONFIRMED stale-graph: cuMemcpyDtoHAsync" "destroyed after the graph was recorded"

# What rests on a kernel is possible, whatever it looks like. More of what is possible:
# trace_order_test.sh.
expect_exit 0 trace --error-exitcode 99 -- "$program" unordered-kernel
expect_stderr "possible missing-sync: cuMemcpyDtoHAsync"
expect_stderr "demo::add(float*, float const*, int)"
expect_stderr "verdict: INCONCLUSIVE"
grep -q CONFIRMED "$captured/err" && fail "expected nothing certain"

# A fault is reported late: the window, and with a rerun the launch. With a GPU core dump:
# trace_dump_test.sh.
expect_exit 9 trace --no-coredump -- "$program" fault
expect_stderr "possible kernel-fault: one of 3 launches"
expect_stderr "; candidates: add"
expect_stderr "launch 2)"
expect_exit 9 trace --no-coredump --narrow -- "$program" fault
expect_stderr "CONFIRMED kernel-fault:"
expect_stderr "out_of_bounds"
expect_stderr "launch 3)"
expect_stderr "verdict: ROOT_CAUSE"
[ "$(grep -c 'err of fault' "$captured/err")" -eq 1 ] || fail "expected the rerun's output elsewhere"

# However the program ends there is a report, and greta's caller sees the same exit status.
expect_exit 139 trace -- "$program" crash
expect_stderr "end of the program: aborted by signal 11 (SIGSEGV)"
expect_stderr "verdict: INCONCLUSIVE"
expect_exit 134 trace -- "$program" destroyed-stream
expect_stderr "CONFIRMED bad-pointer: cuStreamSynchronize"
expect_stderr "possible missing-sync: cuStreamDestroy"

# A signal sent to greta is the program's.
"$GRETA" trace --backend cuda -- "$program" wait >"$captured/out" 2>"$captured/err" &
child=$!
wait_until has_text "out of wait" "$captured/out"
kill -TERM "$child"
wait "$child"
code=$?
last="SIGTERM"
[ "$code" -eq 143 ] || fail "expected exit status 143, found $code"
expect_stderr "end of the program: killed by signal 15 (SIGTERM)"

# Where nothing could be seen nothing is clean.
expect_exit 5 trace --error-exitcode 99 -- "$program" no-gpu 5
expect_stderr "verdict: INCONCLUSIVE"
expect_stderr "no GPU call was seen"
grep -q "exit status" "$captured/err" && fail "expected the program's own exit code"
cp "$(type -P true)" ./changes_user && chmod u+s ./changes_user
expect_exit 0 trace -- ./changes_user
expect_stderr "changes its user"
expect_stderr "verdict: INCONCLUSIVE"
rm ./changes_user
expect_exit 3 trace -- ./no-such-program
expect_stderr "cannot start ./no-such-program"
expect_exit 2 "$GRETA" trace
expect_exit 2 trace --error-exitcode 256 -- "$program"
expect_exit 2 trace --inconclusive-exitcode 256 -- "$program"
expect_stderr "--inconclusive-exitcode: expected 0 to 255, found 256"

# The text's reason and the program's ending are in the JSON as well, on stderr and in the folder.
# expect_program ENDING LOOKED_AT WORDS...: what the last trace with --json says of the program; the
# words are in its reasons.
expect_program()
{
    sed -n '/^{/,/^}/p' "$captured/err" >"$captured/out"
    expect_json "(j['program']['ending'], j['program']['looked_at']) == ('$1', '$2')"
    shift 2
    for words in "$@"; do expect_json "any('$words' in r['en'] for r in j['program']['reasons'])"; done
}
# shellcheck disable=SC2016 # for the other shell
expect_exit 137 trace --json -- bash -c 'kill -9 $$'
expect_program killed nothing "no GPU call was seen"
expect_json "j['program']['ending_text']['en'] == 'killed by signal 9 (SIGKILL)' and j['program']['signal'] == 9"
expect_json "j['headline']['en'].startswith('Not decided: nothing was looked at: no GPU call was seen')"
expect_json "j['headline']['es'].startswith('Sin decidir: no se miró nada: ')"
# shellcheck disable=SC2016
expect_exit 137 trace --artifacts kept -- bash -c 'kill -9 $$'
cp kept/*/*/summary.json "$captured/out"
expect_json "j['program']['signal'] == 9 and 'no GPU call' in j['program']['reasons'][0]['en']"
rm -r kept
expect_exit 7 trace --json -- "$program" nothing 7
expect_program exited all
expect_json "j['program']['exit_code'] == 7 and j['program']['reasons'] == []"
expect_json "j['headline']['en'] == 'Nothing found: copies, order, lifetimes. Not inside kernels; not host reads'"
expect_json "[s['subject'] for s in j['program']['subjects'] if not s['looked_at']] == ['kernels', 'host-reads']"

# A gate that has looked at nothing does not pass, unless an option says which status to return.
expect_exit 4 trace --error-exitcode 99 -- "$program" no-gpu
expect_stderr "no GPU call was seen"
expect_stderr "exit status 4: a gate was requested, but nothing could be checked"
expect_exit 4 "$GRETA" trace --error-exitcode 99 -- true
expect_exit 98 trace --error-exitcode 99 --inconclusive-exitcode 98 -- "$program" no-gpu
expect_exit 98 trace --inconclusive-exitcode 98 -- "$program" no-gpu
expect_exit 0 trace --error-exitcode 99 --inconclusive-exitcode 0 -- "$program" no-gpu
expect_exit 0 trace -- "$program" no-gpu # no gate was asked for
expect_exit 98 trace --error-exitcode 99 --inconclusive-exitcode 98 -- "$program" unordered-kernel
expect_stderr "exit status 98: a gate was requested, and the verdict is inconclusive"
expect_exit 0 trace --error-exitcode 99 --inconclusive-exitcode 98 -- "$program" nothing
expect_exit 99 trace --error-exitcode 99 --inconclusive-exitcode 98 -- "$program" past-end
expect_exit 7 trace --inconclusive-exitcode 98 -- "$program" no-gpu 7 # its own failure comes first
expect_exit 4 trace --error-exitcode 99 --json -- "$program" no-gpu
sed '1d' "$captured/err" >"$captured/out"
expect_json "j['outcome'] == 'INCONCLUSIVE'" # and not a word more

# PyTorch's own switch is set for the program if that is asked for, and only then.
# shellcheck disable=SC2016
show='echo "caching off: $PYTORCH_NO_CUDA_MEMORY_CACHING$PYTORCH_NO_HIP_MEMORY_CACHING."'
expect_exit 0 trace --tensors -- bash -c "$show"
expect_stdout "caching off: 11."
expect_exit 0 trace -- bash -c "$show"
expect_stdout "caching off: ."

# One process number, two programs: both are looked at.
expect_exit 0 trace -- "$program" then "$program" past-end
expect_stderr "CONFIRMED size-mismatch"

# Old calls are overwritten, not forgotten: they were analysed while the program ran.
expect_exit 0 trace --records 4096 -- "$program" many
expect_stderr "calls recorded"

# The same artifacts as an audit's.
expect_exit 0 trace --artifacts kept --summary -- "$program" unordered
expect_stderr "host to device"
expect_stderr "pinned"
kept=$(echo kept/*/*)
for name in manifest.json summary.json report.en.md report.es.md report.html timeline.json \
    findings.sarif junit.xml findings.txt; do
    [ -s "$kept/$name" ] || fail "expected $kept/$name"
done
# Private, what the library made in the program too.
find kept -type d ! -perm 700 -o -type f ! -perm 600 | grep -q . &&
    fail "expected private files: $(find kept -type d ! -perm 700 -o -type f ! -perm 600)"
cp "$kept/summary.json" "$captured/out"
expect_json "[r['ending'] for r in j['rows']] == ['exited']"
expect_exit 0 "$GRETA" audit show latest --artifacts kept
expect_stdout "CONFIRMED overlapping-copies"
grep -q "unordered+0x" "$kept/findings.txt" || fail "expected call stacks in findings.txt"

# Source lines, of a program built with -g: of the very call, in every file that shows stacks.
line=$(grep -n "cuMemcpyDtoHAsync_v2(scene->pinned, scene->b, BYTES, scene->second);" \
    "$GRETA_SOURCE/tests/fake_trace/program.c" | sed -n 2p | cut -d: -f1)
grep -q "unordered+0x.* (trace_program), .*tests/fake_trace/program.c:$line\$" "$kept/findings.txt" ||
    fail "expected program.c:$line in findings.txt"
for name in report.en.md report.es.md report.html; do
    grep -q "tests/fake_trace/program.c:$line\>" "$kept/$name" || fail "expected program.c:$line in $name"
done
cp "$kept/summary.json" "$captured/out"
expect_json "any(f['function'] == 'unordered' and f['line'] == $line and f['source'].endswith('program.c')
                 for x in j['findings'] for f in x['cause']['stack'])"
cp "$kept/findings.sarif" "$captured/out"
expect_json "any(l['physicalLocation']['region']['startLine'] == $line for r in j['runs'][0]['results']
                 for l in r.get('locations', []) if 'physicalLocation' in l)"

# Without debug information functions, of a stripped program its file and an offset.
strip --strip-debug -o without_lines "$program"
expect_exit 0 trace -- ./without_lines unordered
expect_stderr "CONFIRMED overlapping-copies"
grep -q "unordered+0x[0-9a-f]* (without_lines)\$" "$captured/err" || fail "expected a function without a line"
grep -q "program\.c:" "$captured/err" && fail "expected no line"
strip -o without_names "$program"
expect_exit 0 trace -- ./without_names unordered
expect_stderr "without_names+0x"
grep -q "unordered+0x" "$captured/err" && fail "expected no function"
rm without_lines without_names
expect_exit 0 "$GRETA" flight show "$kept"/run/*.cuda.flight.zst
expect_stdout "cuMemcpyDtoHAsync"
expect_exit 0 trace --json -- "$program" past-end
sed '1d' "$captured/err" >"$captured/out"
expect_json "j['outcome'] == 'ROOT_CAUSE'"

# Names from outside are shown, not obeyed.
cp "$program" "$(printf 'odd\033[31m name')"
expect_exit 0 trace -- "./$(printf 'odd\033[31m name')" leak
grep -q "$(printf '\033')" "$captured/err" && fail "expected no control characters"
finish
