/* kernel.h - contracts, kernels and launches. For authors of ops and of backends; users of a device
 * need only device/device.h.
 *
 * An op has a contract, a host kernel and a GPU plan. The contract lists its operands, with the
 * access, types and shape of each; every launch is checked against it before it is queued. Kernels
 * that take indices from memory check them with device_index_ok. */
#ifndef GRETA_DEVICE_KERNEL_H
#define GRETA_DEVICE_KERNEL_H

#include "device/abi/abi.h"
#include "device/device.h"
#include "event/crumb.h"

/* ---- Contracts ------------------------------------------------------------------------------ */

#define DEVICE_OPERAND_LIMIT EVENT_ACCESS_LIMIT
#define DEVICE_PARAMS_LIMIT_BYTES 128

/* May be set among an operand's types: its rows must begin at multiples of DEVICE_ROW_ALIGNMENT
 * bytes. */
#define DEVICE_ROWS_ALIGNED (UINT64_C(1) << 63)
#define DEVICE_ROW_ALIGNMENT 16u

/* One operand of an op. The shape is a comma-separated list of dimensions, fastest first:
 * "width,rows". A name (letters a to z, digits and _, a letter first) stands for the same extent
 * everywhere in the contract; a number stands for itself. */
struct device_operand_rule {
    const char *name;
    uint8_t mode;        /* enum event_access_mode */
    bool optional;       /* may be absent: a zero buffer handle */
    bool strided;        /* rows may be further apart than their length */
    uint64_t dtype_bits; /* bit 1 << enum dtype for each allowed type; DEVICE_ROWS_ALIGNED */
    const char *shape;
};

/* Checks the parameters against the extents. If they disagree, returns false and sets the two
 * numbers it compared. */
struct device_contract_call;
typedef bool (*device_param_check)(const struct device_contract_call *call, uint64_t *ret_expected,
                                   uint64_t *ret_found);

/* The extent of an operand's dimension in this launch; 0 if the operand is absent. */
uint64_t device_contract_extent(const struct device_contract_call *call, uint32_t operand,
                                uint32_t dimension);
const void *device_contract_params(const struct device_contract_call *call);

#define DEVICE_TILE_LIMIT ((uint64_t)UINT32_MAX) /* the widest tile counter of any device */

struct device_contract {
    const char *name; /* stable slug of the op */
    struct device_operand_rule operands[DEVICE_OPERAND_LIMIT];
    uint8_t operand_count;
    uint32_t params_bytes;
    uint64_t tile_limit;      /* most tiles of a launch; 0: DEVICE_TILE_LIMIT */
    device_param_check check; /* may be NULL */
};

/* ---- Launches ------------------------------------------------------------------------------- */

struct device_launch {
    const struct device_contract *contract; /* of an image that was loaded */
    const void *params;                     /* contract->params_bytes; copied */
    struct device_view operands[DEVICE_OPERAND_LIMIT];
    uint8_t operand_count;
    uint64_t tile_count;
};

MUST_CHECK enum status device_launch(struct device *device, struct device_stream stream,
                                     const struct device_launch *launch, struct device_site site,
                                     struct error *err);

/* ---- Host kernels --------------------------------------------------------------------------- */

/* An operand as a kernel sees it. data is NULL if the operand is absent. */
struct device_host_operand {
    void *data;
    uint64_t row_stride_bytes;
    enum dtype dtype;
    struct shape shape;
};

struct device_host_call {
    const void *params;
    const struct device_host_operand *operands;
    void *scratch; /* DEVICE_SCRATCH_BYTES of this worker, 64-byte aligned */
    struct crumb_page *crumbs;
    uint64_t launch_id;
    /* The worker's run is tiles tile_index to run_end - 1. next_run is the first tile of its likely
     * next run, or DEVICE_NO_TILE. If previous_end is not 0, the worker's previous run ended there
     * and its scratch is unchanged since. */
    uint64_t run_end, next_run, previous_end;
};
#define DEVICE_NO_TILE UINT64_MAX
#define DEVICE_SCRATCH_BYTES ((size_t)4 << 20)

/* Computes one tile of a launch or, if its entry says takes_runs, the worker's whole run. It takes
 * no lock, allocates nothing and must not rely on the order of tiles. */
typedef void (*device_host_kernel)(const struct device_host_call *call, uint64_t tile_index);

/* For kernels that take indices from memory: true if index < bound. Otherwise leaves a trap, and
 * the kernel must skip the access. */
