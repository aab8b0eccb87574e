/* rope.c - rope_table and rope: rotary positions. All paths share these.
 *
 * Table. For position p and pair k of n = dimensions, in f64, each value from k directly:
 *     theta = p * base^(-2k / n) / factors[k]
 *     plain or linear scaling:  angle = frequency_scale * theta
 *     YaRN (yarn set and ext_factor not 0):
 *         c(b) = n ln(original_context_length / (2 pi b)) / (2 ln base)
 *         low = max(0, floor(c(beta_fast))), high = min(n - 1, ceil(c(beta_slow)))
 *         ramp = ext_factor * (1 - clamp((k - low) / max(0.001, high - low), 0, 1))
 *         angle = frequency_scale * theta * (1 - ramp) + theta * ramp
 * Row p holds magnitude * cos(angle) of all pairs, then magnitude * sin(angle), rounded to f32
 * once. The magnitude is attention_factor; with YaRN and f = 1 / frequency_scale > 1 it is times 1
 * + 0.1 ln f, and with a log_multiplier L divided by 1 + 0.1 L ln f. Callers give the net extra
 * factor of the file: nothing here cancels a factor that others apply elsewhere. With a temperature
 * b it is times 1 + b ln(1 + floor(p / temperature_length)) at position p.
 *
 * Rotation. (x0, x1) becomes (x0 cos - x1 sin, x0 sin + x1 cos), in f32, both products rounded
 * before the sum. Values of a head past the table's dimensions stay as they are. */
#include "ops/host/kernels.h"

#include "ops/host/rows.h"

#include <math.h>

static const double full_turn = 6.283185307179586476925;

/* ---- Table ---------------------------------------------------------------------------------- */

static bool is_yarn(const struct params_rope_table *params)
{
    return params->yarn && params->ext_factor != 0;
}

static double magnitude(const struct params_rope_table *params)
{
    double extra = (double)params->attention_factor;
    if (!is_yarn(params) || params->frequency_scale >= 1)
        return extra;
    double log_factor = -log((double)params->frequency_scale);
    double multiplier = (double)params->log_multiplier;
    return extra * (1 + 0.1 * log_factor) / (1 + 0.1 * multiplier * log_factor);
}

static double temperature(const struct params_rope_table *params, uint64_t position)
{
    if (params->temperature_scale == 0)
        return 1;
    double whole = (double)(position / params->temperature_length);
    return 1 + (double)params->temperature_scale * log(1 + whole);
}

/* The pair, not rounded, that makes `turns` full turns within the original context. */
static double pair_with_turns(const struct params_rope_table *params, double dimensions,
                              double turns)
{
    return dimensions * log((double)params->original_context_length / (turns * full_turn)) /
           (2 * log((double)params->base));
}

/* How much of pair k keeps its own frequency: 1 for fast pairs, 0 for slow ones. */
static double own_share(const struct params_rope_table *params, double dimensions, double k)
{
    double low = floor(pair_with_turns(params, dimensions, (double)params->beta_fast));
    double high = ceil(pair_with_turns(params, dimensions, (double)params->beta_slow));
    low = fmax(0, low);
    high = fmin(dimensions - 1, high);
    double ramp = (k - low) / fmax(0.001, high - low);
    return (1 - fmin(1, fmax(0, ramp))) * (double)params->ext_factor;
}

/* Angle of pair k at position 1. */
static double pair_frequency(const struct params_rope_table *params, const float *factors,
                             uint64_t dimensions, uint64_t k)
{
    double exponent = -2.0 * (double)k / (double)dimensions;
    double own = pow((double)params->base, exponent) / (factors ? (double)factors[k] : 1.0);
    double scaled = (double)params->frequency_scale * own;
    if (!is_yarn(params))
        return scaled;
    double share = own_share(params, (double)dimensions, (double)k);
    return scaled * (1 - share) + own * share;
}

void host_rope_table_tile(const struct device_host_call *call, uint64_t tile)
{
    const struct params_rope_table *params = call->params;
    const float *factors = call->operands[ROPE_TABLE_FACTORS].data; /* [pairs], or NULL */
    const struct device_host_operand *table =
        &call->operands[ROPE_TABLE_TABLE]; /* [dimensions, positions] */
    uint64_t dimensions = table->shape.dims[0];
    struct row_range rows = tile_range(tile, TILE_POSITIONS, table->shape.dims[1]);
    double size = magnitude(params);
    for (uint64_t k = 0; k < dimensions / 2; k++) {
        double frequency = pair_frequency(params, factors, dimensions, k);
        for (uint64_t p = rows.first; p < rows.end; p++) {
            double angle = (double)p * frequency, times = size * temperature(params, p);
            row_f32(table, p)[k] = (float)(times * cos(angle));
            row_f32(table, p)[dimensions / 2 + k] = (float)(times * sin(angle));
        }
    }
}

/* ---- Rotation ------------------------------------------------------------------------------- */

/* Pair k of head is (head[k * step], head[k * step + distance]). */
static void rotate(float *head, const float *table, uint64_t pairs, uint64_t step,
                   uint64_t distance)
{
    for (uint64_t k = 0; k < pairs; k++) {
        float x0 = head[k * step];
        float x1 = head[k * step + distance];
        float cosine = table[k];
        float sine = table[pairs + k];
        head[k * step] = x0 * cosine - x1 * sine;
        head[k * step + distance] = x0 * sine + x1 * cosine;
    }
}

static void rotate_row(const struct params_rope *params, float *row, uint64_t width,
                       const float *angles, uint64_t pairs)
{
    for (uint64_t i = 0; i < width; i += params->head_dim) {
        if (params->adjacent)
            rotate(row + i, angles, pairs, 2, 1);
        else
            rotate(row + i, angles, pairs, 1, pairs);
    }
}

void host_rope_tile(const struct device_host_call *call, uint64_t tile)
{
    const struct params_rope *params = call->params;
    const struct device_host_operand *x = &call->operands[ROPE_X]; /* [head_dim * heads, tokens] */
    const struct device_host_operand *positions = &call->operands[ROPE_POSITIONS]; /* [tokens] */
    const struct device_host_operand *table = &call->operands[ROPE_TABLE]; /* [dimensions, rows] */
    const struct device_host_operand *also = &call->operands[ROPE_ALSO];   /* like x, or absent */
    uint64_t pairs = table->shape.dims[0] / 2;
    struct row_range tokens = tile_tokens(tile, x);
    for (uint64_t t = tokens.first; t < tokens.end; t++) {
        uint64_t position = list_index(positions, t);
        if (!device_index_ok(call, ROPE_POSITIONS, position, table->shape.dims[1]))
            continue;
        const float *angles = row_f32(table, position);
        rotate_row(params, row_f32(x, t), x->shape.dims[0], angles, pairs);
        if (also->data)
            rotate_row(params, row_f32(also, t), also->shape.dims[0], angles, pairs);
    }
}
