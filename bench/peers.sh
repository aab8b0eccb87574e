#!/bin/sh
# Compares greta with llama.cpp on synthetic models: fetches llama.cpp's prebuilt libraries (once,
# needs npm), writes the models (once), runs bench_peers.
#
#   bench/peers.sh [--cuda] [--assemble ARCH] [--final] [--prepare] [--json] [--seconds N] [--build DIR]
#                  [--folder DIR] [TYPE...]
#
# On the processor: TinyLlama's shape, TYPE of greta synth (default: q4_k_m q4_0 q8_0 q6_k; 3.4 GB).
# --cuda: on the first NVIDIA GPU, the shape of Llama-3-8B (default: q4_k_m q8_0 bf16; 29 GB), with the
# CUDA libraries (143 MB packed). --assemble: makes their code for one chip, for instance 90, with
# ptxas, where the driver is too old for their PTX. --seconds: for each file (default 40; --cuda: 10).
# --final: all figures of bench/README.md in under 6 minutes, bench_decode's too. --prepare: fetch and
# write only, measure nothing. Everything goes to build/peers (or --folder), which git ignores.
set -eu

package=@node-llama-cpp/linux-x64
version=3.22.0
shape=tinyllama
device=host
default_types="q4_k_m q4_0 q8_0 q6_k"

root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/release
folder=$root/build/peers
seconds=
default_seconds=40
assemble=
json=
final=
prepare=
types=

usage() {
    sed -n '2,14s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
    --cuda)
        package=@node-llama-cpp/linux-x64-cuda
        version=3.22.1
        shape=llama3-8b
        device=cuda:0
        default_types="q4_k_m q8_0 bf16"
        default_seconds=10
        ;;
    --assemble)
        [ $# -gt 1 ] || usage
        assemble=$2
        shift
        ;;
    --final) final=yes ;;
    --prepare) prepare=yes ;;
    --json) json=--json ;;
    --seconds)
        [ $# -gt 1 ] || usage
        seconds=$2
        shift
        ;;
    --build)
        [ $# -gt 1 ] || usage
        build=$2
        shift
        ;;
    --folder)
        [ $# -gt 1 ] || usage
        folder=$2
        shift
        ;;
    -*) usage ;;
    *) types="$types $1" ;;
    esac
    shift
done
[ -n "$types" ] || types=$default_types
[ -z "$final" ] || seconds=66
[ -n "$seconds" ] || seconds=$default_seconds
[ -z "$assemble" ] || [ "$device" != host ] || usage

for program in greta bench_peers ${final:+bench_decode}; do
    if [ ! -x "$build/$program" ]; then
        echo "peers.sh: expected $build/$program, found none: build the preset release first, or give --build" >&2
        exit 3
    fi
done

libraries=$folder/node_modules/$package/bins/${package#*/}
if [ ! -d "$libraries" ]; then
    if ! command -v npm > /dev/null; then
        echo "peers.sh: expected npm, to fetch $package, found none" >&2
        exit 3
    fi
    mkdir -p "$folder"
    npm install --ignore-scripts --no-save --no-audit --no-fund --omit=optional --prefix "$folder" "$package@$version" >&2
fi

if [ -n "$assemble" ] && [ ! -f "$libraries/libggml-cuda.so.original" ]; then
    python3 "$root/bench/peers/assemble.py" --arch "$assemble" "$libraries/libggml-cuda.so" "$libraries/assembled" >&2
    mv "$libraries/libggml-cuda.so" "$libraries/libggml-cuda.so.original"
    mv "$libraries/assembled" "$libraries/libggml-cuda.so"
fi

set --
for type in $types; do
    file=$folder/$shape-$type.gguf
    [ -f "$file" ] || "$build/greta" synth --shape "$shape" --type "$type" --out "$file" >&2
    set -- "$@" "$file"
done

[ -z "$prepare" ] || exit 0

if [ -n "$final" ]; then
    for type in Q4_K Q8_0; do
        "$build/bench_decode" --type $type --steps 60 >&2
    done
fi
exec "$build/bench_peers" --libraries "$libraries" --device "$device" --seconds "$seconds" ${json:+"$json"} "$@"
