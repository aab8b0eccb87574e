#!/bin/bash
# check.sh BUILD [DEVICE] [STEP ...]: everything that needs a real GPU, in one go; prints a table. BUILD is a build
# folder with the tests (or any folder with its programs), DEVICE is cuda:0 unless it is given, STEPs are names of the
# table's first column (default: all). Environment: MODEL_8B (a model of 8B for speeds; none: those lines are
# skipped), STORIES (a small model to compare texts with; default: the one that comes with greta), STORIES260K (a model
# whose texts must not differ at all; default: ../shared/models/stories260K-f32.gguf next to the repository, if it is
# there), GOLDEN (a folder with models, logits and a check.py that compares them; default: ../shared/golden next to the
# repository, if it is there), SEED (of the random inputs; default: a new one each time), LIMIT (seconds for a step; default: 120), OUT_FOLDER
# (where tables and logs of self-test, audit, transfers, audit-cost and memcheck are kept; default: nowhere).
#
# A line says ok, FAILED or skipped, with what was measured. The exit status is the number of lines that FAILED.
# Works on tests/fake_gpu as well, as far as a processor that plays a GPU can: LD_LIBRARY_PATH=BUILD/fake_gpu.
set -u
build=$(realpath "${1:?build folder}") device=${2:-cuda:0}
shift $(($# < 2 ? $# : 2))
steps=" $* "
here=$(dirname "$(realpath "$0")")
greta=$build/greta
seed=${SEED:-$((RANDOM * 32768 + RANDOM))} limit=${LIMIT:-120}
stories=$(realpath "${STORIES:-$here/../../models/greta-stories-14m-q8_0.gguf}")
stories260k=$(realpath -m "${STORIES260K:-$here/../../../shared/models/stories260K-f32.gguf}")
golden=$(realpath -m "${GOLDEN:-$here/../../../shared/golden}")
[ -z "${OUT_FOLDER:-}" ] || OUT_FOLDER=$(realpath "$OUT_FOLDER")
work=$(mktemp -d "${TMPDIR:-/tmp}/greta-gpu-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export XDG_CACHE_HOME=$work/cache GRETA_TEST_SEED=$seed
failures=0

# line NAME RESULT DETAIL
line()
{
    printf '%-22s %-8s %7.1f s  %s\n' "$1" "$2" "$(echo "$(date +%s.%N) $began" | awk '{ print $1 - $2 }')" "$3"
    [ "$2" != FAILED ] || failures=$((failures + 1))
}

# wanted NAME: is the step to be done? The clock of its line begins.
wanted()
{
    began=$(date +%s.%N)
    [ "$steps" = "  " ] || [[ "$steps" == *" $1 "* ]]
}

# limited COMMAND...: with the limit of a step; output in $work/out.
limited()
{
    timeout -k 5 "$limit" "$@" >out 2>&1 </dev/null
}

last()
{
    tail -n "${1:-1}" out | tr '\n' ' ' | cut -c 1-300
}

# run_test STEP PROGRAM ARGUMENTS...: one of the test programs, against DEVICE.
run_test()
{
    local name=$1 program=$2
    shift 2
    wanted "$name" || return
    [ -x "$build/$program" ] || { line "$name" skipped "$program is not in $build"; return; }
    limited "$build/$program" "$device" "$@"
    case $? in
    0) line "$name" ok "$(grep -c '^\[       OK' out) tests; $(grep -o 'normalised error .*' out | sort -g -k 3 | tail -1)" ;;
    77) line "$name" skipped "$(last)" ;;
    *) line "$name" FAILED "exit $?: $(grep -m 3 -E 'Error|error|expected' out | tr '\n' ' ' | cut -c 1-300)" ;;
    esac
}

# infer OUTPUT OPTIONS...: a greedy run; its text.
infer()
{
    local output=$1
    shift
    timeout -k 5 "$limit" "$greta" infer --greedy -s 1 "$@" >"$output" 2>err </dev/null
}

