/* inspect_metadata.h - greta inspect --metadata: every key of a file and its value. */
#ifndef GRETA_CLI_INSPECT_METADATA_H
#define GRETA_CLI_INSPECT_METADATA_H

#include "base/emit.h"
#include "gguf/gguf.h"

/* Adds a list "metadata": key, type, value; for arrays the length and the first elements. */
void inspect_metadata(struct emit *emit, const struct gguf_file *file);

#endif
