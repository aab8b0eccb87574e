/* gpu_fault_test.c - a real illegal access on a GPU: the device is lost, and the first fault names
 * the launches that may have done it with their op, layer, step and tensor, first the one that did,
 * and not the call that noticed. A faulted
 * context cannot be used again in its process, so each kind of fault is a run of its own:
 *
 *     gpu_fault_test DEVICE FAULT [LOG]     FAULT as for inject_parse, of op add
 *
 * LOG: the device reads a log of this test's instead of the kernel's. "mine": it has an Xid 31 of
 * this process, at the end of the buffer the spec overruns, among others; "others": none of this
 * process.
 *
 * Where the emulated runtime below HIP is loaded (tests/fake_gpu/fake_hsa.c) it tells of the fault,
 * and what it says of the address is shown. */
#include "ops_lab.h"

#include "analyze/analyze.h"
#include "base/text.h"
#include "inject/inject.h"
#include "report/report.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <unistd.h>

#define LAYERS 6
#define WIDTH 4096u
#define ROWS 64u /* so that the buffer ends where its memory does, at a page's end */

static const char *spec_text, *log_kind;

/* An observer in addition to the lab's own; it also writes a file, to be analysed. */
struct watch {
    struct lab *lab;
    struct event_observer recorder;
    uint64_t x_address;
    uint32_t x_index;
    struct event fault;
    uint64_t faults;
};

static void notify(void *context, const struct event *event)
{
    struct watch *watch = context;
    lab_notify(watch->lab, event);
    watch->recorder.notify(watch->recorder.context, event);
    pthread_mutex_lock(&watch->lab->lock);
    if (event->kind == EVENT_FAULT) {
        watch->fault = *event;
        watch->faults++;
    }
    for (uint8_t i = 0; event->kind == EVENT_LAUNCH && i < event->access_count; i++)
        if (event->accesses[i].buffer_index == watch->x_index)
            watch->x_address = event->accesses[i].address;
    pthread_mutex_unlock(&watch->lab->lock);
}

struct scene {
    struct lab lab;
    struct watch watch;
    struct inject *inject;
    struct flight *flight;
    char folder[64], flight_path[96], log_path[96];
};

/* ---- The log -------------------------------------------------------------------------------- */

static void write_log(const struct scene *scene, int process_id, uint64_t address)
{
    FILE *file = fopen(scene->log_path, "a");
    assert_non_null(file);
    fprintf(file,
            "4,463,230054863,c;NVRM: Xid (PCI:0000:00:06): 31, pid=%d, name=gpu_fault_test, Ch "
            "00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_0 faulted @ "
            "0x%" PRIx64 "_%08" PRIx64 ". Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE\n",
            process_id, address >> 32, address & UINT32_MAX);
    fclose(file);
}

/* Faults of others, at the same place; two, so that neither could be taken for ours where numbers
 * of processes say nothing. Then the one of this process. */
static void write_faults(const struct scene *scene)
{
    uint64_t end = scene->watch.x_address + WIDTH * ROWS * sizeof(float);
    write_log(scene, getpid() + 1, end + 0x1000);
    write_log(scene, getpid() + 2, end + 0x2000);
    if (strcmp(log_kind, "mine") == 0)
        write_log(scene, getpid(), end);
}

static void check_logged(struct scene *scene)
{
    const struct event *fault = &scene->watch.fault;
    bool mine = strcmp(log_kind, "mine") == 0;
    uint64_t end = scene->watch.x_address + WIDTH * ROWS * sizeof(float);
    char words[128];
    snprintf(words, sizeof(words),
             "address 0x%" PRIx64 " (of the page, by the kernel log: a write of engine GRAPHICS)",
             end);
    check_contains("the address", scene->lab.err.text,
                   mine ? words
                        : "address not known: the kernel log has faults, none known to be of this "
                          "process");
    assert_int_equal(fault->fault.address_known,
                     mine ? EVENT_ADDRESS_KERNEL_LOG : EVENT_ADDRESS_UNKNOWN);
    assert_true(fault->fault.address == (mine ? end : 0));
}