median_ms()
{
    sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

prompt="Once upon a time there was a little dog who"
tokens=64

# ---- What is here -----------------------------------------------------------------------------
began=0
if ! "$greta" infer -m "$stories" -p a -n 1 --device "$device" >out 2>&1; then
    echo "skipped: $(last)"
    exit 77
fi
echo "device $device, seed of the inputs $seed"
wanted devices && { limited "$greta" devices && grep -q "^ *$device *yes" out &&
    line devices ok "$(grep -m 1 "^ *$device *yes" out | tr -s ' ')" || line devices FAILED "$(last 3)"; }

# ---- Numbers ----------------------------------------------------------------------------------
run_test ops gpu_ops_test
run_test families ops_families_test
run_test experts gpu_experts_test
run_test strides gpu_strides_test
run_test step gpu_step_test
run_test groups gpu_group_test
run_test many gpu_many_test
run_test many-rows gpu_many_rows_test
run_test matmul ops_matmul_test
run_test layer ops_layer_test
run_test inspections gpu_inspect_test
run_test limits gpu_limits_test
run_test models gpu_engine_test
run_test models-8b-width gpu_engine_test llama3-8b
run_test ahead engine_ahead_test
run_test ahead-session session_ahead_test
run_test replays engine_replay_test
run_test grammar session_grammar_test
run_test staging staging_view_test

wanted same-text && {
    infer host.txt -m "$stories" -p "$prompt" -n $tokens --device host --logits-out host.npy
    infer gpu.txt -m "$stories" -p "$prompt" -n $tokens --device "$device" --logits-out gpu.npy
    limited python3 "$here/same_text.py" host.npy gpu.npy
    case $? in
    0) line same-text ok "$(basename "$stories"): $(last)" ;;
    77) line same-text skipped "$(last)" ;;
    *) line same-text FAILED "$(last) host: $(head -c 80 host.txt | tr '\n' ' ') device: $(head -c 80 gpu.txt | tr '\n' ' ')" ;;
    esac
    began=$(date +%s.%N)
    if [ -e "$stories260k" ]; then # in F32: nothing is rounded that could turn two logits round
        infer host.txt -m "$stories260k" -p "$prompt" -n $tokens --device host && infer gpu.txt -m "$stories260k" -p "$prompt" -n $tokens --device "$device"
        code=$?
        [ $code -eq 0 ] && [ -s host.txt ] && cmp -s host.txt gpu.txt &&
            line same-text-260k ok "$(basename "$stories260k"): $tokens tokens, the same text" ||
            line same-text-260k FAILED "exit $code: host: $(head -c 80 host.txt | tr '\n' ' ') device: $(head -c 80 gpu.txt | tr '\n' ' ') $(tail -1 err)"
    else
        line same-text-260k skipped "no $stories260k"
    fi
}
wanted same-bits && {
    for i in 1 2 3; do infer t$i -m "$stories" -p "$prompt" -n $tokens --device "$device" --logits-out l$i.npy; done
    if [ -s l1.npy ] && cmp -s l1.npy l2.npy && cmp -s l1.npy l3.npy; then
        line same-bits ok "three runs, $tokens rows of logits: sha256 $(sha256sum l1.npy | cut -c 1-16)"
    else
        line same-bits FAILED "logits differ between runs, or there are none: $(tail -1 err)"
    fi
}
# A tap copies out in the middle of a step, also of one that would otherwise be replayed.
wanted taps && {
    tapped=(-m "$stories" -p "$prompt" -n 8 -ctk f32 --tap hidden --tap kv@layer=1)
    rm -rf taps-host taps-gpu
    infer host.txt "${tapped[@]}" --tap-out taps-host --device host && infer gpu.txt "${tapped[@]}" --tap-out taps-gpu --device "$device"
    code=$?
    # The activations of a Q8_0 model are quantized on each side: 1e-3 is ten times what that makes.
    [ $code -ne 0 ] || { limited "$greta" diff-taps taps-host taps-gpu --tolerance 1e-3; code=$?; }
    [ $code -eq 0 ] && line taps ok "8 tokens: $(awk '/^compared/ { print $2 }' out) tensors as on the host" ||
        line taps FAILED "exit $code: $(head -12 out | tr -s ' ' | tr '\n' ';' | cut -c 1-300) $(tail -1 err)"
}
wanted third-opinion && {
    infer t -m "$stories" -p "$prompt" -n $tokens --device "$device" --logits-out l.npy
    limited python3 "$here/third_opinion.py" "$stories" l.npy $("$greta" tokenize -m "$stories" --ids "$prompt")
    case $? in
    0) line third-opinion ok "$(last)" ;;
    77) line third-opinion skipped "$(last)" ;;
    *) line third-opinion FAILED "$(last 3)" ;;
    esac
}

