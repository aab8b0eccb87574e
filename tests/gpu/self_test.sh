#!/bin/bash
# self_test.sh GRETA DEVICE [FAULTS [ABSENT]]: greta audit --self-test on a device: every fault, or those named
# (NAME,NAME), must be found with the right culprit. Exit status 77 where there is no such device. ABSENT: how many of
# them cannot show on the device and must be said to be absent (default: 0).
set -u
greta=$(realpath "$1") device=$2 faults=${3:-} absent=${4:-0}
work=$(mktemp -d "${TMPDIR:-/tmp}/greta-self-test-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export XDG_CACHE_HOME=$work/cache
"$greta" devices >devices 2>&1
if ! grep -q "^ *$device *yes" devices; then
    echo "skipped: no device $device: $(grep "${device%:*}" devices | tr -s ' ' | head -1)"
    exit 77
fi
"$greta" audit --self-test --device "$device" ${faults:+--faults "$faults"} --json >table.json 2>err </dev/null
code=$?
cat err
python3 - "$code" "$faults" "$absent" <<'END'
import json, sys
code, faults, absent = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
try:
    planted = json.load(open("table.json", encoding="utf-8"))["planted"]
except ValueError as error:
    sys.exit(f"exit status {code}, no table: {error}")
missed = [p for p in planted if not p["absent"] and not (p["detected"] and p["culprit_ok"])]
for p in missed:
    print(f"{p['fault']}: detected {p['detected']} as {p['found_hypothesis']}, culprit {p['culprit']}: {p['note']}")
found = sum(p["detected"] and p["culprit_ok"] for p in planted)
print(f"{len(planted)} faults: {found} found, {len(missed)} missed, {sum(p['absent'] for p in planted)} absent; exit {code}")
wanted = len(faults.split(",")) if faults else 54
if code or missed or len(planted) < wanted or sum(p["absent"] for p in planted) != absent or found + absent != len(planted):
    sys.exit(f"expected exit status 0, at least {wanted} faults and all of them found but {absent} absent ones")
END
