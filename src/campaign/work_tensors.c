/* work_tensors.c - after a model is loaded: every weight's bytes, read back from the device,
 * against the file. */
#include "campaign/worker.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES ((uint64_t)4 << 20)

struct check {
    struct worker *worker;
    const struct gguf_file *file;
    struct device_stream stream;
    uint8_t *piece; /* PIECE_BYTES */
    uint64_t tensors, bytes, mismatches;
    uint64_t
        repacked; /* tensors the device holds in another layout: their bytes are not the file's */
    char first[128]; /* tensor and byte of the first difference; or what was not compared */
};

static void compare(struct check *check, const char *name, const uint8_t *expected, uint64_t at,
                    uint64_t count)
{
    if (memcmp(expected + at, check->piece, (size_t)count) == 0)
        return;
    uint64_t i = 0;
    while (expected[at + i] == check->piece[i])
        i++;
    if (!check->mismatches++)
        snprintf(check->first, sizeof(check->first), "%s differs first at byte %" PRIu64, name,
                 at + i);
}

static enum status check_weight(void *context, const char *name, const struct device_view *view,
                                struct error *err)
{
    struct check *check = context;
    const struct gguf_tensor *tensor = gguf_tensor_find(check->file, name);
    ASSERT(tensor);
    if (view->dtype != tensor->dtype) {
        check->repacked++;
        return STATUS_OK;
    }
    struct event_scope scope = { .step = -1, .layer = -1 };
    event_set_text(scope.tensor, sizeof(scope.tensor), name);
    device_scope_set(check->worker->device, check->stream, &scope);
    for (uint64_t at = 0; at < tensor->bytes; at += PIECE_BYTES) {
        uint64_t count = tensor->bytes - at < PIECE_BYTES ? tensor->bytes - at : PIECE_BYTES;
        struct device_view piece = { .buffer = view->buffer,
                                     .dtype = DTYPE_I8,
                                     .shape = shape_make(1, &count),
                                     .offset_bytes = view->offset_bytes + at };
        TRY(device_read(check->worker->device, check->stream, &piece, check->piece, DEVICE_HERE,
                        err));
        compare(check, name, tensor->data, at, count);
        worker_beat(check->worker);
    }
    check->tensors++;
    check->bytes += tensor->bytes;
    return STATUS_OK;
}

enum status work_tensors_check(struct worker *worker, const struct engine *engine,
                               const struct gguf_file *file, struct error *err)
{
    struct check check = { .worker = worker,
                           .file = file,
                           .stream = engine_stream(engine),
                           .piece = malloc(PIECE_BYTES) };
    if (!check.piece)
        return error_set(err, STATUS_NO_MEMORY, "no memory to check the weights");
    uint64_t begin_ns = clock_ns();
    enum status status = engine_weights_visit(engine, check_weight, &check, err);
    if (check.repacked && !check.mismatches)
        snprintf(check.first, sizeof(check.first),
                 "%llu tensors are repacked on this device and were not compared",
                 (unsigned long long)check.repacked);
    worker_tell(worker,
                json_pack("{s:s, s:s, s:I, s:I, s:I, s:f, s:s}", "kind", "transfer", "path",
                          "model", "copies", (json_int_t)check.tensors, "bytes",
                          (json_int_t)check.bytes, "mismatches", (json_int_t)check.mismatches, "ms",
                          (double)(clock_ns() - begin_ns) / 1e6, "note", check.first));
    free(check.piece);
    return status;
}
