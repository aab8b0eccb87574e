/* image.c - all kernels as one unit: a GPU's module has no linker. */
#include "ops/gpu/kernels/act.c"
#include "ops/gpu/kernels/attention.c"
#include "ops/gpu/kernels/choose.c"
#include "ops/gpu/kernels/kv.c"
#include "ops/gpu/kernels/matmul.c"
#include "ops/gpu/kernels/norm.c"
#include "ops/gpu/kernels/rope.c"
#include "ops/gpu/kernels/rows.c"
