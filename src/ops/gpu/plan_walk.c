/* plan_walk.c - whether the recorded launches of a token can be one kernel (kernels/walk.c), and
 * how: what each would be on its own says what its row does. */
#include "ops/gpu/gpu.h"
#include "ops/gpu/packing.h"
#include "ops/gpu/plan_impl.h"
#include "ops/gpu/walking.h"
#include "ops/params.h"

#ifndef WALK_STAGES_WANTED
#define WALK_STAGES_WANTED WALK_STAGES_MOST
#endif
/* Fewer of them are no ring. */
#define WALK_STAGES_LEAST 2u
/* Far longer than a walk takes. */
#define WALK_LIMIT 2000u

/* What the rows need of a block, as they are found, and what the last ones have left where: rows
 * are walked only where each finds what it reads. */
struct walk_needs {
    const struct device_gpu_chip *chip;
    uint32_t products;
    uint64_t stage_bytes, stream_bytes, packed_bytes, scratch_bytes, cells;
    const void *stream;   /* the row that is in every block's memory */
    const void *packed;   /* activations that are there, or come through cells from */
    uint32_t packed_from; /* here; WALK_NOWHERE: they are there */
    const void *made[3];  /* outputs of the product before, from cells from */
    uint32_t made_from;   /* here; WALK_NOWHERE: swiglu has taken them */
};

static void raise_to(uint64_t *most, uint64_t value)
{
    *most = value > *most ? value : *most;
}

static bool is_one_kernel(uint32_t kernel)
{
    return kernel >= KERNEL_matmul_one_q4_k && kernel <= KERNEL_matmul_one_f16;
}

/* ---- Rows ----------------------------------------------------------------------------------- */

/* Cells for so many words of 32 bits. */
static uint32_t take_cells(struct walk_needs *needs, uint64_t count)
{
    uint64_t first = needs->cells;
    needs->cells += divide_up(count, 2) * 2;
    return needs->cells < WALK_NOWHERE ? (uint32_t)first : WALK_NOWHERE;
}

static const void *data_of(const struct device_gpu_request *request, uint8_t operand)
{
    return operand == DEVICE_GPU_ABSENT ? NULL : request->operands[operand].data;
}

/* What the next row must find is what this one packs. */
static bool fill_packed(const void *packed, uint32_t format, uint64_t k, struct walk_needs *needs,
                        struct device_gpu_step *step)
{
    needs->packed = packed;
    needs->packed_from = take_cells(needs, gpu_packed_row_bytes(format, k) / sizeof(uint32_t));
    step->words[WALK_TARGET] = needs->packed_from;
    raise_to(&needs->packed_bytes, gpu_packed_row_bytes(format, k));
    return needs->packed_from != WALK_NOWHERE && (format == PACK_F32 || k % 32 == 0);
}

static bool fill_embed(const struct device_gpu_request *request, struct device_gpu_step *step,
                       struct walk_needs *needs)
{
    uint64_t width = width_of(&request->operands[2]);
    step->words[WALK_KIND] = WALK_EMBED;
    needs->stream = data_of(request, 2);
    raise_to(&needs->stream_bytes, width * sizeof(float));
    return rows_of(&request->operands[2]) == 1;
}

static bool fill_norm(const struct device_gpu_request *request, struct device_gpu_step *step,
                      struct walk_needs *needs)
{
    uint64_t width = width_of(&request->operands[0]);
    const struct params_norm *params = request->params;
    uint32_t threads = step->threads;
    const void *added = data_of(request, 1), *packed = data_of(request, 4);
    step->words[WALK_KIND] = WALK_NORM;
    step->words[WALK_NORM_THREADS] = threads;
    step->words[WALK_SOURCE] = added ? needs->made_from : WALK_NOWHERE;
    step->words[WALK_TARGET] = WALK_NOWHERE;
    raise_to(&needs->scratch_bytes, TEAM * sizeof(float));
    raise_to(&needs->packed_bytes, gpu_packed_row_bytes(params->packing.format, width));
    needs->packed = packed;
    needs->packed_from = WALK_NOWHERE;
    /* Two fours for each thread: no row is longer. */
    return step->grid_x == 1 && threads <= WALK_THREADS && width <= 8 * (uint64_t)threads &&
           packed && data_of(request, 0) == needs->stream &&
           (!added || (added == needs->made[0] && needs->made_from != WALK_NOWHERE));
}

