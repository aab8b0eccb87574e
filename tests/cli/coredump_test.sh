# coredump_test.sh - greta coredump show: what died where, in both languages; what is refused.
source "$(dirname "$0")/lib.sh"
maker=${GRETA_BUILD:-}/coredump_image_test
[ -x "$maker" ] || exit 77
"$maker" . || exit 1

# expect_golden FILE: standard output is that file, in tests/data/coredump.
expect_golden()
{
    diff -u "$GRETA_SOURCE/tests/data/coredump/$1" "$captured/out" >&2 || fail "expected $1"
}

# ---- Text --------------------------------------------------------------------------------------
expect_exit 1 "$GRETA" coredump show fault
expect_no_stderr
expect_golden fault.en.txt
expect_exit 1 "$GRETA" coredump show fault --lang es
expect_golden fault.es.txt
expect_exit 1 "$GRETA" coredump show relocated
expect_stdout "nest failed at /tmp/faults/faults.cu:15: warp illegal address, block (8,0,0), thread (100,0,0)"
expect_exit 1 "$GRETA" coredump show fits
expect_stdout "Whether grid 55 runs nest for certain"
expect_exit 1 "$GRETA" coredump show candidates
expect_stdout "one of 2 kernels (nest, scale) failed at 0x7f0000010030"
expect_stdout "nothing decides between them: nest, scale"
expect_exit 1 "$GRETA" coredump show no-image
expect_golden no-image.en.txt
expect_exit 1 "$GRETA" coredump show no-image --lang es
expect_golden no-image.es.txt
expect_exit 1 "$GRETA" coredump show sm
expect_stdout "device 0, SM 7: illegal address on the device; the dump does not say in which warp"
expect_exit 0 "$GRETA" coredump show hang
expect_stdout "no exception: the dump shows 2 live grids, and none of them failed"

# ---- JSON --------------------------------------------------------------------------------------
expect_exit 1 "$GRETA" coredump show fault --json
expect_no_stderr
expect_json 'j["exception_count"] == 1 and j["exceptions"][0]["kind"] == "warp-illegal-address"'
expect_json '[f["line"] for f in j["exceptions"][0]["place"]["frames"]] == [15, 20, 28]'
expect_json '[t["thread"][0] for t in j["exceptions"][0]["threads"] if t["failed"]] == [100, 101]'
expect_json 'j["grids"][0]["name"] == "nest(float*, float const*, int)" and j["grids"][0]["mangled"] == "_Z4nestPfPKfi"'
expect_json '[(a["offset"], a["bytes"]) for a in j["grids"][0]["arguments"]] == [(0, 8), (8, 8), (16, 4)]'
expect_json 'j["grids"][0]["arguments"][2]["hex"] == "11121314"'
expect_json 'j["grids"][1]["name"] is None and j["grids"][1]["naming"] == "no-image"'
expect_json 'j["devices"][0]["name"] == "NVIDIA H200" and j["file"]["writer"]["driver_major"] == 580'
expect_exit 1 "$GRETA" coredump show candidates --json
expect_json 'j["grids"][0]["candidate_count"] == 2 and j["grids"][0]["name"] is None'
expect_json 'j["exceptions"][0]["place"]["lines"] == "no-function"'
expect_exit 1 "$GRETA" coredump show sm --json
expect_json 'j["exceptions"][0]["warp"] is None and j["exceptions"][0]["place"] is None'

# ---- Refused -----------------------------------------------------------------------------------
expect_exit 2 "$GRETA" coredump list fault
expect_one_line_error "expected show, found 'list'"
expect_exit 2 "$GRETA" coredump show
expect_one_line_error "expected a FILE, found none"
expect_exit 2 "$GRETA" coredump show fault --lang fr
expect_exit 3 "$GRETA" coredump show missing
expect_one_line_error "missing: cannot open it"
expect_exit 3 "$GRETA" coredump show "$GRETA"
expect_one_line_error "expected 190 (an NVIDIA GPU)"
gzip -c fault >fault.gz
expect_exit 3 "$GRETA" coredump show fault.gz
expect_one_line_error "compressed with gzip"
head -c 9000 fault >cut
expect_exit 3 "$GRETA" coredump show cut
expect_one_line_error "the file was cut short"
: >empty
expect_exit 3 "$GRETA" coredump show empty
expect_one_line_error "the file is empty"
if [ -e /dev/full ]; then
    expect_exit 3 bash -c "'$GRETA' coredump show fault >/dev/full"
    expect_one_line_error "cannot write the output"
fi
finish
