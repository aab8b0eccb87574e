#!/bin/bash
# dump_check.sh GRETA [STEP ...]: what only a GPU can show of faults that greta trace explains by a GPU core dump; prints
# a table. GRETA is the program in its build folder, STEPs are names of the table's first column (default: all). Needs
# nvcc; python3 with PyTorch for torch. Environment: ROUNDS (of cost; default: 5), LAUNCHES (of a round; default:
# 200000), OUT_FOLDER (where what was said, and one dump of each kind, are kept; default: nowhere). Exit status: the
# number of lines that FAILED; 77: there is no nvcc or no GPU.
set -u
greta=$(realpath "${1:?greta}")
shift
steps=" $* "
here=$(dirname "$(realpath "$0")")
rounds=${ROUNDS:-5} launches=${LAUNCHES:-200000}
[ -z "${OUT_FOLDER:-}" ] || { mkdir -p "$OUT_FOLDER" && OUT_FOLDER=$(realpath "$OUT_FOLDER"); }
work=$(mktemp -d "${TMPDIR:-/tmp}/greta-dumps-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
nvcc=$(command -v nvcc || command -v /usr/local/cuda/bin/nvcc) || { echo "skipped: no nvcc"; exit 77; }
"$greta" devices | grep -q "^ *cuda:0 *yes" || { echo "skipped: no NVIDIA GPU"; exit 77; }
for name in $(compgen -v CUDA_ENABLE_) $(compgen -v CUDA_COREDUMP_); do unset "$name"; done
failures=0

line()
{
    printf '%-22s %-8s %s\n' "$1" "$2" "$3"
    [ "$2" != FAILED ] || failures=$((failures + 1))
}
wanted() { [ "$steps" = "  " ] || [[ "$steps" == *" $1 "* ]]; }
trace() { "$greta" trace --backend cuda "$@"; }

flags=(-arch=native -O1 -lineinfo)
"$nvcc" "${flags[@]}" -o static "$here/dump_program.cu" -lcuda &&
    "$nvcc" "${flags[@]}" -cudart shared -o shared "$here/dump_program.cu" -lcuda &&
    "$nvcc" "${flags[@]}" -o rate "$here/preload_program.cu" || exit 1
libraries=$(dirname "$nvcc")/../lib64
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$libraries
fails=$(grep -n "the line that fails \*" "$here/dump_program.cu" | cut -d: -f1)
fails_in_time=$(grep -n "the line that fails when" "$here/dump_program.cu" | cut -d: -f1)

# facts: of kept/'s fault: grid number, exception, block, thread, line.
facts()
{
    python3 - kept/*/*/summary.json <<'END'
import json, sys
for finding in json.load(open(sys.argv[1]))["findings"]:
    dump = finding["dump"]
    if dump:
        print("grid", dump["grid_number"], dump["exception"], "block", dump["block"], "thread", dump["thread"],
              "line", dump["line"], "pointers", len(dump["pointers"]))
        break
else:
    print("no dump")
END
}

# same NAME -- COMMAND...: prints and returns the same plain and traced, with a dump taken. Leaves kept/, traced.*.
same()
{
    local name=$1 plain traced began
    shift 2
    rm -rf kept
    "$@" >plain.out 2>plain.err </dev/null
    plain=$?
    began=$(date +%s.%N)
    trace --artifacts kept --keep-core -- "$@" >traced.out 2>traced.err </dev/null
    traced=$?
    took=$(echo "$(date +%s.%N) $began" | awk '{ printf "%.1f s", $1 - $2 }')
    if [ -n "${OUT_FOLDER:-}" ]; then
        cp traced.err "$OUT_FOLDER/$name.txt"
        cp kept/*/*/run/*.core "$OUT_FOLDER/$name.core" 2>/dev/null
    fi
    if [ $plain -ne $traced ]; then
        line "$name" FAILED "exit status $plain plain, $traced traced: $(grep 'end of the program' traced.err)"
    elif ! cmp -s plain.out traced.out; then
        line "$name" FAILED "other output: $(diff plain.out traced.out | head -3 | tr '\n' ' ')"
    elif [ "$(head -c "$(wc -c <plain.err)" traced.err)" != "$(cat plain.err)" ]; then
        line "$name" FAILED "other errors: $(diff plain.err traced.err | head -3 | tr '\n' ' ')"
    else
        return 0
    fi
    return 1
}

# fault NAME MODE WORDS: the finding has these words (a regular expression); as the runtime is linked like.
fault()
{
    local name=$1 mode=$2 words=$3 program
    for program in static shared; do
        wanted "$name-$program" || wanted "$name" || continue
        same "$name-$program" -- "./$program" "$mode" || continue
        if grep -Eq -- "kernel-fault: .*$words" traced.err; then
            line "$name-$program" ok "$(facts); $took; $(du -h kept/*/*/run/*.core 2>/dev/null | cut -f1)"
        else
            line "$name-$program" FAILED "expected '$words', found $(grep -m1 kernel-fault traced.err | cut -c 1-400) $(grep -m1 'not everything' traced.err); $(grep expected traced.out); $(facts)"
        fi
    done
}
fault streams streams "wild \(event [0-9]+, stream [0-9]+, launch 21\).*illegal address in wild at .*dump_program.cu:$fails\b"
fault equal equal "(wild_at \(event [0-9]+, stream [0-9]+, launch 23\)|launch 23\)).*dump_program.cu:$fails_in_time\b"
fault equal-memset equal-memset "one of [0-9]+ launches.*launch 23\)|wild_at \(event [0-9]+, stream [0-9]+, launch 23\)"
fault graph graph "graph node 2, replay 4"
fault graph-waited graph-waited "wild_at \(event [0-9]+, stream [0-9]+, graph node 2, replay 4\)"
fault contexts contexts "launch 12\)"
fault assert assert "asserting \(event [0-9]+, stream [0-9]+, launch 2\).*assert"
fault unreported unreported "wild \(event [0-9]+, stream [0-9]+, launch 1\)"

# No dump where there is no fault, where it is not wanted, and with CUPTI.
wanted clean && same clean -- ./static none && {
    [ -z "$(find kept -name '*.core')" ] && ! grep -q "core dump" traced.err && line clean ok "no dump, $took" ||
        line clean FAILED "found $(find kept -name '*.core') $(grep 'core dump' traced.err)"
}
wanted no-coredump && {
    rm -rf kept
    trace --no-coredump --artifacts kept -- ./static streams >out 2>&1 </dev/null
    code=$?
    [ $code -eq 7 ] && grep -q "possible kernel-fault" out && ! grep -q "core dump" out && line no-coredump ok "candidates" ||
        line no-coredump FAILED "exit status $code: $(grep -m1 kernel-fault out | cut -c 1-300)"
}
wanted cupti && {
    trace --cupti -- ./static streams >out 2>&1 </dev/null
    grep -q "with --cupti the driver writes no GPU core dumps" out && line cupti ok "candidates, and why" ||
        line cupti FAILED "$(grep -m1 'not everything' out)"
}
wanted own && { # the caller's settings: a dump where the caller wants it, and the driver aborts the process
    rm -f core_*
    CUDA_ENABLE_COREDUMP_ON_EXCEPTION=1 CUDA_COREDUMP_FILE=$work/core_%p trace -- ./static streams >out 2>&1 </dev/null
    code=$?
    [ $code -eq 134 ] && [ -n "$(find . -maxdepth 1 -name 'core_*' -size +0)" ] &&
        grep -q "GPU core dumps are the caller's" out && line own ok "exit status 134, the caller's dump" ||
        line own FAILED "exit status $code, $(find . -maxdepth 1 -name 'core_*') $(grep -m1 'not everything' out)"
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
    wanted torch && same torch -- python3 caught.py && {
        grep -q "CONFIRMED kernel-fault: " traced.err && line torch ok "$(facts); $took" ||
            line torch FAILED "$(grep -m1 kernel-fault traced.err | cut -c 1-300) $(grep -m1 'not everything' traced.err); $(facts)"
    }
else
    line torch skipped "no PyTorch with CUDA"
fi

# Plain, traced without asking for dumps, and traced, in turn; launches for each second, the median of each.
median() { sort -n | awk '{ a[NR] = $1 } END { print NR % 2 ? a[(NR + 1) / 2] : (a[NR / 2] + a[NR / 2 + 1]) / 2 }'; }
wanted cost && {
    rm -f rate.*
    for _ in $(seq "$rounds"); do
        ./rate rate "$launches" >>rate.plain
        trace --no-coredump -- ./rate rate "$launches" >>rate.without 2>/dev/null
        trace -- ./rate rate "$launches" >>rate.armed 2>/dev/null
    done
    for way in plain without armed; do median <"rate.$way" >"median.$way"; done
    line cost ok "$(awk -v p="$(cat median.plain)" -v w="$(cat median.without)" -v a="$(cat median.armed)" 'BEGIN {
        printf "%.0f launches/s plain; traced without dumps %.0f (%.1f %% more time); armed %.0f (%.1f %%)", p, w, 100 * (p / w - 1), a, 100 * (p / a - 1) }')"
}
echo "$failures lines FAILED"
exit $failures