# Small models of every family, with logits of another engine and of float64.
wanted golden && {
    if [ ! -e "$golden/check.py" ]; then
        line golden skipped "no $golden/check.py"
    elif ! python3 -c "import numpy" 2>/dev/null; then
        line golden skipped "no numpy"
    else
        timeout -k 5 $((limit * 5)) python3 "$golden/check.py" --greta "$greta" --device "$device" >out 2>&1 </dev/null
        cp out "${OUT_FOLDER:-$work}/golden.txt" 2>/dev/null
        last | grep -q ' 0 wrong' && line golden ok "$(last)" || line golden FAILED "$(grep -m 3 '^wrong' out | tr '\n' ' ') $(last)"
    fi
}

# ---- Faults -----------------------------------------------------------------------------------
for fault in wild-pointer memory-vanished overrun; do
    run_test "fault-$fault" gpu_fault_test "$fault@op=add,layer=3"
done
run_test narrowing gpu_narrow_test
# A hundred faults anywhere, each in two processes, which takes longer than other steps.
wanted placements && {
    if [ -x "$build/gpu_placements_test" ]; then
        timeout -k 5 1800 "$build/gpu_placements_test" "$device" 100 "$seed" >out 2>&1 </dev/null &&
            line placements ok "$(grep -m 1 ' placements from ' out)" ||
            line placements FAILED "$(grep -m 3 -E '^seed| placements from ' out | tr '\n' ' ' | cut -c 1-400)"
    else
        line placements skipped "gpu_placements_test is not in $build"
    fi
}
wanted self-test && {
    LIMIT_SAVED=$limit limit=$((limit * 4))
    limited "$greta" audit --self-test --device "$device"
    code=$?
    limit=$LIMIT_SAVED
    cp out "${OUT_FOLDER:-$work}/self-test.txt" 2>/dev/null
    grep -q '^clean runs:' out && missed="$(grep '^clean runs:' out); " || missed=""
    missed+=$(awk 'NR > 1 && ($3 == "no" || $4 == "no") { print $1 }' out | tr '\n' ' ')
    [ $code -eq 0 ] && line self-test ok "$(grep -E ' planted, .* found' out)" ||
        line self-test FAILED "exit $code: $(grep -E ' planted, .* found' out) missed: $missed $(last)"
}
wanted audit && {
    limited "$greta" audit -m "$stories" --device "$device" --matrix A:bare:5,B:audit:20,C:stress:10 --artifacts artifacts -- -n 16
    code=$?
    cp out "${OUT_FOLDER:-$work}/audit.txt" 2>/dev/null
    kept=$(du -sk artifacts/last/ | cut -f1)
    [ "$code" -eq 0 ] && [ "$kept" -ge 5000 ] && line audit-size FAILED "a clean audit left $kept KiB, expected less than 5 MB"
    [ $code -eq 0 ] && line audit ok "$(grep -m 1 -E 'CLEAN' out); it left $kept KiB" || line audit FAILED "exit $code: $(grep -m 2 -E 'INCONCLUSIVE|ROOT|verdict' out | tr '\n' ' ')"
}
wanted compare-host && {
    limited "$greta" audit --compare host -m "$stories" --device "$device" -- -n 4
    code=$?
    cp out "${OUT_FOLDER:-$work}/compare-host.txt" 2>/dev/null
    detail=$(grep -E 'all inside|First op' out)
    limited "$greta" audit --compare host -m "$stories" --device "$device" --inject wrong-output@op=attention,layer=1,step=1 -- -n 4
    planted=$?
    [ $code -eq 0 ] && [ $planted -eq 1 ] && grep -q 'First op outside its tolerance: attention, layer 1, step 1' out &&
        line compare-host ok "$detail" || line compare-host FAILED "exit $code, planted $planted: $detail $(last)"
}
wanted search && {
    limited "$greta" audit -m "$stories" --device "$device" --no-self-test --no-interventions --matrix B:audit:3 \
        --inject unequal-runs@op=matmul_group,layer=2,tensor=ffn_down -- -n 4
    code=$?
    [ $code -eq 1 ] && grep -q 'matmul_group, layer 2' out && line search ok "$(grep -m 1 'matmul_group, layer 2' out)" ||
        line search FAILED "exit $code: $(last 3)"
}
wanted transfers && {
    limited "$greta" audit --transfers -m "$stories" --device "$device"
    code=$?
    cp out "${OUT_FOLDER:-$work}/transfers.txt" 2>/dev/null
    best() { grep -E "^$1/" out | awk '{ if ($NF + 0 > m) m = $NF + 0 } END { print m }'; }
    detail="$(grep -o '[0-9]* copies, [0-9]* wrong.*' out); best H2D $(best H2D), D2H $(best D2H), D2D $(best D2D) GB/s"
    [ $code -eq 0 ] && line transfers ok "$detail" || line transfers FAILED "exit $code: $detail"
}

