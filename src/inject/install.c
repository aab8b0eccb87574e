/* install.c - puts the planter before a device, and takes it away with the device. */
#include "inject/inject_impl.h"

#include <stdlib.h>

void inject_free(struct inject *inject)
{
    pthread_mutex_destroy(&inject->lock);
    pthread_cond_destroy(&inject->released);
    free(inject->held);
    free(inject->index_values);
    free(inject->names);
    free(inject->memories);
    free(inject);
}

enum status inject_install(struct device *device, const struct inject_spec *spec,
                           struct inject **ret_inject, struct error *err)
{
    ASSERT(!device->decorator);
    struct inject *inject = calloc(1, sizeof(*inject));
    if (!inject)
        return error_set(err, STATUS_NO_MEMORY, "no memory to plant a fault");
    pthread_mutex_init(&inject->lock, NULL);
    pthread_cond_init(&inject->released, NULL);
    inject->memories = calloc(INJECT_MEMORY_LIMIT, sizeof(*inject->memories));
    inject->names = calloc(INJECT_MEMORY_LIMIT, sizeof(*inject->names));
    if (!inject->memories || !inject->names) {
        inject_free(inject);
        return error_set(err, STATUS_NO_MEMORY, "no memory to plant a fault");
    }
    inject->device = device;
    inject->real = device->methods;
    /* Nearly all faults are planted in calls; what is replayed makes none. */
    device->info.replay_pays = false;
    inject->spec = *spec;
    device->decorator = inject;
    device->methods = &inject_methods;
    device->tamper = (struct device_tamper){ inject_before, inject_after, inject_take_again,
                                             inject };
    *ret_inject = inject;
    return STATUS_OK;
}

const struct inject_record *inject_record(const struct inject *inject)
{
    return &inject->record;
}

void inject_release(struct inject *inject)
{
    pthread_mutex_lock(&inject->lock);
    inject_hold_release(inject);
    inject_hold_flush(inject);
    pthread_mutex_unlock(&inject->lock);
}
