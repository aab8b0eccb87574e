/* shadow.c - see shadow.h. */
#include "campaign/shadow.h"

#include "campaign/shadow_compare.h"
#include "campaign/shadow_packed.h"
#include "campaign/shadow_weights.h"
#include "device/all/all.h"
#include "device/kernel.h"

#include <stdlib.h>
#include <string.h>

/* A buffer of the host that grows as it is needed. */
struct mirror {
    struct device_buffer buffer;
    uint64_t bytes;
};

struct shadow {
    struct device *device, *host;
    struct ops ops;           /* of the host */
    struct ops_target target; /* of the host */
    struct ops_watch watch;
    struct mirror mirrors[DEVICE_OPERAND_LIMIT], plain;
    struct shadow_weights weights;
    struct shadow_packed packed;
    /* For the launch that runs. */
    struct device_view views[DEVICE_OPERAND_LIMIT]; /* on the host */
    bool comparable;
    uint8_t *bytes[2]; /* of an operand: the device's, the host's */
    size_t byte_capacity;
    struct shadow_result result;
};

/* ---- Bytes from one device to the other ------------------------------------------------------ */

static bool dense_bytes(const struct device_view *view, uint64_t *ret_bytes)
{
    return shape_bytes(&view->shape, view->dtype, ret_bytes);
}

static enum status make_room(struct shadow *shadow, uint64_t bytes, struct error *err)
{
    if (bytes <= shadow->byte_capacity)
        return STATUS_OK;
    for (size_t i = 0; i < COUNT_OF(shadow->bytes); i++) {
        uint8_t *grown = bytes <= SIZE_MAX ? realloc(shadow->bytes[i], (size_t)bytes) : NULL;
        if (!grown)
            return error_set(err, STATUS_NO_MEMORY, "no memory to compare %llu bytes",
                             (unsigned long long)bytes);
        shadow->bytes[i] = grown;
    }
    shadow->byte_capacity = (size_t)bytes;
    return STATUS_OK;
}

/* A dense view of the host with room for what the device's view has. */
static enum status mirror_view(struct shadow *shadow, struct mirror *mirror,
                               const struct device_view *view, uint64_t bytes,
                               struct device_view *ret_view, struct error *err)
{
    if (bytes > mirror->bytes) {
        if (mirror->buffer.index)
            device_buffer_destroy(shadow->host, mirror->buffer, DEVICE_HERE);
        *mirror = (struct mirror){ 0 };
        TRY(device_buffer_create(shadow->host, bytes, "mirror", DEVICE_HERE, &mirror->buffer, err));
        mirror->bytes = bytes;
    }
    *ret_view = *view;
    ret_view->buffer = mirror->buffer;
    ret_view->offset_bytes = 0;
    ret_view->row_stride_bytes = 0;
    return STATUS_OK;
}

static enum status copy_over(struct shadow *shadow, const struct ops_target *from,
                             const struct device_view *view, struct mirror *mirror, bool with_bytes,
                             struct device_view *ret_view, struct error *err)
{
    uint64_t bytes;
    if (!dense_bytes(view, &bytes) || bytes == 0)
        return error_set(err, STATUS_LIMIT, "an operand is too large to compare");
    TRY(mirror_view(shadow, mirror, view, bytes, ret_view, err));
    if (!with_bytes)
        return STATUS_OK;
    TRY(make_room(shadow, bytes, err));
    TRY(device_read(shadow->device, from->stream, view, shadow->bytes[0], DEVICE_HERE, err));
    return device_copy_in(shadow->host, shadow->target.stream, ret_view, shadow->bytes[0], bytes,
                          DEVICE_HERE, err);
}

/* ---- Before a launch ------------------------------------------------------------------------ */

/* An operand before this one that has the same rows and is copied: the op works in place. */
static bool find_same(const struct device_launch *launch, uint8_t operand, uint8_t *ret_same)
{
    const struct device_view *view = &launch->operands[operand];
    for (uint8_t i = 0; i < operand; i++) {
        const struct device_view *other = &launch->operands[i];
        if (launch->contract->operands[i].mode & EVENT_READ &&
            other->buffer.index == view->buffer.index &&
            other->offset_bytes == view->offset_bytes && other->dtype == view->dtype &&
            shape_equal(&other->shape, &view->shape)) {
            *ret_same = i;
            return true;
        }
    }
    return false;
}

/* The rows a matmul reads, as they were before they were packed; in the mirror `plain`. The packed
 * operand becomes scratch, large enough for any format: no one needs more than F32 rows and a
 * little for each block. */
