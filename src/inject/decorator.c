/* decorator.c - the method table that stands before a device's own. Every entry passes through; the
 * few that can carry a fault ask the others first. */
#include "inject/inject_impl.h"

#include <stdlib.h>
#include <string.h>

static struct inject *of(struct device *device)
{
    return device->decorator;
}

/* ---- Memory --------------------------------------------------------------------------------- */

static void memory_reserve(struct device *device, uint64_t bytes)
{
    of(device)->real->memory_reserve(device, bytes);
}

static enum status memory_create(struct device *device, uint64_t bytes,
                                 struct device_memory *ret_memory, struct error *err)
{
    TRY(of(device)->real->memory_create(device, bytes, ret_memory, err));
    inject_memory_note(of(device), ret_memory);
    return STATUS_OK;
}

static enum status memory_import(struct device *device, const void *bytes, uint64_t count,
                                 struct device_memory *ret_memory, struct error *err)
{
    TRY(of(device)->real->memory_import(device, bytes, count, ret_memory, err));
    inject_memory_note(of(device), ret_memory);
    return STATUS_OK;
}

static void memory_destroy(struct device *device, struct device_memory *memory)
{
    struct inject *inject = of(device);
    bool gone = inject_memory_forget(inject, memory);
    if (!gone)
        inject->real->memory_destroy(device, memory);
}

static uint64_t memory_damage(struct device *device, const struct device_memory *memory,
                              int64_t *ret_offset)
{
    return inject_memory_is_gone(of(device), memory)
               ? 0
               : of(device)->real->memory_damage(device, memory, ret_offset);
}

static void memory_ask(struct device *device, uint64_t address, uint64_t bytes,
                       struct device_pointer_facts *ret_facts)
{
    of(device)->real->memory_ask(device, address, bytes, ret_facts);
}

/* ---- Work ----------------------------------------------------------------------------------- */

static enum status submit(struct device *device, void *stream, const struct device_command *command,
                          struct error *err)
{
    struct inject *inject = of(device);
    struct inject_spoilt spoilt = { .hit = false };
    pthread_mutex_lock(&inject->lock);
    bool held = inject_hold_command(inject, stream, command);
    enum status status = held ? STATUS_OK : inject_spoil(inject, stream, command, &spoilt, err);
    pthread_mutex_unlock(&inject->lock);
    if (held || status)
        return status;
    if (!spoilt.hit)
        return inject->real->submit(device, stream, command, err);
    if (spoilt.vanishes)
        TRY(inject_memory_vanish(inject, stream, spoilt.vanishes, err));
    for (size_t i = 0; i < spoilt.count; i++)
        TRY(inject->real->submit(device, stream, &spoilt.commands[i], err));
    return STATUS_OK;
}

static enum status mark_record(struct device *device, void *stream, void *mark, struct error *err)
{
    struct inject *inject = of(device);
    pthread_mutex_lock(&inject->lock);
    /* The first mark after the copy is the one its ticket waits for. */
    if (inject->landing && inject->landing_stream == stream && !inject->landing_mark)
        inject->landing_mark = mark;
    bool held = inject_hold_mark(inject, INJECT_HELD_RECORD, stream, mark);
    pthread_mutex_unlock(&inject->lock);
    return held ? STATUS_OK : inject->real->mark_record(device, stream, mark, err);
}

static enum status mark_wait(struct device *device, void *stream, void *mark, struct error *err)
{
    struct inject *inject = of(device);
    pthread_mutex_lock(&inject->lock);
    bool held = inject_hold_mark(inject, INJECT_HELD_WAIT, stream, mark);
    pthread_mutex_unlock(&inject->lock);
    return held ? STATUS_OK : inject->real->mark_wait(device, stream, mark, err);
}

static enum status mark_sync(struct device *device, void *mark, struct error *err)
{
    struct inject *inject = of(device);
    pthread_mutex_lock(&inject->lock);
    inject_hold_wait(inject, NULL, mark);
    pthread_mutex_unlock(&inject->lock);
    TRY(inject->real->mark_sync(device, mark, err));
    pthread_mutex_lock(&inject->lock);
    if (inject->landing && inject->landing_mark == mark && inject->landing_bytes) {
        inject->landing[inject->landing_bytes / 2] ^= 0x10;
        inject->landing = NULL;
    }
    pthread_mutex_unlock(&inject->lock);
    return STATUS_OK;
}

static bool mark_passed(struct device *device, void *mark)
{
    struct inject *inject = of(device);
    pthread_mutex_lock(&inject->lock);
    bool pending = inject_hold_pending(inject, mark);
    pthread_mutex_unlock(&inject->lock);
    return !pending && inject->real->mark_passed(device, mark);
}

static enum status stream_sync(struct device *device, void *stream, struct error *err)
{
    struct inject *inject = of(device);
    pthread_mutex_lock(&inject->lock);
    inject_hold_wait(inject, stream, NULL);
    pthread_mutex_unlock(&inject->lock);
    return inject->real->stream_sync(device, stream, err);
}

static void stream_destroy(struct device *device, void *stream)
{
    inject_release(of(device));
    of(device)->real->stream_destroy(device, stream);
}

