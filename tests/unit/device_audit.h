/* device_audit.h - calls on a fixture that must succeed, and the events that they gave. */
#ifndef GRETA_TESTS_DEVICE_AUDIT_H
#define GRETA_TESTS_DEVICE_AUDIT_H

#include "device_fixture.h"

#include "device/device_impl.h"

static const struct event_scope somewhere = { 3, 17, "q" };

/* The n-th event of a kind, from 0, or NULL. */
static inline const struct event *fixture_event(struct fixture *fixture, enum event_kind kind,
                                                size_t n)
{
    struct recorder *recorder = &fixture->recorder;
    for (size_t i = 0, kept = recorder_kept(recorder); i < kept; i++)
        if (recorder->events[i].kind == kind && n-- == 0)
            return &recorder->events[i];
    return NULL;
}

static inline void fixture_launch(struct fixture *fixture, const struct device_launch *launch)
{
    CHECK_OK(device_launch(fixture->device, fixture->stream, launch, DEVICE_HERE, &fixture->err),
             &fixture->err);
}

static inline void fixture_sync(struct fixture *fixture)
{
    CHECK_OK(device_stream_sync(fixture->device, fixture->stream, DEVICE_HERE, &fixture->err),
             &fixture->err);
}

static inline void fixture_copy_in(struct fixture *fixture, const struct device_view *view,
                                   const void *bytes, uint64_t count)
{
    CHECK_OK(device_copy_in(fixture->device, fixture->stream, view, bytes, count, DEVICE_HERE,
                            &fixture->err),
             &fixture->err);
}

#endif
