/* ops_host_matmul_experts_test.c - matmul_experts on every path and type against the product of
 * each slot with its expert alone: the same bits, by slot and by expert, whatever the tiles and
 * their order. A bad id is trapped, and its slot is left as it was. */
#include "ops_host_matmul_product.h"
#include "ops_host_rig.h"

struct experts_case {
    uint64_t k, rows, experts, inputs, slots_per_input;
    bool bias;
    uint32_t tile_rows;
};

struct experts_rig {
    struct rig rig;
    struct params_matmul_experts params;
    const struct host_matmul_kernel *kernel;
    uint64_t slots, row_tiles;
};

static void init_experts(struct experts_rig *it, enum cpu_path path, size_t dtype_row,
                         const struct experts_case *c, int32_t bad_id)
{
    enum dtype dtype = dtype_rows[dtype_row].dtype;
    struct random_state random = { .counter = 5 + c->k };
    char name[96];
    snprintf(name, sizeof(name), "%s %s k %d, %d of %d rows", cpu_path_name(path),
             dtype_name(dtype), (int)c->k, (int)c->experts, (int)c->rows);
    memset(it, 0, sizeof(*it));
    it->kernel = host_matmul_kernel(path, dtype);
    it->slots = c->inputs * c->slots_per_input;
    it->row_tiles = rig_tiles(c->rows, c->tile_rows);
    size_t packed_bytes = host_act_row_bytes(it->kernel->act_format, c->k);
    it->params.cut = (struct params_matmul){ c->tile_rows, 1, (uint32_t)packed_bytes };
    struct rig *rig = &it->rig;
    rig_init(rig, &it->params, name);
    rig_operand(rig, MATMUL_EXPERTS_PACKED, DTYPE_I8, packed_bytes, c->inputs, 0);
    rig_operand(rig, MATMUL_EXPERTS_WEIGHTS, dtype, c->k, c->rows * c->experts, 0);
    fill_weights(dtype_row, rig->memory[MATMUL_EXPERTS_WEIGHTS].bytes,
                 rig->memory[MATMUL_EXPERTS_WEIGHTS].byte_count, &random);
    if (c->bias) {
        rig_operand(rig, MATMUL_EXPERTS_BIAS, DTYPE_F32, c->rows, c->experts, 0);
        rig_fill(rig, MATMUL_EXPERTS_BIAS, 9, 1);
    }
    rig_list(rig, MATMUL_EXPERTS_IDS, NULL, it->slots);
    int32_t *ids = (int32_t *)(void *)rig->memory[MATMUL_EXPERTS_IDS].bytes;
    for (uint64_t s = 0; s < it->slots; s++)
        ids[s] = (int32_t)(random_u64(&random) % c->experts);
    if (bad_id)
        ids[it->slots - 1] = bad_id;
    rig_operand(rig, MATMUL_EXPERTS_OUT, DTYPE_F32, c->rows, it->slots, 0);
    float *values = malloc(c->k * sizeof(float));
    assert_non_null(values);
    for (uint64_t i = 0; i < c->inputs; i++) {
        for (uint64_t n = 0; n < c->k; n++)
            values[n] = random_gaussian(&random);
        host_act_pack(path, it->kernel->act_format, values, c->k,
                      rig->memory[MATMUL_EXPERTS_PACKED].bytes + i * packed_bytes);
    }
    free(values);
}

/* Runs of `step` tiles. */
static void run_experts(struct experts_rig *it, enum cpu_path path, const struct experts_case *c,
                        bool by_expert, uint64_t step, bool backwards)
{
    it->params.by_expert = by_expert;
    memset(it->rig.memory[MATMUL_EXPERTS_OUT].bytes, RIG_UNTOUCHED,
           it->rig.memory[MATMUL_EXPERTS_OUT].byte_count);
    device_host_kernel kernel = rig_kernel(path, "matmul_experts");
    uint64_t tiles = it->row_tiles * (by_expert ? c->experts : it->slots);
    uint64_t runs = rig_tiles(tiles, step);
    for (uint64_t r = 0; r < runs; r++) {
        uint64_t first = (backwards ? runs - 1 - r : r) * step;
        it->rig.call.run_end = first + step < tiles ? first + step : tiles;
        it->rig.call.next_run = DEVICE_NO_TILE;
        memset(it->rig.scratch.bytes, (int)(0xFB + r), 65536);
        kernel(&it->rig.call, first);
    }
}

