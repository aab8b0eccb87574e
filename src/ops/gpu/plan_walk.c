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
/* Norms in front of a product: by every block for itself, or by one for all. */
#ifndef WALK_NORMS_EVERYWHERE
#define WALK_NORMS_EVERYWHERE 1
#endif

/* What the rows need of a block, as they are found. */
struct walk_needs {
    const struct device_gpu_chip *chip;
    uint32_t products;
    uint64_t stage_bytes, packed_bytes, kept_bytes, scratch_bytes;
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

static bool fill_norm(const struct device_gpu_request *request, bool in_front,
                      struct device_gpu_step *step, struct walk_needs *needs)
{
    uint64_t width = width_of(&request->operands[0]);
    const struct params_norm *params = request->params;
    uint32_t threads = step->threads;
    /* Two fours for each thread: no row is longer. */
    if (step->grid_x != 1 || threads > WALK_THREADS || width > 8 * (uint64_t)threads)
        return false;
    step->words[WALK_KIND] = WALK_NORM;
    step->words[WALK_NORM_THREADS] = threads;
    step->words[WALK_NORM_EVERYWHERE] = in_front;
    step->words[WALK_MEET] = !in_front;
    raise_to(&needs->scratch_bytes, TEAM * sizeof(float));
    if (in_front) {
        raise_to(&needs->packed_bytes, gpu_packed_row_bytes(params->packing.format, width));
        raise_to(&needs->kept_bytes, divide_up(width / 4, needs->chip->processor_count) * 16);
    }
    return true;
}

/* behind_norm: the row before has packed its activations into the block's memory. */
static bool fill_product(const struct device_gpu_request *request, bool behind_norm,
                         struct device_gpu_step *step, struct walk_needs *needs)
{
    uint64_t groups = 0;
    uint32_t type = DTYPE_COUNT, members = step->words[1];
    bool same = true;
    for (uint32_t part = 0; part < 3; part++) {
        if (step->operands[1 + part] == DEVICE_GPU_ABSENT)
            continue;
        const struct device_host_operand *weights = &request->operands[step->operands[1 + part]];
        uint32_t dtype = (uint32_t)weights->dtype;
        same = same && (type == DTYPE_COUNT || type == dtype);
        type = dtype;
        groups += divide_up(rows_of(weights), one_rows(dtype));
        raise_to(&needs->stage_bytes, (uint64_t)one_rows(dtype) * one_slice_bytes(dtype));
        /* A step of the ring is WALK_TEAMS groups at most. */
        if (weights->row_stride_bytes > UINT32_MAX / (WALK_TEAMS * ONE_ROWS_MOST) ||
            rows_of(weights) > UINT32_MAX)
            return false;
    }
    if (members > WALK_TEAMS || groups * (needs->chip->processor_count + 1) > UINT32_MAX)
        return false;
    step->words[WALK_KIND] = WALK_PRODUCT;
    step->words[WALK_PRODUCT_TYPE] = same ? type : DTYPE_COUNT;
    step->words[WALK_PRODUCT_MEMBERS] = members;
    step->words[WALK_PRODUCT_SHARED] = behind_norm;
    step->words[WALK_PRODUCT_NUMBER] = needs->products++;
    step->words[WALK_MEET] = 1;
    raise_to(&needs->scratch_bytes, divide_up(groups, needs->chip->processor_count) *
                                        ONE_ROWS_MOST * members * sizeof(float));
    return true;
}

/* requests: of rope, kv_append and attention. */
static bool fill_attention(const struct device_gpu_request *requests, struct device_gpu_step *step,
                           struct walk_needs *needs)
{
    const struct params_attention *params = requests[2].params;
    uint64_t angles = width_of(&requests[0].operands[2]), slots = rows_of(&requests[1].operands[3]);
    step->words[WALK_KIND] = WALK_ATTENTION;
    step->words[WALK_ATTENTION_UNITS] = step->grid_x;
    step->words[WALK_MEET] = 1;
    raise_to(&needs->scratch_bytes, step->shared_bytes);
    return step->grid_y == 1 && step->threads == WALK_ATTENTION_THREADS &&
           params->head_dim <= WALK_HEAD_MOST && angles <= WALK_HEAD_MOST &&
           slots <= UINT32_MAX - WALK_THREADS;
}

static bool fill_small(enum walk_kind kind, uint64_t rows, struct device_gpu_step *step)
{
    step->words[WALK_KIND] = kind;
    step->words[WALK_MEET] = 1;
    return rows == 1 || kind == WALK_ADD;
}

/* One step of a launch on its own, or 0 where it has none or more. */
static uint32_t plan_alone(const struct device_gpu_request *request, device_gpu_plan plan,
                           struct device_gpu_step *steps)
{
    return plan(request, steps) == 1;
}

/* Whether the launch behind a norm multiplies what it packs. */
static bool is_in_front(const struct device_gpu_request *norm,
                        const struct device_gpu_request *next, device_gpu_plan next_plan)
{
    struct device_gpu_step steps[DEVICE_GPU_STEP_LIMIT];
    const void *packed = norm->operands[4].data;
    return WALK_NORMS_EVERYWHERE && packed && plan_alone(next, next_plan, steps) &&
           is_one_kernel(steps[0].kernel) && next->operands[steps[0].operands[0]].data == packed;
}

/* The row of the launches from `at` on; false if there is none. */
static bool fill_row(const struct device_gpu_request *requests, const device_gpu_plan *plans,
                     uint32_t at, uint32_t count, bool behind_norm, struct walk_needs *needs,
                     struct device_gpu_walk_row *row)
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
    if (joined)
        return steps[0].kernel == KERNEL_attention_step &&
               fill_attention(request, &row->step, needs);
    if (is_one_kernel(steps[0].kernel))
        return fill_product(request, behind_norm, &row->step, needs);
    switch (steps[0].kernel) {
    case KERNEL_embed:
        return fill_small(WALK_EMBED, rows_of(&request->operands[2]), &row->step);
    case KERNEL_swiglu:
        return fill_small(WALK_SWIGLU, rows_of(&request->operands[2]), &row->step);
    case KERNEL_add:
        return fill_small(WALK_ADD, rows_of(&request->operands[0]), &row->step);
    case KERNEL_rms_norm_by_four:
        return fill_norm(request,
                         at + 1 < count && is_in_front(request, &requests[at + 1], plans[at + 1]),
                         &row->step, needs);
    default:
        return false;
    }
}

