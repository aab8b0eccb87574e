# devices_test.sh - what can run models here, and why the rest cannot.
source "$(dirname "$0")/lib.sh"

expect_exit 0 "$GRETA" devices
expect_stdout "host"
expect_stdout "cuda"
expect_no_stderr
expect_exit 0 "$GRETA" devices --json
python3 - "$captured/out" <<'PYTHON' || fail "the JSON is not as expected"
import json, sys
devices = {d["device"]: d for d in json.load(open(sys.argv[1]))["devices"]}
host = devices["host"]
assert host["available"] and host["memory"] > 2**20 and host["name"] and host["driver"], host
for kind in ("cuda", "hip"):
    found = [d for name, d in devices.items() if name.split(":")[0] == kind]
    assert found and all(d["available"] or d["reason"] for d in found), devices
PYTHON
expect_exit 2 "$GRETA" devices extra
finish
