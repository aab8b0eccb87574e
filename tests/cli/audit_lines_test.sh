# audit_lines_test.sh - the lines on copies that the first audits printed, field for field; START is
# written before the copy; after FATAL the run ends in order. With --audit, the run is
# recorded, analysed and reported.
source "$(dirname "$0")/lib.sh"

expect_exit 0 "$GRETA" synth --shape tiny --type q8_0 --seed 3 --out tiny.gguf

# Addresses, streams and times are the machine's: masked, so that everything else is exact.
masked() { sed -E 's/0x[0-9a-f]+/0xADDRESS/g; s/ts=[0-9]{10}\.[0-9]{6}( |$)/ts=TIME\1/g' "$1"; }

# expect_lines FILE WANTED: the masked lines that are about copies are these, in this order.
expect_lines()
{
    masked "$1" | grep -aE '^(\[D2H|  (src_ptr|dst_ptr|bytes|stream|hipError|cudaError|error)=)' >"$captured/found"
    printf '%s' "${2:+$2
}" >"$captured/wanted"
    cmp -s "$captured/found" "$captured/wanted" ||
        { diff "$captured/wanted" "$captured/found" >&2; fail "expected other lines on copies"; }
}

run=("$GRETA" infer -m tiny.gguf -p Hi --temp 1 --seed 1 -n 2 --ignore-eos)
rope=(--inject wrapped-offset@op=rope,layer=1,step=1)
# The copy itself touches memory that is gone: where that is seen does not depend on who is faster.
gone=(--inject memory-vanished@op=copy-out,step=1)

# ---- GCORE_D2H_AUDIT -----------------------------------------------------------------------------
audit_good='[D2H_AUDIT_START] op_id=0 ts=TIME stream=0xADDRESS dev_ptr=0xADDRESS host_ptr=0xADDRESS bytes=4096 tensor=logits step=0 layer=-1
[D2H_AUDIT_END] op_id=0 ts=TIME stream=0xADDRESS result=success tensor=logits
[D2H_AUDIT_START] op_id=1 ts=TIME stream=0xADDRESS dev_ptr=0xADDRESS host_ptr=0xADDRESS bytes=4096 tensor=logits step=1 layer=-1
[D2H_AUDIT_END] op_id=1 ts=TIME stream=0xADDRESS result=success tensor=logits'
expect_exit 0 env GCORE_D2H_AUDIT=1 "${run[@]}"
expect_lines "$captured/err" "$audit_good"
expect_exit 0 env GCORE_D2H_AUDIT=1 GCORE_D2H_AUDIT_LOG=copies.log "${run[@]}"
expect_lines copies.log "$audit_good"
expect_lines "$captured/err" ""
[ "$(wc -l <copies.log)" -eq 4 ] || fail "expected nothing else in the log"
# A time of day, not of the machine's start.
python3 - copies.log <<'PYTHON' || fail "expected times of today, in order"
import re, sys, time
times = [float(re.search(r"ts=(\d+\.\d{6}) ", line)[1]) for line in open(sys.argv[1])]
assert times == sorted(times) and abs(times[0] - time.time()) < 3600, times
PYTHON
expect_exit 1 env GCORE_D2H_AUDIT=1 "${run[@]}" "${gone[@]}"
expect_lines "$captured/err" '[D2H_AUDIT_START] op_id=0 ts=TIME stream=0xADDRESS dev_ptr=0xADDRESS host_ptr=0xADDRESS bytes=4096 tensor=logits step=0 layer=-1
[D2H_AUDIT_END] op_id=0 ts=TIME stream=0xADDRESS result=success tensor=logits
[D2H_AUDIT_START] op_id=1 ts=TIME stream=0xADDRESS dev_ptr=0xADDRESS host_ptr=0xADDRESS bytes=4096 tensor=logits step=1 layer=-1
[D2H_AUDIT_END] op_id=1 ts=TIME stream=0xADDRESS result=lost tensor=logits'
# Killed in the copy: what had begun is in the file.
rm -f copies.log
last="killed in a copy"
GCORE_D2H_AUDIT=1 GCORE_D2H_AUDIT_LOG=copies.log "${run[@]}" --inject lost-wakeup@step=1 \
    >"$captured/out" 2>"$captured/err" </dev/null &
child=$!
wait_until has_text 'START] op_id=1 ' copies.log
kill -KILL "$child"
wait "$child" 2>"$captured/err"
[ "$(tail -n 1 copies.log | masked /dev/stdin)" = '[D2H_AUDIT_START] op_id=1 ts=TIME stream=0xADDRESS dev_ptr=0xADDRESS host_ptr=0xADDRESS bytes=4096 tensor=logits step=1 layer=-1' ] ||
    fail "expected the log to end with the START of the copy"
