# trace_spanish_test.sh - greta trace --lang es: not one English word in all that it prints, whatever
# there is to say. Words are taken from what the same trace prints in English.
source "$(dirname "$0")/lib.sh"
fake=$GRETA_BUILD/fake_trace
program=$fake/trace_program
[ -x "$program" ] || exit 77
export LD_LIBRARY_PATH=$fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
unset CUDA_INJECTION64_PATH
# Words that no Spanish sentence has; names of calls, kernels, files, options and hypotheses are
# names in both languages.
english='the|and|was|were|with|of|which|before|after|nothing|not|that|this|these|their|called|calls'
english="$english|findings|summary|transfers|host|copies|launches|allocations|frees|pinned|waits|other"
english="$english|side|seen|verdict|program|ended|exit|status|recorded|took|possible|CONFIRMED|bytes of"
english="$english|stream|event|launch|operand|graph|queued|read|written|freed|memory|lost|records"

# spanish EXIT ARGUMENTS...: what it prints of itself has none of them. The program's own line and
# stacks (names of functions, in parentheses their files) are left out.
spanish()
{
    local code=$1
    shift
    expect_exit "$code" "$GRETA" trace --backend cuda --lang es "$@"
    grep -v -e "^err of " -e "+0x" "$captured/err" >"$captured/words"
    [ -s "$captured/words" ] || fail "expected greta's own lines"
    # Names: hypotheses, functions of the runtime, options, paths, what stands in parentheses after a
    # note; the program's own name.
    sed -E -e 's/(missing-sync|use-after-free|staging-reuse|overlapping-copies|stale-graph|kernel-fault|size-mismatch|bad-pointer)//g' \
        -e 's/--[a-z-]+//g' -e 's#/[^ )]*##g' -e 's/greta trace//' "$captured/words" >"$captured/left"
    if grep -E -i -w "$english" "$captured/left" >"$captured/found"; then
        fail "English words: $(cat "$captured/found")"
    fi
    grep -q "veredicto: " "$captured/err" || fail "expected a verdict"
}

# The words are found where they are: in what is printed in English.
expect_exit 0 "$GRETA" trace --backend cuda --summary -- "$program" unordered
for word in findings with summary transfers host copies launches verdict recorded other called; do
    grep -E -q -i -w "$word" "$captured/err" || fail "expected '$word' in English"
done

for scene in nothing past-end double-free rewritten unordered unordered-kernel wrong-way freed-async \
    host-freed stale-graph leak pool-freed changed-node after-reset; do
    spanish 0 --summary -- "$program" "$scene"
done
spanish 9 --no-coredump --narrow -- "$program" fault
spanish 7 -- "$program" dump-equal-after-fill
spanish 7 -- "$program" dump-streams
for mode in none foreign unnamed; do FAKE_DUMP=$mode spanish 7 -- "$program" dump-streams; done
spanish 139 -- "$program" crash
spanish 134 -- "$program" destroyed-stream
spanish 7 -- "$program" nothing 7
spanish 0 --artifacts kept -- "$program" unordered
rm -r kept

# Where nothing could be seen, and why.
spanish 0 -- true
spanish 4 --error-exitcode 99 -- true
expect_stderr "código de salida 4: se pidió una comprobación y no se pudo comprobar nada"
spanish 98 --inconclusive-exitcode 98 -- "$program" unordered-kernel
spanish 0 --cupti-library /nonexistent/libcupti.so -- "$program" nothing
expect_stderr "no se puede cargar como CUPTI"
FAKE_CUPTI_TAKEN=1 spanish 0 --cupti-library "$fake/libcupti.so.13" -- "$program" nothing
expect_stderr "otra herramienta"
cp "$(type -P true)" ./changes_user && chmod u+s ./changes_user
spanish 0 -- ./changes_user
expect_stderr "cambia de usuario"
rm ./changes_user
if [ -x "$fake/trace_static" ]; then
    spanish 0 -- "$fake/trace_static"
    expect_stderr "enlazado estáticamente"
fi
finish