static enum status mirror_packed(struct shadow *shadow, const struct device_launch *launch,
                                 uint8_t packed, struct device_view *ret_plain, struct error *err)
{
    const struct device_view *view = &launch->operands[packed];
    const struct packed_rows *rows = shadow_packed_find(&shadow->packed, view);
    shadow->comparable = rows && rows->shape.dims[1] == view->shape.dims[1];
    if (!shadow->comparable)
        return STATUS_OK;
    struct device_view plain = { .dtype = DTYPE_F32, .shape = rows->shape };
    uint64_t bytes, scratch;
    if (!dense_bytes(&plain, &bytes) || bytes > UINT64_MAX / 4)
        return error_set(err, STATUS_LIMIT, "an operand is too large to compare");
    scratch = 2 * bytes + 4096 * rows->shape.dims[1];
    TRY(mirror_view(shadow, &shadow->plain, &plain, bytes, ret_plain, err));
    TRY(device_copy_in(shadow->host, shadow->target.stream, ret_plain, rows->values, bytes,
                       DEVICE_HERE, err));
    return mirror_view(shadow, &shadow->mirrors[packed], view, scratch, &shadow->views[packed],
                       err);
}

static enum status mirror_operands(struct shadow *shadow, const struct ops_target *target,
                                   enum ops_op op, const struct device_launch *launch,
                                   struct error *err)
{
    uint8_t packed, plain, gives;
    bool reads_packed = ops_packed_input(op, &packed);
    bool packs = ops_packing_operands(op, &plain, &gives);
    for (uint8_t i = 0; i < launch->operand_count; i++) {
        const struct device_view *view = &launch->operands[i];
        shadow->views[i] = (struct device_view){ 0 };
        if (view->buffer.index == 0 || (reads_packed && i == packed) || (packs && i == gives))
            continue;
        uint8_t same;
        if (shadow_weights_find(&shadow->weights, view, &shadow->views[i]))
            continue;
        if (find_same(launch, i, &same)) {
            shadow->views[i] = shadow->views[same];
            continue;
        }
        bool reads = launch->contract->operands[i].mode & EVENT_READ;
        TRY(copy_over(shadow, target, view, &shadow->mirrors[i], reads, &shadow->views[i], err));
    }
    return STATUS_OK;
}

static enum status before(void *context, const struct ops_target *target, enum ops_op op,
                          const struct device_launch *launch, struct error *err)
{
    struct shadow *shadow = context;
    if (!ops_can_run_again(op))
        return STATUS_OK;
    shadow->comparable = true;
    return mirror_operands(shadow, target, op, launch, err);
}

/* ---- After it ------------------------------------------------------------------------------- */

/* The type of a matmul's weights, or of the cache that an op writes; F32 for all others. */
static enum dtype dtype_of(enum ops_op op, const struct shadow *shadow, uint8_t operand)
{
    if (op == OPS_MATMUL)
        return shadow->views[0].dtype;
    if (op == OPS_MATMUL_GROUP)
        return shadow->views[operand - 2 * OPS_GROUP_LIMIT].dtype;
    if (op == OPS_MATMUL_EXPERTS)
        return shadow->views[MATMUL_EXPERTS_WEIGHTS].dtype;
    return op == OPS_KV_APPEND ? shadow->views[operand].dtype : DTYPE_F32;
}

static struct shadow_row *find_row(struct shadow_result *result, enum ops_op op, enum dtype dtype)
{
    for (size_t i = 0; i < result->row_count; i++)
        if (result->rows[i].op == op && result->rows[i].dtype == dtype)
            return &result->rows[i];
    if (result->row_count == SHADOW_ROW_LIMIT)
        return NULL;
    struct shadow_row *row = &result->rows[result->row_count++];
    *row = (struct shadow_row){ .op = op, .dtype = dtype, .tolerance = ops_tolerance(op, dtype) };
    return row;
}

