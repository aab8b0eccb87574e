/* hip_fault.c - see hip_fault.h. */
#include "device/hip/hip_fault.h"

#include "base/dynlib.h"

#include <pthread.h>
#include <stdio.h>

struct hsa_api {
    int (*hsa_amd_register_system_event_handler)(int (*handler)(const struct hsa_event *event,
                                                                void *data),
                                                 void *data);
};

/* A handler cannot be taken back, so what it writes to lives as long as the process. */
static struct {
    pthread_mutex_t lock;   /* guards the rest */
    struct dynlib *library; /* NULL: not listening; never closed, since it has our function */
    uint64_t fault_count;
    struct hsa_memory_fault first;
} reported = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* On a thread of the runtime. 0: it was dealt with, and the process goes on. */
static int on_event(const struct hsa_event *event, void *data)
{
    (void)data;
    if (event->type != 0)
        return 0;
    pthread_mutex_lock(&reported.lock);
    if (reported.fault_count++ == 0)
        reported.first = event->data.fault;
    pthread_mutex_unlock(&reported.lock);
    return 0;
}

/* With the lock held. */
static void begin(char *words, size_t words_bytes)
{
    static const char *const names[] = { "libhsa-runtime64.so.1", "libhsa-runtime64.so", NULL };
    static const struct dynlib_symbol symbols[] = {
        { "hsa_amd_register_system_event_handler", 0, false },
    };
    struct dynlib *library = NULL;
    struct hsa_api api;
    struct error err;
    if (dynlib_load(names, symbols, COUNT_OF(symbols), &api, &library, &err)) {
        snprintf(words, words_bytes, "%s", err.text);
        return;
    }
    int code = api.hsa_amd_register_system_event_handler(on_event, NULL);
    if (code) {
        dynlib_close(library);
        snprintf(words, words_bytes, "its handler of events was refused (status %d)", code);
        return;
    }
    reported.library = library;
}

bool hip_fault_listen(char *words, size_t words_bytes)
{
    pthread_mutex_lock(&reported.lock);
    if (!reported.library)
        begin(words, words_bytes);
    bool listening = reported.library != NULL;
    pthread_mutex_unlock(&reported.lock);
    return listening;
}

bool hip_fault_find(uint64_t *ret_address, char *reason, size_t reason_bytes)
{
    static const char *const reasons[] = { "no page there",      "a write to memory to be read",
                                           "not to be executed", "memory of the host alone",
                                           "a DRAM error",       "not precise",
                                           "an SRAM error" };
    pthread_mutex_lock(&reported.lock);
    bool found = reported.fault_count > 0;
    struct hsa_memory_fault first = reported.first;
    pthread_mutex_unlock(&reported.lock);
    if (!found)
        return false;
    *ret_address = first.address;
    snprintf(reason, reason_bytes, "reason not given");
    for (size_t i = 0; i < COUNT_OF(reasons); i++)
        if (first.reasons >> i & 1) {
            snprintf(reason, reason_bytes, "%s", reasons[i]);
            break;
        }
    return true;
}
