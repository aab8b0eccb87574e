/* abi.h - what a GPU kernel is called with: one struct by value, the same for every kernel.
 *
 * Host code and kernels both include this, so it is freestanding: no pointers, no enums, fixed
 * sizes. Addresses are the device's. */
#ifndef GRETA_DEVICE_ABI_ABI_H
#define GRETA_DEVICE_ABI_ABI_H

#include <stdint.h>

#define GPU_OPERAND_LIMIT 12
#define GPU_PARAMS_BYTES 128
/* Fills the call up to the parameters' alignment. */
#define GPU_ARGS_BYTES 44
#define GPU_ARGS_ALIGNMENT 4

/* An operand as a kernel sees it; address 0: absent. */
struct gpu_operand {
    uint64_t address;
    uint64_t row_stride_bytes;
    uint64_t width, rows; /* values of a row, rows */
    uint32_t dtype;       /* enum dtype */
    uint32_t reserved;    /* 0 */
};

/* The first thread of the first block stores entered and finished (unless entered is 0) and node to
 * the stream's crumbs before it does anything else: a stream runs its kernels one after the other,
 * so the one before has finished when the next begins. */
struct gpu_call {
    uint64_t crumbs; /* struct crumb_stream */
    uint64_t entered;
    uint64_t finished;         /* the launch that the stream ran before this one */
    uint64_t node;             /* in a graph: which command of it, from 1 */
    uint64_t page;             /* struct crumb_page, for traps */
    uint64_t trap_counter;     /* u64 in device memory: traps claimed so far */
    uint64_t trap_id;          /* the launch that traps name */
    uint64_t more_trap_ids[2]; /* joined launches: the ids of the second and third */
    uint64_t workspace;        /* GPU_WORKSPACE_BYTES of the stream */
    /* Not 0: an earlier kernel may write what this one reads early (early_operands of its step), so
     * it waits before it reads. */
    uint32_t wait_first;
    /* What the plan passes to this kernel: a struct of ops/gpu/kernel_args.h. */
    _Alignas(GPU_ARGS_ALIGNMENT) uint8_t args[GPU_ARGS_BYTES];
    _Alignas(16) uint8_t params[GPU_PARAMS_BYTES];
    struct gpu_operand operands[GPU_OPERAND_LIMIT];
};

/* Scratch of a stream's kernels. The first GPU_COUNTER_BYTES are zero between kernels: a kernel
 * that counts there resets them. */
#define GPU_WORKSPACE_BYTES (UINT64_C(64) << 20)
#define GPU_COUNTER_BYTES (UINT64_C(1) << 20)

/* ---- Inspections ---------------------------------------------------------------------------- */

/* Memory that the kernels `inspect` and `store_bytes` work on. */
struct gpu_region {
    uint64_t address;
    uint64_t row_stride_bytes;
    uint64_t width, rows; /* bytes of a row, rows */
    uint32_t what;        /* inspect: one of those below */
    uint32_t byte;        /* GPU_INSPECT_CANARY: what was put there; store_bytes: what to store */
};

#define GPU_INSPECT_DIGEST 1u /* the sum of device_digest_word */
#define GPU_INSPECT_SCAN 2u   /* floats that are not finite: how many, the first */
#define GPU_INSPECT_CANARY                                                                         \
    3u /* bytes that are not `byte`: how many, the first; they are put back */

/* Regions of a call lie where other kernels have operands. */
_Static_assert(sizeof(struct gpu_region) == sizeof(struct gpu_operand), "as many of either");
static inline const struct gpu_region *gpu_call_regions(const struct gpu_call *call)
{
    return (const void *)call->operands;
}

/* The most parts that a region is divided into; each is inspected by a block of its own. */
#define GPU_INSPECT_PARTS 256u

/* Parameters of `inspect`. The regions are in the call or, if there are more of them, in a table.
 */
struct gpu_inspect_params {
    uint64_t slots; /* struct gpu_inspect_slot for each region */
    uint64_t table; /* struct gpu_region for each; 0: they are in the call */
};

/* What it found; in memory of the host that the device can write. */
struct gpu_inspect_slot {
    uint64_t value; /* the digest, or how many */
    uint64_t first; /* index of the first value, address of the first byte; UINT64_MAX: none */
    uint64_t done;  /* 1 once the others are there */
    uint64_t unused;
};

/* The digest of a transfer's bytes is the sum, modulo 2^64, of device_digest_word over its words of
 * 8 bytes (little endian, the last one padded with zeros), across rows. The order of a sum does not
 * matter, so a GPU can accumulate it with atomic adds. */
static inline uint64_t device_digest_word(uint64_t word, uint64_t index)
{
    uint64_t mixed = word + (index + 1) * UINT64_C(0x9E3779B97F4A7C15);
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94D049BB133111EB);
    return mixed ^ (mixed >> 31);
}

/* Offsets of the structs of event/crumb.h, which kernels cannot include; abi.c asserts that they
 * agree. */
#define GPU_CRUMB_ENTERED 0
#define GPU_CRUMB_FINISHED 8
#define GPU_CRUMB_NODE 16
#define GPU_CRUMB_TRAP_COUNT 4096
#define GPU_CRUMB_TRAPS 4160
#define GPU_CRUMB_TRAP_BYTES 32
#define GPU_CRUMB_TRAP_LIMIT 126

#endif
