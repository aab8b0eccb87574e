/* outfile.h - a file that appears under its name only when it is complete.
 *
 * Bytes go to a file with another name in the same folder; outfile_commit makes them durable and
 * renames it. In all other cases (an error, a signal that the caller turns into an error,
 * outfile_release without commit) the other file is removed. A process that is killed outright
 * leaves at most NAME.part-PID. */
#ifndef GRETA_BASE_OUTFILE_H
#define GRETA_BASE_OUTFILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct outfile {
    int descriptor; /* -1 when not open */
    char *path;
    char *part_path;
    uint8_t *buffer;
    size_t buffered_bytes;
    uint64_t written_bytes; /* handed to outfile_write so far */
    bool replace;
};

/* With replace false an existing path is refused, here and again at commit. expected_bytes, if not
 * 0, is reserved at once, so that a full disk is reported before the work and not after it.
 * Initialises *out whatever the outcome. */
MUST_CHECK enum status outfile_open(struct outfile *out, const char *path, bool replace,
                                    uint64_t expected_bytes, struct error *err);
/* The same for a file that only its owner may read, whatever the umask: the evidence of an audit
 * holds prompts, command lines and addresses. */
#define OUTFILE_PRIVATE_MODE 0600
#define OUTFILE_PRIVATE_FOLDER_MODE 0700
MUST_CHECK enum status outfile_open_private(struct outfile *out, const char *path, bool replace,
                                            struct error *err);
MUST_CHECK enum status outfile_write(struct outfile *out, const void *bytes, size_t count,
                                     struct error *err);
/* Overwrites bytes that were written before: a header whose numbers are known only at the end. */
MUST_CHECK enum status outfile_patch(struct outfile *out, uint64_t offset, const void *bytes,
                                     size_t count, struct error *err);
MUST_CHECK enum status outfile_commit(struct outfile *out, struct error *err);
void outfile_release(struct outfile *out); /* an empty or committed struct is fine */

#endif