# Where it cannot be written, the lines come to stderr and the run goes on.
expect_exit 0 env GCORE_D2H_AUDIT=1 GCORE_D2H_AUDIT_LOG=no/such/folder "${run[@]}"
expect_stderr "no/such/folder: cannot write the log of copies"
expect_lines "$captured/err" "$audit_good"
if [ -w /dev/full ]; then
    expect_exit 0 env GCORE_D2H_AUDIT=1 GCORE_D2H_AUDIT_LOG=/dev/full "${run[@]}"
    expect_stderr "/dev/full: not every line on copies could be written"
fi
expect_exit 0 env GCORE_D2H_AUDIT=0 GRETA_TRACE_MEMCPY=0 GRETA_D2H_DEBUG=0 "${run[@]}"
expect_lines "$captured/err" ""

# ---- GRETA_TRACE_MEMCPY --------------------------------------------------------------------------
before='[D2H TRACE] logits:before
  src_ptr=0xADDRESS
  bytes=4096
  stream=0xADDRESS'
after='[D2H TRACE] logits:after
  dst_ptr=0xADDRESS
  bytes=4096'
expect_exit 0 env GRETA_TRACE_MEMCPY=1 "${run[@]}"
expect_lines "$captured/err" "$before
$after
$before
$after"
expect_exit 1 env GRETA_TRACE_MEMCPY=1 "${run[@]}" "${gone[@]}"
expect_lines "$captured/err" "$before
$after
$before
[D2H FATAL] logits:FAILED
  src_ptr=0xADDRESS
  dst_ptr=0xADDRESS
  bytes=4096
  error=an illegal memory access was encountered"
expect_stderr "STATUS=FAILED"
expect_stderr "Generation error: copy out failed: an illegal memory access was encountered (seen here; first fault: copy out, step 1"

# ---- GRETA_D2H_DEBUG -----------------------------------------------------------------------------
check() { printf '[D2H SAFE] engaged for tensor=logits\n[D2H_CHECK] tensor=logits step=%s layer=-1 src_ptr=0xADDRESS dst_ptr=0xADDRESS offset=0 size=4096 alloc=4096\n' "$1"; }
expect_exit 0 env GRETA_D2H_DEBUG=1 "${run[@]}"
expect_lines "$captured/err" "$(check 0)
[D2H SAFE] async copy succeeded: success
$(check 1)
[D2H SAFE] async copy succeeded: success"
expect_exit 1 env GRETA_D2H_DEBUG=1 "${run[@]}" "${gone[@]}"
expect_lines "$captured/err" "$(check 0)
[D2H SAFE] async copy succeeded: success
$(check 1)
[D2H SAFE] Async copy failed logits: an illegal memory access was encountered"
# Synchronised before the copy, as the first audits did: the error of the last kernel is not the
# copy's, whether it is there when the copy is asked for or only after the wait.
expect_exit 1 env GRETA_D2H_DEBUG=1 "${run[@]}" --d2h-mode sync \
    --inject wild-pointer@op=matmul_group,tensor=logits,step=1
grep -qxE '\[D2H SAFE\] (Stream sync failed before logits: an illegal memory access was encountered|Not copied: logits: refused by greta: the device was lost before \(event [0-9]+\), the runtime was not called)' "$captured/err" ||
    fail "expected the wait to have failed"