/* Whether a row may stand behind those before it. What attention asks for is asked for while blocks
 * meet before it. A norm of every block stores the stream it added to behind the meeting of its
 * product: the row that begins there must not touch it. */
static bool may_follow(const struct device_gpu_walk_row *rows, uint32_t count,
                       const struct device_gpu_walk_row *row)
{
    uint32_t kind = row->step.words[WALK_KIND];
    if (kind == WALK_ATTENTION)
        return count > 0 && rows[count - 1].step.words[WALK_MEET];
    bool kept = count > 1 && rows[count - 2].step.words[WALK_KIND] == WALK_NORM &&
                rows[count - 2].step.words[WALK_NORM_EVERYWHERE];
    return !kept || kind == WALK_PRODUCT || kind == WALK_SWIGLU;
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
                               needs->packed_bytes,
                               needs->kept_bytes,
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
                   struct device_gpu_step *ret_walk, uint32_t *ret_taken)
{
    struct walk_needs needs = { .chip = requests[0].chip };
    uint32_t row_count = 0, at = 0;
    bool behind_norm = false;
    if (!(needs.chip->features & DEVICE_GPU_WALKS) || needs.chip->thread_limit < WALK_THREADS)
        return 0;
    while (at < count) {
        struct device_gpu_walk_row *row = &rows[row_count];
        if (!fill_row(requests, plans, at, count, behind_norm, &needs, row) ||
            !may_follow(rows, row_count, row))
            break;
        behind_norm = row->step.words[WALK_KIND] == WALK_NORM &&
                      row->step.words[WALK_NORM_EVERYWHERE];
        at += row->count;
        row_count++;
    }
    if (2 * at < count + 1)
        return 0;
    if (behind_norm) { /* its product is not there: others read what it packs */
        rows[row_count - 1].step.words[WALK_NORM_EVERYWHERE] = 0;
        rows[row_count - 1].step.words[WALK_MEET] = 1;
    }
    *ret_taken = at;
    *ret_walk = step_of(KERNEL_walk_graph, needs.chip->processor_count, 1, WALK_THREADS);
    ret_walk->words[WALK_ROWS] = row_count;
    ret_walk->words[WALK_PRODUCTS] = needs.products;
    ret_walk->words[WALK_LIMIT_MS] = WALK_LIMIT;
    return lay_out(&needs, ret_walk) ? row_count : 0;
}
