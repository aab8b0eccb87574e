#!/bin/bash
# kernel_metadata_test.sh FOLDER SOURCE READELF [PTXAS]: what the compilers say of every kernel: all of
# kernels.def are there and no others, each takes one struct gpu_call by value, none keeps an array in
# slow memory, none has more values than registers, and as many blocks as it is made for find registers on
# a processor. NVIDIA's assembler says so, if it is installed; for AMD the metadata does.
set -u
folder=$1 names=$(sed -n 's|^GPU_KERNEL(\([a-z0-9_]*\),.*|\1|p' "$2/src/ops/gpu/kernels.def") readelf=$3
ptxas=${4:-}
name_count=$(echo "$names" | wc -l)
failures=0 seen=""
fail() {
    echo "kernel metadata: $*" >&2
    failures=$((failures + 1))
}

# Bytes of a thread's stack: none by the assembler that docs/device-interface.md names. Another version
# divides registers otherwise, and may want a few more than there are.
stack_limit=0
if [ -x "$ptxas" ] && ! "$ptxas" --version | grep -q 'release 13\.0,'; then
    stack_limit=32
    echo "kernel metadata: $ptxas is not of CUDA 13.0: stacks of up to $stack_limit bytes pass" >&2
fi

# Blocks of a kernel that must fit on an NVIDIA processor by their registers. Large blocks, and those that
# read much at once from registers, are alone; of products and attention a second one computes while the
# first waits for memory; what does a value at a time hides that wait by many.
nvidia_blocks() {
    case $1 in
    rms_norm | rms_norm_by_four | top_k | swiglu_halves) echo 1 ;; # 512 threads or 1024
    matmul_1tok_* | matmul_small_batch_* | matmul_lanes* | matmul_warpgroup_* | matmul_quants_8) echo 1 ;;
    attention_tiles_* | attention_4_heads* | attention_1_large_head | attention_masked_*) echo 1 ;;
    matmul_decoded) echo 4 ;;
    matmul_* | attention_1_head* | attention_step | attention_apart_* | inspect) echo 2 ;;
    *) echo 4 ;;
    esac
}
# The same on AMD's, where blocks have 256 threads.
amd_blocks() {
    case $1 in
    matmul_quants_* | matmul_ring_8 | attention_4_heads* | attention_1_large_head | attention_masked_* | attention_step) echo 2 ;;
    *) echo 4 ;;
    esac
}
# Scalar registers that a kernel for AMD may spill. They go to lanes of vector registers, not to memory,
# and cost an instruction each way: those of today, the more of gfx90a's and gfx942's. Others spill none.
scalar_spills() {
    case $1 in
    attention_step) echo 26 ;;
    matmul_quants_2) echo 10 ;;
    matmul_quants_4) echo 21 ;;
    matmul_quants_8) echo 57 ;;
    matmul_floats_8) echo 23 ;;
    matmul_ring_8) echo 93 ;;
    *) echo 0 ;;
    esac
}

