/* infer_opening.h - the device of greta infer: which one, what is recorded of it or planted in it,
 * and the thread that opens it (struct infer_opening). */
#ifndef GRETA_CLI_INFER_OPENING_H
#define GRETA_CLI_INFER_OPENING_H

#include "cli/infer_run.h"

/* Chooses the device, and opens it in a thread unless it has to be opened in its turn. */
MUST_CHECK enum status infer_opening_begin(struct infer_run *run, struct error *err);
/* Prompts are known: waits for the device, or opens it now. */
MUST_CHECK enum status infer_opening_finish(struct infer_run *run, struct error *err);
/* Returns when the device is open, or cannot be. */
void infer_opening_join(struct infer_run *run);

/* Tokens of a batch; 0: the engine chooses. */
uint32_t infer_batch_limit(const struct infer_settings *settings);

#endif