/* One part of a product; false: it is none for a walk. */
static bool fill_part(const struct device_host_operand *weights, uint32_t unit,
                      struct walk_needs *needs)
{
    uint32_t dtype = (uint32_t)weights->dtype;
    raise_to(&needs->stage_bytes, one_slice_bytes(dtype));
    uint64_t units = divide_up(rows_of(weights), unit);
    /* A step of the ring is WALK_TEAMS rows at most. */
    return weights->row_stride_bytes <= UINT32_MAX / WALK_TEAMS && rows_of(weights) % unit == 0 &&
           units * (needs->chip->processor_count + 1) <= UINT32_MAX &&
           divide_up(units, needs->chip->processor_count) * unit <= UINT16_MAX;
}

/* next: the launch behind it, which may take its sums; NULL: there is none. */
static bool is_gate(const struct device_gpu_request *request, const struct device_gpu_step *step,
                    const struct device_gpu_request *next, device_gpu_plan next_plan)
{
    struct device_gpu_step steps[DEVICE_GPU_STEP_LIMIT];
    if (!next || next_plan(next, steps) != 1 || steps[0].kernel != KERNEL_swiglu)
        return false;
    bool has_bias = data_of(request, step->operands[4]) || data_of(request, step->operands[5]);
    return !has_bias && !data_of(request, step->operands[3]) &&
           data_of(request, step->operands[7]) == data_of(next, 0) &&
           data_of(request, step->operands[8]) == data_of(next, 1);
}

static bool fill_product(const struct device_gpu_request *request,
                         const struct device_gpu_request *next, device_gpu_plan next_plan,
                         struct device_gpu_step *step, struct walk_needs *needs)
{
    uint64_t rows = 0, block_rows = 0, k = 0;
    uint32_t type = DTYPE_COUNT, members = step->words[1];
    bool same = true, gated = is_gate(request, step, next, next_plan);
    uint32_t unit = gated ? WALK_GATE_ROWS : 1;
    for (uint32_t part = 0; part < 3; part++) {
        needs->made[part] = data_of(request, step->operands[7 + part]);
        if (step->operands[1 + part] == DEVICE_GPU_ABSENT)
            continue;
        const struct device_host_operand *weights = &request->operands[step->operands[1 + part]];
        uint32_t dtype = (uint32_t)weights->dtype;
        same = same && (type == DTYPE_COUNT || type == dtype);
        type = dtype;
        k = width_of(weights);
        rows += rows_of(weights);
        block_rows += divide_up(rows_of(weights) / unit, needs->chip->processor_count) * unit;
        if (!fill_part(weights, unit, needs))
            return false;
    }
    bool there = needs->packed_from == WALK_NOWHERE;
    needs->made_from = gated ? WALK_NOWHERE : take_cells(needs, rows);
    step->words[WALK_KIND] = WALK_PRODUCT;
    step->words[WALK_PRODUCT_TYPE] = same ? type : DTYPE_COUNT;
    step->words[WALK_PRODUCT_MEMBERS] = members;
    step->words[WALK_PRODUCT_NUMBER] = needs->products++;
    step->words[WALK_PRODUCT_GATED] = gated;
    uint32_t format = gpu_pack_format(needs->chip->features, (enum dtype)type, k, 1);
    step->words[WALK_PRODUCT_WORDS] =
        there ? 0 : (uint32_t)(gpu_packed_row_bytes(format, k) / sizeof(uint32_t));
    step->words[WALK_SOURCE] = needs->packed_from;
    step->words[WALK_TARGET] = needs->made_from;
    raise_to(&needs->scratch_bytes, block_rows * members * sizeof(float));
    return members <= WALK_TEAMS && needs->packed &&
           data_of(request, step->operands[0]) == needs->packed &&
           (gated || needs->made_from != WALK_NOWHERE);
}

