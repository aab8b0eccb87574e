# audit_archive_test.sh - greta audit list, show and prune; ARTIFACTS/last and a first run; who may
# read what an audit leaves; whose history it belongs to.
source "$(dirname "$0")/audit_lib.sh"
quick=("${audit[@]}" --no-self-test --matrix A:baseline:1,B:audit:2)

# ---- Nothing yet -------------------------------------------------------------------------------
expect_exit 0 "$GRETA" audit list
expect_no_stdout
expect_stderr "no audits there"
expect_exit 0 "$GRETA" audit list --json
expect_json "j == {'audits': []}"
expect_exit 3 "$GRETA" audit show
expect_one_line_error "no audit is finished"
expect_exit 0 "$GRETA" audit prune --keep 0
expect_stderr "removed 0 audits"

# ---- Lines that make no sense ------------------------------------------------------------------
expect_exit 2 "$GRETA" audit prune
expect_one_line_error "expected --keep N, --older DAYS or --unfinished"
expect_exit 2 "$GRETA" audit list --keep 3
expect_one_line_error "are for prune"
expect_exit 2 "$GRETA" audit list --matrix B:audit:1
expect_one_line_error "found --matrix, a flag for running an audit"
expect_exit 2 "$GRETA" audit list something
expect_exit 2 "$GRETA" audit show one two
expect_one_line_error "'two'"
: >file
expect_exit 3 "$GRETA" audit list --artifacts file
expect_one_line_error "file: cannot read the folder of audits"
rm file

# ---- The first run of a pipeline, and the second -----------------------------------------------
umask 000
expect_exit 4 "${quick[@]}" --baseline artifacts/last -- --max-tokens 4
expect_stderr "artifacts/last: there is no audit yet: this is the first run, and there is nothing to compare it with"
first=$(newest)
expect_summary "j['baseline'] is None and j['earlier'] == [] and j['model'] == 'tiny.gguf'"
expect_summary "[r['mode'] for r in j['rows']] == ['bare', 'audit']"
[ "$(readlink artifacts/last)" = "${first#artifacts/}" ] || fail "expected last to point to $first"
expect_exit 4 "${quick[@]}" --baseline artifacts/last --lang es -- --max-tokens 4
second=$(newest)
[ "$first" != "$second" ] || fail "expected a second audit"
expect_summary "j['baseline']['id'] == '$(basename "$first")'"
expect_summary "[e['id'] for e in j['earlier']] == ['$(basename "$first")']"
[ "$(readlink artifacts/last)" = "${second#artifacts/}" ] || fail "expected last to point to $second"
# Another workload is another history.
expect_exit 4 "${quick[@]}" -- --max-tokens 5
third=$(newest)
expect_summary "j['earlier'] == []"
expect_exit 4 "${quick[@]}" --artifacts other --baseline artifacts/last -- --max-tokens 6
expect_stderr "$(basename "$third"): the audit to compare with is of another model, device or workload"
rm -rf other
umask 022

# ---- Who may read it ---------------------------------------------------------------------------
last="permissions"
open=$(find artifacts ! -type l -perm /077)
[ -z "$open" ] || fail "expected only the owner to read it, found $open"
expect_exit 0 "$GRETA" quantize tiny.gguf small.gguf q4_0
[ "$(stat -c %a small.gguf)" = 644 ] || fail "expected a model to have the usual permissions"
rm small.gguf

# ---- What is kept of recordings ----------------------------------------------------------------
expect_exit 4 "${audit[@]}" --no-self-test --artifacts many --matrix A:bare:20,B:audit:30,C:stress:30
kilobytes=$(du -sk many | cut -f1)
[ "$kilobytes" -lt 5000 ] || fail "expected 80 clean iterations to leave less than 5 MB, found $kilobytes KiB"
if compgen -G "many/2*/*/run/*.flight" >/dev/null; then fail "expected recordings to be compressed"; fi
expect_exit 0 "$GRETA" flight show many/last/run/B.flight.zst --json
expect_json "j['closed'] and j['left_out'] > 0 and j['lost'] == j['damaged'] == 0 and j['findings'] == []"
expect_json "j['last_event'] - j['first_event'] + 1 == 8192 and j['analysed_up_to'] == j['last_event']"
expect_exit 0 "$GRETA" flight list many/last/run/C.flight.zst --op rope
expect_stdout "rope"
# The hashes are those of the files as they lie there.
for row in B C; do
    sum=$(sha256sum <many/last/run/$row.flight.zst | cut -d' ' -f1)
    grep -q "\"flight_sha256\": \"$sum\"" many/last/manifest.json || fail "expected the hash of run/$row.flight.zst"
