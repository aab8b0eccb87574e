#!/usr/bin/env bash
# The sanitizer reports the planted race, in the kernel, and nothing else; and nothing at all where a
# mark orders the streams. usage: planted_race_test.sh PROGRAM
# TSAN_OPTIONS names a symbolizer (cmake/tests_labels.cmake): reports name the function.
set -u
program=$1
report=$("$program" ordered 2>&1)
status=$?
if [ $status -ne 0 ] || grep -q ThreadSanitizer <<<"$report"; then
    echo "ordered: expected no report, found (status $status):"
    echo "$report"
    exit 1
fi
report=$("$program" unordered 2>&1)
status=$?
found=$(grep -c '^SUMMARY: ThreadSanitizer: data race .* in add_kernel$' <<<"$report")
all=$(grep -c '^SUMMARY: ThreadSanitizer' <<<"$report")
echo "unordered: status $status, $found reports of the planted race, $all in all"
[ $status -ne 0 ] && [ "$found" -ge 1 ] && [ "$found" -eq "$all" ]