# ---- Whose code it is ----------------------------------------------------------------------------
# A code of the runtime only where it gave one; what greta refuses itself says so.
lines() { env GCORE_D2H_AUDIT=1 GRETA_TRACE_MEMCPY=1 GRETA_D2H_DEBUG=1 "$@"; }
refused='refused by greta: view-end: expected 4096, found 8193; the runtime was not called'
expect_refusal() # KEY
{
    expect_stderr "  $1=$refused"
    expect_stderr "[D2H SAFE] Not copied: logits: $refused"
    expect_stderr "result=refused_by_greta(view-end) tensor=logits"
    ! grep -qE 'CUDA_ERROR|hipError|INVALID' "$captured/err" || fail "expected no code of a runtime that was not asked"
}
beyond=(--inject view-past-end@op=copy-out,step=1)
expect_exit 1 lines "${run[@]}" "${beyond[@]}"
expect_refusal error
if [ -e "$GRETA_BUILD/fake_gpu/libcuda.so.1" ]; then
    gpu() { LD_LIBRARY_PATH="$GRETA_BUILD/fake_gpu" lines "$@" --device cuda:0; }
    expect_exit 1 gpu "${run[@]}" "${beyond[@]}"
    expect_refusal cudaError
    expect_stderr "result=CUDA_SUCCESS tensor=logits" # of the first copy
    expect_exit 1 gpu "${run[@]}" "${gone[@]}"
    expect_stderr "  cudaError=invalid argument"
    expect_stderr "result=CUDA_ERROR_INVALID_VALUE tensor=logits"
    # Work is done when it is waited for, so the fault is met by the copy.
    wild=(--inject wild-pointer@op=matmul_group,tensor=logits,step=1)
    export FAKE_GPU_LATE=1
    expect_exit 1 gpu "${run[@]}" "${wild[@]}"
    expect_stderr "  cudaError=an illegal memory access was encountered"
    expect_stderr "result=CUDA_ERROR_ILLEGAL_ADDRESS tensor=logits"
    expect_exit 1 gpu "${run[@]}" "${wild[@]}" --flight gpu.flight
    unset FAKE_GPU_LATE
    expect_exit 0 "$GRETA" flight list gpu.flight --failures
    expect_stdout "cuda code 700"
    rm -f gpu.flight
fi

# ---- --audit and --flight ------------------------------------------------------------------------
expect_exit 0 "${run[@]}"
cp "$captured/out" "$captured/plain"
for level in log guard verify; do
    expect_exit 0 "${run[@]}" --audit "$level" --flight "$level.flight"
    expect_same_bytes "$captured/out" "$captured/plain"
    grep -qE "^Audit: level $level, [0-9]+ events, 0 findings, recorded in $level.flight$" "$captured/err" ||
        fail "expected the audit to be told"
    [ -s "$level.flight" ] || fail "expected a flight file"
done
expect_exit 0 "${run[@]}" --audit off
! grep -q '^Audit:' "$captured/err" || fail "expected no audit"
rm -f ./*.flight
expect_exit 0 "${run[@]}" --flight a.flight
expect_stderr "Audit: level log"
# Both at once: the lines and the record.
expect_exit 1 env GCORE_D2H_AUDIT=1 "${run[@]}" "${rope[@]}" --audit log
expect_stderr "[D2H_AUDIT_END] op_id=0"
grep -qE '^  root cause: [a-z-]+: .*rope.*layer 1, step 1' "$captured/err" || fail "expected the root cause"
expect_exit 1 "${run[@]}" --inject rope-position@layer=2,step=1 --audit log
grep -qE '^  root cause: bad-pointer: .*rope.*layer 2, step 1' "$captured/err" || fail "expected the trap"
# No place to record in: refused before the run.
expect_exit 3 "${run[@]}" --audit log --flight no/such/folder/x.flight
expect_no_stdout
expect_one_line_error "cannot record the run as requested: no/such/folder/x.flight"
last="a limit on file size, as a full disk is"
(ulimit -f 64 && trap '' XFSZ && "${run[@]}" --audit log --flight full.flight) >"$captured/out" 2>"$captured/err"
[ $? -eq 3 ] || fail "expected exit status 3"
expect_no_stdout
expect_one_line_error "full.flight: cannot allocate"
[ ! -e full.flight ] || fail "expected no piece of a file"
expect_exit 2 "${run[@]}" --audit loud

# ---- --inject help, bench ------------------------------------------------------------------------
expect_exit 0 "$GRETA" infer --inject help
[ "$(wc -l <"$captured/out")" -ge 28 ] || fail "expected a line for each fault"
expect_stdout "rope-position"
while read -r fault _; do
    grep -qF "| \`$fault\` |" "$GRETA_SOURCE/docs/inject.md" || fail "expected $fault in docs/inject.md"
done <"$captured/out"
expect_exit 0 "$GRETA" bench -m tiny.gguf -p 0 -n 2 -r 1 --audit log --flight bench.flight
expect_stderr "0 findings, recorded in bench.flight"
rm -f ./*.flight
expect_exit 0 "$GRETA" bench -m tiny.gguf -n 2 -r 2 --audit-cost --json
expect_json "[l['level'] for l in j['levels']] == ['off', 'log', 'guard'] and all(l['ms_per_token'] > 0 for l in j['levels'])"
! compgen -G '*.flight' >/dev/null || fail "expected no flight file to be left"
expect_exit 2 "$GRETA" bench -m tiny.gguf -p 4 -n 0 --audit-cost
finish
