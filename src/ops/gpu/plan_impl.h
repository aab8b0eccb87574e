/* plan_impl.h - what the files of the plan share. */
#ifndef GRETA_OPS_GPU_PLAN_IMPL_H
#define GRETA_OPS_GPU_PLAN_IMPL_H

#include "device/kernel.h"
#include "ops/gpu/kernel_args.h"
#include "ops/gpu/packing.h"
#include "ops/gpu/tiling.h"

#include <string.h>

enum gpu_kernel {
#define GPU_KERNEL(name, arguments, operands) KERNEL_##name,
#include "ops/gpu/kernels.def"
#undef GPU_KERNEL
    KERNEL_COUNT
};

/* Which struct of kernel_args.h a kernel takes. */
enum kernel_args {
    ARGS_none,
#define KERNEL_ARGS(name) ARGS_##name,
#include "ops/gpu/kernel_args.def"
#undef KERNEL_ARGS
};

/* plan.c: what kernels.def says of each kernel. */
struct plan_kernel {
    enum kernel_args args;
    uint8_t operand_count;
};
extern const struct plan_kernel plan_kernels[KERNEL_COUNT];

/* set_NAME_args and get_NAME_args: the arguments of a step whose kernel takes struct NAME_args. */
#define KERNEL_ARGS(name)                                                                          \
    static inline void set_##name##_args(struct device_gpu_step *step, struct name##_args args)    \
    {                                                                                              \
        ASSERT(plan_kernels[step->kernel].args == ARGS_##name);                                    \
        memcpy(step->args, &args, sizeof(args));                                                   \
    }                                                                                              \
    static inline struct name##_args get_##name##_args(const struct device_gpu_step *step)         \
    {                                                                                              \
        struct name##_args args;                                                                   \
        ASSERT(plan_kernels[step->kernel].args == ARGS_##name);                                    \
        memcpy(&args, step->args, sizeof(args));                                                   \
        return args;                                                                               \
    }
#include "ops/gpu/kernel_args.def"
#undef KERNEL_ARGS

/* Threads of a block, where a thread does one value. */
#define VALUE_THREADS 256u
#define WARPS_OF_VALUES (VALUE_THREADS / WARP)

/* Rows beyond what one dimension of a grid can count are not met: a batch is far smaller. */
#define GRID_Y_LIMIT 65535u

static inline uint64_t divide_up(uint64_t value, uint64_t by)
{
    return value / by + (value % by != 0);
}

static inline uint64_t width_of(const struct device_host_operand *operand)
{
    return operand->shape.dims[0];
}

static inline uint64_t rows_of(const struct device_host_operand *operand)
{
    return operand->shape.dims[1];
}

/* Operands as the launch has them: as many as the kernel takes. */
static inline struct device_gpu_step step_of(enum gpu_kernel kernel, uint64_t grid_x,
                                             uint64_t grid_y, uint32_t threads)
{
    struct device_gpu_step step = { .kernel = (uint32_t)kernel,
                                    .grid_x = (uint32_t)grid_x,
                                    .grid_y = (uint32_t)grid_y,
                                    .threads = threads };
    memset(step.operands, DEVICE_GPU_ABSENT, sizeof(step.operands));
    for (uint8_t i = 0; i < plan_kernels[kernel].operand_count; i++)
        step.operands[i] = i;
    return step;
}

/* True if rows of the operand can be read 16 bytes at a time; true for an absent one. */
static inline bool is_aligned(const struct device_host_operand *operand)
{
    return ((uint64_t)(uintptr_t)operand->data | operand->row_stride_bytes) % 16 == 0;
}

/* Where the operands of a group of matmuls stand in the launch. */
struct group_places {
    uint8_t packed, weights, biases, outs;
    uint32_t count;
};

/* Parts that are not in the set are absent for the kernel. */
static inline void place_operands(const struct group_places *places, uint32_t part_bits,
                                  struct device_gpu_step *step)
{
    memset(step->operands, DEVICE_GPU_ABSENT, sizeof(step->operands));
    step->operands[MATMUL_GROUP_PACKED] = places->packed;
    for (uint8_t part = 0; part < places->count; part++) {
        if (!(part_bits >> part & 1))
            continue;
        step->operands[MATMUL_GROUP_WEIGHTS + part] = (uint8_t)(places->weights + part);
        step->operands[MATMUL_GROUP_BIASES + part] = (uint8_t)(places->biases + part);
        step->operands[MATMUL_GROUP_OUTS + part] = (uint8_t)(places->outs + part);
    }
}

/* plan.c: a thread for each value of a row, a row of blocks for each row. */
uint32_t plan_values(enum gpu_kernel kernel, uint64_t width, uint64_t rows,
                     struct device_gpu_step *steps);
/* Rows of one operand to halves of another. */
struct device_gpu_step plan_halves(uint8_t x, uint8_t packed, uint32_t format, uint64_t rows);

static inline bool pack_is_halves(uint32_t format)
{
    return format == PACK_F16 || format == PACK_BF16 || format == PACK_LANES;
}

/* plan_large_batch.c: matmuls of tokens packed as halves. */
bool plan_is_many(enum dtype weight_dtype, uint64_t k, uint64_t tokens);
uint32_t plan_large_batch(const struct device_gpu_request *request,
                          const struct group_places *places, uint32_t format,
                          struct device_gpu_step *steps);
struct device_gpu_step plan_decoded(const struct device_gpu_request *request,
                                    const struct group_places *places, uint32_t part,
                                    uint32_t format, uint64_t tokens);

/* plan_lanes.c: matmuls whose weights stay in registers: true if the chip has the kernels and they
 * are faster; true if the weights' layout allows them. */
bool plan_wants_lanes(uint32_t features, enum dtype weight_dtype, uint64_t k, uint64_t tokens);
bool plan_has_lanes(const struct device_gpu_request *request,
                    const struct device_host_operand *weights);
struct device_gpu_step plan_lanes(const struct device_gpu_request *request,
                                  const struct group_places *places, uint32_t part_bits,
                                  uint64_t tokens);

/* plan_1tok.c: matmuls of one token: the step for the parts of the set, if they can all be done so;
 * returns how many steps. */
uint32_t plan_1tok(const struct device_gpu_request *request, const struct group_places *places,
                   uint32_t part_bits, struct device_gpu_step *steps);

/* plan_small_batch.c: matmuls of quants and a small batch on matrix units: whether the chip has
 * them; the steps for the parts of the set, if they can all be done so, else 0. */
bool plan_wants_small_batch(uint32_t features, enum dtype weight_dtype, uint64_t k,
                            uint64_t tokens);
uint32_t plan_small_batch(const struct device_gpu_request *request,
                          const struct group_places *places, uint32_t part_bits,
                          struct device_gpu_step *steps);

/* plan_matmul.c. Cuts blocks among parts of different types, by the bytes they read: the first
 * block of each part. Returns how many there are, at least one for each part. */
uint32_t plan_cut_blocks(const struct device_host_operand *weights, uint32_t count,
                         uint32_t part_bits, uint32_t blocks, uint32_t first_blocks[3]);
uint32_t plan_matmul(const struct device_gpu_request *request, struct device_gpu_step *steps);
uint32_t plan_matmul_group(const struct device_gpu_request *request, struct device_gpu_step *steps);
/* Warps of a block, so that their rings fit into its shared memory. */
uint32_t plan_ring_warps(const struct device_gpu_chip *chip, uint32_t ring_bytes);
/* plan_experts.c. */
uint32_t plan_route_experts(const struct device_gpu_request *request,
                            struct device_gpu_step *steps);
uint32_t plan_matmul_experts(const struct device_gpu_request *request,
                             struct device_gpu_step *steps);
uint32_t plan_gate_experts(const struct device_gpu_request *request, struct device_gpu_step *steps);
uint32_t plan_sum_experts(const struct device_gpu_request *request, struct device_gpu_step *steps);
/* plan_join.c: see device_gpu_join. */
uint32_t plan_join(const struct device_gpu_request *requests, const device_gpu_plan *plans,
                   uint32_t count, struct device_gpu_step *steps, uint32_t *ret_taken);

/* plan_join_many.c: the same, of several tokens. */
uint32_t plan_join_many(const struct device_gpu_request *requests, const device_gpu_plan *plans,
                        uint32_t count, struct device_gpu_step *steps, uint32_t *ret_taken);

/* plan.c: those that are joined with others. */
uint32_t plan_rope(const struct device_gpu_request *request, struct device_gpu_step *steps);
uint32_t plan_kv_append(const struct device_gpu_request *request, struct device_gpu_step *steps);
/* plan_attention.c: whether the call has a window, a cap or sinks. */
bool plan_is_masked(const struct device_gpu_request *request);
uint32_t plan_attention(const struct device_gpu_request *request, struct device_gpu_step *steps);

#endif
