/* inject_impl.h - the planter, shared by the decorator and the faults. */
#ifndef GRETA_INJECT_INJECT_IMPL_H
#define GRETA_INJECT_INJECT_IMPL_H

#include "device/device_impl.h"
#include "inject/inject.h"

/* Memory the device has, so that a fault can give it back behind everybody's back. */
struct inject_memory {
    struct device_memory memory;
    bool gone; /* given back by us; the owner does not know */
};

#define INJECT_MEMORY_LIMIT 65536u

struct inject {
    struct device *device;
    const struct device_methods *real;
    struct inject_plan plan;
    struct inject_record record;
    pthread_mutex_t lock; /* guards everything below, and the record */
    struct inject_memory *memories;
    size_t memory_count;
    /* A copy out whose bytes are changed once it has landed. */
    uint8_t *landing;
    uint64_t landing_bytes;
    void *landing_stream, *landing_mark;
};

/* With the lock held: true if this is the call, which is then noted as planted. */
bool inject_hits(struct inject *inject, const char *op, const struct event_scope *scope);

/* faults.c: with the lock held. */
void inject_tamper_launch(void *context, struct device_launch *launch,
                          const struct event_scope *scope);
void inject_tamper_view(void *context, const char *op, struct device_view *view,
                        const struct event_scope *scope);
/* Submits a command with the fault in it. */
enum status inject_submit_launch(struct inject *inject, void *stream,
                                 const struct device_command *command, struct error *err);
enum status inject_submit_copy_out(struct inject *inject, void *stream,
                                   const struct device_command *command, struct error *err);
bool inject_is_copy_fault(enum inject_fault fault);
bool inject_is_launch_fault(enum inject_fault fault);

#endif
