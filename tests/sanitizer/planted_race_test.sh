#!/usr/bin/env bash
# The sanitizer reports the planted race, in the kernel, and nothing else; and nothing at all where a
# mark orders the streams. usage: planted_race_test.sh PROGRAM
set -u
program=$1
# Where no symbolizer of the compiler's own is installed, that of binutils names the function.
if ! command -v llvm-symbolizer >/dev/null && ! command -v llvm-symbolizer-14 >/dev/null; then
    TSAN_OPTIONS="external_symbolizer_path=$(command -v addr2line)"
    export TSAN_OPTIONS
fi

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
