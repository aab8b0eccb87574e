/* device_host_load_test.c - what is wrong with an image of kernels is found when it is loaded: the
 * image is refused, nothing of it can be launched, and the message says which op it is. */
#include "device_fixture.h"

#include <stdio.h>

static const struct device_contract scale_contract = { .name = "scale",
                                                       .operands = { { "x", EVENT_UPDATE, false,
                                                                       false, F32_BIT, "n" } },
                                                       .operand_count = 1 };

static void scale_kernel(const struct device_host_call *call, uint64_t tile)
{
    (void)call, (void)tile;
}

static enum status load(struct fixture *fixture, const struct device_kernel_entry *entries,
                        size_t count)
{
    const struct device_image image = { entries, count };
    return device_module_load(fixture->device, &image, DEVICE_HERE, &fixture->err);
}

/* Nothing of the image is there. */
static void check_no_scale(struct fixture *fixture)
{
    struct device_view x = fixture_floats(fixture, 8, "x");
    struct device_launch launch = { &scale_contract, NULL, { x }, 1, 1 };
    CHECK_FAILS(
        device_launch(fixture->device, fixture->stream, &launch, DEVICE_HERE, &fixture->err),
        STATUS_UNSUPPORTED, &fixture->err);
    check_contains("op", fixture->err.text, "scale: no image loaded on this device has this op");
}

static void test_twice(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ 0 });
    const struct device_kernel_entry twice[] = {
        { .contract = &scale_contract, .host = scale_kernel },
        { .contract = &scale_contract, .host = scale_kernel }
    };
    CHECK_FAILS(load(&fixture, twice, 2), STATUS_EXISTS, &fixture.err);
    check_contains("same image", fixture.err.text, "scale: the image has this op twice");
    check_no_scale(&fixture);
    /* By its name: another contract does not help. */
    struct device_contract other = add_contract;
    const struct device_kernel_entry again[] = { { .contract = &scale_contract,
                                                   .host = scale_kernel },
                                                 { .contract = &other, .host = scale_kernel } };
    CHECK_FAILS(load(&fixture, again, 2), STATUS_EXISTS, &fixture.err);
    check_contains("another image", fixture.err.text,
                   "add: an image with this op is loaded already");
    check_no_scale(&fixture);
    fixture_close(&fixture);
}

static void test_no_kernel(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ 0 });
    const struct device_kernel_entry entry = { .contract = &scale_contract };
    CHECK_FAILS(load(&fixture, &entry, 1), STATUS_UNSUPPORTED, &fixture.err);
    check_contains("kernel", fixture.err.text, "scale: the image has no kernel for this op");
    check_no_scale(&fixture);
    fixture_close(&fixture);
}

static void test_shapes(void **state)
{
    (void)state;
    static const struct {
        const char *name, *shape, *words;
    } rows[] = {
        { "none", NULL, "shape \"\" is malformed at \"\"" },
        { "empty", "", "shape \"\" is malformed at \"\"" },
        { "a comma at the end", "n,", "shape \"n,\" is malformed at \"\"" },
        { "nothing between commas", "n,,m", "malformed at \",m\"" },
        { "a space", "n, m", "malformed at \" m\"" },
        { "an underscore first", "_n", "malformed at \"_n\"" },
        { "a capital letter", "N", "malformed at \"N\"" },
        { "a number with a letter", "n,4k", "malformed at \"4k\"" },
        { "too large a number", "4294967296", "malformed at \"4294967296\"" },
        { "too many dimensions", "a,b,c,d,e", "malformed at \"e\"" },
    };
    _Static_assert(SHAPE_RANK_LIMIT == 4, "the last row has one more");
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ 0 });
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct device_contract contract = scale_contract;
        contract.operands[0].shape = rows[i].shape;
        const struct device_kernel_entry entry = { .contract = &contract, .host = scale_kernel };
        CHECK_FAILS(load(&fixture, &entry, 1), STATUS_UNSUPPORTED, &fixture.err);
        check_contains(rows[i].name, fixture.err.text, "scale: operand x");
        check_contains(rows[i].name, fixture.err.text, rows[i].words);
    }
    check_no_scale(&fixture);
    fixture_close(&fixture);
}

static void test_numbers(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ 0 });
    struct device_contract contract = scale_contract;
    contract.operands[0].shape = "8,rows_2";
    const struct device_kernel_entry entry = { .contract = &contract, .host = scale_kernel };
    const struct device_image image = { &entry, 1 };
    CHECK_OK(device_module_load(fixture.device, &image, DEVICE_HERE, &fixture.err), &fixture.err);
    struct device_view x = fixture_floats(&fixture, 16, "x");
    struct device_launch launch = { &contract, NULL, { x }, 1, 1 };
    launch.operands[0].shape = shape_make(2, (const uint64_t[]){ 8, 2 });
    CHECK_OK(device_launch(fixture.device, fixture.stream, &launch, DEVICE_HERE, &fixture.err),
             &fixture.err);
    launch.operands[0].shape = shape_make(2, (const uint64_t[]){ 4, 4 });
    CHECK_FAILS(device_launch(fixture.device, fixture.stream, &launch, DEVICE_HERE, &fixture.err),
                STATUS_REFUSED, &fixture.err);
    check_contains("number", fixture.err.text, "expected 8 = 8 in dimension 0, found 4");
    fixture_close(&fixture);
}

static void test_too_many(void **state)
{
    (void)state;
    enum { MANY = 65 };
    static struct device_contract contracts[MANY];
    static char names[MANY][16];
    static struct device_kernel_entry entries[MANY];
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ 0 });
    for (int i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof(names[i]), "op_%d", i);
        contracts[i] = scale_contract;
        contracts[i].name = names[i];
        entries[i] = (struct device_kernel_entry){ .contract = &contracts[i],
                                                   .host = scale_kernel };
    }
    CHECK_FAILS(load(&fixture, entries, MANY), STATUS_LIMIT, &fixture.err);
    check_contains("ops", fixture.err.text, "at most 64 ops in all, found 70");
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_twice),    cmocka_unit_test(test_no_kernel),
        cmocka_unit_test(test_shapes),   cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_too_many),
    };
    return cmocka_run_group_tests_name("device_host_load", tests, NULL, NULL);
}
