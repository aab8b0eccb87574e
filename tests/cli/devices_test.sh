# devices_test.sh - what can run models here, and why the rest cannot: one line each, and without a
# GPU that can be used `auto` is the host.
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

# expect_absent NAME REASON: the device has this one line, `auto` is the next GPU that is there, else
# the host, and asking for it by name says the same.
expect_absent()
{
    local name=$1 reason=$2 best
    expect_exit 0 "$GRETA" devices
    [ "$(grep -c "^ *${name%%:*}" "$captured/out")" -eq 1 ] || fail "expected one line for $name"
    grep -qE "^ *$name +no +- +- +$reason\$" "$captured/out" || fail "expected $name: $reason"
    expect_no_stderr
    best=$(awk '$1 ~ /^(cuda|hip):0$/ && $2 == "yes" { print $1; exit }' "$captured/out")
    rm -f auto.flight
    expect_exit 0 "$GRETA" infer -p "Once upon a time" -n 1 --audit log --flight auto.flight
    expect_exit 0 "$GRETA" flight show auto.flight
    grep -qE "^device +${best:-host}\$" "$captured/out" || fail "expected auto to be ${best:-host}"
    expect_exit 3 "$GRETA" infer -p "Once upon a time" -n 1 --device "$name"
    grep -qE "^greta infer: device $name: .*$reason" "$captured/err" || fail "expected $reason"
}

# A library that is not there at all can be tried only where it is not.
no_driver=true
! ldconfig -p 2>/dev/null | grep -q libcuda.so || no_driver=false
if $no_driver; then
    expect_absent cuda 'library libcuda\.so\.1: not found'
fi
fake=${GRETA_BUILD:-/nowhere}/fake_gpu over=${GRETA_BUILD:-/nowhere}/hip_over_cuda
if [ ! -e "$fake/libcuda.so.1" ] || [ ! -e "$over/libamdhip64.so" ]; then
    finish
fi

# The emulated driver as one that is too old, without a device, with a chip without kernels.
export LD_LIBRARY_PATH=$fake
expect_exit 0 "$GRETA" devices
grep -qE '^ *cuda:0 +yes .*Fake GPU \(sm_90\)$' "$captured/out" || fail "expected the emulated GPU"
FAKE_GPU_VERSION=11080 expect_absent cuda \
    'expected a driver for CUDA 12\.0 or later, found one for 11\.8'
FAKE_GPU_COUNT=0 expect_absent cuda 'expected an NVIDIA GPU, found none'
FAKE_GPU_CHIP=75 expect_absent cuda:0 \
    'Fake GPU \(sm_75\): expected kernels for this chip in this build, found those of .*sm_80'
# What is newer than all that was built for takes PTX.
FAKE_GPU_CHIP=121 expect_exit 0 "$GRETA" devices
grep -qE '^ *cuda:0 +yes ' "$captured/out" || fail "expected a later chip to be taken"

# HIP without a driver below it has no device; over one whose chip takes none of its code, none that
# can be used.
! $no_driver || LD_LIBRARY_PATH=$over expect_absent hip 'expected an AMD GPU, found none'
export LD_LIBRARY_PATH=$over:$fake
FAKE_GPU_CHIP=75 expect_exit 0 "$GRETA" devices
grep -qE '^ *hip:0 +no .*expected kernels for this chip in this build, found those of .*gfx942' \
    "$captured/out" || fail "expected no kernels for that chip"
finish
