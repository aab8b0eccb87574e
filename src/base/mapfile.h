/* mapfile.h - a file mapped read-only. The mapping lives until mapfile_release. */
#ifndef GRETA_BASE_MAPFILE_H
#define GRETA_BASE_MAPFILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct mapfile {
    const uint8_t *data; /* NULL for an empty file */
    uint64_t size;
    uint64_t device; /* device and inode: two paths of one file are the same file */
    uint64_t inode;
    uint32_t watched; /* place in base/fault.h; 0: not watched */
    bool open;        /* descriptor is: */
    int descriptor;
};

/* Refuses anything but a regular file. Initialises *map whatever the outcome. */
MUST_CHECK enum status mapfile_open(struct mapfile *map, const char *path, struct error *err);
/* The same, and the file stays open for mapfile_read. */
MUST_CHECK enum status mapfile_open_kept(struct mapfile *map, const char *path, struct error *err);
void mapfile_release(struct mapfile *map); /* an empty struct is fine */

/* Reads [offset, offset + bytes), which must be inside of the file as it was mapped. Much that is
 * read once comes faster this way than through the mapping, whose every page must be mapped first;
 * where the file was not kept open it comes from there. STATUS_IO where it cannot be read, as of a
 * file that became shorter. From any thread. */
MUST_CHECK enum status mapfile_read(const struct mapfile *map, uint64_t offset, void *target,
                                    uint64_t bytes, struct error *err);

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