done
# Read back from what was kept, the analyses are the same.
cp many/last/summary.json before.json
expect_exit 4 "${audit[@]}" --resume "$(readlink -f many/last)"
cp many/last/summary.json "$captured/out"
expect_json "j['analyses'] == json.load(open('before.json'))['analyses'] and not j['partial']"
# A row that went wrong keeps everything.
expect_exit 1 "${audit[@]}" --no-self-test --no-interventions --artifacts wrong --matrix B:audit:30 -- --d2h-mode plain
expect_exit 0 "$GRETA" flight show wrong/last/run/B.flight.zst --json
expect_json "j['left_out'] == 0 and j['findings']"
expect_exit 1 "${audit[@]}" --no-self-test --no-interventions --artifacts faulty --matrix B:audit:30 --inject unequal-runs@tensor=logits
expect_exit 0 "$GRETA" flight show faulty/last/run/B.flight.zst --json
expect_json "j['left_out'] == 0 and j['findings'] and j['last_event'] > 8192"
# Damaged ones, and one that claims too much.
folder=$(readlink -f faulty/last)
cp "$folder/run/B.flight.zst" kept.zst
head -c 2000 kept.zst >"$folder/run/B.flight.zst"
expect_exit 3 "$GRETA" flight show "$folder/run/B.flight.zst"
expect_one_line_error "cannot expand it"
printf '\x28\xB5\x2F\xFD\xE0\x00\x00\x00\x80\x00\x00\x00\x00\x00' >bomb.zst # says that it holds 2 GiB
expect_exit 3 "$GRETA" flight show bomb.zst
expect_one_line_error "expected at most 1.00 GiB when expanded, found 2147483648 bytes"
rm -rf many wrong faulty before.json kept.zst bomb.zst

# ---- A baseline that is there and cannot be used -----------------------------------------------
ln -s 2020-01-01/20200101-000000-0000 dangling
expect_exit 3 "${quick[@]}" --baseline dangling
expect_one_line_error "dangling: cannot find the audit to compare with"
rm dangling

# ---- list and show -----------------------------------------------------------------------------
expect_exit 0 "$GRETA" audit list
expect_stdout "(last)"
expect_stdout "tiny.gguf"
[ "$(grep -c tiny.gguf "$captured/out")" -eq 3 ] || fail "expected three audits"
expect_exit 0 "$GRETA" audit list --json
expect_json "[a['state'] for a in j['audits']] == ['finished'] * 3"
expect_json "[a['last'] for a in j['audits']] == [False, False, True] and j['audits'][0]['size'] > 1000"
expect_json "j['audits'][0]['folder'] == '$first' and j['audits'][0]['outcome']"
expect_exit 0 "$GRETA" audit show
expect_stdout "$third/report.html"
expect_stdout "use-after-free"
expect_exit 0 "$GRETA" audit show "$(basename "$second")" --json
expect_json "j['id'] == '$(basename "$second")' and 'use-after-free' in j['verdict']"
expect_exit 2 "$GRETA" audit show 2
expect_one_line_error "found several"
expect_exit 3 "$GRETA" audit show 1999
expect_one_line_error "there is no such audit"

