/* inspect_hash.h - greta inspect --hash: prints and checks manifests. */
#ifndef GRETA_CLI_INSPECT_HASH_H
#define GRETA_CLI_INSPECT_HASH_H

#include "cli/cli.h"
#include "gguf/gguf.h"

/* Prints a manifest, or with manifest_path (else NULL) compares with one. *ret_differs: something
 * is not as listed. */
MUST_CHECK enum status inspect_hash(const struct cli_invocation *invocation,
                                    const struct gguf_file *file, const char *manifest_path,
                                    bool json, bool *ret_differs, struct error *err);

#endif
