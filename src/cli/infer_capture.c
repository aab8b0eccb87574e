/* infer_capture.c - see infer_capture.h. */
#include "cli/infer_capture.h"

#include "tensor/npy.h"

#include <string.h>

static enum status open_taps(struct infer_capture *capture, const struct cli_text_list *taps,
                             const char *folder, struct error *err)
{
    if (!taps->count && !folder)
        return STATUS_OK;
    if (!taps->count || !folder)
        return error_set(err, STATUS_USAGE, "expected --tap and --tap-out together, found only %s",
                         folder ? "--tap-out" : "--tap");
    for (size_t i = 0; i < taps->count; i++)
        TRY(engine_tap_parse(taps->items[i], &capture->choices[capture->choice_count++], err));
    return tap_writer_create(folder, &capture->taps, err);
}

static enum status write_header(struct infer_capture *capture, bool first, struct error *err)
{
    uint8_t header[NPY_HEADER_BYTES];
    struct shape shape = shape_make(2, (uint64_t[]){ capture->vocab_size, capture->logits_rows });
    npy_header(&shape, header);
    return first ? outfile_write(&capture->logits, header, sizeof(header), err)
                 : outfile_patch(&capture->logits, 0, header, sizeof(header), err);
}

enum status infer_capture_open(struct infer_capture *capture, const struct cli_text_list *taps,
                               const char *tap_folder, const char *logits_path, bool allow_bad,
                               struct error *err)
{
    *capture = (struct infer_capture){ .allow_bad = allow_bad, .logits.descriptor = -1 };
    enum status status = open_taps(capture, taps, tap_folder, err);
    if (!status && logits_path) {
        status = outfile_open(&capture->logits, logits_path, true, 0, err);
        capture->has_logits = !status;
        if (!status)
            status = write_header(capture, true, err); /* rewritten with the numbers at the end */
    }
    if (status)
        infer_capture_release(capture);
    return status;
}

static enum status keep(void *context, const struct tap_record *record, const float *values,
                        struct error *err)
{
    struct infer_capture *capture = context;
    TRY(tap_writer_add(capture->taps, record, values, err));
    struct error bad;
    if (capture->allow_bad || !tap_check_finite(record, &bad))
        return STATUS_OK;
    return error_set(err, bad.status, "tap: %.600s (--allow-nan continues anyway)", bad.text);
}

enum status infer_capture_attach(struct infer_capture *capture, struct engine *engine,
                                 struct error *err)
{
    return engine_tap_set(engine, capture->choices, capture->choice_count, keep, capture, err);
}

enum status infer_capture_logits(struct infer_capture *capture, const float *logits,
                                 uint32_t vocab_size, struct error *err)
{
    if (!capture->has_logits)
        return STATUS_OK;
    capture->vocab_size = vocab_size;
    capture->logits_rows++;
    return outfile_write(&capture->logits, logits, vocab_size * sizeof(*logits), err);
}

enum status infer_capture_finish(struct infer_capture *capture,
                                 const struct cli_invocation *invocation, struct error *err)
{
    enum status status = STATUS_OK;
    if (capture->taps)
        status = tap_writer_finish(capture->taps, err);
    if (!status && capture->taps && tap_writer_is_truncated(capture->taps))
        cli_warn(invocation, "taps: only the first %zu were written; limit them by layer and step",
                 tap_writer_count(capture->taps));
    if (!status && capture->taps && tap_writer_count(capture->taps) == 0)
        cli_warn(invocation, "taps: none of the requested layers and steps occurred in this run; "
                             "nothing was written");
    if (!status && capture->has_logits && capture->logits_rows) {
        status = write_header(capture, false, err);
        if (!status)
            status = outfile_commit(&capture->logits, err);
    }
    return status;
}

void infer_capture_release(struct infer_capture *capture)
{
    tap_writer_destroy(capture->taps);
    if (capture->has_logits)
        outfile_release(&capture->logits);
    capture->taps = NULL;
    capture->has_logits = false;
}
