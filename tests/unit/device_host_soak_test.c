/* device_host_soak_test.c - many mixed operations from several threads on several streams, with
 * random delays; every result is checked. Argument: operations in all (default 20,000). */
#include "device_fixture.h"

#include <stdlib.h>
#include <time.h>

#define THREADS 4
#define FLOATS 600u

static uint64_t operations = 20000;

struct worker {
    struct device *device;
    uint64_t random;
    uint64_t operations;
    const char *failure; /* cmocka's asserts belong to the main thread */
    struct error err;
};

static uint32_t draw(struct worker *worker, uint32_t below)
{
    worker->random = worker->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(worker->random >> 33) % below;
}

#define STEP(worker, call)                                                                         \
    do {                                                                                           \
        if (!(worker)->failure && (call))                                                          \
            (worker)->failure = #call;                                                             \
    } while (0)

/* One worker's own two streams, buffer and mark; the value every float should have. */
struct scene {
    struct device_stream streams[2];
    struct device_mark mark;
    struct device_view view;
    float value;
    uint32_t current; /* the stream that has the buffer */
};

static void scene_add(struct worker *worker, struct scene *scene)
{
    struct add_params params = { (float)draw(worker, 5) };
    struct device_launch launch = launch_add(scene->view, &params);
    STEP(worker, device_launch(worker->device, scene->streams[scene->current], &launch, DEVICE_HERE,
                               &worker->err));
    scene->value += params.amount;
}

static void scene_hand_over(struct worker *worker, struct scene *scene)
{
    STEP(worker, device_mark_record(worker->device, scene->streams[scene->current], scene->mark,
                                    DEVICE_HERE, &worker->err));
    scene->current ^= 1;
    STEP(worker, device_mark_wait(worker->device, scene->streams[scene->current], scene->mark,
                                  DEVICE_HERE, &worker->err));
}

static void scene_check(struct worker *worker, struct scene *scene)
{
    struct device_ticket ticket;
    const void *bytes = NULL;
    uint64_t count = 0;
    enum status status = device_copy_out(worker->device, scene->streams[scene->current],
                                         &scene->view, DEVICE_HERE, &ticket, &worker->err);
    if (status == STATUS_BUSY)
        return; /* the other workers hold all slots */
    STEP(worker, status);
    STEP(worker,
         device_ticket_redeem(worker->device, ticket, DEVICE_HERE, &bytes, &count, &worker->err));
    for (uint64_t i = 0; !worker->failure && i < count / sizeof(float); i++)
        if (((const float *)bytes)[i] != scene->value)
            worker->failure = "a value is wrong";
    device_ticket_release(worker->device, ticket, DEVICE_HERE);
}

static void scene_renew(struct worker *worker, struct scene *scene)
{
    STEP(worker, device_stream_sync(worker->device, scene->streams[scene->current], DEVICE_HERE,
                                    &worker->err));
    device_buffer_destroy(worker->device, scene->view.buffer, DEVICE_HERE);
    STEP(worker, device_check(worker->device, &worker->err));
    STEP(worker, device_buffer_create(worker->device, FLOATS * sizeof(float), "soak", DEVICE_HERE,
                                      &scene->view.buffer, &worker->err));
    STEP(worker, device_fill(worker->device, scene->streams[scene->current], &scene->view, 0,
                             DEVICE_HERE, &worker->err));
    scene->value = 0;
}

static void scene_delay(struct worker *worker)
{
    struct timespec pause = { 0, (long)draw(worker, 50000) };
    nanosleep(&pause, NULL);
}

static void *run_worker(void *argument)
{
    struct worker *worker = argument;
    struct scene scene = { .view = { .dtype = DTYPE_F32,
                                     .shape = shape_make(1, (uint64_t[]){ FLOATS }) } };
    for (int i = 0; i < 2; i++)
        STEP(worker,
             device_stream_create(worker->device, DEVICE_HERE, &scene.streams[i], &worker->err));
    STEP(worker, device_mark_create(worker->device, &scene.mark, &worker->err));
    STEP(worker, device_buffer_create(worker->device, FLOATS * sizeof(float), "soak", DEVICE_HERE,
                                      &scene.view.buffer, &worker->err));
    STEP(worker,
         device_fill(worker->device, scene.streams[0], &scene.view, 0, DEVICE_HERE, &worker->err));
    for (uint64_t i = 0; i < worker->operations && !worker->failure; i++) {
        uint32_t what = draw(worker, 100);
        if (what < 60)
            scene_add(worker, &scene);
        else if (what < 80)
            scene_hand_over(worker, &scene);
        else if (what < 95)
            scene_check(worker, &scene);
        else if (what < 97)
            scene_renew(worker, &scene);
        else
            scene_delay(worker);
        if (scene.value > 1e6f)
            scene_renew(worker, &scene);
    }
    scene_check(worker, &scene);
    return NULL;
}

static void test_soak(void **state)
{
    (void)state;
    static struct fixture fixture;
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    fixture_open(&fixture, (struct device_options){ .staging_slot_count = 3 });
    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){ .device = fixture.device,
                                      .random = 77 + i,
                                      .operations = operations / THREADS };
        assert_int_equal(pthread_create(&threads[i], NULL, run_worker, &workers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < THREADS; i++)
        if (workers[i].failure)
            fail_msg("worker %zu: %s: %s", i, workers[i].failure, workers[i].err.text);
    print_message("%zu events\n", fixture.recorder.count);
    fixture_close(&fixture);
}

int main(int argument_count, char **arguments)
{
    if (argument_count > 1)
        operations = strtoull(arguments[1], NULL, 10);
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_soak) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
