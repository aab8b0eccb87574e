/* options.h - how a device is opened, chosen by the audit level and fixed from then on. For code
 * that opens devices (device/all/all.h); users of an open device need only device/device.h. */
#ifndef GRETA_DEVICE_OPTIONS_H
#define GRETA_DEVICE_OPTIONS_H

#include "event/crumb.h"
#include "event/event.h"

#include <stdbool.h>
#include <stdint.h>

enum device_staging { DEVICE_STAGING_PINNED, DEVICE_STAGING_PAGEABLE };

/* How a copy out is ordered after earlier work. Running a workload in each mode proves or refutes a
 * fix. */
enum device_d2h_mode {
    DEVICE_D2H_TICKET, /* queued; redeeming waits for it */
    DEVICE_D2H_SYNC,   /* wait for the stream, copy, wait again */
    DEVICE_D2H_EVENT,  /* record a mark after the copy, redeeming waits for the mark */
    DEVICE_D2H_PLAIN,  /* redeeming does not wait; under audit only, to show what that breaks */
    DEVICE_D2H_COUNT
};

const char *device_d2h_mode_name(enum device_d2h_mode mode);

/* Where imported memory lies when there are no guards. AUTO copies large imports into huge pages if
 * the machine has plenty of memory. */
enum device_imports { DEVICE_IMPORTS_AUTO, DEVICE_IMPORTS_IN_PLACE, DEVICE_IMPORTS_COPIED };

struct device_gpu_image; /* device/kernel.h */

/* Which launches have their inputs hashed right before and their outputs right after they run
 * (EVENT_OP_HASH). Launches are counted from 0 in each run (device_run_begin). Launches recorded
 * into a graph are never hashed. */
struct device_hash_choice {
    uint32_t every;       /* 1: every launch; 0: none */
    uint32_t first, last; /* the range of launches; last 0: no upper end */
    bool plain_outputs;   /* only F32 outputs that are written in full: other outputs keep bytes of
                             earlier runs (rows that no index selected, padding) */
};

#define DEVICE_THREAD_LIMIT 256u /* threads of a host device */

struct device_options {
    struct event_observer observer; /* notify may be NULL */
    struct crumb_page *crumbs;      /* NULL: the device makes its own */
    /* Several devices that report to one observer have different indices, below
     * FLIGHT_DEVICE_LIMIT where it is a flight file, and take their ids from one place. */
    uint32_t device_index;
    uint64_t *event_ids;       /* the last id given, atomic; NULL: the device counts by itself */
    bool guards;               /* the memory around each buffer faults or holds a canary */
    bool poison;               /* new and freed memory is filled with DEVICE_POISON */
    uint64_t quarantine_bytes; /* freed memory kept unusable, oldest released first */
    enum device_staging staging;
    enum device_d2h_mode d2h_mode;
    uint32_t staging_slot_count; /* 0: 16 on the host, 24 on a GPU */
    uint64_t staging_slot_bytes; /* 0: 1 MiB on the host, 2 MiB on a GPU */
    uint32_t thread_count;       /* host only; 0: all processors */
    enum device_imports imports; /* host only */
    /* GPU only: the chip must be able to run code of this image; NULL: any chip. */
    const struct device_gpu_image *gpu_image;
    /* GPU only: kernel log to read; NULL: /dev/kmsg. Borrowed while the device is opened. */
    const char *kernel_log;
    /* CUDA only: where the driver is to write a GPU core dump of the first fault, if it can do that
     * and let the process go on; NULL: nowhere. Borrowed while the device is opened. */
    const char *coredump;
    bool serialise;        /* every call waits for its work and a replay for each of its commands,
                              so that one launch at a time is in flight */
    bool completions;      /* report when queued work completes */
    bool copy_completions; /* the same for copies in and out only; on a GPU for copies in only */
    /* The options below cost time. Their results go to the observer only. */
    bool hash_results;   /* the event of a redeemed ticket has the XXH3 hash of its bytes */
    bool ask_errors;     /* query the stream's error state before and after each copy */
    bool ask_pointers;   /* query the runtime's pointer attributes before an address is used */
    bool verify;         /* hash both ends of every copy: EVENT_TRANSFER_HASH */
    uint32_t scan_every; /* scan the F32 outputs of every n-th launch: EVENT_SCAN; 0: none */
    struct device_hash_choice hash_ops; /* hash operands of launches: EVENT_OP_HASH */
};

/* Easy to notice: four of them are a huge negative number in every float type. */
#define DEVICE_POISON 0xFBu

#endif
