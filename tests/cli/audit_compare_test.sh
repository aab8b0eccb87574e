# audit_compare_test.sh - greta audit --compare host, on the emulated driver: which op is wrong?
source "$(dirname "$0")/audit_lib.sh"
expect_exit 3 "${audit[@]}" --compare host --device host
expect_one_line_error "--compare host: expected a GPU"
expect_exit 3 "${audit[@]}" --compare host --device cuda:77
expect_exit 2 "${audit[@]}" --compare other
expect_exit 2 "${audit[@]}" --compare host --transfers
[ -e "$GRETA_BUILD/fake_gpu/libcuda.so.1" ] || finish
export LD_LIBRARY_PATH=$GRETA_BUILD/fake_gpu
"$GRETA" synth --shape tiny --layers 2 --type q4_k_m --out small.gguf >/dev/null 2>&1
compare=("$GRETA" audit --model small.gguf --device cuda:0 --compare host)

# Weights of two types, of which one is repacked for GPUs; prefill and decode.
expect_exit 0 "${compare[@]}" --json -- -n 3
expect_json "j['inside'] and j['first'] is None and j['not_compared'] == 0 and j['launches'] > 60"
expect_json "{(o['op'], o['type']) for o in j['ops']} >= {('matmul_group', 'Q4_K'), ('matmul_group', 'Q6_K'), ('attention', 'F32'), ('kv_append', 'F16')}"
expect_json "all(0 <= o['error'] <= o['tolerance'] and not o['outside'] for o in j['ops'])"
expect_json "any(o['error'] > 0 for o in j['ops'])" # two implementations, not one compared with itself

# A wrong value of one op: that op, and none of those that compute with it afterwards.
expect_exit 1 "${compare[@]}" --json --inject wrong-output@op=matmul_group,layer=1,tensor=attn_output,step=1 -- -n 3
expect_json "(j['first']['op'], j['first']['layer'], j['first']['step'], j['first']['tensor']) == ('matmul_group', 1, 1, 'attn_output')"
expect_json "j['first']['operand'] == 'out_0' and j['first']['device_value'] > 190 and j['first']['error'] > j['first']['tolerance']"
expect_json "sum(o['outside'] for o in j['ops']) == 1"
expect_exit 1 "${compare[@]}" --lang es --inject nan-output@op=swiglu,layer=0,step=0 -- -n 1
expect_stdout "Primera operación fuera de su tolerancia: swiglu, capa 0, paso 0"
expect_stdout "no finito"

# A matmul reads what an op before it packed, which is not compared: both are named.
expect_exit 1 "${compare[@]}" --json --inject wrong-output@op=swiglu,operand=packed,layer=1,step=1 -- -n 2
expect_json "(j['first']['op'], j['first']['packed_by']) == ('matmul_group', 'swiglu')"
expect_exit 1 "${compare[@]}" --matrix A:bare:1 --no-self-test --inject wrong-output@op=swiglu,operand=packed,layer=1 -- -n 1
expect_stdout "or swiglu before it packed that input wrongly"
expect_summary "j['outcome'] == 'DEFECT_SEEN'"

# A fault that no op of this run fits: nothing was put to the test.
expect_exit 4 "${compare[@]}" --inject wrong-output@op=gather_rows,step=2 -- -n 3
expect_stdout "Not decided: the planted fault never fired"
expect_exit 4 "${compare[@]}" --json --inject wrong-output@op=add -- -n 1
expect_json "j['planted_fault'] == {'fault': 'wrong-output@op=add', 'fired': False} and j['inside']"
# One that fired and that the comparison cannot show: it is said, and nothing is called good.
expect_exit 4 "${compare[@]}" --inject flipped-bit -- -n 2
expect_stdout "PLANTED FAULT: flipped-bit (it was planted on purpose, and it fired)"
expect_stdout "no detector saw it"
# What this run does not have is refused before it begins.
expect_exit 2 "${compare[@]}" --inject wrong-output@op=rope,layer=99 -- -n 2
expect_one_line_error "layer: found 99, expected 0 to 1"
expect_exit 2 "${compare[@]}" --inject wrong-output@op=rope,step=2 -- -n 2
expect_one_line_error "step: found 2, expected 0 to 1"
# A device fault is a result, not a check that could not be made.
expect_exit 1 "${compare[@]}" --inject wild-pointer@op=rope,layer=1 -- -n 2
expect_stdout "The run ended early"
expect_stdout "illegal memory access"

# Heads of 64 and 128 values go through matrix units, which round to halves: that is no error.
"$GRETA" synth --shape qwen2-0.5b --layers 1 --vocab 300 --ffn 256 --type q8_0 --out heads.gguf >/dev/null 2>&1
expect_exit 0 "$GRETA" audit --model heads.gguf --device cuda:0 --compare host --json -- -n 1
expect_json "j['inside'] and 1e-4 < next(o['error'] for o in j['ops'] if o['op'] == 'attention')"

# As part of an audit with rows: in its report, its summary and its verdict.
expect_exit 1 "${compare[@]}" --matrix A:bare:1 --no-self-test --inject wrong-output@op=attention,layer=1 -- -n 1
expect_stdout "First op outside its tolerance: attention, layer 1"
expect_summary "j['outcome'] == 'ROOT_CAUSE' and j['compare']['first']['op'] == 'attention' and not j['compare']['inside']"
grep -q "Ops against the host" "$(newest)/report.en.md" || fail "expected the comparison in the report"

# Ops that work in place, and tensors that hold the rows of several matrices.
small=(--layers 2 --width 256 --ffn 256 --heads 4 --kv-heads 2 --head-dim 64 --vocab 320 --context 128 --force)
for shape in gemma2-2b phi3-mini olmo2-7b command-r; do
    "$GRETA" synth --shape $shape "${small[@]}" --type q8_0 --out family.gguf 2>/dev/null
    expect_exit 0 "$GRETA" audit --model family.gguf --device cuda:0 --compare host --json -- -n 2
    expect_json "j['inside'] and j['first'] is None and j['not_compared'] == 0"
done
finish
