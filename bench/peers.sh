#!/bin/sh
# Measures greta beside llama.cpp on synthetic models of TinyLlama's shape: fetches llama.cpp's
# prebuilt libraries (once, needs npm), writes the models (once, 3.4 GB), runs bench_peers.
#
#   bench/peers.sh [--final] [--prepare] [--json] [--seconds N] [--build DIR] [--folder DIR] [TYPE...]
#
# TYPE: types of greta synth (default: q4_k_m q4_0 q8_0 q6_k). --seconds: for each of them (default
# 40). --final: all figures of bench/README.md in under 6 minutes, bench_decode's too. --prepare: fetch
# and write only, measure nothing. Everything goes to build/peers (or --folder), which git ignores.
set -eu

package=@node-llama-cpp/linux-x64
version=3.22.0

root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/release
folder=$root/build/peers
seconds=40
json=
final=
prepare=
types=

usage() {
    sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
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
[ -n "$types" ] || types="q4_k_m q4_0 q8_0 q6_k"
[ -z "$final" ] || seconds=66

for program in greta bench_peers ${final:+bench_decode}; do
    if [ ! -x "$build/$program" ]; then
        echo "peers.sh: expected $build/$program, found none: build the preset release first, or give --build" >&2
        exit 3
    fi
done

libraries=$folder/node_modules/$package/bins/linux-x64
if [ ! -d "$libraries" ]; then
    if ! command -v npm > /dev/null; then
        echo "peers.sh: expected npm, to fetch $package, found none" >&2
        exit 3
    fi
    mkdir -p "$folder"
    npm install --ignore-scripts --no-save --no-audit --no-fund --prefix "$folder" "$package@$version" >&2
fi

set --
for type in $types; do
    file=$folder/tinyllama-$type.gguf
    [ -f "$file" ] || "$build/greta" synth --shape tinyllama --type "$type" --out "$file" >&2
    set -- "$@" "$file"
done

[ -z "$prepare" ] || exit 0

if [ -n "$final" ]; then
    for type in Q4_K Q8_0; do
        "$build/bench_decode" --type $type --steps 60 >&2
    done
fi
exec "$build/bench_peers" --libraries "$libraries" --seconds "$seconds" ${json:+"$json"} "$@"
