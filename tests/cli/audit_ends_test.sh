# audit_ends_test.sh - greta audit: compared with what was expected and against an earlier one, killed
# and resumed, interrupted, locked, with a worker that dies or hangs, with nowhere to write.
source "$(dirname "$0")/audit_lib.sh"

# Kept for all that follow: none of them then begins with it.
expect_exit 0 "${audit[@]}" --self-test

# ---- Expected, and not there -------------------------------------------------------------------
expect_exit 4 "${audit[@]}" --matrix B:audit:3 --expect-fault "illegal memory access"
expect_stdout "NOT"
expect_summary "j['outcome'] == 'NOT_REPRODUCED'"
expect_exit 1 "${audit[@]}" --matrix B:audit:2 --no-interventions \
    --expect-fault "illegal memory access" --inject wild-pointer@op=rope,layer=1,step=2
expect_summary "j['outcome'] == 'ROOT_CAUSE'"

# ---- A fault that is never planted -------------------------------------------------------------
# What does not exist is refused before anything runs, with what does.
refused()
{
    expect_exit 2 "${audit[@]}" --matrix B:audit:1 --inject "$1"
    expect_one_line_error "$2"
}
before=$(find artifacts -mindepth 2 -maxdepth 2 | wc -l)
refused rope-position@layer=99 "layer: found 99, expected 0 to 3"
refused wild-pointer@op=foo "op: found 'foo', expected one of: embed"
refused rope-position@step=9999 "step: found 9999, expected 0 to"
refused nan-output@tensor=logit "tensor: found 'logit', expected one of: indices"
refused bad-index@op=rope,operand=what "operand: found 'what', expected one of:"
refused rope-position@layer=2,step=60 "step: found 60, expected 0 to"
refused flipped-bit@op=rope "flipped-bit cannot be in rope; expected op to be one of: copy-out"
refused nan-output@op=copy-out "nan-output cannot be in copy-out; expected op to be one of: embed"
refused rope-position@layer=2,layer=3 "found 'layer' twice"
# The list of tensors has every label that a call of the model carries.
expect_exit 2 "${audit[@]}" --matrix B:audit:1 --inject nan-output@tensor=logit
cp "$captured/err" "$captured/refusal"
expect_exit 0 "$GRETA" infer --model tiny.gguf -p hi -n 2 --audit log --flight labels.flight
expect_exit 0 "$GRETA" flight export labels.flight --format jsonl
python3 - "$captured/refusal" "$captured/out" <<'END' || fail "expected every label in the list"
import json, sys
listed = set(open(sys.argv[1]).read().split("one of: ")[1].replace(", or a weight's name", "").strip().split(", "))
seen = set()
for line in open(sys.argv[2]):
    event = json.loads(line)
    if event.get("step") is not None and event["step"] >= 0 and event.get("tensor"):
        seen.add(event["tensor"])
print(sorted(seen - listed), file=sys.stderr)
sys.exit(not seen or bool(seen - listed))
END
[ "$(find artifacts -mindepth 2 -maxdepth 2 | wc -l)" -eq "$before" ] || fail "expected no folder"
# What may exist, and no call matched: its row decides nothing, whatever else was looked at.
expect_exit 4 "${audit[@]}" --matrix B:audit:20 --inject rope-position@layer=2,tensor=logits
expect_stdout "PLANTED FAULT: rope-position@layer=2,tensor=logits"
expect_stdout "never fired"
expect_summary "'never planted' in j['rows'][0]['missing'] and j['rows'][0]['result'] == 'inconclusive'"
expect_summary "j['outcome'] == 'INCONCLUSIVE' and j['planted_fault']['fired'] is False"
grep -q "PLANTED FAULT.*rope-position@layer=2,tensor=logits" "$(newest)/report.en.md" || fail "expected a banner"
grep -q "FALLO INYECTADO.*rope-position@layer=2,tensor=logits" "$(newest)/report.es.md" || fail "expected a banner"
grep -q "PLANTED FAULT" "$(newest)/report.html" || fail "expected a banner"

# ---- Seen, and not what did it -----------------------------------------------------------------
# The row shows an innocent copy; the search names the op.
expect_exit 1 "${audit[@]}" --matrix B:audit:4 --no-interventions --no-search \
    --inject unequal-runs@tensor=logits
expect_stdout "DEFECT SEEN"
expect_summary "j['outcome'] == 'DEFECT_SEEN' and j['root_cause'] is None"
expect_summary "j['defect']['hypothesis'] == 'non-determinism'"
expect_exit 1 "${audit[@]}" --matrix B:audit:4 --no-interventions --inject unequal-runs@tensor=logits
expect_summary "{(f['cause']['kind'], f['attribution']) for f in j['findings'] if f['row'] == 'B'} == {('copy-out', 'seen-at')}"
expect_summary "j['outcome'] == 'ROOT_CAUSE' and j['defect'] is None"
expect_summary "[f['cause']['op'] for f in j['findings'] if f['root']] == ['matmul_group']"

