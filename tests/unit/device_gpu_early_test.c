/* device_gpu_early_test.c - which commands of a graph write what a kernel would read early. */
#include "test.h"

#include "device/gpu/gpu_impl.h"

/* Rows of 8 floats, 32 bytes, 64 apart. */
static struct device_host_operand make_operand(uint64_t address, uint64_t rows)
{
    return (struct device_host_operand){ .data = (void *)(uintptr_t)address,
                                         .row_stride_bytes = 64,
                                         .dtype = DTYPE_F32,
                                         .shape = shape_make(2, (uint64_t[]){ 8, rows }) };
}

/* Read from 1000 to 1000 + 2 * 64 + 32. */
#define FIRST 1000u
#define END (FIRST + 160u)

static bool is_written(const struct device_command *commands, size_t count)
{
    struct device_host_operand operand = make_operand(FIRST, 3);
    return gpu_is_written(commands, count, &operand);
}

static void test_transfers(void **state)
{
    (void)state;
    static const struct {
        uint64_t address, row_bytes, row_count, stride_bytes;
        bool overlaps;
    } rows[] = {
        { END - 1, 1, 1, 1, true },
        { END, 1, 1, 1, false },
        { FIRST - 4, 4, 1, 4, false },
        { FIRST - 4, 5, 1, 5, true },
        { FIRST - 100, 4, 2, 100, true },
        { FIRST - 100, 4, 2, 96, false },
        { FIRST + 40, 4, 1, 4, true }, /* between rows: near enough */
        { FIRST, 0, 1, 0, false },
        { FIRST, 4, 0, 4, false },
        { 0, END + 100, 1, 0, false }, /* nowhere */
        { 1, UINT64_C(1) << 40, 1, 0, true },
    };
    static const enum device_command_kind kinds[] = { DEVICE_COMMAND_COPY_IN,
                                                      DEVICE_COMMAND_COPY_WITHIN,
                                                      DEVICE_COMMAND_FILL };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (size_t k = 0; k < COUNT_OF(kinds); k++) {
            struct device_rows target = { rows[i].address, rows[i].row_bytes, rows[i].row_count,
                                          rows[i].stride_bytes };
            struct device_command commands[3] = { { .kind = DEVICE_COMMAND_COPY_OUT },
                                                  { .kind = kinds[k], .target = target },
                                                  { .kind = DEVICE_COMMAND_INSPECT } };
            if (is_written(commands, 3) != rows[i].overlaps)
                fail_msg("row %zu, kind %d: expected %d", i, (int)kinds[k], rows[i].overlaps);
            assert_false(is_written(commands, 1)); /* what comes later does not count */
        }
    struct device_command out = { .kind = DEVICE_COMMAND_COPY_OUT,
                                  .source = { FIRST, 32, 3, 64 },
                                  .target = { FIRST, 32, 3, 64 } };
    assert_false(is_written(&out, 1));
    assert_false(is_written(NULL, 0));
}

static void test_launches(void **state)
{
    (void)state;
    static const struct {
        uint8_t mode;
        bool writes;
    } modes[] = {
        { EVENT_READ, false },
        { EVENT_WRITE, true },
        { EVENT_UPDATE, true },
        { EVENT_UPDATE | EVENT_SCATTERED, true },
    };
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        struct device_contract contract = {
            .operands = { { .mode = EVENT_READ }, { .mode = modes[i].mode } }, .operand_count = 2
        };
        struct device_command command = { .kind = DEVICE_COMMAND_LAUNCH,
                                          .contract = &contract,
                                          .operand_count = 2 };
        command.operands[0] = make_operand(FIRST, 3);
        command.operands[1] = make_operand(END - 4, 1);
        assert_int_equal(is_written(&command, 1), modes[i].writes);
        command.operands[1] = make_operand(END, 1);
        assert_false(is_written(&command, 1));
        command.operands[1].data = NULL; /* absent */
        assert_false(is_written(&command, 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transfers),
        cmocka_unit_test(test_launches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
