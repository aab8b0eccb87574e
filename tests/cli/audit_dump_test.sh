# audit_dump_test.sh - greta audit: a fault of greta's own engine on a GPU, of which the breadcrumbs leave several
# launches, is one launch's by a GPU core dump. On the emulated driver (tests/fake_gpu/fake_dump.c).
source "$(dirname "$0")/lib.sh"
driver=$GRETA_BUILD/fake_gpu/libcuda.so.1
[ -e "$driver" ] || { echo "skipped: no emulated driver in this build"; exit 77; }
grep -q cuCoredumpSetAttributeGlobal "$driver" || { echo "skipped: the emulated driver writes no dumps"; exit 77; }
export LD_LIBRARY_PATH=$GRETA_BUILD/fake_gpu XDG_CACHE_HOME=$captured/cache
export FAKE_GPU_ADVERSE=1 # the first crumb of a kernel that faults may be missing
audit() { "$GRETA" audit --device cuda:0 --level log --matrix one:audit:1 --no-self-test --no-interventions \
    --no-search --inject wild-pointer@op=rope,layer=1,step=2 "$@"; }
# fault EXPRESSION: about the one kernel fault (f) of the audit.
fault()
{
    cp audits/*/*/summary.json "$captured/out"
    expect_json "(lambda f: $1)([f for f in j['findings'] if f['hypothesis'] == 'kernel-fault'][0])"
    [ -z "$(find . -name '*.core')" ] || fail "expected no dump to be left"
}

FAKE_GPU_DUMP=none expect_exit 1 audit --artifacts audits
fault "f['certainty'] == 'possible' and len(f['candidates']) > 1 and f['dump'] is None"
rm -r audits

# The driver crashes when the worker exits: that is none of the run's.
for mode in "" crash; do
    FAKE_GPU_DUMP=$mode expect_exit 1 audit --artifacts audits
    fault "(f['certainty'], f['attribution'], f['cause']['op'], f['cause']['layer'], f['cause']['step'],
        f['dump']['kernel'], f['dump']['exception']) ==
        ('direct', 'culprit', 'rope', 1, 2, 'rope', 'warp-illegal-address')"
    expect_json "[r['ending'] for r in j['rows']] == ['device-lost']"
    rm -r audits
done
finish
