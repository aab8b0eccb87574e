# audit_threads_test.sh - ThreadSanitizer looks at the threads of an audit's workers: a run with nothing
# planted has no report. The self-test is left out: it plants races.
source "$(dirname "$0")/audit_lib.sh"

expect_exit 4 "${audit[@]}" --no-self-test --matrix A:bare:2,B:audit:4,C:stress:6
expect_summary "[(r['label'], r['done'], r['crashed'], r['hung']) for r in j['rows']] == [(l, n, False, False) for l, n in (('A', 2), ('B', 4), ('C', 6))]"
if grep -rl ThreadSanitizer artifacts "$captured/err"; then fail "expected no report of ThreadSanitizer"; fi
finish
