#!/bin/bash
# preload_check.sh GRETA [STEP ...]: what only a GPU can show of the preloaded CUDA tracer; prints a table. GRETA is the
# program in its build folder, STEPs are names of the table's first column (default: all). Needs nvcc, and python3 with
# PyTorch for torch-error and torch-cost. Environment: ROUNDS (of cost; default: 5), LAUNCHES (of a round; default:
# 200000). Exit status: the number of lines that FAILED; 77: there is no nvcc or no GPU.
set -u
greta=$(realpath "${1:?greta}")
shift
steps=" $* "
here=$(dirname "$(realpath "$0")")
rounds=${ROUNDS:-5} launches=${LAUNCHES:-200000}
work=$(mktemp -d "${TMPDIR:-/tmp}/greta-preload-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
nvcc=$(command -v nvcc || command -v /usr/local/cuda/bin/nvcc) || { echo "skipped: no nvcc"; exit 77; }
"$greta" devices | grep -q "^ *cuda:0 *yes" || { echo "skipped: no NVIDIA GPU"; exit 77; }
failures=0

line()
{
    printf '%-24s %-8s %s\n' "$1" "$2" "$3"
    [ "$2" != FAILED ] || failures=$((failures + 1))
}
wanted() { [ "$steps" = "  " ] || [[ "$steps" == *" $1 "* ]]; }
trace() { "$greta" trace --backend cuda "$@"; }

# same NAME TRACE-OPTIONS -- COMMAND...: prints and returns the same plain and traced; the trace is kept in kept/.
same()
{
    local name=$1 options=() plain traced
    shift
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    rm -rf kept
    "$@" >plain.out 2>plain.err </dev/null
    plain=$?
    trace --artifacts kept --summary "${options[@]}" -- "$@" >traced.out 2>traced.err </dev/null
    traced=$?
    if [ $plain -ne $traced ]; then
        line "$name" FAILED "exit status $plain plain, $traced traced"
    elif ! cmp -s plain.out traced.out; then
        line "$name" FAILED "other output: $(diff plain.out traced.out | head -3 | tr '\n' ' ')"
    else
        return 0
    fi
    return 1
}

flags=(-arch=native -O1 -lineinfo)
"$nvcc" "${flags[@]}" -o static "$here/preload_program.cu" &&
    "$nvcc" "${flags[@]}" -cudart shared -o shared "$here/preload_program.cu" &&
    "$nvcc" "${flags[@]}" --default-stream per-thread -o threads "$here/preload_program.cu" || exit 1
libraries=$(dirname "$nvcc")/../lib64
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$libraries

# Every launch is seen, with its kernel's name, whatever the runtime is linked like.
for program in static shared threads; do
    wanted "launches-$program" || continue
    same "launches-$program" -- "./$program" work 80 || continue
    seen=$(grep -o '[0-9]* launches' traced.err | head -1)
    named=$("$greta" flight show kept/*/*/run/*.cuda.flight.zst | grep -c 'add_one')
    [ "$seen" = "80 launches" ] && [ "$named" -ge 80 ] && line "launches-$program" ok "$seen, $named named" ||
        line "launches-$program" FAILED "expected 80 launches of add_one, found '$seen', $named named"
done

# Stream 0 is one stream, or one of each thread.
for row in "static CLEAN" "threads overlapping-copies"; do
    read -r program expected <<<"$row"
    wanted "streams-$program" || continue
    same "streams-$program" -- "./$program" streams || continue
    grep -q "$expected" traced.err && line "streams-$program" ok "$expected" ||
        line "streams-$program" FAILED "expected $expected, found $(grep verdict: traced.err)"
done

# Both ways in say the same.
wanted same-as-cupti && {
    for way in preloaded cupti; do
        option=()
        [ $way = cupti ] && option=(--cupti)
        trace "${option[@]}" -- ./static work 80 2>&1 >/dev/null </dev/null | grep -v -e "observing took" -e "+0x" >"said.$way"
    done
    cmp -s said.preloaded said.cupti && line same-as-cupti ok "$(grep verdict: said.cupti)" ||
        line same-as-cupti FAILED "$(diff said.preloaded said.cupti | head -4 | tr '\n' ' ')"
}

# A dump that the user armed is written as without tracing, and the program ends as it does then: aborted by the driver,
# or going on with the error where the driver is asked not to abort.
export CUDA_COREDUMP_GENERATION_FLAGS=skip_nonrelocated_elf_images,skip_global_memory,skip_shared_memory,skip_local_memory
dump()
{
    local name=$1 program=$2
    wanted "$name" || return
    rm -f core_*
    CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1 CUDA_COREDUMP_FILE=$work/core_%p same "$name" -- "./$program" fault 55 || return
    # One of the plain run, one of the traced one.
    found=$(find . -maxdepth 1 -name 'core_*' -size +0 | wc -l)
    [ "$found" -eq 2 ] && line "$name" ok "$(du -h core_* | cut -f1 | tr '\n' ' '), $(grep 'end of the program' traced.err | tr -s ' ')" ||
        line "$name" FAILED "expected 2 dumps, found $found: $(tail -3 traced.err | tr '\n' ' ')"
    grep -q "kernel-fault" traced.err || line "$name" FAILED "expected a kernel-fault, found $(grep verdict: traced.err)"
}
dump dump-static static
dump dump-shared shared
CUDA_COREDUMP_GENERATION_FLAGS+=,skip_abort dump dump-no-abort static
wanted dump-cupti && { # why preloading is the default
    rm -f core_*
    CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1 CUDA_COREDUMP_FILE=$work/core_%p trace --cupti -- ./static fault 55 >out 2>&1 </dev/null
    [ -z "$(find . -maxdepth 1 -name 'core_*' -size +0)" ] && line dump-cupti ok "no dump with CUPTI, as expected" ||
        line dump-cupti FAILED "expected no dump with CUPTI, found one: docs/trace.md is wrong"
}

# Without a dump: the error, its traceback and the exit status are the program's own. With one: dump_check.sh.
unset CUDA_COREDUMP_GENERATION_FLAGS
wanted fault && same fault --no-coredump --narrow -- ./static fault 55 && {
    grep -q "CONFIRMED kernel-fault: out_of_bounds" traced.err && line fault ok "exit status 7, launch named" ||
        line fault FAILED "$(grep -m1 kernel-fault traced.err)"
}
if python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
    cat >caught.py <<'END'
import sys, traceback, torch
table = torch.arange(1000, device="cuda")
try:
    print(int(table[torch.tensor([1 << 30], device="cuda")].sum()))
except RuntimeError as error:
    print("caught:", str(error).splitlines()[0])
    traceback.print_exc(limit=1)
    sys.stdout.flush()
    sys.exit(7)
END
    wanted torch-error && same torch-error -- python3 caught.py && line torch-error ok "$(head -1 traced.out)"
else
    line torch-error skipped "no PyTorch with CUDA"
fi

# Untraced, preloaded and CUPTI in turn; launches for each second, the median of each.
median() { sort -n | awk '{ a[NR] = $1 } END { print NR % 2 ? a[(NR + 1) / 2] : (a[NR / 2] + a[NR / 2 + 1]) / 2 }'; }
wanted cost && {
    rm -f rate.*
    for _ in $(seq "$rounds"); do
        ./static rate "$launches" >>rate.plain
        trace -- ./static rate "$launches" >>rate.preloaded 2>/dev/null
        trace --cupti -- ./static rate "$launches" >>rate.cupti 2>/dev/null
    done
    for way in plain preloaded cupti; do median <"rate.$way" >"median.$way"; done
    line cost ok "$(awk -v p="$(cat median.plain)" -v l="$(cat median.preloaded)" -v c="$(cat median.cupti)" 'BEGIN {
        printf "%.0f launches/s plain; preloaded %.0f (%.1f %% more time); CUPTI %.0f (%.1f %%)", p, l, 100 * (p / l - 1), c, 100 * (p / c - 1) }')"
}
wanted torch-cost && {
    if python3 "$here/../../bench/trace/overhead.py" "$greta" --tokens 128 --cupti >torch.json 2>torch.err; then
        line torch-cost ok "$(tail -1 torch.err)"
    else
        line torch-cost skipped "$(tail -1 torch.err)"
    fi
}
echo "$failures lines FAILED"
exit $failures
