/* infer_capture.h - what greta infer writes apart from text: taps and logits, in files that are
 * opened before the run begins. */
#ifndef GRETA_CLI_INFER_CAPTURE_H
#define GRETA_CLI_INFER_CAPTURE_H

#include "base/outfile.h"
#include "cli/cli.h"
#include "engine/engine.h"

struct infer_capture {
    struct engine_tap_choice choices[CLI_LIST_LIMIT];
    size_t choice_count;
    struct tap_writer *taps; /* NULL: none */
    struct outfile logits;   /* with has_logits */
    bool has_logits;
    uint64_t logits_rows;
    uint32_t vocab_size; /* set with the first row */
    bool allow_bad;
};

/* Parses the choices, makes the folder, begins the file. Initialises *capture whatever the outcome.
 * tap_folder and logits_path may be NULL. */
MUST_CHECK enum status infer_capture_open(struct infer_capture *capture,
                                          const struct cli_text_list *taps, const char *tap_folder,
                                          const char *logits_path, bool allow_bad,
                                          struct error *err);
/* From now on the engine's batches are tapped. */
MUST_CHECK enum status infer_capture_attach(struct infer_capture *capture, struct engine *engine,
                                            struct error *err);
MUST_CHECK enum status infer_capture_logits(struct infer_capture *capture, const float *logits,
                                            uint32_t vocab_size, struct error *err);
/* Completes index and file, also after a run that failed: what they hold was computed. */
MUST_CHECK enum status infer_capture_finish(struct infer_capture *capture,
                                            const struct cli_invocation *invocation,
                                            struct error *err);
void infer_capture_release(struct infer_capture *capture);

#endif