/* What the recording says of it, once the device is closed. */
static void check_finding(const struct scene *scene)
{
    struct analyze_options options = { .level = AUDIT_GUARD };
    struct analyzer *analyzer;
    struct error err;
    struct text text;
    CHECK_OK(analyze_flight(scene->flight_path, &options, &analyzer, &err), &err);
    const struct analysis *analysis = analyzer_result(analyzer);
    const struct finding *root = NULL;
    for (size_t i = 0; i < analysis->finding_count && !root; i++)
        if (analysis->findings[i].hypothesis == HYPOTHESIS_KERNEL_FAULT)
            root = &analysis->findings[i];
    assert_non_null(root);
    /* The launches after it were queued: it is the first of the candidates, and not singled out. */
    bool single = root->candidate_count <= 1 && !root->candidates_left_out;
    assert_int_equal(root->certainty, single ? FINDING_DIRECT : FINDING_POSSIBLE);
    assert_true(single == (analysis->root >= 0));
    assert_string_equal(root->cause.op, "add");
    assert_int_equal(root->cause.scope.layer, 3);
    text_init(&text);
    report_finding_describe(root, REPORT_ENGLISH, &text);
    if (log_kind && strcmp(log_kind, "mine") == 0) {
        assert_string_equal(root->near.before.name, "gate");
        check_contains("the finding", text_get(&text), "past the end of gate by 1 byte");
        check_contains("the finding", text_get(&text), "gate");
    } else if (log_kind) {
        assert_false(root->near.known);
    }
    text_release(&text);
    analyzer_destroy(analyzer);
}

/* ---- The fault ------------------------------------------------------------------------------ */

static void open_files(struct scene *scene)
{
    struct flight_options options = { .record_count = 1024, .command = "gpu_fault_test" };
    snprintf(scene->folder, sizeof(scene->folder), "/tmp/gpu-fault-test-XXXXXX");
    assert_non_null(mkdtemp(scene->folder));
    snprintf(scene->flight_path, sizeof(scene->flight_path), "%s/flight", scene->folder);
    snprintf(scene->log_path, sizeof(scene->log_path), "%s/log", scene->folder);
    LAB_OK(&scene->lab,
           flight_create(scene->flight_path, &options, &scene->flight, &scene->lab.err));
    scene->watch.lab = &scene->lab;
    scene->watch.recorder = flight_observer(scene->flight);
    if (log_kind) /* from before the device was opened: of no interest */
        write_log(scene, getpid(), 0xdead000);
}

static void remove_files(const struct scene *scene)
{
    unlink(scene->flight_path);
    unlink(scene->log_path);
    rmdir(scene->folder);
}

static void open_with_plan(struct scene *scene)
{
    struct lab *lab = &scene->lab;
    struct inject_spec spec;
    memset(scene, 0, sizeof(*scene));
    pthread_mutex_init(&lab->lock, NULL);
    open_files(scene);
    struct device_options options = { .observer = { notify, &scene->watch },
                                      .crumbs = flight_crumbs(scene->flight),
                                      .guards = true,
                                      .poison = true,
                                      .quarantine_bytes = (uint64_t)1 << 30,
                                      .kernel_log = log_kind ? scene->log_path : NULL };
    lab->random = lab_seed();
    LAB_OK(lab, all_open(lab_device, &options, &lab->device, &lab->err));
    LAB_OK(lab, inject_parse(spec_text, &spec, &lab->err));
    LAB_OK(lab, inject_install(lab->device, &spec, &scene->inject, &lab->err));
    LAB_OK(lab, ops_load(&lab->ops, lab->device, CPU_PATH_COUNT, &lab->err));
    lab->target = (struct ops_target){ .ops = &lab->ops, .site = DEVICE_HERE };
    LAB_OK(lab, device_stream_create(lab->device, DEVICE_HERE, &lab->target.stream, &lab->err));
}

/* True if there is a runtime that reports faults, and it reported one. */
static bool tell_of_fault(void)
{
    void *library = dlopen("libhsa-runtime64.so.1", RTLD_LAZY | RTLD_NOLOAD);
    int (*raise_fault)(int, uint64_t, uint32_t) = NULL;
    if (library)
        *(void **)&raise_fault = dlsym(library, "fake_hsa_raise");
    return raise_fault && raise_fault(0, 0x7f0012345000, 1 << 1) == 0;
}

static struct device_view put_named(struct lab *lab, const char *name, const float *values)
{
    struct device_view view = { .dtype = DTYPE_F32,
                                .shape = shape_make(2, (uint64_t[]){ WIDTH, ROWS }) };
    LAB_OK(lab, device_buffer_create(lab->device, WIDTH * ROWS * sizeof(float), name, DEVICE_HERE,
                                     &view.buffer, &lab->err));
    lab_put(lab, &view, values);
    return view;
}

