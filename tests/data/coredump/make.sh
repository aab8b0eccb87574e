#!/bin/sh
# make.sh - compiles faults.cu again, in a folder whose name is the same everywhere. Needs nvcc 13.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=/tmp/faults
mkdir "$folder"
trap 'rm -rf "$folder"' EXIT
cp "$here/faults.cu" "$folder"
cd "$folder"
"${NVCC:-nvcc}" -arch=sm_90 -lineinfo -cubin -o "$here/faults.cubin" faults.cu