call_bytes=""
for ptx in "$folder"/*.ptx; do
    [ -e "$ptx" ] || continue
    for name in $names; do
        parameter=$(grep -A 1 "^\.visible \.entry $name(" "$ptx" | grep -o 'b8 .*_param_0\[[0-9]*\]$')
        bytes=$(echo "$parameter" | sed 's/.*\[\([0-9]*\)\]/\1/')
        [ -n "$bytes" ] || fail "$ptx: expected the kernel $name with one struct, found none"
        call_bytes=${call_bytes:-$bytes}
        [ "$bytes" = "$call_bytes" ] || fail "$ptx: $name: expected $call_bytes bytes, found $bytes"
    done
    entries=$(grep -c '^\.visible \.entry ' "$ptx")
    [ "$entries" = "$name_count" ] ||
        fail "$ptx: expected the $name_count kernels of kernels.def, found $entries"
    ! grep -q '^	\.local ' "$ptx" || fail "$ptx: an array in local memory"
    # A matmul loads weights before it waits: a kernel that may write weights lets no other begin early.
    for name in repack store_bytes; do
        body=$(sed -n "/^\.visible \.entry $name(/,/^}/p" "$ptx")
        ! echo "$body" | grep -q 'griddepcontrol\.launch_dependents' ||
            fail "$ptx: $name: expected that it lets no kernel begin before its end"
    done
    [ "$(grep -c '^\.maxntid ' "$ptx")" = "$entries" ] || fail "$ptx: a kernel without launch bounds"
    seen="$seen $(basename "$ptx")"
    [ -x "$ptxas" ] || continue
    chip=$(basename "$ptx" .ptx)
    report=$("$ptxas" -arch="$chip" -v "$ptx" -o /dev/null 2>&1) || fail "$ptx: not taken by $ptxas"
    # A line for each kernel: its name, bytes of stack, registers.
    told=$(echo "$report" | awk '
        /Function properties for/ { name = $NF }
        /bytes stack frame/ { stack = $1 }
        / Used [0-9]+ registers/ { sub(/.* Used /, ""); print name, stack, $1 }')
    [ "$(echo "$told" | wc -l)" = "$entries" ] ||
        fail "$ptx: expected to be told of $entries kernels, found $(echo "$told" | wc -l)"
    threads=$(awk '/^\.visible \.entry / { split($3, part, "("); name = part[1] }
                   /^\.maxntid / { print name, $2 + 0 }' "$ptx")
    while read -r name stack registers; do
        [ "$stack" -le "$stack_limit" ] ||
            fail "$ptx: $name: expected a stack of at most $stack_limit bytes, found $stack"
        block=$(echo "$threads" | sed -n "s/^$name //p") blocks=$(nvidia_blocks "$name")
        # A processor has 65536 registers; threads are given eight at a time.
        most=$((65536 / (${block:-1024} * blocks) / 8 * 8))
        [ "$registers" -le "$most" ] ||
            fail "$ptx: $name: expected at most $most registers ($blocks x $block threads)," \
                 "found $registers"
    done <<<"$told"
done
for object in "$folder"/*.co; do
    [ -e "$object" ] || continue
    notes=$("$readelf" --notes "$object") || fail "$object: cannot be read"
    # A line for each kernel: name, bytes of its operands, spilled vector and scalar registers, bytes of
    # memory of its own, registers (those of matrix units are among them), threads.
    told=$(echo "$notes" | awk '
        function tell() { if (name) print name, sizes, vector, scalar, own, registers, threads }
        /^  - / { tell(); name = sizes = "" }
        $1 == ".name:" { name = $2 }
        $1 == ".size:" { sizes = sizes (sizes ? "," : "") $2 }
        $1 == ".vgpr_spill_count:" { vector = $2 }
        $1 == ".sgpr_spill_count:" { scalar = $2 }
        $1 == ".private_segment_fixed_size:" { own = $2 }
        $1 == ".vgpr_count:" { registers = $2 }
        $1 == ".max_flat_workgroup_size:" { threads = $2 }
        END { tell() }')
    [ "$(echo "$told" | wc -l)" = "$name_count" ] ||
        fail "$object: expected the $name_count kernels of kernels.def, found $(echo "$told" | wc -l)"
    for name in $names; do
        kernel=$(echo "$told" | grep "^$name ")
        [ -n "$kernel" ] || { fail "$object: expected the kernel $name, found none"; continue; }
        read -r _ sizes vector scalar own registers threads <<<"$kernel"
        [ "$sizes" = "${call_bytes:-$sizes}" ] ||
            fail "$object: $name: expected one struct of $call_bytes bytes, found $sizes"
        [ "$vector" = 0 ] || fail "$object: $name: expected no vector register spilled, found $vector"
        [ "$own" = 0 ] || fail "$object: $name: expected no memory of its own, found $own bytes"
        most=$(scalar_spills "$name")
        [ "$scalar" -le "$most" ] ||
            fail "$object: $name: expected at most $most scalar registers spilled, found $scalar"
        # Each of a processor's four units has 512 registers for a lane, and a wave of 64 for every 256
        # threads of a block; lanes are given eight at a time.
        blocks=$(amd_blocks "$name") waves=$(((threads + 255) / 256))
        most=$((512 / (waves * blocks) / 8 * 8))
        [ "$registers" -le "$most" ] ||
            fail "$object: $name: expected at most $most registers ($blocks x $threads threads)," \
                 "found $registers"
    done
    seen="$seen $(basename "$object")"
done
[ -n "$seen" ] || fail "no kernels in $folder"
echo "kernel metadata: looked at $name_count kernels in$seen"
[ -x "$ptxas" ] ||
    echo "kernel metadata: not looked at: stacks and registers of NVIDIA's kernels (ptxas is not here)"
[[ $seen == *.co* ]] || echo "kernel metadata: not looked at: AMD's kernels (none were made)"
[[ $seen == *.ptx* ]] || echo "kernel metadata: not looked at: NVIDIA's kernels (none were made)"
exit $((failures > 0))
