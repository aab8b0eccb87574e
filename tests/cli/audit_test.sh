# audit_test.sh - greta audit: what it refuses, its self-test, verdicts, exit status, artifacts.
source "$(dirname "$0")/audit_lib.sh"

# ---- Lines that make no sense ------------------------------------------------------------------
expect_exit 2 "${audit[@]}" --matrix A:nothing:5
expect_one_line_error "matrix: expected LABEL:MODE:COUNT"
expect_exit 2 "${audit[@]}" --matrix A:audit:0
expect_exit 2 "${audit[@]}" --matrix A:audit:1,A:audit:2
expect_one_line_error "found 'A' twice"
expect_exit 2 "${audit[@]}" --matrix ../x:audit:1
expect_exit 2 "${audit[@]}" --inject no-such-fault
expect_one_line_error "inject: found 'no-such-fault'"
expect_exit 2 "${audit[@]}" --self-test --transfers
expect_exit 2 "${audit[@]}" --faults overrun
expect_one_line_error "--faults: expected --self-test"
expect_exit 2 "${audit[@]}" --self-test --faults overrun,no-such-fault
expect_one_line_error "found 'no-such-fault'"
expect_exit 2 "${audit[@]}" --self-test --faults overrun,
expect_exit 2 "${audit[@]}" --level off
expect_exit 2 "${audit[@]}" something
expect_one_line_error "something"
expect_exit 2 "${audit[@]}" -- --no-such-flag
expect_one_line_error "after --"
expect_exit 2 "${audit[@]}" -p one -- -p two
expect_one_line_error "expected one prompt, found several"
expect_exit 2 "${audit[@]}" -- -t 99999
expect_one_line_error "--threads: expected at most 256"
expect_exit 2 "${audit[@]}" --device quantum
expect_exit 2 "$GRETA" audit-worker
expect_exit 3 "$GRETA" audit --model absent.gguf --matrix B:audit:1
expect_one_line_error "absent.gguf"
expect_exit 3 "$GRETA" audit-worker absent.json
expect_files tiny.gguf

# ---- The instrument ----------------------------------------------------------------------------
expect_exit 0 "${audit[@]}" --self-test --faults underrun,bad-index --json
expect_json "[p['fault'] for p in j['planted']] == ['bad-index', 'underrun']"
expect_json "all(p['detected'] and p['culprit_ok'] and not p['absent'] for p in j['planted'])"
if ls "$XDG_CACHE_HOME"/greta/self-test-*.json >/dev/null 2>&1; then fail "expected nothing to be kept of some of them"; fi
expect_exit 0 "${audit[@]}" --self-test --json
expect_json "len(j['planted']) >= 28 and j['device']"
expect_json "all(p['detected'] and p['culprit_ok'] and not p['absent'] for p in j['planted'])"
expect_json "len({p['fault'] for p in j['planted']}) == len(j['planted'])"
expect_json "len({p['hypothesis'] for p in j['planted']}) == 15"
expect_json "[p['culprit']['layer'] for p in j['planted'] if p['fault'] == 'rope-position'] == [2]"
ls "$XDG_CACHE_HOME"/greta/self-test-*.json >/dev/null 2>&1 || fail "expected the result to be kept"

# ---- Clean -------------------------------------------------------------------------------------
expect_exit 0 "${audit[@]}" --matrix A:bare:1,B:audit:20,C:stress:2 --author "A. Person" -p "Hello there"
expect_stdout "CLEAN"
clean=$(newest)
expect_artifacts "$clean"
grep -rq '"prompt": "Hello there"' "$clean" || fail "expected the prompt of the audit's own line"
expect_summary "j['planted_fault'] is None"
expect_summary "j['outcome'] == 'CLEAN' and j['iterations'] == 22 and abs(j['bound'] - 3 / 22) < 1e-9"
grep -q "22 recorded iterations; a fault in more than 13.6 % of runs would have been seen" "$clean/report.en.md" ||
    fail "expected the power of the verdict"
# Iterations that cannot be compared do not make up for equal ones.
expect_exit 4 "${audit[@]}" --matrix C:stress:20,D:audit:2 -- -n 2
expect_stdout "Nothing seen in 22 recorded iterations; non-determinism had only "
expect_stdout "trials, and at least 20 are needed to call it clean"
expect_summary "j['outcome'] == 'NOT_SEEN' and j['iterations'] == 22"
expect_summary "all(h['trials'] == 22 for h in j['hypotheses'] if h['slug'] == 'kernel-fault')"
# Bare rows show crashes, and nothing else: they do not make up for recorded ones.
expect_exit 4 "${audit[@]}" --matrix A:bare:18,B:audit:2 -- -n 2
expect_stdout "Nothing seen in 2 recorded iterations; at least 20 are needed to call it clean"
expect_summary "j['outcome'] == 'NOT_SEEN' and j['iterations'] == 2"
expect_exit 4 "${audit[@]}" --matrix A:bare:1
expect_stdout "Looked at 1040 of 1040 transfers. What is missing: no row was recorded"
expect_summary "{h['missing'] for h in j['hypotheses'] if h['slug'] != 'leak'} == {'recording'}"
grep -q "Repeat with a row of mode \`audit\` or" "$(newest)/report.en.md" || fail "expected what to do"
grep -q "A. Person" "$clean/report.en.md" || fail "expected the author in the report"
for row in A B C; do
    [ -s "$clean/run/$row.log" ] || fail "expected run/$row.log"
done
cp "$clean/manifest.json" "$captured/out"
expect_json "'$(sha256sum <"$GRETA" | cut -d' ' -f1)' in json.dumps(j)"
expect_json "'$(sha256sum <tiny.gguf | cut -d' ' -f1)' in json.dumps(j)"
expect_json "'$(sha256sum <"$clean/run/B.log" | cut -d' ' -f1)' in json.dumps(j)"

# ---- A planted fault, the case of the first reports --------------------------------------------
expect_exit 1 "${audit[@]}" --matrix B:audit:2 --repeats 1 --inject rope-position@layer=2,step=3
expect_stdout "later at the D2H copy of logits"
expect_stdout "rope"
expect_stdout "layer 2, step 3"
faulty=$(newest)
expect_artifacts "$faulty"
expect_summary "j['outcome'] == 'ROOT_CAUSE' and 'rope' in json.dumps(j)"
expect_summary "j['planted_fault'] == {'fault': 'rope-position@layer=2,step=3', 'fired': True}"
grep -q "injected-removed" "$faulty/report.en.md" || fail "expected the interventions in the report"
grep -q "20[0-9-]*T" "$faulty/report.en.md" || fail "expected a date in the report"
# A fault below the checks: the worker's device is lost, the audit lives on.
expect_exit 1 "${audit[@]}" --matrix B:audit:2 --no-interventions --ablate d2h --repeats 1 --lang es \
    --inject wild-pointer@op=rope,layer=1,step=2
expect_stdout "capa 1"
cp "$(newest)/summary.json" "$captured/out"
expect_json "'illegal memory access' in json.dumps(j)"
finish