/* requests: of rope, kv_append and attention. */
static bool fill_attention(const struct device_gpu_request *requests, struct device_gpu_step *step,
                           struct walk_needs *needs)
{
    const struct params_attention *params = requests[2].params;
    const struct device_gpu_request *attention = &requests[2];
    uint64_t angles = width_of(&requests[0].operands[2]), slots = rows_of(&requests[1].operands[3]);
    uint64_t width = width_of(&attention->operands[5]);
    bool packs = step->words[2];
    step->words[WALK_KIND] = WALK_ATTENTION;
    step->words[WALK_ATTENTION_UNITS] = step->grid_x;
    step->words[WALK_SOURCE] = needs->made_from;
    raise_to(&needs->scratch_bytes, step->shared_bytes);
    bool found = needs->made_from != WALK_NOWHERE && data_of(attention, 0) == needs->made[0] &&
                 data_of(&requests[1], 0) == needs->made[1] &&
                 data_of(&requests[1], 1) == needs->made[2];
    needs->made_from = WALK_NOWHERE;
    return found && step->grid_y == 1 && step->threads == WALK_ATTENTION_THREADS &&
           params->head_dim <= WALK_HEAD_MOST && params->head_dim % TEAM == 0 &&
           angles <= WALK_HEAD_MOST && slots <= UINT32_MAX - WALK_THREADS &&
           fill_packed(data_of(attention, packs ? 6 : 5),
                       packs ? params->packing.format : (uint32_t)PACK_F32, width, needs, step);
}

static bool fill_swiglu(const struct device_gpu_request *request,
                        const struct device_gpu_walk_row *before, struct device_gpu_step *step,
                        struct walk_needs *needs)
{
    const struct params_swiglu *params = request->params;
    const void *packed = data_of(request, 3);
    step->words[WALK_KIND] = WALK_SWIGLU;
    step->words[WALK_SWIGLU_NUMBER] = needs->products - 1;
    step->words[WALK_SOURCE] = WALK_NOWHERE;
    return before && before->step.words[WALK_KIND] == WALK_PRODUCT &&
           before->step.words[WALK_PRODUCT_GATED] && rows_of(&request->operands[2]) == 1 &&
           fill_packed(packed ? packed : data_of(request, 2),
                       packed ? params->packing.format : (uint32_t)PACK_F32,
                       width_of(&request->operands[2]), needs, step);
}

/* One step of a launch on its own, or 0 where it has none or more. */
static uint32_t plan_alone(const struct device_gpu_request *request, device_gpu_plan plan,
                           struct device_gpu_step *steps)
{
    return plan(request, steps) == 1;
}

/* The row of the launches from `at` on, behind `before`; false if there is none. */
static bool fill_row(const struct device_gpu_request *requests, const device_gpu_plan *plans,
                     uint32_t at, uint32_t count, const struct device_gpu_walk_row *before,
                     struct walk_needs *needs, struct device_gpu_walk_row *row)
{
    struct device_gpu_step steps[DEVICE_GPU_STEP_LIMIT];
    const struct device_gpu_request *request = &requests[at];
    uint32_t left = count - at, taken = 1;
    left = left < DEVICE_GPU_JOIN_LIMIT ? left : DEVICE_GPU_JOIN_LIMIT;
    bool joined = plan_join(request, plans + at, left, steps, &taken) == 1;
    if (!joined && !plan_alone(request, plans[at], steps))
        return false;
    *row = (struct device_gpu_walk_row){ .first = at, .count = joined ? taken : 1 };
    row->step = steps[0];
    row->step.words[WALK_SOURCE] = row->step.words[WALK_TARGET] = WALK_NOWHERE;
    if (joined)
        return steps[0].kernel == KERNEL_attention_step &&
               fill_attention(request, &row->step, needs);
    bool more = at + 1 < count;
    if (is_one_kernel(steps[0].kernel))
        return fill_product(request, more ? request + 1 : NULL, more ? plans[at + 1] : NULL,
                            &row->step, needs);
    switch (steps[0].kernel) {
    case KERNEL_embed:
        return fill_embed(request, &row->step, needs);
    case KERNEL_swiglu:
        return fill_swiglu(request, before, &row->step, needs);
    case KERNEL_rms_norm_by_four:
        return fill_norm(request, &row->step, needs);
    default:
        return false;
    }
}

