/* mapfile.h - a file mapped read-only. The mapping lives until mapfile_release. */
#ifndef GRETA_BASE_MAPFILE_H
#define GRETA_BASE_MAPFILE_H

#include "base/status.h"

#include <stdint.h>

struct mapfile {
    const uint8_t *data; /* NULL for an empty file */
    uint64_t size;
    uint64_t device; /* device and inode: two paths of one file are the same file */
    uint64_t inode;
};

/* Refuses anything but a regular file. Initialises *map whatever the outcome. */
MUST_CHECK enum status mapfile_open(struct mapfile *map, const char *path, struct error *err);
void mapfile_release(struct mapfile *map); /* an empty struct is fine */

/* Tells the kernel that [offset, offset + bytes) will not be read again soon: a pass over a file
 * larger than memory must not push everything else out. */
void mapfile_drop(const struct mapfile *map, uint64_t offset, uint64_t bytes);

#endif