static void mark_destroy(struct device *device, void *mark)
{
    struct inject *inject = of(device);
    pthread_mutex_lock(&inject->lock);
    bool pending = inject_hold_pending(inject, mark);
    pthread_mutex_unlock(&inject->lock);
    if (pending)
        inject_release(inject);
    inject->real->mark_destroy(device, mark);
}

static enum status graph_replay(struct device *device, void *stream, void *graph, uint64_t event_id,
                                const struct event_scope *scope, struct error *err)
{
    struct inject *inject = of(device);
    pthread_mutex_lock(&inject->lock);
    inject_hold_wait(inject, stream, NULL);
    pthread_mutex_unlock(&inject->lock);
    return inject->real->graph_replay(device, stream, graph, event_id, scope, err);
}

/* ---- What passes through -------------------------------------------------------------------- */

static void close_device(struct device *device)
{
    struct inject *inject = of(device);
    const struct device_methods *real = inject->real;
    struct device_command *recorded = inject->recorded;
    device->decorator = NULL;
    device->methods = real;
    device->tamper = (struct device_tamper){ 0 };
    if (inject->indices.impl)
        real->memory_destroy(device, &inject->indices);
    inject_free(inject);
    real->close(device);
    free(recorded); /* a graph had it */
}

static enum status staging_create(struct device *device, uint64_t bytes, void **ret_staging,
                                  struct error *err)
{
    return of(device)->real->staging_create(device, bytes, ret_staging, err);
}

static void staging_destroy(struct device *device, void *staging, uint64_t bytes)
{
    of(device)->real->staging_destroy(device, staging, bytes);
}

static enum status stream_create(struct device *device, uint32_t stream_index, void **ret_stream,
                                 struct error *err)
{
    return of(device)->real->stream_create(device, stream_index, ret_stream, err);
}

static void crumbs_show(struct device *device)
{
    of(device)->real->crumbs_show(device);
}

static enum status stream_query(struct device *device, void *stream, struct error *err)
{
    return of(device)->real->stream_query(device, stream, err);
}

static enum status mark_create(struct device *device, void **ret_mark, struct error *err)
{
    return of(device)->real->mark_create(device, ret_mark, err);
}

/* What a launch does wrong by itself it does in a graph too: at every replay. */
static bool inject_fits_graph(const struct inject *inject)
{
    return inject->spec.fault == INJECT_WILD_POINTER || inject->spec.fault == INJECT_WRAPPED_OFFSET;
}

/* Where the fault belongs to the command at `place`: *commands become a copy with it, which is kept
 * as long as the device is. With the lock held. */
static enum status spoil_recorded(struct inject *inject, void *stream,
                                  const struct device_command **commands, size_t count,
                                  size_t place, struct error *err)
{
    struct inject_spoilt spoilt;
    TRY(inject_spoil(inject, stream, &(*commands)[place], &spoilt, err));
    if (!spoilt.hit)
        return STATUS_OK;
    inject->recorded = calloc(count, sizeof(*inject->recorded));
    if (!inject->recorded)
        return error_set(err, STATUS_NO_MEMORY, "no memory to plant a fault");
    memcpy(inject->recorded, *commands, count * sizeof(*inject->recorded));
    inject->recorded[place] = spoilt.commands[0];
    *commands = inject->recorded;
    return STATUS_OK;
}

static enum status graph_create(struct device *device, void *stream,
                                const struct device_command *commands, size_t count,
                                void **ret_graph, struct error *err)
{
    struct inject *inject = of(device);
    enum status status = STATUS_OK;
    pthread_mutex_lock(&inject->lock);
    for (size_t i = 0; i < count && !status && inject_fits_graph(inject); i++)
        status = spoil_recorded(inject, stream, &commands, count, i, err);
    pthread_mutex_unlock(&inject->lock);
    return status ? status
                  : inject->real->graph_create(device, stream, commands, count, ret_graph, err);
}

static void graph_destroy(struct device *device, void *graph)
{
    of(device)->real->graph_destroy(device, graph);
}

static enum status module_load(struct device *device, const struct device_module *module,
                               uint32_t index, struct error *err)
{
    return of(device)->real->module_load(device, module, index, err);
}

const struct device_methods inject_methods = {
    .kind = "inject",
    .close = close_device,
    .module_load = module_load,
    .memory_reserve = memory_reserve,
    .memory_create = memory_create,
    .memory_import = memory_import,
    .memory_destroy = memory_destroy,
    .memory_damage = memory_damage,
    .memory_ask = memory_ask,
    .crumbs_show = crumbs_show,
    .staging_create = staging_create,
    .staging_destroy = staging_destroy,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_sync = stream_sync,
    .stream_query = stream_query,
    .submit = submit,
    .mark_create = mark_create,
    .mark_destroy = mark_destroy,
    .mark_record = mark_record,
    .mark_wait = mark_wait,
    .mark_sync = mark_sync,
    .mark_passed = mark_passed,
    .graph_create = graph_create,
    .graph_replay = graph_replay,
    .graph_destroy = graph_destroy,
};
