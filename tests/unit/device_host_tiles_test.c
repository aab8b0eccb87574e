/* device_host_tiles_test.c - every tile of a launch is done once, whether its kernel takes tiles or
 * runs of them, by any number of threads, also after a tile that faults, also while workers go
 * from the launches of one stream to those of another. */
#include "device_fixture.h"

#define TILE_LIMIT 20000u

/* How often each tile was done: words of host memory, one per tile. */
struct count_params {
    uint32_t *counts;
    uint64_t bad_tile; /* the one that makes an illegal access; UINT64_MAX: none */
    uintptr_t bad_address;
};

static void count_tile(const struct device_host_call *call, uint64_t tile)
{
    const struct count_params *params = call->params;
    __atomic_add_fetch(&params->counts[tile], 1, __ATOMIC_RELAXED);
    if (tile == params->bad_tile)
        *(volatile uint8_t *)params->bad_address = 1;
}

static void count_run(const struct device_host_call *call, uint64_t first)
{
    assert_true(first < call->run_end);
    for (uint64_t tile = first; tile < call->run_end; tile++)
        count_tile(call, tile);
}

static const struct device_contract tile_contract = { .name = "count_tile",
                                                      .params_bytes = sizeof(struct count_params) };
static const struct device_contract run_contract = { .name = "count_run",
                                                     .params_bytes = sizeof(struct count_params) };
static const struct device_kernel_entry count_kernels[] = {
    { .contract = &tile_contract, .host = count_tile },
    { .contract = &run_contract, .host = count_run, .takes_runs = true },
};
static const struct device_image count_image = { count_kernels, COUNT_OF(count_kernels) };

static void give_count(struct fixture *fixture, const struct device_contract *contract,
                       uint64_t tile_count, const struct count_params *params)
{
    struct device_launch launch = { .contract = contract,
                                    .params = params,
                                    .tile_count = tile_count };
    CHECK_OK(device_launch(fixture->device, fixture->stream, &launch, DEVICE_HERE, &fixture->err),
             &fixture->err);
}

static void check_once(struct fixture *fixture, const struct device_contract *contract,
                       uint64_t tile_count)
{
    static uint32_t counts[TILE_LIMIT + 1];
    memset(counts, 0, sizeof(counts));
    give_count(fixture, contract, tile_count, &(struct count_params){ counts, UINT64_MAX, 0 });
    CHECK_OK(device_stream_sync(fixture->device, fixture->stream, DEVICE_HERE, &fixture->err),
             &fixture->err);
    for (uint64_t tile = 0; tile <= TILE_LIMIT; tile++)
        if (counts[tile] != (tile < tile_count))
            fail_msg("%s: tile %d of %d done %u times", contract->name, (int)tile, (int)tile_count,
                     counts[tile]);
}

static void open_counting(struct fixture *fixture, uint32_t threads)
{
    fixture_open(fixture, (struct device_options){ .thread_count = threads });
    CHECK_OK(device_module_load(fixture->device, &count_image, DEVICE_HERE, &fixture->err),
             &fixture->err);
}

static void test_every_tile_once(void **state)
{
    (void)state;
    static const uint64_t tile_counts[] = { 0, 1, 2, 3, 5, 8, 9, 63, 64, 65, 1000, TILE_LIMIT };
    for (uint32_t threads = 1; threads <= 5; threads++) {
        struct fixture fixture;
        open_counting(&fixture, threads);
        for (size_t i = 0; i < COUNT_OF(tile_counts); i++) {
            check_once(&fixture, &tile_contract, tile_counts[i]);
            check_once(&fixture, &run_contract, tile_counts[i]);
        }
        for (size_t i = 0; i < 500; i++) /* one launch on the heels of the other */
            check_once(&fixture, i % 2 ? &tile_contract : &run_contract, 1 + i % 7);
        fixture_close(&fixture);
    }
}

/* The launch ends, the device is lost, and no tile was done twice. */
static void test_fault_in_a_run(void **state)
{
    (void)state;
    static uint32_t counts[TILE_LIMIT];
    const struct device_contract *contracts[] = { &tile_contract, &run_contract };
    for (uint32_t threads = 1; threads <= 3; threads++) {
        for (size_t i = 0; i < COUNT_OF(contracts); i++) {
            struct fixture fixture;
            memset(counts, 0, sizeof(counts));
            open_counting(&fixture, threads);
            give_count(&fixture, contracts[i], TILE_LIMIT,
                       &(struct count_params){ counts, 100, 64 });
            assert_int_equal(
                device_stream_sync(fixture.device, fixture.stream, DEVICE_HERE, &fixture.err),
                STATUS_LOST);
            assert_int_equal(counts[100], 1);
            for (uint64_t tile = 0; tile < TILE_LIMIT; tile++)
                assert_true(counts[tile] <= 1);
            fixture_close(&fixture);
        }
    }
}

/* Two streams launch as fast as they can, so that workers often come to a launch that is just over;
 * long enough that the numbers of their launches begin again. */
#define TURNS 20000u
#define TURN_TILES 9u

static void test_streams_side_by_side(void **state)
{
    (void)state;
    static uint32_t counts[2][TURNS][TURN_TILES + 1];
    for (uint32_t threads = 2; threads <= 4; threads++) {
        struct fixture fixture;
        struct device_stream streams[2];
        memset(counts, 0, sizeof(counts));
        open_counting(&fixture, threads);
        streams[0] = fixture.stream;
        CHECK_OK(device_stream_create(fixture.device, DEVICE_HERE, &streams[1], &fixture.err),
                 &fixture.err);
        for (uint32_t turn = 0; turn < TURNS; turn++) {
            for (size_t i = 0; i < 2; i++) {
                fixture.stream = streams[i];
                give_count(&fixture, turn % 3 ? &run_contract : &tile_contract,
                           (turn + i) % (TURN_TILES + 1),
                           &(struct count_params){ counts[i][turn], UINT64_MAX, 0 });
            }
        }
        fixture.stream = streams[0];
        for (size_t i = 0; i < 2; i++)
            CHECK_OK(device_stream_sync(fixture.device, streams[i], DEVICE_HERE, &fixture.err),
                     &fixture.err);
        for (size_t i = 0; i < 2; i++)
            for (uint32_t turn = 0; turn < TURNS; turn++)
                for (uint32_t tile = 0; tile <= TURN_TILES; tile++)
                    assert_int_equal(counts[i][turn][tile], tile < (turn + i) % (TURN_TILES + 1));
        fixture_close(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_tile_once),
        cmocka_unit_test(test_fault_in_a_run),
        cmocka_unit_test(test_streams_side_by_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