/* Whether nothing of the last row is taken by one that is not there. */
static bool may_end(const struct device_gpu_walk_row *last)
{
    return last->step.words[WALK_KIND] != WALK_PRODUCT || !last->step.words[WALK_PRODUCT_GATED];
}

/* ---- The walk ------------------------------------------------------------------------------- */

static uint32_t round_up(uint64_t bytes)
{
    return (uint32_t)(divide_up(bytes, 128) * 128);
}

/* Where things are in shared memory; false if there is no room for a ring. */
static bool lay_out(const struct walk_needs *needs, struct device_gpu_step *walk)
{
    const uint64_t sizes[] = { WALK_TEAMS * WALK_STAGES_MOST * sizeof(uint64_t),
                               needs->products * sizeof(struct walk_product),
                               sizeof(struct walk_state),
                               2 * sizeof(struct gpu_call),
                               needs->stream_bytes,
                               needs->packed_bytes,
                               needs->scratch_bytes };
    uint64_t others = 0, stage_bytes = round_up(needs->stage_bytes);
    for (uint32_t i = 0; i < COUNT_OF(sizes); i++)
        others += round_up(sizes[i]);
    if (others > needs->chip->shared_bytes)
        return false;
    stage_bytes = stage_bytes ? stage_bytes : 128; /* no products, and nothing to fetch */
    uint64_t stages = (needs->chip->shared_bytes - others) / (WALK_TEAMS * stage_bytes);
    stages = stages < WALK_STAGES_WANTED ? stages : WALK_STAGES_WANTED;
    uint64_t at = stages * WALK_TEAMS * stage_bytes;
    for (uint32_t i = 0; i < COUNT_OF(sizes); i++) {
        walk->words[WALK_AT_FULL + i] = (uint32_t)at;
        at += round_up(sizes[i]);
    }
    walk->words[WALK_STAGES] = (uint32_t)stages;
    walk->words[WALK_STAGE_BYTES] = (uint32_t)stage_bytes;
    walk->shared_bytes = (uint32_t)at;
    return stages >= WALK_STAGES_LEAST;
}

uint32_t plan_walk(const struct device_gpu_request *requests, const device_gpu_plan *plans,
                   uint32_t count, struct device_gpu_walk_row *rows,
                   struct device_gpu_step *ret_walk, uint32_t *ret_taken, uint64_t *ret_words)
{
    struct walk_needs needs = { .chip = requests[0].chip, .made_from = WALK_NOWHERE };
    uint32_t row_count = 0, at = 0;
    if (!(needs.chip->features & DEVICE_GPU_WALKS) || needs.chip->thread_limit < WALK_THREADS)
        return 0;
    while (at < count &&
           fill_row(requests, plans, at, count, row_count ? &rows[row_count - 1] : NULL, &needs,
                    &rows[row_count]))
        at += rows[row_count++].count;
    while (row_count && !may_end(&rows[row_count - 1]))
        at -= rows[--row_count].count;
    if (2 * at < count + 1)
        return 0;
    uint32_t products = 0;
    for (uint32_t i = 0; i < row_count; i++)
        products += rows[i].step.words[WALK_KIND] == WALK_PRODUCT;
    needs.products = products;
    *ret_taken = at;
    *ret_words = WALK_FIRST_CELL + needs.cells;
    *ret_walk = step_of(KERNEL_walk_graph, needs.chip->processor_count, 1, WALK_THREADS);
    ret_walk->words[WALK_ROWS] = row_count;
    ret_walk->words[WALK_PRODUCTS] = products;
    ret_walk->words[WALK_LIMIT_MS] = WALK_LIMIT;
    return lay_out(&needs, ret_walk) ? row_count : 0;
}
