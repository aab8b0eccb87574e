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
    uint32_t watched; /* place in base/fault.h; 0: not watched */
};

/* Refuses anything but a regular file. Initialises *map whatever the outcome. */
MUST_CHECK enum status mapfile_open(struct mapfile *map, const char *path, struct error *err);
void mapfile_release(struct mapfile *map); /* an empty struct is fine */

/* Tells the kernel that [offset, offset + bytes) will be read, by several threads in any order.
 * Does nothing where its first page is in memory: then most of it is. */
void mapfile_ahead(const struct mapfile *map, uint64_t offset, uint64_t bytes);

/* Tells the kernel that [offset, offset + bytes) will not be read again soon: a pass over a file
 * larger than memory must not push everything else out. */
void mapfile_drop(const struct mapfile *map, uint64_t offset, uint64_t bytes);

/* A file that becomes shorter while it is mapped kills whoever reads it. From here on the reader
 * goes on with zeros, and mapfile_check says so: ask before what was read is used for good. */
void mapfile_watch(struct mapfile *map);
/* STATUS_IO if the file is shorter than it was, or a part could not be read. path is for the
 * message. */
MUST_CHECK enum status mapfile_check(const struct mapfile *map, const char *path,
                                     struct error *err);

#endif
