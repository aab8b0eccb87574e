/* mapfile.h - a file mapped read-only. The mapping lives until mapfile_release. */
#ifndef GRETA_BASE_MAPFILE_H
#define GRETA_BASE_MAPFILE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct mapfile {
    const uint8_t *data; /* NULL for an empty file */
    uint64_t size;
    uint64_t device; /* device and inode identify the file, whatever its path */
    uint64_t inode;
    uint32_t watched; /* place in base/fault.h; 0: not watched */
    bool open;        /* descriptor is open */
    int descriptor;
};

/* Refuses anything but a regular file. Initialises *map whatever the outcome. */
MUST_CHECK enum status mapfile_open(struct mapfile *map, const char *path, struct error *err);
/* The same; the file also stays open for mapfile_read. */
MUST_CHECK enum status mapfile_open_kept(struct mapfile *map, const char *path, struct error *err);
void mapfile_release(struct mapfile *map); /* an empty struct is fine */

/* Reads [offset, offset + bytes), which must lie inside the file as it was mapped. For large parts
 * that are read once this is faster than the mapping, whose every page must be mapped first. If the
 * file was not kept open, reads from the mapping. STATUS_IO if the bytes cannot be read, for
 * instance because the file became shorter. Any thread may call it. */
MUST_CHECK enum status mapfile_read(const struct mapfile *map, uint64_t offset, void *target,
                                    uint64_t bytes, struct error *err);

/* Tells the kernel that several threads will read [offset, offset + bytes) in any order. Does
 * nothing if the first page is in memory already: then most of the range is. */
void mapfile_ahead(const struct mapfile *map, uint64_t offset, uint64_t bytes);

/* Tells the kernel that [offset, offset + bytes) will not be read again soon, so that a pass over a
 * file larger than memory does not push everything else out. */
void mapfile_drop(const struct mapfile *map, uint64_t offset, uint64_t bytes);

/* Reading a mapped file that became shorter would kill the process. After this call the reader goes
 * on with zeros instead, and mapfile_check says so. Call mapfile_check before the data is used for
 * good. */
void mapfile_watch(struct mapfile *map);
/* STATUS_IO if the file is shorter than it was, or if a part could not be read. path is for the
 * message. */
MUST_CHECK enum status mapfile_check(const struct mapfile *map, const char *path,
                                     struct error *err);

#endif
