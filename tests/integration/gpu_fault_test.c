/* gpu_fault_test.c - a real illegal access on a GPU: the device is lost, and the first fault names
 * the op, layer, step and tensor of the launch that did it, not of the one that noticed. A faulted
 * context cannot be used again in its process, so each kind of fault is a run of its own:
 *
 *     gpu_fault_test DEVICE PLAN      PLAN as for inject_parse, of op add
 *
 * Where the emulated runtime below HIP is loaded (tests/fake_gpu/fake_hsa.c) it tells of the fault,
 * and what it says of the address is shown. */
#include "ops_lab.h"

#include "inject/inject.h"

#include <dlfcn.h>

#define LAYERS 6
#define WIDTH 4096u
#define ROWS 64u

static const char *plan_text;

static void open_with_plan(struct lab *lab, struct inject **ret_inject)
{
    struct device_options options = { .observer = { lab_notify, lab },
                                      .guards = true,
                                      .poison = true,
                                      .quarantine_bytes = (uint64_t)1 << 30 };
    struct inject_plan plan;
    memset(lab, 0, sizeof(*lab));
    pthread_mutex_init(&lab->lock, NULL);
    lab->random = lab_seed();
    LAB_OK(lab, all_open(lab_device, &options, &lab->device, &lab->err));
    LAB_OK(lab, inject_parse(plan_text, &plan, &lab->err));
    LAB_OK(lab, inject_install(lab->device, &plan, ret_inject, &lab->err));
    LAB_OK(lab, ops_load(&lab->ops, lab->device, CPU_PATH_COUNT, &lab->err));
    lab->target = (struct ops_target){ .ops = &lab->ops, .site = DEVICE_HERE };
    LAB_OK(lab, device_stream_create(lab->device, DEVICE_HERE, &lab->target.stream, &lab->err));
}

/* True if there is a runtime that tells, and it told. */
static bool tell_of_fault(void)
{
    void *library = dlopen("libhsa-runtime64.so.1", RTLD_LAZY | RTLD_NOLOAD);
    int (*raise_fault)(int, uint64_t, uint32_t) = NULL;
    if (library)
        *(void **)&raise_fault = dlsym(library, "fake_hsa_raise");
    return raise_fault && raise_fault(0, 0x7f0012345000, 1 << 1) == 0;
}

static void test_fault(void **state)
{
    (void)state;
    struct lab lab;
    struct inject *inject;
    open_with_plan(&lab, &inject);
    bool told = tell_of_fault();
    float *values = lab_floats(&lab, WIDTH * ROWS), *found = malloc(WIDTH * ROWS * sizeof(float));
    struct device_view x = lab_put_new(&lab, DTYPE_F32, WIDTH, ROWS, values);
    struct device_view added = lab_put_new(&lab, DTYPE_F32, WIDTH, ROWS, values);
    enum status status = STATUS_OK;
    for (int32_t layer = 0; layer < LAYERS && !status; layer++) {
        struct event_scope scope = { .step = 7, .layer = layer, .tensor = "stream" };
        device_scope_set(lab.device, lab.target.stream, &scope);
        status = ops_add(&lab.target, &x, &added, &lab.err);
    }
    if (!status)
        status = device_read(lab.device, lab.target.stream, &x, found, DEVICE_HERE, &lab.err);
    assert_true(inject_record(inject)->planted);
    assert_int_equal(status, STATUS_LOST);
    check_contains("the fault", lab.err.text, "an illegal memory access was encountered");
    check_contains("the launch", lab.err.text, "first fault: add, layer 3, step 7, tensor stream");
    if (told)
        check_contains("the address", lab.err.text,
                       "address 0x7f0012345000 (of the page, told by the runtime: a write to "
                       "memory to be read)");
    assert_int_equal(device_check(lab.device, &lab.err), STATUS_LOST);
    free(values);
    free(found);
    lab_close(&lab);
}

int main(int argument_count, char **arguments)
{
    if (argument_count < 3) {
        printf("skipped: no device and plan were named\n");
        return LAB_SKIPPED;
    }
    plan_text = arguments[2];
    if (!lab_choose(argument_count, arguments))
        return LAB_SKIPPED;
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_fault) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
