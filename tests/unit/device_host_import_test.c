/* device_host_import_test.c - imported memory: in place, or a copy in the host device's chunks. */
#include "device_fixture.h"

#include <stdlib.h>

#define SMALL ((size_t)64)
#define LARGE ((size_t)3 << 18) /* floats: 3 MiB, more than a huge page */

static float *new_source(size_t count, float first)
{
    float *values = malloc(count * sizeof(*values));
    assert_non_null(values);
    for (size_t i = 0; i < count; i++)
        values[i] = first + (float)(i % 1000);
    return values;
}

static struct device_view import(struct fixture *fixture, const float *values, uint64_t count)
{
    struct device_view view = { .dtype = DTYPE_F32, .shape = shape_make(1, &count) };
    CHECK_OK(device_buffer_import(fixture->device, values, count * sizeof(float), "weights",
                                  DEVICE_HERE, &view.buffer, &fixture->err),
             &fixture->err);
    return view;
}

static void check_values(struct fixture *fixture, struct device_view view, float first)
{
    uint64_t count = view.shape.dims[0];
    float *values = malloc(count * sizeof(*values));
    assert_non_null(values);
    CHECK_OK(
        device_read(fixture->device, fixture->stream, &view, values, DEVICE_HERE, &fixture->err),
        &fixture->err);
    for (uint64_t i = 0; i < count; i++)
        if (values[i] != first + (float)(i % 1000))
            fail_msg("value %d: expected %g, found %g", (int)i, (double)(first + (float)(i % 1000)),
                     (double)values[i]);
    free(values);
}

static void destroy(struct fixture *fixture, struct device_view view)
{
    device_buffer_destroy(fixture->device, view.buffer, DEVICE_HERE);
}

/* What the caller does to his memory afterwards shows in place, and only there. */
static void test_whose_bytes(void **state)
{
    (void)state;
    const enum device_imports modes[] = { DEVICE_IMPORTS_IN_PLACE, DEVICE_IMPORTS_COPIED };
    const size_t counts[] = { SMALL, LARGE };
    for (size_t m = 0; m < COUNT_OF(modes); m++) {
        struct fixture fixture;
        fixture_open(&fixture, (struct device_options){ .imports = modes[m] });
        for (size_t c = 0; c < COUNT_OF(counts); c++) {
            bool copied = modes[m] == DEVICE_IMPORTS_COPIED;
            float *source = new_source(counts[c], 1);
            struct device_view view = import(&fixture, source, counts[c]);
            assert_int_equal(device_buffer_is_copy(fixture.device, view.buffer), copied);
            check_values(&fixture, view, 1);
            for (size_t i = 0; i < counts[c]; i++)
                source[i] += 1;
            check_values(&fixture, view, copied ? 1 : 2);
            destroy(&fixture, view);
            assert_false(device_buffer_is_copy(fixture.device, view.buffer)); /* it is gone now */
            free(source);
        }
        fixture_close(&fixture);
    }
}

/* Little memory is not worth a copy. */
static void test_small_ones_stay(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ 0 });
    float *source = new_source(SMALL, 1);
    struct device_view view = import(&fixture, source, SMALL);
    assert_false(device_buffer_is_copy(fixture.device, view.buffer));
    destroy(&fixture, view);
    fixture_close(&fixture);
    free(source);
}

/* Copies share chunks: none touches another, and they may go in any order. */
static void test_many_copies(void **state)
{
    (void)state;
    struct fixture fixture;
    struct device_view views[120];
    fixture_open(&fixture, (struct device_options){ .imports = DEVICE_IMPORTS_COPIED });
    for (size_t round = 0; round < 2; round++) {
        for (size_t i = 0; i < COUNT_OF(views); i++) {
            size_t count = i % 3 == 0 ? LARGE : SMALL + i;
            float *source = new_source(count, (float)i);
            views[i] = import(&fixture, source, count);
            free(source);
        }
        for (size_t i = 0; i < COUNT_OF(views); i++)
            check_values(&fixture, views[i], (float)i);
        for (size_t i = 1; i < COUNT_OF(views); i += 2)
            destroy(&fixture, views[i]);
        for (size_t i = 0; i < COUNT_OF(views); i += 2)
            check_values(&fixture, views[i], (float)i);
        for (size_t i = COUNT_OF(views); i-- > 0;)
            if (i % 2 == 0 && round == 0) /* the second time the device cleans up */
                destroy(&fixture, views[i]);
    }
    fixture_close(&fixture);
}

/* Memory that cannot be read is an error of the call, not the end of the process. */
static void test_unreadable(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ .imports = DEVICE_IMPORTS_COPIED });
    struct device_buffer buffer;
    assert_int_equal(device_buffer_import(fixture.device, (const void *)(uintptr_t)4096, 100,
                                          "weights", DEVICE_HERE, &buffer, &fixture.err),
                     STATUS_IO);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whose_bytes),
        cmocka_unit_test(test_small_ones_stay),
        cmocka_unit_test(test_many_copies),
        cmocka_unit_test(test_unreadable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