# ---- The HIP backend, through a libamdhip64 over CUDA's driver -----------------------------------
# hip_test STEP PROGRAM ARGUMENTS...: as run_test.
hip_test()
{
    if [ -e "$build/hip_over_cuda/libamdhip64.so" ] && [[ "$device" == cuda:* ]]; then
        LD_LIBRARY_PATH=$build/hip_over_cuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} device=hip:${device#cuda:} run_test "$@"
    elif wanted "$1"; then
        line "$1" skipped "needs a GPU of CUDA's, and hip_over_cuda in $build"
    fi
}
hip_test hip-ops gpu_ops_test
hip_test hip-step gpu_step_test
hip_test hip-inspections gpu_inspect_test
hip_test hip-limits gpu_limits_test
hip_test hip-models gpu_engine_test
hip_test hip-fault gpu_fault_test overrun@op=add,layer=3

# ---- Without enough, or none at all -------------------------------------------------------------
used_mib() { nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits -i "${device##*:}" 2>/dev/null | head -1; }
# memory_back BEFORE: does the GPU use no more than that many MiB again (others may use some: 64 more)? It may take it a
# moment. Says what it saw in $memory; where it is not known how much is used, nothing is asked for.
memory_back()
{
    local after=
    memory="memory used is not known here"
    [[ "$1" =~ ^[0-9]+$ ]] || return 0
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        after=$(used_mib)
        memory="memory used before and after: $1 and ${after:-?} MiB"
        [[ "$after" =~ ^[0-9]+$ ]] && [ "$after" -le $(($1 + 64)) ] && return 0
        sleep 0.5
    done
    memory+=", which is more than 64 MiB more"
    return 1
}
wanted too-large && {
    before=$(used_mib)
    "$greta" infer --greedy -m "$stories" -p "$prompt" -n 1 -c 2000000000 --device "$device" >out 2>&1
    code=$?
    memory=
    [ $code -ne 0 ] && [ $code -lt 128 ] && grep -q -i -E 'expected .*(memory|context)' out && memory_back "$before" &&
        line too-large ok "exit $code, $memory; $(grep -i -m 1 -E 'expected' out | cut -c 1-160)" ||
        line too-large FAILED "exit $code: $memory $(last 2)"
}
wanted two-processes && {
    infer a.txt -m "$stories" -p "$prompt" -n 256 --ignore-eos --device "$device" &
    other=$!
    infer b.txt -m "$stories" -p "$prompt" -n 256 --ignore-eos --device "$device"
    code=$?
    wait $other && [ $code -eq 0 ] && [ -s a.txt ] && cmp -s a.txt b.txt &&
        line two-processes ok "two at once, the same text" || line two-processes FAILED "exit $code: $(tail -1 err)"
}
wanted lost && {
    before=$(used_mib) memory=
    "$greta" infer --greedy -m "$stories" -p "$prompt" -n 8 --device "$device" --audit guard --flight lost.flight \
        --inject wild-pointer@op=rope,layer=1,step=3 >out 2>&1
    code=$?
    [ $code -eq 1 ] && grep -q 'illegal memory access' out && grep -q 'rope, layer 1, step 3' out &&
        infer t -m "$stories" -p "$prompt" -n 8 --device "$device" && memory_back "$before" &&
        line lost ok "names $(grep -o -m 1 'first fault: [^,]*, layer [0-9]*, step [0-9]*' out); the next process runs; $memory" ||
        line lost FAILED "exit $code: $memory $(last 2)"
}

# Which copies, memsets and frees wait: each row of docs/copy-behaviour.md that this GPU does otherwise is printed.
wanted copy-behaviour && {
    nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
    if [[ "$device" != cuda:* ]] || [ ! -x "$nvcc" ]; then
        line copy-behaviour skipped "no CUDA device, or no nvcc"
    elif ! limited "$nvcc" -arch=native -O1 -I "$here/../../src" -o copy_behaviour "$here/copy_behaviour.cu"; then
        line copy-behaviour skipped "nvcc: $(last 2)"
    else
        limited ./copy_behaviour
        code=$?
        cp out "${OUT_FOLDER:-$work}/copy-behaviour.txt" 2>/dev/null
        counts="$(grep -c ': same$' out) rows as documented, $(grep -c ': measured$' out) left open, $(grep -c ': DIFFERS$' out) differ"
        case $code in
        0) line copy-behaviour ok "$counts" ;;
        77) line copy-behaviour skipped "$(last)" ;;
        *) line copy-behaviour FAILED "exit $code: $counts $(last)" ;;
        esac
        grep ': DIFFERS$' out | sed 's/^/    /'
    fi
}