static enum status compare_output(struct shadow *shadow, const struct ops_target *target,
                                  enum ops_op op, const struct device_launch *launch,
                                  uint8_t operand, struct error *err)
{
    const struct device_view *view = &launch->operands[operand];
    struct shadow_result *result = &shadow->result;
    struct shadow_row *row = find_row(result, op, dtype_of(op, shadow, operand));
    uint64_t bytes;
    if (!row || !dense_bytes(view, &bytes))
        return STATUS_OK;
    TRY(make_room(shadow, bytes, err));
    TRY(device_read(shadow->device, target->stream, view, shadow->bytes[0], DEVICE_HERE, err));
    TRY(device_read(shadow->host, shadow->target.stream, &shadow->views[operand], shadow->bytes[1],
                    DEVICE_HERE, err));
    struct shadow_place place = { .file = target->site.file,
                                  .line = target->site.line,
                                  .operand = launch->contract->operands[operand].name };
    uint8_t packed;
    const struct packed_rows *rows = ops_packed_input(op, &packed)
                                         ? shadow_packed_find(&shadow->packed,
                                                              &launch->operands[packed])
                                         : NULL;
    if (rows)
        place.packed_by = ops_contract(rows->op)->name;
    place.scope = device_scope(shadow->device, target->stream);
    TRY(shadow_compare(view, shadow->bytes[0], shadow->bytes[1], &place, err));
    if (place.error > row->worst.error || !row->worst.operand)
        row->worst = place;
    if (place.error <= row->tolerance)
        return STATUS_OK;
    row->outside++;
    if (result->first < 0) {
        result->first = (int)(row - result->rows);
        result->first_place = place;
    }
    return STATUS_OK;
}

static enum status compare_launch(struct shadow *shadow, const struct ops_target *target,
                                  enum ops_op op, const struct device_launch *launch,
                                  struct error *err)
{
    uint8_t plain, packed, reads;
    struct device_view rows = { 0 };
    if (ops_packed_input(op, &reads))
        TRY(mirror_packed(shadow, launch, reads, &rows, err));
    if (!shadow->comparable) {
        shadow->result.not_compared++;
        return STATUS_OK;
    }
    TRY(ops_run_again(&shadow->target, op, launch->params, shadow->views, &rows, err));
    bool packs = ops_packing_operands(op, &plain, &packed);
    struct shadow_row *first = NULL;
    for (uint8_t i = 0; i < launch->operand_count; i++) {
        bool writes = launch->contract->operands[i].mode & EVENT_WRITE;
        if (!launch->operands[i].buffer.index || !writes || (packs && i == packed))
            continue;
        TRY(compare_output(shadow, target, op, launch, i, err));
        struct shadow_row *row = find_row(&shadow->result, op, dtype_of(op, shadow, i));
        if (row && row != first)
            row->launches++;
        first = row;
    }
    shadow->result.launches++;
    return STATUS_OK;
}

static enum status after(void *context, const struct ops_target *target, enum ops_op op,
                         const struct device_launch *launch, struct error *err)
{
    struct shadow *shadow = context;
    if (op == OPS_REPACK) /* of weights on their way in, on several threads */
        return STATUS_OK;
    if (ops_can_run_again(op))
        TRY(compare_launch(shadow, target, op, launch, err));
    return shadow_packed_remember(&shadow->packed, shadow->device, target->stream, op, launch, err);
}

/* ---- Life ----------------------------------------------------------------------------------- */

enum status shadow_create(struct device *device, uint32_t threads, struct shadow **ret_shadow,
                          struct error *err)
{
    struct shadow *shadow = calloc(1, sizeof(*shadow));
    if (!shadow)
        return error_set(err, STATUS_NO_MEMORY, "no memory to compare with the host");
    shadow->device = device;
    shadow->result.first = -1;
    shadow->watch = (struct ops_watch){ before, after, shadow };
    struct device_options options = { .thread_count = threads, .imports = DEVICE_IMPORTS_IN_PLACE };
    enum status status = all_open("host", &options, &shadow->host, err);
    if (!status)
        status = ops_load(&shadow->ops, shadow->host, CPU_PATH_PORTABLE, err);
    shadow->target = (struct ops_target){ .ops = &shadow->ops, .site = DEVICE_HERE };
    if (!status)
        status = device_stream_create(shadow->host, DEVICE_HERE, &shadow->target.stream, err);
    if (status)
        shadow_destroy(shadow);
    else
        *ret_shadow = shadow;
    return status;
}

void shadow_destroy(struct shadow *shadow)
{
    if (!shadow)
        return;
    device_close(shadow->host);
    shadow_packed_release(&shadow->packed);
    for (size_t i = 0; i < COUNT_OF(shadow->bytes); i++)
        free(shadow->bytes[i]);
    shadow_weights_release(&shadow->weights);
    free(shadow);
}

const struct ops_watch *shadow_watch(struct shadow *shadow)
{
    return &shadow->watch;
}

const struct shadow_result *shadow_result(const struct shadow *shadow)
{
    return &shadow->result;
}

enum status shadow_set_weights(struct shadow *shadow, const struct engine *engine,
                               const struct gguf_file *file, struct error *err)
{
    shadow->weights.host = shadow->host;
    shadow->weights.file = file;
    return engine_weights_visit(engine, shadow_weights_add, &shadow->weights, err);
}
