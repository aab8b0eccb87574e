/* campaign_shadow_test.c - how far two devices' outputs are apart: the worst value, its place, and
 * its error relative to the row. */
#include "campaign/shadow_compare.h"
#include "tensor/quant.h"
#include "test.h"

#include <math.h>
#include <string.h>

#define COLUMNS 4u
#define ROWS 3u

static struct device_view view_of(enum dtype dtype, uint64_t columns)
{
    uint64_t dims[2] = { columns, ROWS };
    return (struct device_view){ .dtype = dtype, .shape = shape_make(2, dims) };
}

static struct shadow_place compare(enum dtype dtype, uint64_t columns, const void *device,
                                   const void *host)
{
    struct device_view view = view_of(dtype, columns);
    struct shadow_place place = { .operand = "out", .error = 7 };
    struct error err;
    CHECK_OK(shadow_compare(&view, device, host, &place, &err), &err);
    assert_string_equal(place.operand, "out");
    return place;
}

static void worst_value_is_named_by_its_row(void **state)
{
    (void)state;
    static const float host[ROWS][COLUMNS] = { { 1, -2, 4, 0 }, { 100, 50, 0, 0 }, { 0, 0, 0, 0 } };
    static const struct {
        const char *name;
        uint64_t row, column;
        float value;
        double error;
    } rows[] = {
        { "equal", 0, 0, 1, 0 },
        { "relative to the row's largest", 0, 3, 0.5f, 0.125 },
        { "in a row of large values", 1, 2, 0.5f, 0.005 },
        { "in a row of zeros: to a thousandth of the largest of all", 2, 1, 0.05f, 0.5 },
        { "not a number", 1, 1, NAN, SHADOW_NOT_FINITE },
        { "infinite", 2, 0, -INFINITY, SHADOW_NOT_FINITE },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        float device[ROWS][COLUMNS];
        memcpy(device, host, sizeof(device));
        device[rows[i].row][rows[i].column] = rows[i].value;
        struct shadow_place place = compare(DTYPE_F32, COLUMNS, device, host);
        if (fabs(place.error - rows[i].error) > 1e-6 * (rows[i].error + 1) ||
            (rows[i].error > 0 && (place.row != rows[i].row || place.column != rows[i].column)))
            fail_msg("%s: found error %g at %d, %d", rows[i].name, place.error, (int)place.row,
                     (int)place.column);
    }
}

static void same_values_that_are_not_finite_agree(void **state)
{
    (void)state;
    float both[ROWS][COLUMNS] = { { NAN, INFINITY, 1, 2 } };
    float other[ROWS][COLUMNS];
    memcpy(other, both, sizeof(other));
    other[0][0] = -NAN; /* another NaN */
    assert_true(compare(DTYPE_F32, COLUMNS, other, both).error == 0);
    other[0][1] = -INFINITY;
    assert_true(compare(DTYPE_F32, COLUMNS, other, both).error == SHADOW_NOT_FINITE);
}

static void other_types_are_compared_by_their_values(void **state)
{
    (void)state;
    int32_t ids[ROWS][1] = { { 5 }, { -1 }, { 7 } }, wrong[ROWS][1] = { { 5 }, { -1 }, { 6 } };
    assert_true(compare(DTYPE_I32, 1, ids, ids).error == 0);
    struct shadow_place place = compare(DTYPE_I32, 1, wrong, ids);
    assert_int_equal(place.row, 2);
    assert_true(place.device == 6 && place.host == 7 && place.error > 0.1);
    uint16_t halves[ROWS][COLUMNS], off[ROWS][COLUMNS];
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        halves[i / COLUMNS][i % COLUMNS] = f16_from_f32((float)i);
    memcpy(off, halves, sizeof(off));
    off[1][2] = f16_from_f32(6.5f);
    place = compare(DTYPE_F16, COLUMNS, off, halves);
    assert_int_equal(place.row, 1);
    assert_int_equal(place.column, 2);
    assert_true(fabs(place.error - 0.5 / 7) < 1e-6);
}

static void numbers_can_be_written_down(void **state)
{
    (void)state;
    assert_true(shadow_number(NAN) == SHADOW_NOT_FINITE);
    assert_true(shadow_number(INFINITY) == SHADOW_NOT_FINITE);
    assert_true(shadow_number(-INFINITY) == -SHADOW_NOT_FINITE);
    assert_true(shadow_number(-1.5) == -1.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(worst_value_is_named_by_its_row),
        cmocka_unit_test(same_values_that_are_not_finite_agree),
        cmocka_unit_test(other_types_are_compared_by_their_values),
        cmocka_unit_test(numbers_can_be_written_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