/* Each slot as a matmul of its own. */
static float *each_alone(const struct experts_rig *it, const struct experts_case *c)
{
    const struct rig *rig = &it->rig;
    float *out = malloc(it->slots * c->rows * sizeof(float));
    assert_non_null(out);
    const int32_t *ids = (const int32_t *)(const void *)rig->memory[MATMUL_EXPERTS_IDS].bytes;
    const struct device_host_operand *weights = &rig->operands[MATMUL_EXPERTS_WEIGHTS];
    for (uint64_t s = 0; s < it->slots; s++) {
        size_t expert = (size_t)ids[s] < c->experts ? (size_t)ids[s] : 0;
        struct host_matmul_task task = {
            .dtype = weights->dtype,
            .k = c->k,
            .weights = (const uint8_t *)weights->data +
                       expert * c->rows * weights->row_stride_bytes,
            .weight_row_bytes = weights->row_stride_bytes,
            .weight_rows = c->rows,
            .activations = rig->memory[MATMUL_EXPERTS_PACKED].bytes +
                           s / c->slots_per_input * it->params.cut.packed_row_bytes,
            .activation_row_bytes = it->params.cut.packed_row_bytes,
            .activation_rows = 1,
            .output = out + s * c->rows,
            .output_stride = c->rows,
            .scratch = rig->scratch.bytes,
        };
        host_matmul(it->kernel, &task);
        for (uint64_t r = 0; c->bias && r < c->rows; r++)
            task.output[r] += rig_row(rig, MATMUL_EXPERTS_BIAS, expert)[r];
    }
    return out;
}

static void check_experts(enum cpu_path path, size_t dtype_row, const struct experts_case *c)
{
    struct experts_rig it;
    init_experts(&it, path, dtype_row, c, 0);
    float *expected = each_alone(&it, c);
    for (size_t way = 0; way < 8; way++) {
        bool by_expert = way / 4;
        run_experts(&it, path, c, by_expert, way % 2 ? 3 : 1000, way / 2 % 2);
        for (uint64_t i = 0; i < it.slots * c->rows; i++) {
            float found = rig_row(&it.rig, MATMUL_EXPERTS_OUT, i / c->rows)[i % c->rows];
            if (memcmp(&found, &expected[i], sizeof(found)) != 0)
                fail_msg("%s: way %d, slot %d row %d: expected %a, found %a", it.rig.name, (int)way,
                         (int)(i / c->rows), (int)(i % c->rows), (double)expected[i],
                         (double)found);
        }
        rig_check_margins(&it.rig);
        rig_check_no_traps(&it.rig);
    }
    free(expected);
    rig_release(&it.rig);
}

static const struct experts_case cases[] = {
    { 256, 8, 4, 3, 2, true, 8 },     /* a row for each token */
    { 256, 21, 5, 70, 1, false, 16 }, /* a row for each slot; some kernel does many rows */
    { 512, 3, 3, 1, 3, false, 64 },
    { 256, 5, 2, 300, 2, true, 4 }, /* more slots of an expert than are brought together */
};

static void test_experts(void **state)
{
    (void)state;
    for (int path = 0; path < CPU_PATH_COUNT; path++)
        for (size_t d = 0; d < COUNT_OF(dtype_rows); d++)
            for (size_t c = 0; c < COUNT_OF(cases); c++)
                if (cpu_path_is_supported((enum cpu_path)path) &&
                    (c < 3 || dtype_rows[d].dtype == DTYPE_Q4_K))
                    check_experts((enum cpu_path)path, d, &cases[c]);
}

/* Rows so long that the scratch has no room for one of them. */
static void test_no_room(void **state)
{
    (void)state;
    static const struct experts_case c = { 600000, 2, 2, 3, 1, false, 64 };
    for (size_t d = 0; d < COUNT_OF(dtype_rows); d++)
        if (dtype_rows[d].dtype == DTYPE_F16)
            check_experts(CPU_PATH_PORTABLE, d, &c);
}

static void test_bad_ids(void **state)
{
    (void)state;
    static const int32_t bad[] = { -1, 5, INT32_MIN, INT32_MAX };
    static const struct experts_case c = { 256, 21, 5, 3, 2, true, 4 };
    for (size_t i = 0; i < COUNT_OF(bad) * 2; i++) {
        struct experts_rig it;
        init_experts(&it, CPU_PATH_PORTABLE, 3, &c, bad[i / 2]);
        run_experts(&it, CPU_PATH_PORTABLE, &c, i % 2, 2, false);
        assert_int_equal(it.rig.crumbs->trap_count, 1);
        rig_check_trap(&it.rig, 0, MATMUL_EXPERTS_IDS, bad[i / 2], c.experts);
        const uint8_t *row = (const uint8_t *)rig_row(&it.rig, MATMUL_EXPERTS_OUT, it.slots - 1);
        assert_true(rig_is_untouched(row, c.rows * sizeof(float)));
        assert_false(rig_is_untouched(row - sizeof(float), sizeof(float)));
        rig_check_margins(&it.rig);
        rig_release(&it.rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_experts),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_bad_ids),
    };
    return cmocka_run_group_tests_name("ops_host_matmul_experts", tests, NULL, NULL);
}