bool device_index_ok(const struct device_host_call *call, uint32_t operand, uint64_t index,
                     uint64_t bound);

/* Where a tile begins to read memory that no earlier launch writes, so that an idle worker can
 * prefetch it. *ret_bytes: how much this tile and the next one read from there. */
typedef const void *(*device_host_reads)(const struct device_host_call *call, uint64_t tile_index,
                                         uint64_t *ret_bytes);

struct device_kernel_entry {
    const struct device_contract *contract; /* of the op that the kernel computes */
    device_host_kernel host;
    bool takes_runs;         /* called once for a run of tiles instead of once for each */
    device_host_reads reads; /* NULL: prefetching is not worth it */
};
struct device_image {
    const struct device_kernel_entry *entries;
    size_t count;
};

/* ---- GPU kernels ---------------------------------------------------------------------------- */

/* On a GPU a launch becomes steps, run in order; each step is one kernel. */
struct device_gpu_chip {
    uint32_t sm_count;     /* SMs, CUs */
    uint32_t shared_bytes; /* most shared memory of a block */
    uint64_t processor_shared_bytes;
    uint32_t thread_limit; /* threads of a block, as the kernels are built for it */
    uint32_t features;     /* DEVICE_GPU_ bits of the code that was loaded */
};

/* What code for a chip may use. */
#define DEVICE_GPU_WARP_MATRIX 1u /* matrix instructions of one warp */
#define DEVICE_GPU_WARPGROUPS 2u  /* matrix instructions of four warps (wgmma) */

struct device_gpu_request {
    const void *params;
    const struct device_host_operand *operands; /* data is a device address */
    uint8_t operand_count;
    const struct device_gpu_chip *chip;
};

#define DEVICE_GPU_ABSENT 0xFFu
struct device_gpu_step {
    uint32_t kernel; /* index into the image's kernel names */
    uint32_t grid_x, grid_y;
    uint32_t threads; /* of a block */
    uint32_t shared_bytes;
    /* A struct of arguments that the kernel knows; see struct gpu_call. */
    _Alignas(GPU_ARGS_ALIGNMENT) uint8_t args[GPU_ARGS_BYTES];
    /* The launch's operand that is the kernel's i-th; DEVICE_GPU_ABSENT: none. If several launches
     * are joined, their operands are numbered one after the other. */
    uint8_t operands[GPU_OPERAND_LIMIT];
    uint8_t params_of; /* joined launches: index of the launch whose params the kernel gets */
    /* Bit i: the kernel reads its i-th operand before earlier kernels have ended, which is only
     * right if none of them writes it. Only a graph knows that; elsewhere the call sets wait_first
     * and the kernel waits for them before it reads anything. Weights need no bit: nothing that
     * lets a kernel start early writes them. */
    uint32_t early_operands;
};

/* Plans a launch on this chip: fills steps and returns how many; 0 if there is no work. */
#define DEVICE_GPU_STEP_LIMIT 40
typedef uint32_t (*device_gpu_plan)(const struct device_gpu_request *request,
                                    struct device_gpu_step steps[DEVICE_GPU_STEP_LIMIT]);

/* Joins the first *ret_taken of `count` consecutive launches of a graph into one: fills steps and
 * returns how many, or 0 to leave every launch on its own. All operands must end up as they would
 * without joining. If only one launch is taken, its kernel may prefetch what later ones read. plans
 * identifies the op of each launch. */
#define DEVICE_GPU_JOIN_LIMIT 3
typedef uint32_t (*device_gpu_join)(const struct device_gpu_request *requests,
                                    const device_gpu_plan *plans, uint32_t count,
                                    struct device_gpu_step steps[DEVICE_GPU_STEP_LIMIT],
                                    uint32_t *ret_taken);

/* Machine code or PTX for one chip. */
struct device_gpu_code {
    const char *vendor;      /* "cuda" or "hip" */
    const char *chip;        /* "sm_90", "gfx942" */
    const char *bytes, *end; /* NUL-terminated at end, as PTX requires */
    uint32_t features;       /* DEVICE_GPU_ bits */
};

struct device_gpu_entry {
    const struct device_contract *contract;
    device_gpu_plan plan;
};
struct device_gpu_image {
    const struct device_gpu_entry *entries;
    size_t count;
    /* Tried in order; the first that the chip accepts wins. A row without a vendor ends them. */
    const struct device_gpu_code *codes;
    const char *const *kernels; /* names of all kernels in the code */
    size_t kernel_count;
    device_gpu_join join; /* NULL: launches are never joined */
};

#endif
