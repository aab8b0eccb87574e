# infer_audit_test.sh - greta infer and greta bench with --audit: what was found is in the exit
# status, in the text and in the JSON; a recording is new every time, or the run is refused.
source "$(dirname "$0")/lib.sh"

expect_exit 0 "$GRETA" synth --shape tiny --type q8_0 --seed 3 --out tiny.gguf
run=("$GRETA" infer -m tiny.gguf -p hi -n 4 --seed 1)

# expect_last EXPRESSION: the last line on standard output is JSON, and the Python expression about
# it (j) is true.
expect_last()
{
    tail -n 1 "$captured/out" >"$captured/last"
    python3 -c "import json,sys; j = json.load(open(sys.argv[1])); sys.exit(not ($1))" \
        "$captured/last" 2>>"$captured/err" || fail "expected a last line with $1"
}

# expect_ending STATUS REASON: the same in text and in JSON.
expect_ending()
{
    grep -qx "STATUS=$1" "$captured/err" || fail "expected STATUS=$1"
    grep -qx "Ended: $2" "$captured/err" || fail "expected Ended: $2"
    expect_last "(j['status'], j['reason']) == ('$1', '$2')"
}

# ---- Findings are not success ------------------------------------------------------------------
expect_exit 0 "${run[@]}" --json
expect_ending OK length
expect_last "'audit' not in j"
expect_exit 0 "${run[@]}" --audit verify --json --flight clean.flight
expect_ending OK length
expect_last "j['audit']['level'] == 'verify' and j['audit']['recording'] == 'clean.flight'"
expect_last "j['audit']['findings'] == [] and j['audit']['finding_count'] == 0 and j['audit']['events'] > 100"
expect_exit 1 "${run[@]}" --inject flipped-bit --audit verify --json --flight flipped.flight
expect_ending FINDINGS length
expect_stderr "Audit findings: the text was written, and the audit has"
expect_stderr "recorded in flipped.flight"
expect_last "j['audit']['findings'][0]['hypothesis'] == 'silent-corruption' and j['generated_tokens'] == 4"
expect_last "j['audit']['findings'][0]['certainty'] == 'direct' and j['audit']['findings'][0]['sentence']"
expect_last "j['audit']['findings'][0]['cause']['kind'] == 'copy-out' and j['audit']['findings'][0]['cause']['layer'] is None"
expect_last "len(j['audit']['findings']) == j['audit']['finding_count'] and j['error'] is None"
expect_exit 1 "${run[@]}" --inject flipped-bit --audit verify
expect_stderr "STATUS=FINDINGS"
# Failed generation stays that, with what the audit says of it.
expect_exit 1 "${run[@]}" --inject rope-position@layer=2 --json
expect_ending FAILED error
expect_last "'(--audit log names the launch)' in j['error']"
expect_exit 1 "${run[@]}" --inject rope-position@layer=2 --json --audit log
expect_ending FAILED error
expect_last "j['audit']['findings'][0]['cause']['op'] == 'rope' and j['audit']['findings'][0]['cause']['layer'] == 2"
expect_last "'past its bound' in j['error'] and '--audit' not in j['error']"