static enum status run_layers(struct scene *scene, const float *values, float *found)
{
    struct lab *lab = &scene->lab;
    struct device_view x = put_named(lab, "gate", values);
    struct device_view added = put_named(lab, "up", values);
    scene->watch.x_index = x.buffer.index;
    enum status status = STATUS_OK;
    for (int32_t layer = 0; layer < LAYERS && !status; layer++) {
        struct event_scope scope = { .step = 7, .layer = layer, .tensor = "stream" };
        device_scope_set(lab->device, lab->target.stream, &scope);
        status = ops_add(&lab->target, &x, &added, &lab->err);
        if (layer == 0 && log_kind)
            write_faults(scene);
    }
    return status ? status
                  : device_read(lab->device, lab->target.stream, &x, found, DEVICE_HERE, &lab->err);
}

/* What the emulated driver was asked for and has not got back; 0 on others. */
static int count_left(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    int (*left)(void) = NULL;
    if (library)
        *(void **)&left = dlsym(library, "fake_cuda_left");
    return left ? left() : 0;
}

/* Opened again where it was lost: refused, with words that say what to do, as often as it is tried;
 * or, where the runtime makes a new context, it works. The host cannot be lost for good. */
static void check_reopening(void)
{
    struct device_options options = { .guards = true, .staging_slot_count = 1 };
    for (int i = 0; i < 3; i++) {
        struct lab lab;
        struct error err;
        struct device *device;
        enum status status = all_open(lab_device, &options, &device, &err);
        if (!status) {
            float value = 1, found = 0;
            device_close(device);
            lab_open(&lab, CPU_PATH_PORTABLE, 1);
            struct device_view x = lab_put_new(&lab, DTYPE_F32, 1, 1, &value);
            lab_get(&lab, &x, &found);
            assert_true(found == value);
            lab_close(&lab);
            print_message("%s can be opened again\n", lab_device);
        } else {
            assert_int_equal(status, STATUS_LOST);
            check_contains("the message", err.text, lab_device);
            check_contains("the message", err.text,
                           "a fault earlier in this process has lost (error ");
            check_contains("the message", err.text, "open it in a new process");
        }
        assert_int_equal(count_left(), 0);
    }
}

static void test_fault(void **state)
{
    (void)state;
    struct scene scene;
    open_with_plan(&scene);
    struct lab *lab = &scene.lab;
    bool reported = tell_of_fault();
    float *values = lab_floats(lab, WIDTH * ROWS), *found = malloc(WIDTH * ROWS * sizeof(float));
    assert_int_equal(run_layers(&scene, values, found), STATUS_LOST);
    assert_true(inject_record(scene.inject)->planted);
    assert_int_equal(scene.watch.faults, 1);
    assert_int_equal(scene.watch.fault.code, 700); /* an illegal address, in CUDA and in HIP */
    assert_int_equal(scene.watch.fault.domain,
                     event_error_domain_of(device_info(lab->device)->kind));
    assert_int_not_equal(scene.watch.fault.domain, EVENT_ERROR_NONE);
    check_contains("the fault", lab->err.text, "an illegal memory access was encountered");
    check_contains("the launch", lab->err.text, "add, layer 3, step 7, tensor stream");
    const char *launch = strstr(lab->err.text, "add, layer 3"),
               *first = strstr(lab->err.text, "layer ");
    assert_true(launch + strlen("add, ") == first);
    if (reported)
        check_contains("the address", lab->err.text,
                       "address 0x7f0012345000 (of the page, reported by the runtime: a write to "
                       "memory to be read)");
    else if (log_kind)
        check_logged(&scene);
    assert_int_equal(device_check(lab->device, &lab->err), STATUS_LOST);
    free(values);
    free(found);
    lab_close(lab);
    flight_close(scene.flight);
    check_finding(&scene);
    remove_files(&scene);
    assert_int_equal(count_left(), 0);
    check_reopening();
}

int main(int argument_count, char **arguments)
{
    if (argument_count < 3) {
        printf("skipped: no device and spec were named\n");
        return LAB_SKIPPED;
    }
    spec_text = arguments[2];
    log_kind = argument_count > 3 ? arguments[3] : NULL;
    if (!lab_choose(argument_count, arguments))
        return LAB_SKIPPED;
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_fault) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
