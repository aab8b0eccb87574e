#!/bin/bash
# kernel_metadata_test.sh FOLDER SOURCE READELF [PTXAS]: what the compilers say of every kernel: all of
# kernels.def are there, each takes one struct gpu_call by value, none keeps an array in slow memory, none
# has more values than registers. Of NVIDIA's the assembler knows, where it is found; of AMD's the metadata.
set -u
folder=$1 names=$(sed -n 's/^GPU_KERNEL(\(.*\))$/\1/p' "$2/src/ops/gpu/kernels.def") readelf=$3
ptxas=${4:-}
# Bytes of a thread's stack: another version of the assembler may want a register or two more than there are.
spill_limit=32
failures=0
fail() {
    echo "kernel metadata: $*" >&2
    failures=$((failures + 1))
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
    [ "$entries" = "$(echo "$names" | wc -l)" ] || fail "$ptx: $entries kernels, not those of kernels.def"
    ! grep -q '^	\.local ' "$ptx" || fail "$ptx: an array in local memory"
    # Products ask for weights before they wait: what may write weights lets nobody begin before its end.
    for name in relay store_bytes; do
        body=$(sed -n "/^\.visible \.entry $name(/,/^}/p" "$ptx")
        ! echo "$body" | grep -q 'griddepcontrol\.launch_dependents' ||
            fail "$ptx: $name: expected that it lets no kernel begin before its end"
    done
    [ "$(grep -c '^\.maxntid ' "$ptx")" = "$entries" ] || fail "$ptx: a kernel without launch bounds"
    [ -x "$ptxas" ] || continue
    chip=$(basename "$ptx" .ptx)
    report=$("$ptxas" -arch="$chip" -v "$ptx" -o /dev/null 2>&1) || fail "$ptx: not taken by $ptxas"
    told=$(echo "$report" | grep -c 'bytes spill stores')
    [ "$told" = "$entries" ] || fail "$ptx: registers of $told kernels are known, not of $entries"
    spilled=$(echo "$report" | awk -v limit=$spill_limit '
        /Function properties for/ { name = $NF }
        /bytes stack frame/ && $1 > limit { print name ": a stack of " $1 " bytes" }')
    [ -z "$spilled" ] || fail "$ptx: expected at most $spill_limit bytes, found $spilled"
done
for object in "$folder"/*.co; do
    [ -e "$object" ] || continue
    notes=$("$readelf" --notes "$object") || fail "$object: cannot be read"
    for name in $names; do
        kernel=$(echo "$notes" | awk -v name="$name" '
            /^  - / { if (found) print text; text = ""; found = 0 }
            { text = text $0 "\n" }
            $1 == ".name:" && $2 == name { found = 1 }
            END { if (found) print text }')
        [ -n "$kernel" ] || { fail "$object: expected the kernel $name, found none"; continue; }
        echo "$kernel" | grep -q "\.size: *$call_bytes$" || fail "$object: $name: not one struct of $call_bytes bytes"
        echo "$kernel" | grep -q "\.vgpr_spill_count: *0$" || fail "$object: $name: vector registers spilled"
        echo "$kernel" | grep -q "\.private_segment_fixed_size: *0$" || fail "$object: $name: memory of its own"
    done
done
[ -n "$call_bytes" ] || fail "no kernels in $folder"
exit $((failures > 0))
