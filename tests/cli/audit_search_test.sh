# audit_search_test.sh - an audit that saw equal runs differ, or a NaN, searches for the op.
source "$(dirname "$0")/audit_lib.sh"
search=("${audit[@]}" --no-self-test --no-interventions --matrix B:audit:3)

# ---- Equal runs that differ ----------------------------------------------------------------------
# The difference is seen at the copy of logits; made by a matmul in the middle of a middle layer.
expect_exit 1 "${search[@]}" --inject unequal-runs@op=matmul_group,layer=2,tensor=ffn_down -- -n 3
expect_stdout "The op that caused it is known"
expect_summary "j['outcome'] == 'ROOT_CAUSE' and j['root_cause']['hypothesis'] == 'non-determinism'"
expect_json "j['search']['result'] == 'culprit' and len(j['search']['steps']) == 1"
expect_json "j['search']['steps'][0]['looked_at'] == 'every-op' and j['search']['steps'][0]['compared'] > 500"
root="j['findings'][[f['root'] for f in j['findings']].index(True)]"
expect_json "$root['cause']['op'] == 'matmul_group' and $root['cause']['layer'] == 2"
expect_json "$root['cause']['tensor'] == 'ffn_down' and $root['cause']['step'] == 0"
expect_json "'all its inputs have the same bytes in both' in j['root_cause']['text']['en']"
expect_json "'mismos bytes' in j['root_cause']['text']['es']"
grep -q "Search for the cause" "$(newest)/report.en.md" || fail "expected the search in the report"
grep -q "Búsqueda de la causa" "$(newest)/report.es.md" || fail "expected the search in the Spanish report"
[ -s "$(newest)/run/search-01-every-op.log" ] || fail "expected the log of the search"
# In a step of decoding, and in what is kept between steps.
expect_exit 1 "${search[@]}" --inject unequal-runs@op=kv_append,operand=keys,layer=1,step=2 -- -n 4
expect_summary "$root['cause']['op'] == 'kv_append' and $root['cause']['layer'] == 1 and $root['cause']['step'] == 2"
# A launch that was never made: the ops around it are reported, not the copy long after them.
expect_exit 1 "${search[@]}" --inject skipped-launch@op=rope,layer=1 -- -n 3
expect_stdout "Defect: kv_append, layer 1, step 0: operand k has hash"
expect_stdout "the last op that agreed: matmul_group, layer 1, step 0"
expect_summary "j['outcome'] == 'DEFECT_SEEN' and j['search']['result'] == 'interval' and j['root_cause'] is None"
# A copy that did not happen, in a step of which the next one is given the result: the copy, not the op that reads it.
expect_exit 1 "${search[@]}" --inject stale-copy -- -n 3
expect_stdout "Root cause: D2H copy of logits, step 0: hash"
expect_stdout "; the launch that wrote what it copied gave the same bytes in both"
expect_summary "j['outcome'] == 'ROOT_CAUSE' and j['search']['result'] == 'culprit'"
# Not searched where that is not wanted: the defect was seen, and no op is named.
expect_exit 1 "${search[@]}" --no-search --inject unequal-runs@op=matmul_group,layer=2,tensor=ffn_down -- -n 3
expect_summary "j['outcome'] == 'DEFECT_SEEN' and j['search'] is None and j['root_cause'] is None"

# ---- Values that are not finite ------------------------------------------------------------------
# At level log one launch of many is scanned: the op is found by a search that scans all of them.
expect_exit 1 "${search[@]}" --level log --inject nan-output@op=rope,layer=2,step=1 -- -n 3
expect_summary "j['outcome'] == 'ROOT_CAUSE' and j['search']['result'] == 'culprit'"
expect_json "$root['cause']['op'] == 'rope' and $root['cause']['layer'] == 2 and $root['cause']['step'] == 1"
expect_json "sum(f['hypothesis'] == 'numeric' and f['attribution'] == 'culprit' for f in j['findings']) == 1"
# The NaN is in packed rows, which nothing scans, and not in the plain ones next to them. The matmul that reads them is
# not to blame, and is not blamed.
expect_exit 1 "${search[@]}" --level log --inject nan-output@op=attention,operand=packed,layer=2,step=1 -- -n 3
expect_summary "$root['cause']['op'] == 'attention' and $root['cause']['layer'] == 2 and $root['cause']['step'] == 1"
expect_json "not any(f['attribution'] == 'culprit' and f['cause']['op'] != 'attention' for f in j['findings'])"

# ---- An index past its bound ---------------------------------------------------------------------
# At level guard copies are not hashed: a rerun that hashes them shows that one brought the index.
index=("${audit[@]}" --no-self-test --repeats 1 --matrix B:audit:2)
expect_exit 1 "${index[@]}" --inject short-copy-in@tensor=indices -- -n 2
expect_stdout "Root cause: H2D copy of indices, step 0: bytes with the hash"
expect_summary "j['root_cause']['hypothesis'] == 'silent-corruption' and j['rows'][0]['level'] == 'guard'"
expect_json "[(i['changed'], i['faults']) for i in j['interventions']][0] == ('hashed-copies', 1)"
expect_json "any(f['defect'] == 'index-past-bound' for f in j['findings'])"
expect_exit 1 "${index[@]}" --inject rope-position@layer=1 -- -n 2
expect_stdout "Root cause: rope, layer 1, step 0 read index"
expect_summary "j['interventions'][0]['changed'] == 'hashed-copies' and 'no copy made it' in j['interventions'][0]['proves']"
finish
