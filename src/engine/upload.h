/* upload.h - an upload of weights, shared by the files that do it: upload.c hands out chunks to its
 * threads, upload_chunk.c copies one to the device. */
#ifndef GRETA_ENGINE_UPLOAD_H
#define GRETA_ENGINE_UPLOAD_H

#include "engine/engine_impl.h"

#include <pthread.h>

/* More threads do not read faster: memory is the limit. */
#define LANE_LIMIT 12u

/* A tensor to upload. */
struct load {
    const struct gguf_tensor *tensor;
    struct event_scope scope;
    struct device_view view;
    uint64_t row_bytes; /* in the file */
};

struct chunk {
    struct load load;
    uint64_t at, bytes; /* within the tensor */
};

struct uploader {
    struct engine_upload *upload;
    pthread_t thread;
    bool started; /* the thread must be joined */
    struct device_stream stream;
    struct device_buffer raw; /* rows to repack */
    struct device_mark filled, read;
    bool raw_used; /* `read` was recorded after the last use of raw */
};

struct engine_upload {
    struct engine *engine;
    const struct gguf_file *file;
    uint64_t raw_bytes; /* of each raw buffer; 0: none is needed */
    struct uploader uploaders[LANE_LIMIT];
    uint32_t uploader_count;     /* the first one is the caller's */
    pthread_mutex_t repack_lock; /* for the engine's stream: scope, wait and launch go together */
    pthread_mutex_t lock;        /* guards the rest */
    pthread_cond_t changed;      /* a tensor was added, or the upload ends */
    struct load *loads;          /* owned */
    size_t limit, count;
    size_t next;      /* the load whose chunk is taken next, */
    uint64_t next_at; /* and where that chunk begins */
    uint64_t done_bytes;
    bool complete; /* no tensor will be added */
    struct error failure;
};

/* True if the device wants the tensor repacked. */
static inline bool load_is_repacked(const struct load *load)
{
    return load->view.dtype != load->tensor->dtype;
}

/* Reads the chunk and queues its copy on the uploader's stream, and its repacking on the engine's.
 */
MUST_CHECK enum status engine_upload_chunk(struct uploader *uploader, const struct chunk *chunk,
                                           struct error *err);

#endif