# ---- What others planted -------------------------------------------------------------------------
# plant ID [DAY]: a copy of the third audit under that id, in $planted.
plant()
{
    planted=artifacts/${2:-2020-01-01}/$1
    mkdir -p "${planted%/*}"
    cp -r "$third" "$planted"
    sed -i "s/$(basename "$third")/$1/" "$planted/summary.json"
}
plant 20200101-000000-0001
sed -i 's/"device": "[^"]*"/"device": "\\u001b[31mred\\u202eder"/' "$planted/summary.json"
plant 20200101-000000-0002
echo '{' >"$planted/summary.json"
plant 20200101-000000-0003
rm "$planted/summary.json"
ln -s /etc/passwd "$planted/summary.json"
plant 20200101-000000-0004
sed -i 's/20200101-000000-0004/20200101-000000-0001/' "$planted/summary.json"
plant 20200101-000000-0005
sed -i 's/"complete": true/"complete": false/' "$planted/state.json"
mkdir precious artifacts/2020-01-02 artifacts/2020-01-01/notes
echo precious >precious/file
ln -s "$PWD/precious" artifacts/2020-01-02/20200102-000000-0001
ln -s "$PWD/artifacts/2020-01-01" artifacts/2020-01-03
ln -s "$PWD/precious" artifacts/2020-01-01/20200101-000000-0001/run/link
expect_exit 0 "$GRETA" audit list
expect_stdout '\x1B[31mred\xE2\x80\xAEder'
expect_exit 0 "$GRETA" audit list --json
expect_json "[a['state'] for a in j['audits']][:5] == ['finished'] + ['damaged'] * 3 + ['unfinished']"
expect_json "len(j['audits']) == 8 and all(a['problem'] for a in j['audits'][1:4])"
expect_exit 0 "$GRETA" audit show 20200101-000000-0001
expect_stdout '\x1B[31mred\xE2\x80\xAEder'
expect_exit 0 "$GRETA" audit show 20200101-000000-0003
expect_stdout "it is a link"
expect_exit 0 "$GRETA" audit show 20200101-000000-0005
expect_stdout "--resume"

# ---- prune -------------------------------------------------------------------------------------
expect_exit 0 "$GRETA" audit prune --older 365 --dry-run
expect_stdout '\x1B[31mred\xE2\x80\xAEder'
expect_stderr "would remove 1 audit, freeing"
expect_stderr "1 unfinished audit stays"
[ -d artifacts/2020-01-01/20200101-000000-0001 ] || fail "expected a dry run to remove nothing"
expect_exit 0 "$GRETA" audit prune --older 365 --json
expect_json "[a['id'] for a in j['removed']] == ['20200101-000000-0001'] and j['freed_bytes'] > 1000"
[ ! -e artifacts/2020-01-01/20200101-000000-0001 ] || fail "expected it to be gone"
[ -s precious/file ] || fail "expected nothing to be removed through a link"
expect_exit 0 "$GRETA" audit prune --older 365 --unfinished
expect_stderr "removed 1 audit,"
[ ! -e artifacts/2020-01-01/20200101-000000-0005 ] || fail "expected it to be gone"
for kept in artifacts/2020-01-01/20200101-000000-000{2,3,4} artifacts/2020-01-01/notes precious/file; do
    [ -e "$kept" ] || fail "expected $kept to stay: it is not an audit"
done
# Two newest, of which one is under way: a process works in it.
"${quick[@]}" --matrix B:audit:100000 >/dev/null 2>&1 &
auditor=$!
wait_for_file "artifacts/2*/*/lock"
running=$(dirname "$(echo artifacts/2*/*/lock)")
wait_for_file "$running/summary.json"
expect_exit 0 "$GRETA" audit list --json
expect_json "[a['process'] for a in j['audits'] if a['state'] == 'running'] == [$auditor]"
expect_exit 3 "${audit[@]}" --resume "$running"
expect_one_line_error "expected no other process to work in it, found one (process $auditor)"
expect_exit 0 "$GRETA" audit prune --keep 1 --unfinished
expect_stderr "removed 2 audits"
[ -d "$third" ] && [ -d "$running" ] || fail "expected the newest and the one that runs to stay"
expect_exit 0 "$GRETA" audit prune --older 1
[ -d "$third" ] || fail "expected what last points to to stay"
kill -9 "$auditor"
wait "$auditor" 2>/dev/null
[ "$(readlink artifacts/last)" = "${third#artifacts/}" ] || fail "expected last to point to a finished audit"
expect_exit 0 "$GRETA" audit prune --keep 0 --unfinished
[ ! -e "$third" ] && [ ! -e "$running" ] && [ ! -L artifacts/last ] || fail "expected all to be gone"
finish