# ---- Nothing seen, in too few iterations -------------------------------------------------------
expect_exit 4 "${audit[@]}" --matrix B:audit:19
expect_stdout "NOT SEEN"
expect_summary "j['outcome'] == 'NOT_SEEN' and j['iterations'] == 19"
expect_summary "{h['slug'] for h in j['hypotheses'] if h['verdict'] == 'NOT_SEEN'} >= {'kernel-fault', 'hang', 'numeric'}"
grep -q "Only 19 iterations were recorded, and at least 20 are needed" "$(newest)/report.en.md" || fail "expected what is missing"

# ---- A detector without a self-test proves nothing  -------------------------------------------
expect_exit 4 env XDG_CACHE_HOME="$captured/empty" "${audit[@]}" --matrix B:audit:3 --no-self-test
expect_stdout "INCONCLUSIVE"
expect_stdout "self-test"

# ---- Against an earlier audit ------------------------------------------------------------------
expect_exit 0 "${audit[@]}" --matrix B:audit:20
clean=$(newest)
expect_exit 1 "${audit[@]}" --matrix B:audit:2 --no-interventions --inject rope-position@layer=2,step=3
faulty=$(newest)
expect_exit 1 "${audit[@]}" --matrix B:audit:2 --no-interventions --baseline "$clean" \
    --inject rope-position@layer=1,step=1
cp "$(newest)/summary.json" "$captured/out"
expect_json "'new' in json.dumps(j).lower() and '$(basename "$clean")' in json.dumps(j)"
expect_exit 0 "${audit[@]}" --matrix B:audit:20 --baseline "$faulty"
mkdir damaged
head -c 200 "$clean/summary.json" >damaged/summary.json
expect_exit 3 "${audit[@]}" --matrix B:audit:1 --baseline damaged
expect_one_line_error "damaged/summary.json"
echo '{"id": 7}' >damaged/summary.json
expect_exit 3 "${audit[@]}" --matrix B:audit:1 --baseline damaged
expect_one_line_error "damaged/summary.json"

# ---- Killed, and finished later ----------------------------------------------------------------
rm -rf artifacts
"${audit[@]}" --matrix A:bare:1,B:audit:2,C:audit:4000 >"$captured/out" 2>"$captured/err" &
auditor=$!
wait_for_file "artifacts/*/*/run/C.results.jsonl"
worker=$(pgrep -P "$auditor" | head -1)
kill -9 "$auditor"
wait "$auditor" 2>/dev/null
killed=$(newest)
expect_artifacts "$killed"
expect_summary "j['partial'] and [r['label'] for r in j['rows'] if r['done']][:2] == ['A', 'B']" "$killed"
[ -z "$worker" ] || wait_until has_ended "$worker"
before=$(stat -c %Y%s "$killed/run/B.flight.zst")
sed -i 's/C:audit:4000/C:audit:18/' "$killed/state.json"
expect_exit 0 "${audit[@]}" --resume "$killed"
expect_stdout "CLEAN"
expect_artifacts "$killed"
expect_summary "not j['partial'] and len(j['rows']) == 3" "$killed"
[ "$(stat -c %Y%s "$killed/run/B.flight.zst")" = "$before" ] || fail "expected row B not to run again"
expect_exit 3 "${audit[@]}" --resume nowhere
expect_one_line_error "nowhere/state.json"
echo '{}' >"$killed/state.json"
expect_exit 3 "${audit[@]}" --resume "$killed"
expect_one_line_error "state.json"

