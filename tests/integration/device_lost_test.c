/* device_lost_test.c - whichever call meets a fault returns STATUS_LOST itself.
 *
 * A faulted context cannot be used again in its process, so each case runs in a process of its own:
 *
 *     device_lost_test [DEVICE]                all cases
 *     device_lost_test DEVICE ENTRY WHEN       one of them
 *
 * WHEN is "pending": the runtime already knows of the fault when the entry is called, so that very
 * call must fail; on the host, where nothing stands between a fault and the device, the device is
 * lost by then. Or "queued": the faulty launch has only been queued, so the entry may still return
 * STATUS_OK, and the next wait must fail. */
#include "ops_lab.h"

#include "inject/inject.h"

#include <dlfcn.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#define WIDTH 4096u
#define ROWS 64u

static const char *entry_name, *when;

struct scene {
    struct lab lab;
    struct inject *inject;
    struct device_view x, added, other;
    struct device_stream side;
    struct device_ticket ticket;
    struct device_mark mark;
    struct device_graph graph;
    float *values;
    uint64_t faults; /* atomic */
    struct event last;
};

static void notify(void *context, const struct event *event)
{
    struct scene *scene = context;
    if (event->kind == EVENT_FAULT)
        __atomic_fetch_add(&scene->faults, 1, __ATOMIC_RELEASE);
    pthread_mutex_lock(&scene->lab.lock);
    if (event->phase == EVENT_END)
        scene->last = *event;
    pthread_mutex_unlock(&scene->lab.lock);
}

/* ---- Entries -------------------------------------------------------------------------------- */

static enum status enter_launch(struct scene *scene, struct error *err)
{
    return ops_add(&scene->lab.target, &scene->other, &scene->added, err);
}

static enum status enter_fill(struct scene *scene, struct error *err)
{
    return device_fill(scene->lab.device, scene->side, &scene->other, 0, DEVICE_HERE, err);
}

static enum status enter_copy_in(struct scene *scene, struct error *err)
{
    return device_copy_in(scene->lab.device, scene->side, &scene->other, scene->values,
                          WIDTH * ROWS * sizeof(float), DEVICE_HERE, err);
}

static enum status enter_copy_out(struct scene *scene, struct error *err)
{
    struct device_ticket ticket;
    return device_copy_out(scene->lab.device, scene->side, &scene->other, DEVICE_HERE, &ticket,
                           err);
}

static enum status enter_redeem(struct scene *scene, struct error *err)
{
    const void *bytes;
    uint64_t count;
    return device_ticket_redeem(scene->lab.device, scene->ticket, DEVICE_HERE, &bytes, &count, err);
}

static enum status enter_replay(struct scene *scene, struct error *err)
{
    return device_graph_replay(scene->lab.device, scene->side, scene->graph, DEVICE_HERE, err);
}

static enum status enter_mark_record(struct scene *scene, struct error *err)
{
    return device_mark_record(scene->lab.device, scene->side, scene->mark, DEVICE_HERE, err);
}

static enum status enter_mark_sync(struct scene *scene, struct error *err)
{
    return device_mark_sync(scene->lab.device, scene->mark, DEVICE_HERE, err);
}

static enum status enter_sync(struct scene *scene, struct error *err)
{
    return device_stream_sync(scene->lab.device, scene->side, DEVICE_HERE, err);
}

static enum status enter_create(struct scene *scene, struct error *err)
{
    struct device_buffer buffer;
    return device_buffer_create(scene->lab.device, 4096, "late", DEVICE_HERE, &buffer, err);
}

static const struct entry {
    const char *name;
    enum status (*call)(struct scene *scene, struct error *err);
    const char *words; /* what failed, in the message */
    enum event_kind kind;
} entries[] = {
    { "launch", enter_launch, "add launch", EVENT_LAUNCH },
    { "fill", enter_fill, "fill", EVENT_FILL },
    { "copy-in", enter_copy_in, "copy in", EVENT_COPY_IN },
    { "copy-out", enter_copy_out, "copy out", EVENT_COPY_OUT },
    { "redeem", enter_redeem, "copy out", EVENT_TICKET_REDEEM },
    { "replay", enter_replay, "graph replay", EVENT_GRAPH_REPLAY },
    { "mark-record", enter_mark_record, "mark record", EVENT_MARK_RECORD },
    { "mark-sync", enter_mark_sync, "mark sync", EVENT_MARK_SYNC },
    { "sync", enter_sync, "stream sync", EVENT_STREAM_SYNC },
    { "create", enter_create, "buffer creation", EVENT_BUFFER_CREATE },
};

/* ---- The scene ------------------------------------------------------------------------------ */

static struct device_view make(struct scene *scene)
{
    return lab_put_new(&scene->lab, DTYPE_F32, WIDTH, ROWS, scene->values);
}

