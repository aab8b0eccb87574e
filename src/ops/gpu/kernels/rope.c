/* rope.c - rope_table and rope. The formulas are those of ops/host/rope.c; the table is computed in
 * f64 and rounded once. There is no library of mathematics here, so the four functions needed are
 * written out, good to about 1e-15. */
#include "ops/gpu/kernels/kernel_call.h"
#include "ops/gpu/kernels/rotate.h"
#include "ops/params.h"

/* ---- Functions ------------------------------------------------------------------------------ */

INLINE double double_of(uint64_t bits)
{
    double value;
    __builtin_memcpy(&value, &bits, sizeof(value));
    return value;
}
INLINE uint64_t bits_of_double(double value)
{
    uint64_t bits;
    __builtin_memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* x > 0 and normal: 2 artanh((m - 1) / (m + 1)) + e ln 2, with m in [sqrt(1/2), sqrt(2)). */
INLINE double log_value(double x)
{
    uint64_t bits = bits_of_double(x);
    int exponent = (int)(bits >> 52) - 1023;
    double m = double_of((bits & UINT64_C(0x000FFFFFFFFFFFFF)) | UINT64_C(0x3FF0000000000000));
    if (m > 1.4142135623730951) {
        m *= 0.5;
        exponent++;
    }
    double r = (m - 1) / (m + 1), square = r * r, sum = 0;
    for (int n = 23; n > 0; n -= 2)
        sum = sum * square + 1.0 / n;
    return 2 * r * sum + exponent * 0.6931471805599453094;
}

/* |x| < 700. */
INLINE double exp_double(double x)
{
    double n = __builtin_rint(x * 1.4426950408889634074);
    double r = __builtin_fma(-n, 0.69314718055994530942, x);
    r = __builtin_fma(-n, 2.3190468138462996e-17, r);
    double sum = 1;
    for (int k = 14; k > 0; k--)
        sum = __builtin_fma(sum, r / k, 1);
    return sum * double_of((uint64_t)(1023 + (int64_t)n) << 52);
}

/* |x| < 1e9. Quarter turns are taken off by multiply-adds with pi / 2 in two parts. */
INLINE void sine_cosine(double x, double *sine, double *cosine)
{
    double n = __builtin_rint(x * 0.63661977236758134308);
    double r = __builtin_fma(-n, 1.5707963267948965580, x);
    r = __builtin_fma(-n, 6.1232339957367660e-17, r);
    double square = r * r, s = 0, c = 0;
    for (int k = 19; k > 1; k -= 2)
        s = (s + 1) * -square / (k * (k - 1));
    for (int k = 18; k > 0; k -= 2)
        c = (c + 1) * -square / (k * (k - 1));
    s = __builtin_fma(s, r, r);
    c += 1;
    int64_t quarter = (int64_t)n & 3;
    *sine = quarter == 0 ? s : quarter == 1 ? c : quarter == 2 ? -s : -c;
    *cosine = quarter == 0 ? c : quarter == 1 ? -s : quarter == 2 ? -c : s;
}

/* ---- Table ---------------------------------------------------------------------------------- */

INLINE bool is_yarn(const struct params_rope_table *params)
{
    return params->yarn && params->ext_factor != 0;
}

INLINE double magnitude(const struct params_rope_table *params)
{
    double extra = params->attention_factor;
    if (!is_yarn(params) || params->frequency_scale >= 1)
        return extra;
    double log_factor = -log_value(params->frequency_scale);
    return extra * (1 + 0.1 * log_factor) / (1 + 0.1 * params->log_multiplier * log_factor);
}

INLINE double temperature(const struct params_rope_table *params, uint64_t position)
{
    return 1 + params->temperature_scale *
                   log_value(1.0 + (double)(position / params->temperature_length));
}

INLINE double pair_with_turns(const struct params_rope_table *params, double dimensions,
                              double turns)
{
    const double full_turn = 6.283185307179586476925;
    return dimensions * log_value(params->original_context_length / (turns * full_turn)) /
           (2 * log_value(params->base));
}

INLINE double own_share(const struct params_rope_table *params, double dimensions, double k)
{
    double low = __builtin_floor(pair_with_turns(params, dimensions, params->beta_fast));
    double high = __builtin_ceil(pair_with_turns(params, dimensions, params->beta_slow));
    low = low > 0 ? low : 0;
    high = high < dimensions - 1 ? high : dimensions - 1;
    double width = high - low > 0.001 ? high - low : 0.001;
    double ramp = (k - low) / width;
    ramp = ramp < 0 ? 0 : ramp > 1 ? 1 : ramp;
    return (1 - ramp) * params->ext_factor;
}

/* A thread for each pair (x) of TILE_POSITIONS positions (y). */
KERNEL(rope_table)
{
    ENTER(call);
    const struct params_rope_table *params = (const void *)call.params;
    const struct gpu_operand *table =
        &call.operands[ROPE_TABLE_TABLE]; /* [dimensions, positions] */
    uint32_t pairs = (uint32_t)table->width / 2;
    uint32_t k = block_x() * thread_count() + thread_index();
    if (k >= pairs)
        return;
    double factor = call.operands[ROPE_TABLE_FACTORS].address
                        ? row_f32(&call.operands[ROPE_TABLE_FACTORS], 0)[k]
                        : 1.0;
    double own = exp_double(-2.0 * k / (2.0 * pairs) * log_value(params->base)) / factor;
    double frequency = params->frequency_scale * own;
    if (is_yarn(params)) {
        double share = own_share(params, 2.0 * pairs, k);
        frequency = frequency * (1 - share) + own * share;
    }
    double size = magnitude(params);
    bool warms = params->temperature_scale != 0;
    uint64_t first = (uint64_t)block_y() * TILE_POSITIONS;
    for (uint64_t p = first; p < first + TILE_POSITIONS && p < table->rows; p++) {
        double sine, cosine;
        sine_cosine((double)p * frequency, &sine, &cosine);
        double times = warms ? size * temperature(params, p) : size;
        row_f32(table, p)[k] = (float)(times * cosine);
        row_f32(table, p)[pairs + k] = (float)(times * sine);
    }
}

/* ---- Rotation ------------------------------------------------------------------------------- */

INLINE void rotate_pair(const struct params_rope *params, GLOBAL float *row,
                        const GLOBAL float *angles, uint32_t pairs, uint32_t pair)
{
    uint32_t k = pair % pairs;
    uint32_t at = pair / pairs * params->head_dim + (params->adjacent ? 2 * k : k);
    uint32_t other = at + (params->adjacent ? 1 : pairs);
    float x0 = row[at], x1 = row[other];
    rotate(&x0, &x1, angles[k], angles[pairs + k]);
    row[at] = x0;
    row[other] = x1;
}

/* A thread for each pair of x, then of also; y counts tokens. */
KERNEL(rope)
{
    ENTER(call);
    const struct params_rope *params = (const void *)call.params;
    const struct gpu_operand *x = &call.operands[ROPE_X], *table = &call.operands[ROPE_TABLE],
                             *also = &call.operands[ROPE_ALSO];
    uint32_t pairs = (uint32_t)table->width / 2;
    uint64_t position = list_index(&call.operands[ROPE_POSITIONS], block_y());
    if (position >= table->rows) {
        if (thread_index() == 0 && block_x() == 0)
            index_ok(&call, ROPE_POSITIONS, position, table->rows);
        return;
    }
    const GLOBAL float *angles = row_f32(table, position);
    uint32_t x_pairs = (uint32_t)x->width / params->head_dim * pairs;
    uint32_t also_pairs = also->address ? (uint32_t)also->width / params->head_dim * pairs : 0;
    uint32_t pair = block_x() * thread_count() + thread_index();
    if (pair < x_pairs)
        rotate_pair(params, row_f32(x, block_y()), angles, pairs, pair);
    else if (pair < x_pairs + also_pairs)
        rotate_pair(params, row_f32(also, block_y()), angles, pairs, pair - x_pairs);
}