# ---- A worker that dies, and one that hangs ----------------------------------------------------
rm -rf artifacts
last="audit, its worker killed"
"${audit[@]}" --matrix B:audit:4000,C:audit:3 >"$captured/out" 2>"$captured/err" &
auditor=$!
wait_for_file "artifacts/*/*/run/B.results.jsonl"
wait_until pgrep -P "$auditor" >/dev/null
worker=$(pgrep -P "$auditor" | head -1)
kill -9 "$worker"
wait "$auditor"
[ $? -eq 4 ] || fail "expected exit status 4"
expect_summary "j['outcome'] == 'INCONCLUSIVE' and [r['crashed'] for r in j['rows']] == [True, False]"
expect_summary "[(r['ending'], r['signal']) for r in j['rows']] == [('killed', 9), ('exited', 0)]"
# Whoever killed it, no kernel did.
expect_summary "j['findings'] == []"
expect_stderr "killed by signal 9 (SIGKILL)"
# Nor has it a cause to search for; the first line says what happened.
expect_summary "j['interventions'] == [] and j['search'] is None"
expect_summary "': killed by signal 9 (SIGKILL)' in j['headline']['en'] and 'row B ended after' in j['headline']['en']"
expect_summary "': terminado por la señal 9 (SIGKILL)' in j['headline']['es']"
expect_stdout "Not decided: row B ended after"
rm -rf artifacts
last="audit, its worker asked to end"
"${audit[@]}" --matrix B:audit:4000 >"$captured/out" 2>"$captured/err" &
auditor=$!
wait_for_file "artifacts/*/*/run/B.results.jsonl"
wait_until pgrep -P "$auditor" >/dev/null
wait_until grep -q '"run"' artifacts/*/*/run/B.results.jsonl
kill -TERM "$(pgrep -P "$auditor" | head -1)"
wait "$auditor"
[ $? -eq 4 ] || fail "expected exit status 4"
expect_summary "[(r['ending'], r['signal']) for r in j['rows']] == [('killed', 15)]"
rm -rf artifacts
last="audit, its worker stopped"
"${audit[@]}" --matrix B:audit:4000 --hang-limit 1 >"$captured/out" 2>"$captured/err" &
auditor=$!
wait_for_file "artifacts/*/*/run/B.results.jsonl"
wait_until pgrep -P "$auditor" >/dev/null
kill -STOP "$(pgrep -P "$auditor" | head -1)"
wait "$auditor"
[ $? -eq 4 ] || fail "expected exit status 4"
expect_summary "[(r['ending'], r['signal'], r['hung']) for r in j['rows']] == [('stopped', 19, False)]"
expect_summary "j['outcome'] == 'INCONCLUSIVE' and j['findings'] == [] and j['interventions'] == []"
expect_stdout "stopped by signal 19 (SIGSTOP) and not continued"
rm -rf artifacts
last="audit, its worker aborted"
"${audit[@]}" --matrix B:audit:4000 --repeats 2 >"$captured/out" 2>"$captured/err" &
auditor=$!
wait_for_file "artifacts/*/*/run/B.results.jsonl"
wait_until pgrep -P "$auditor" >/dev/null
wait_until grep -q '"run"' artifacts/*/*/run/B.results.jsonl
kill -ABRT "$(pgrep -P "$auditor" | head -1)"
wait "$auditor"
[ $? -eq 1 ] || fail "expected exit status 1"
expect_stdout "no finding says why: aborted by signal 6 (SIGABRT)"
# It does not come again: one change is tried, and no more.
expect_summary "[(i['runs'], i['faults'], i['control_runs'], i['control_faults']) for i in j['interventions']] == [(2, 0, 2, 0)]"
expect_exit 1 "${audit[@]}" --matrix B:audit:1 --no-interventions --hang-limit 1 --inject lost-wakeup
expect_stdout "hang"
expect_summary "j['outcome'] == 'DEFECT_SEEN' and [r['hung'] for r in j['rows']] == [True]"
expect_summary "[r['ending'] for r in j['rows']] == ['hung']"
expect_summary "{(f['hypothesis'], f['attribution']) for f in j['findings']} == {('hang', 'seen-at')}"
expect_summary "j['defect']['hypothesis'] == 'hang' and j['root_cause'] is None"

# ---- Interrupted -------------------------------------------------------------------------------
rm -rf artifacts
last="audit, interrupted"
"${audit[@]}" --matrix B:audit:4000 >"$captured/out" 2>"$captured/err" &
auditor=$!
wait_for_file "artifacts/*/*/run/B.results.jsonl"
kill -INT "$auditor"
wait "$auditor"
[ $? -eq 130 ] || fail "expected exit status 130"
expect_stderr "--resume"

# ---- One at a time -----------------------------------------------------------------------------
rm -rf artifacts
"${audit[@]}" --locked --matrix B:audit:4000 >"$captured/first" 2>&1 &
auditor=$!
wait_for_file "artifacts/*/*/run/B.results.jsonl"
expect_exit 3 "${audit[@]}" --locked --matrix B:audit:1
expect_one_line_error "expected no other audit of this device, found one (process $auditor)"
expect_exit 0 "${audit[@]}" --matrix B:audit:20
kill -9 "$auditor"
wait "$auditor" 2>/dev/null
expect_exit 0 "${audit[@]}" --locked --matrix B:audit:20
grep -q "AMD_SERIALIZE_KERNEL=3" "$(newest)/manifest.json" || fail "expected the environment"

# ---- Nowhere to write --------------------------------------------------------------------------
rm -rf artifacts
: >artifacts
expect_exit 3 "${audit[@]}" --matrix B:audit:1
expect_one_line_error "artifacts"
rm artifacts
finish
