/* work_compare.c - a model on the prompt once, op by op, and every op once more on the host
 * (shadow.h). Written at the end: a line for each op, and one for the first that is outside. */
#include "campaign/worker.h"

#include "campaign/shadow.h"
#include "device/kernel.h"
#include "ops/again.h"

static void add_place(json_t *line, const struct shadow_place *place)
{
    json_t *more = json_pack("{s:i, s:i, s:s, s:s, s:I, s:s?, s:s?, s:I, s:I, s:f, s:f, s:f}",
                             "layer", place->scope.layer, "step", place->scope.step, "tensor",
                             place->scope.tensor, "file", place->file ? place->file : "", "line",
                             (json_int_t)place->line, "operand", place->operand, "packed_by",
                             place->packed_by, "row", (json_int_t)place->row, "column",
                             (json_int_t)place->column, "device", shadow_number(place->device),
                             "host", shadow_number(place->host), "error", place->error);
    json_object_update(line, more);
    json_decref(more);
}

static json_t *line_of(const char *kind, const struct shadow_row *row,
                       const struct shadow_place *place)
{
    json_t *line = json_pack("{s:s, s:s, s:s, s:f, s:I, s:I}", "kind", kind, "op",
                             ops_contract(row->op)->name, "type", dtype_name(row->dtype),
                             "tolerance", row->tolerance, "launches", (json_int_t)row->launches,
                             "outside", (json_int_t)row->outside);
    if (line)
        add_place(line, place);
    return line;
}

static void tell_result(struct worker *worker, const struct shadow_result *result)
{
    for (size_t i = 0; i < result->row_count; i++)
        worker_tell(worker, line_of("compare", &result->rows[i], &result->rows[i].worst));
    if (result->first >= 0) {
        const struct shadow_row *row = &result->rows[result->first];
        worker_tell(worker, line_of("compare-first", row, &result->first_place));
        worker_log(worker, "%s, layer %d, step %d: error %g, tolerance %g",
                   ops_contract(row->op)->name, (int)result->first_place.scope.layer,
                   (int)result->first_place.scope.step, result->first_place.error, row->tolerance);
    }
    worker_tell(worker, json_pack("{s:s, s:I, s:I}", "kind", "compared", "launches",
                                  (json_int_t)result->launches, "not_compared",
                                  (json_int_t)result->not_compared));
}

/* An op on the host may take long, and many of them make up one iteration: that is no hang. */
struct beating {
    struct worker *worker;
    const struct ops_watch *watch;
};

static enum status before_op(void *context, const struct ops_target *target, enum ops_op op,
                             const struct device_launch *launch, struct error *err)
{
    const struct beating *beating = context;
    return beating->watch->before(beating->watch->context, target, op, launch, err);
}

static enum status after_op(void *context, const struct ops_target *target, enum ops_op op,
                            const struct device_launch *launch, struct error *err)
{
    const struct beating *beating = context;
    if (op != OPS_REPACK) /* of weights on their way in, on several threads */
        worker_beat(beating->worker);
    return beating->watch->after(beating->watch->context, target, op, launch, err);
}

static enum status run(struct worker *worker, struct shadow *shadow, struct error *err)
{
    struct work_infer *infer = NULL;
    TRY(work_infer_open(worker, &infer, err));
    enum status status = work_infer_check_weights(infer, err);
    if (!status)
        status = work_infer_mirror(infer, shadow, err);
    if (!status) {
        worker_ready(worker);
        status = work_infer_run(infer, 0, err);
    }
    work_infer_close(infer);
    return status;
}

enum status work_compare_run(struct worker *worker, struct error *err)
{
    struct shadow *shadow;
    TRY(shadow_create(worker->device, worker->job->threads, &shadow, err));
    struct beating beating = { worker, shadow_watch(shadow) };
    struct ops_watch watch = { before_op, after_op, &beating };
    worker->ops.watch = &watch;
    enum status status = run(worker, shadow, err);
    worker->ops.watch = NULL;
    tell_result(worker, shadow_result(shadow));
    shadow_destroy(shadow);
    return status;
}