/* All that an entry needs: a ticket, a mark and a graph from before the fault. */
static void open_scene(struct scene *scene)
{
    struct lab *lab = &scene->lab;
    struct inject_spec spec;
    memset(scene, 0, sizeof(*scene));
    pthread_mutex_init(&lab->lock, NULL);
    lab->random = lab_seed();
    struct device_options options = { .observer = { notify, scene },
                                      .guards = true,
                                      .quarantine_bytes = UINT64_C(64) << 20 };
    LAB_OK(lab, all_open(lab_device, &options, &lab->device, &lab->err));
    LAB_OK(lab, inject_parse("wild-pointer@op=add,layer=3", &spec, &lab->err));
    LAB_OK(lab, inject_install(lab->device, &spec, &scene->inject, &lab->err));
    LAB_OK(lab, ops_load(&lab->ops, lab->device, CPU_PATH_COUNT, &lab->err));
    lab->target = (struct ops_target){ .ops = &lab->ops, .site = DEVICE_HERE };
    LAB_OK(lab, device_stream_create(lab->device, DEVICE_HERE, &lab->target.stream, &lab->err));
    LAB_OK(lab, device_stream_create(lab->device, DEVICE_HERE, &scene->side, &lab->err));
    scene->values = lab_floats(lab, WIDTH * ROWS);
    scene->x = make(scene);
    scene->added = make(scene);
    scene->other = make(scene);
    struct device_view row = scene->other;
    row.shape.dims[1] = 1;
    LAB_OK(lab, device_stream_sync(lab->device, lab->target.stream, DEVICE_HERE, &lab->err));
    LAB_OK(lab, device_graph_begin(lab->device, scene->side, DEVICE_HERE, &lab->err));
    LAB_OK(lab, device_fill(lab->device, scene->side, &row, 1, DEVICE_HERE, &lab->err));
    LAB_OK(lab, device_graph_end(lab->device, scene->side, DEVICE_HERE, &scene->graph, &lab->err));
    LAB_OK(lab, device_mark_create(lab->device, &scene->mark, &lab->err));
    LAB_OK(lab, device_mark_record(lab->device, scene->side, scene->mark, DEVICE_HERE, &lab->err));
    LAB_OK(lab,
           device_copy_out(lab->device, scene->side, &row, DEVICE_HERE, &scene->ticket, &lab->err));
}

static uint64_t count_faults(const struct scene *scene)
{
    return __atomic_load_n(&scene->faults, __ATOMIC_ACQUIRE);
}

/* Makes the runtime meet the fault. True if it did so without the device: then the device has not
 * noticed yet. */
static bool meet_fault(struct scene *scene)
{
    struct lab *lab = &scene->lab;
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    int (*synchronize)(void) = NULL;
    if (library)
        *(void **)&synchronize = dlsym(library, "cuCtxSynchronize");
    if (synchronize) {
        assert_int_equal(synchronize(), 700);
        LAB_OK(lab, device_check(lab->device, &lab->err));
        assert_int_equal(count_faults(scene), 0);
        return true;
    }
    while (count_faults(scene) == 0)
        sched_yield();
    return false;
}

static void test_entry(void **state)
{
    (void)state;
    struct scene scene;
    const struct entry *entry = NULL;
    for (size_t i = 0; i < COUNT_OF(entries) && !entry; i++)
        if (strcmp(entries[i].name, entry_name) == 0)
            entry = &entries[i];
    assert_non_null(entry);
    open_scene(&scene);
    struct lab *lab = &scene.lab;
    struct event_scope scope = { .step = 7, .layer = 3, .tensor = "stream" };
    device_scope_set(lab->device, lab->target.stream, &scope);
    LAB_OK(lab, ops_add(&lab->target, &scene.x, &scene.added, &lab->err));
    assert_true(inject_record(scene.inject)->planted);
    device_scope_set(lab->device, lab->target.stream, NULL);
    bool pending = strcmp(when, "pending") == 0, unnoticed = pending && meet_fault(&scene);
    enum status status = entry->call(&scene, &lab->err);
    if (!pending && !status)
        status = device_stream_sync(lab->device, lab->target.stream, DEVICE_HERE, &lab->err);
    assert_int_equal(status, STATUS_LOST);
    check_contains(entry->name, lab->err.text, "failed: an illegal memory access was encountered");
    if (pending) {
        assert_ptr_equal(strstr(lab->err.text, entry->words), lab->err.text);
        assert_int_equal(scene.last.kind, entry->kind);
        /* A redeem asks about a copy that was queued before the loss; greta refuses the others. */
        bool asks = unnoticed || entry->kind == EVENT_TICKET_REDEEM;
        assert_int_equal(scene.last.outcome, asks ? EVENT_FAILED : EVENT_REFUSED);
        assert_true(scene.last.cause_id != 0);
    }
    if (unnoticed) {
        assert_int_equal(scene.last.domain, event_error_domain_of(device_info(lab->device)->kind));
        assert_int_equal(scene.last.code, 700);
    }
    while (count_faults(&scene) == 0) /* a device is lost before its observer hears of it */
        sched_yield();
    assert_int_equal(count_faults(&scene), 1);
    assert_int_equal(device_check(lab->device, &lab->err), STATUS_LOST);
    free(scene.values);
    lab_close(lab);
}

/* ---- Processes ------------------------------------------------------------------------------ */

static void run_case(const struct entry *entry, const char *then)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        execl("/proc/self/exe", "device_lost_test", lab_device, entry->name, then, (char *)NULL);
        _exit(127);
    }
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    if (!WIFEXITED(result) || WEXITSTATUS(result) != 0)
        fail_msg("%s with a fault that is %s: status %#x", entry->name, then, (unsigned)result);
}

static void test_pending(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(entries); i++)
        run_case(&entries[i], "pending");
}

static void test_queued(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(entries); i++)
        run_case(&entries[i], "queued");
}

int main(int argument_count, char **arguments)
{
    static const struct CMUnitTest one[] = { cmocka_unit_test(test_entry) };
    static const struct CMUnitTest all[] = { cmocka_unit_test(test_pending),
                                             cmocka_unit_test(test_queued) };
    if (argument_count == 4) {
        lab_device = arguments[1];
        entry_name = arguments[2];
        when = arguments[3];
        return cmocka_run_group_tests(one, NULL, NULL);
    }
    if (!lab_choose(argument_count, arguments))
        return LAB_SKIPPED;
    return cmocka_run_group_tests(all, NULL, NULL);
}
