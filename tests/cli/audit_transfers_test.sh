# audit_transfers_test.sh - greta audit --transfers: copies of every size by every path arrive, and one that
# does not is found.
source "$(dirname "$0")/audit_lib.sh"

expect_exit 0 "${audit[@]}" --transfers --copies 16 --json
expect_json "j['passed'] and j['mismatches'] == 0 and j['copies'] >= 16 * 36 and len(j['paths']) == 36 + 25 + 1"
expect_json "[p['mismatches'] for p in j['paths'] if p['path'] == 'model'] == [0]"
expect_exit 1 "${audit[@]}" --transfers --copies 4 --inject flipped-bit
expect_stdout "findings"
expect_stdout "PLANTED FAULT: flipped-bit (it was planted on purpose, and it fired)"
# A fault that no copy can carry is refused, one that no copy meets leaves the question open.
expect_exit 2 "${audit[@]}" --transfers --copies 1 --inject wild-pointer@layer=99
expect_one_line_error "copies alone are made"
expect_exit 4 "${audit[@]}" --transfers --copies 1 --json --inject rope-position
expect_json "j['passed'] and j['planted_fault'] == {'fault': 'rope-position', 'fired': False}"
# The self-test plants faults of its own.
expect_exit 2 "${audit[@]}" --self-test --inject flipped-bit
expect_one_line_error "expected no --inject"
# Nothing is planted in bare rows.
expect_exit 2 "${audit[@]}" --matrix A:bare:2 --inject wild-pointer
expect_one_line_error "expected a row that is not bare"
finish
