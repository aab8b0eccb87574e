# flight_test.sh - greta flight: recordings shown, listed, exported; damaged ones refused.
source "$(dirname "$0")/lib.sh"
recorder=${GRETA_BUILD:-}/report_write_test
[ -x "$recorder" ] || exit 77
mkdir made
"$recorder" made || exit 1
mv made/flight run.flight
rm -rf made

# ---- show --------------------------------------------------------------------------------------
expect_exit 0 "$GRETA" flight show run.flight
expect_no_stderr
expect_stdout "ended              device lost"
expect_stdout "calls without end  1"
expect_stdout "#100 launch rms_norm, layer 0, step 4"
expect_stdout "stopped inside"
expect_stdout "#61 launch matmul, layer 11, step 2"
expect_stdout "2139062143   4096"
expect_stdout "analysed at level  guard"
# Names from outside reach no terminal as they are.
expect_stdout 'one\x0Atwo\x0D\x1B[31m'
grep -q $'\x1b' "$captured/out" && fail "expected no escape character"
expect_exit 0 "$GRETA" flight show run.flight --json
expect_json 'j["closed"] is True and j["ending"] == "device-lost" and j["last_event"] == 100 and j["calls_without_end"] == 1'
expect_json '[s["stopped_inside"] for s in j["streams"] if s["stream"] == 1][0].startswith("#61 ")'
expect_json 'j["traps"][0]["index"] == 2139062143 and j["outcomes"]["refused"] == 2'
expect_json 'len(j["findings"]) == j["findings_in_all"] > 0'

# ---- list --------------------------------------------------------------------------------------
# expect_lines COUNT FLAG...: so many events pass the filter.
expect_lines()
{
    local wanted=$1 found
    shift
    expect_exit 0 "$GRETA" flight list run.flight "$@"
    expect_no_stderr
    found=$(wc -l <"$captured/out")
    [ "$found" -eq "$wanted" ] || fail "expected $wanted lines, found $found"
}
expect_lines 100
expect_lines 26 --stream 2
expect_lines 4 --layer 17
expect_lines 25 --step 2
expect_lines 1 --step 3 --layer 17
expect_lines 4 --tensor kv.keys
expect_lines 16 --op rope
expect_lines 20 --op buffer-create
expect_lines 3 --failures
expect_stdout "refused by lost"
expect_stdout "pending"
expect_lines 0 --from 900000
expect_lines 100 --from 0 --to 900000
expect_lines 0 --to 0

# ---- export ------------------------------------------------------------------------------------
expect_exit 0 "$GRETA" flight export run.flight --format jsonl
python3 -c 'import json,sys
lines = [json.loads(line) for line in open(sys.argv[1])]
sys.exit(not (len(lines) == 100 and lines[60]["id"] == 61 and lines[99]["outcome"] == "pending"))' \
    "$captured/out" || fail "expected 100 events as JSON lines"
expect_exit 0 "$GRETA" flight export run.flight --format chrome -o timeline.json
expect_no_stdout
python3 -c 'import json,sys
entries = json.load(open("timeline.json"))["traceEvents"]
sys.exit(not any(e["ph"] == "X" and e["pid"] == 2 for e in entries))' ||
    fail "expected a timeline with work on streams"
expect_exit 3 "$GRETA" flight export run.flight --format chrome -o timeline.json
expect_one_line_error "exists already"
expect_exit 0 "$GRETA" flight export run.flight --failures -o timeline.json --force
[ "$(wc -l <timeline.json)" -eq 3 ] || fail "expected three lines"
rm timeline.json
if [ -e /dev/full ]; then
    expect_exit 3 bash -c "'$GRETA' flight list run.flight >/dev/full"
    expect_one_line_error "cannot write"
fi

# ---- Lines that make no sense ------------------------------------------------------------------
expect_exit 2 "$GRETA" flight
expect_exit 2 "$GRETA" flight show
expect_exit 2 "$GRETA" flight print run.flight
expect_one_line_error "expected show, list, events or export, found 'print'"
expect_exit 2 "$GRETA" flight show run.flight --layer 3
expect_one_line_error "filters apply to events and export"
expect_exit 2 "$GRETA" flight list run.flight -o x
expect_one_line_error "are for export"
expect_exit 2 "$GRETA" flight list run.flight --json
expect_one_line_error "--json is for show"
expect_exit 2 "$GRETA" flight list run.flight --layer -2
expect_one_line_error "found a negative one"
expect_exit 2 "$GRETA" flight list run.flight --from soon
expect_one_line_error "--from: expected milliseconds"
expect_exit 2 "$GRETA" flight list run.flight --from 5 --to 4
expect_one_line_error "--to: expected a time after --from"
expect_exit 2 "$GRETA" flight export run.flight --format xml
expect_one_line_error "--format: expected one of"
expect_exit 2 "$GRETA" flight list run.flight --op "$(printf 'x%.0s' {1..30})"
expect_one_line_error "--op: expected at most 23 bytes"

# ---- Files that are none -----------------------------------------------------------------------
expect_exit 3 "$GRETA" flight show none.flight
expect_one_line_error "none.flight"
head -c 1000 run.flight >cut.flight
expect_exit 3 "$GRETA" flight show cut.flight
expect_one_line_error "cut short"
head -c 200000 run.flight >cut.flight
expect_exit 3 "$GRETA" flight list cut.flight
expect_one_line_error "cut short"
head -c 5000 /dev/urandom >cut.flight
expect_exit 3 "$GRETA" flight export cut.flight
expect_one_line_error "not a flight file"
rm cut.flight
# A record that was torn is counted and passed over.
cp run.flight torn.flight
python3 -c 'import sys
with open("torn.flight", "r+b") as file:
    data = file.read()
    place = data.rindex(b"attention")
    file.seek(place)
    file.write(b"\xff\x1b")'
expect_exit 0 "$GRETA" flight show torn.flight
expect_stdout "damaged            1"
expect_exit 0 "$GRETA" flight list torn.flight
[ "$(wc -l <"$captured/out")" -eq 99 ] || fail "expected 99 lines"
rm torn.flight
expect_files run.flight
# ---- The device, by its name -------------------------------------------------------------------
# `auto` is a wish; a recording says what it came to.
expect_exit 0 "$GRETA" synth --shape tiny --type q4_0 --seed 9 --out tiny.gguf
device=$("$GRETA" infer -m tiny.gguf -p x -n 1 --audit log --flight auto.flight >"$captured/out" 2>"$captured/err"
    "$GRETA" flight show auto.flight --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["device"])')
last="greta infer --audit log, device auto"
[[ "$device" = host || "$device" =~ ^(cuda|hip):[0-9]+$ ]] || fail "expected a device, found '$device'"
if [ -e "$GRETA_BUILD/fake_gpu/libcuda.so.1" ]; then
    expect_exit 0 env LD_LIBRARY_PATH="$GRETA_BUILD/fake_gpu" "$GRETA" infer -m tiny.gguf -p x -n 1 \
        --audit log --flight emulated.flight
    expect_exit 0 "$GRETA" flight show emulated.flight --json
    expect_json 'j["device"] == "cuda:0"'
fi

finish
