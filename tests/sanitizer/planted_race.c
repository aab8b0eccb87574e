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
    struct device_launch launch = launch_add(view, &params);
    if (device_launch(device, streams[0], &launch, DEVICE_HERE, &err) ||
        device_mark_record(device, streams[0], mark, DEVICE_HERE, &err))
        return 3;
    if (ordered && device_mark_wait(device, streams[1], mark, DEVICE_HERE, &err))
        return 3;
    if (device_launch(device, streams[1], &launch, DEVICE_HERE, &err) ||
        device_stream_sync(device, streams[0], DEVICE_HERE, &err) ||
        device_stream_sync(device, streams[1], DEVICE_HERE, &err))
        return 3;
    device_close(device);
    printf("%s: done\n", ordered ? "ordered" : "unordered");
    return 0;
}
