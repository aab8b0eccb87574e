# audit_transfers_test.sh - greta audit --transfers: copies of every size by every path arrive, and one that
# does not is found.
source "$(dirname "$0")/audit_lib.sh"

expect_exit 0 "${audit[@]}" --transfers --copies 16 --json
expect_json "j['passed'] and j['mismatches'] == 0 and j['copies'] >= 16 * 36 and len(j['paths']) == 36 + 25 + 1"
expect_json "[p['mismatches'] for p in j['paths'] if p['path'] == 'model'] == [0]"
expect_exit 1 "${audit[@]}" --transfers --copies 4 --inject flipped-bit
expect_stdout "findings"
finish