# ---- greta trace ------------------------------------------------------------------------------
wanted preload && {
    timeout -k 5 $((limit * 5)) "$here/preload_check.sh" "$greta" >out 2>&1 </dev/null
    code=$?
    case $code in
    0) line preload ok "$(grep -c ' ok ' out) checks, $(grep '^cost ' out | tr -s ' ')" ;;
    77) line preload skipped "$(last)" ;;
    *) line preload FAILED "exit $code: $(last)" ;;
    esac
    grep ' FAILED ' out | sed 's/^/    /'
}

wanted dumps && {
    OUT_FOLDER=${OUT_FOLDER:+$OUT_FOLDER/dumps} timeout -k 5 $((limit * 5)) "$here/dump_check.sh" "$greta" >out 2>&1 </dev/null
    code=$?
    case $code in
    0) line dumps ok "$(grep -c ' ok ' out) checks, $(grep '^cost ' out | tr -s ' ')" ;;
    77) line dumps skipped "$(last)" ;;
    *) line dumps FAILED "exit $code: $(last)" ;;
    esac
    grep ' FAILED ' out | sed 's/^/    /'
}

# Programs with planted bugs, and clean ones; these also with page traps.
foreign()
{
    local name=$1
    shift
    wanted "$name" || return
    [[ "$device" == cuda:* && -e /dev/nvidiactl ]] || { line "$name" skipped "no NVIDIA GPU"; return; }
    timeout -k 5 $((limit * 10)) python3 "$here/../defects/foreign/run.py" "$greta" "$@" >out 2>&1 </dev/null
    local code=$?
    cp out "${OUT_FOLDER:-$work}/$name.txt" 2>/dev/null
    case $code in
    0) line "$name" ok "$(last)" ;;
    77) line "$name" skipped "$(last)" ;;
    *) line "$name" FAILED "exit $code: $(last)" ;;
    esac
    grep -A 4 ' FAILED$' out | sed 's/^/    /'
}
foreign foreign
foreign foreign-traps --trap-host

# ---- Cost -------------------------------------------------------------------------------------
wanted audit-cost && {
    if [ -n "${MODEL_8B:-}" ]; then
        limited "$greta" bench -m "$MODEL_8B" --device "$device" --audit-cost -n 64 -r 4
        code=$?
        cp out "${OUT_FOLDER:-$work}/audit-cost.txt" 2>/dev/null
        [ $code -eq 0 ] && line audit-cost ok "$(grep -E 'log|guard' out | tr -s ' ' | tr '\n' ';' | cut -c 1-300)" || line audit-cost FAILED "exit $code: $(last 2)"
    else
        line audit-cost skipped "no MODEL_8B"
    fi
}
wanted memcheck && {
    if command -v compute-sanitizer >/dev/null; then
        # timed COMMAND...: its exit status; the seconds it took in $took.
        timed() { local t code; t=$(date +%s.%N); "$@"; code=$?; took=$(echo "$(date +%s.%N) $t" | awk '{ printf "%.2f s", $1 - $2 }'); return $code; }
        run() { timeout -k 5 "$limit" "$@" -m "$stories" -p "$prompt" -n 32 --greedy --device "$device" >text 2>err </dev/null; }
        timed run "$greta" infer && times="plain $took" && cp text plain.txt &&
            timed run "$greta" infer --audit log --flight l.flight && times+=", --audit log $took" &&
            timed run "$greta" infer --audit guard --flight g.flight && times+=", --audit guard $took" &&
            timed run compute-sanitizer --tool memcheck --error-exitcode 9 --log-file memcheck.log "$greta" infer
        code=$? # 9: it found errors
        cp memcheck.log "${OUT_FOLDER:-$work}/" 2>/dev/null
        [ $code -eq 0 ] && grep -q 'ERROR SUMMARY: 0 errors' memcheck.log && cmp -s text plain.txt &&
            line memcheck ok "0 errors; whole runs: $times, compute-sanitizer $took" ||
            line memcheck FAILED "exit $code: $(tail -2 memcheck.log 2>/dev/null | tr '\n' ' ') $(tail -1 err)"
    else
        line memcheck skipped "compute-sanitizer is not installed"
    fi
}
echo "$failures lines FAILED"
exit $failures