# ---- A recording is never overwritten ----------------------------------------------------------
rm -f ./*.flight
expect_exit 0 "${run[@]}" --audit log
expect_exit 0 "${run[@]}" --audit log
mapfile -t files < <(ls ./*.flight)
[ ${#files[@]} -eq 2 ] || fail "expected two recordings, found ${files[*]}"
[[ "${files[0]}" =~ ^\./greta-[0-9]{8}-[0-9]{6}-[0-9]+\.flight$ ]] || fail "expected a name with date, time and process"
[ "$(stat -c %a "${files[0]}")" = 600 ] || fail "expected a file that is its owner's alone"
cp "${files[0]}" "$captured/before"
expect_exit 3 "${run[@]}" --audit log --flight "${files[0]}"
expect_no_stdout
expect_one_line_error "expected a new name, found a file; a recording is never overwritten"
expect_same_bytes "${files[0]}" "$captured/before"
expect_exit 3 "${run[@]}" --flight tiny.gguf
expect_one_line_error "--flight tiny.gguf: expected a new name"
ln -s nowhere dangling.flight
expect_exit 3 "${run[@]}" --flight dangling.flight
rm dangling.flight
# Where no device is opened nothing is recorded, and no file is left.
before=$(ls -A)
expect_exit 3 "${run[@]}" --audit log --device cuda:99
[ "$(ls -A)" = "$before" ] || fail "expected no recording of a run that never was"
# Refused before the run.
expect_exit 3 "${run[@]}" --audit log --flight /nonexistent/x
expect_no_stdout
expect_one_line_error "/nonexistent/x: cannot create the flight file"
if [ "$(id -u)" -ne 0 ]; then
    mkdir locked && chmod 500 locked
    expect_exit 3 bash -c 'cd locked && exec "$@"' - "${run[@]/#tiny.gguf/../tiny.gguf}" --audit log
    expect_one_line_error "name another place with --flight"
    chmod 700 locked
fi

# ---- greta flight list -------------------------------------------------------------------------
rm -f ./*.flight
mkdir empty
expect_exit 0 "$GRETA" flight list empty
expect_stdout "recordings found  0"
expect_exit 0 "${run[@]}" --flight good.flight
expect_exit 1 "${run[@]}" --audit verify --inject flipped-bit --flight bad.flight
printf 'not a recording' >other.flight
expect_exit 0 "$GRETA" flight list
expect_stdout "recordings found  3"
expect_exit 0 "$GRETA" flight list . --json
expect_json "[r['file'] for r in j['recordings']] == ['other.flight', 'good.flight', 'bad.flight']"
expect_json "[r['ended'] for r in j['recordings']] == ['unreadable', 'in order', 'in order']"
expect_json "j['recordings'][0]['findings'] is None and j['recordings'][1]['findings'] == 0 and j['recordings'][2]['findings'] > 0"
expect_json "j['recordings'][2]['command'].startswith('greta infer -m tiny.gguf') and j['recordings'][2]['device'] == 'host'"
# The events of a file, under both names.
expect_exit 0 "$GRETA" flight list good.flight
cp "$captured/out" "$captured/events"
expect_exit 0 "$GRETA" flight events good.flight
expect_same_bytes "$captured/out" "$captured/events"
expect_stdout "device-open"
expect_exit 2 "$GRETA" flight list . --failures
expect_exit 2 "$GRETA" flight show
expect_one_line_error "show: expected a FILE, found none"
expect_exit 2 "$GRETA" flight

# ---- bench -------------------------------------------------------------------------------------
bench=("$GRETA" bench -m tiny.gguf -p 2 -n 2 -r 1)
expect_exit 0 "${bench[@]}" --audit log --json --flight bench.flight
expect_json "len(j) == 2 and all(r['audit']['recording'] == 'bench.flight' and r['audit']['findings'] == [] for r in j)"
expect_exit 0 "${bench[@]}" --json
expect_json "all('audit' not in r for r in j)"
expect_exit 1 "${bench[@]}" --audit verify --json --flight faulty.flight --inject flipped-bit
expect_json "all(r['audit']['findings'][0]['hypothesis'] == 'silent-corruption' for r in j)"
expect_stderr "Audit findings: the speed was measured, and the audit has"
expect_exit 1 "${bench[@]}" --audit verify -o jsonl --flight lines.flight --inject flipped-bit
expect_last "j['audit']['finding_count'] > 0"
expect_exit 3 "${bench[@]}" --audit log --flight bench.flight
expect_no_stdout
expect_one_line_error "a recording is never overwritten"
expect_exit 3 "${bench[@]}" --audit log --flight /nonexistent/x
expect_no_stdout

expect_exit 2 "${bench[@]}" --audit-cost --audit log
expect_one_line_error "--audit-cost: expected no --audit"

# ---- Ctrl-C ------------------------------------------------------------------------------------
last="Ctrl-C"
python3 - "$GRETA" <<'PYTHON' || fail "expected an interrupted run to say so"
import signal, subprocess, sys
child = subprocess.Popen([sys.argv[1], "infer", "-m", "tiny.gguf", "-p", "hi", "-n", "-1", "--ctx-size", "100000", "--ignore-eos",
                          "--audit", "log", "--flight", "interrupted.flight"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
child.stdout.read(1)
child.send_signal(signal.SIGINT)
_, errors = child.communicate()
assert child.returncode == 130, child.returncode
lines = errors.decode().splitlines()
assert "STATUS=INTERRUPTED" in lines and "Ended: interrupted" in lines, lines
assert any(line.startswith("Audit: level log") and "interrupted.flight" in line for line in lines), lines
PYTHON
expect_exit 0 "$GRETA" flight show interrupted.flight

# Nothing was found, but the fault that was to be found was never there.
expect_exit 4 "${run[@]}" --audit log --inject skipped-wait --flight unplanted.flight
expect_stderr "STATUS=INCONCLUSIVE"
expect_stderr "Audit: the text was written, but the fault that was to be found was never planted"
expect_exit 4 "${bench[@]}" --audit log --inject skipped-wait --flight unmeasured.flight
expect_exit 0 "${run[@]}" --inject skipped-wait
finish
