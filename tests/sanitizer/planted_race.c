/* planted_race.c - two streams add to one buffer, with a mark between them or without. A sanitizer
 * must report the second and nothing else. */
#include "device_fixture.h"

#include <stdio.h>

int main(int argument_count, char **arguments)
{
    bool ordered = argument_count > 1 && strcmp(arguments[1], "ordered") == 0;
    struct device_options options = { .thread_count = 1 };
    struct device *device;
    struct device_stream streams[2];
    struct device_mark mark;
    struct device_view view = { .dtype = DTYPE_F32, .shape = shape_make(1, (uint64_t[]){ 64 }) };
    struct add_params params = { 1 };
    struct error err;
    if (host_device_open(&options, &device, &err) ||
        device_module_load(device, &test_image, DEVICE_HERE, &err) ||
        device_stream_create(device, DEVICE_HERE, &streams[0], &err) ||
        device_stream_create(device, DEVICE_HERE, &streams[1], &err) ||
        device_mark_create(device, &mark, &err) ||
        device_buffer_create(device, 256, "x", DEVICE_HERE, &view.buffer, &err))
        return 3;
    /* Both wait for the same gate, so that neither is done before the other is queued: what this
     * thread sees of the first cannot order the second by chance. */
    uint32_t gate = 0;
    struct gate_params wait = { NULL, &gate };
    struct device_launch add = launch_add(view, &params), hold = launch_gate(&wait);
    if (device_launch(device, streams[0], &hold, DEVICE_HERE, &err) ||
        device_launch(device, streams[1], &hold, DEVICE_HERE, &err) ||
        device_launch(device, streams[0], &add, DEVICE_HERE, &err) ||
        device_mark_record(device, streams[0], mark, DEVICE_HERE, &err))
        return 3;
    if (ordered && device_mark_wait(device, streams[1], mark, DEVICE_HERE, &err))
        return 3;
    uint32_t done[2] = { 0, 0 };
    struct gate_params tell[2] = { { &done[0], NULL }, { &done[1], NULL } };
    struct device_launch reported[2] = { launch_gate(&tell[0]), launch_gate(&tell[1]) };
    if (device_launch(device, streams[1], &add, DEVICE_HERE, &err) ||
        device_launch(device, streams[0], &reported[0], DEVICE_HERE, &err) ||
        device_launch(device, streams[1], &reported[1], DEVICE_HERE, &err))
        return 3;
    open_gate(&gate);
    /* Relaxed: seeing that both are done must not order them either; only then may we wait. */
    while (!__atomic_load_n(&done[0], __ATOMIC_RELAXED) ||
           !__atomic_load_n(&done[1], __ATOMIC_RELAXED))
        sched_yield();
    if (device_stream_sync(device, streams[0], DEVICE_HERE, &err) ||
        device_stream_sync(device, streams[1], DEVICE_HERE, &err))
        return 3;
    device_close(device);
    printf("%s: done\n", ordered ? "ordered" : "unordered");
    return 0;
}
