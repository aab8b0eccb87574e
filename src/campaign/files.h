/* files.h - small files of an audit: JSON in and out, folders, hashes. */
#ifndef GRETA_CAMPAIGN_FILES_H
#define GRETA_CAMPAIGN_FILES_H

#include "base/status.h"
#include "base/text.h"

#include <jansson.h>

/* Takes document, which may be NULL (no memory). Replaces path atomically. */
MUST_CHECK enum status files_write_json(const char *path, json_t *document, struct error *err);
/* An object of at most 64 MiB; the caller's (json_decref). */
MUST_CHECK enum status files_read_json(const char *path, json_t **ret_object, struct error *err);

/* Replaces path atomically. All files made here are their owner's alone (0600). */
MUST_CHECK enum status files_write(const char *path, const void *bytes, size_t count,
                                   struct error *err);

/* path and all its parents; those that are made are their owner's alone (0700). */
MUST_CHECK enum status files_make_folder(const char *path, struct error *err);

/* Lower-case hex of the SHA-256 of a file. */
#define FILES_SHA256_TEXT_BYTES 65
MUST_CHECK enum status files_sha256(const char *path, char ret_hex[FILES_SHA256_TEXT_BYTES],
                                    struct error *err);
/* The same for bytes in memory. */
MUST_CHECK enum status files_sha256_of(const void *bytes, size_t count,
                                       char ret_hex[FILES_SHA256_TEXT_BYTES], struct error *err);

/* The verdicts as they were printed at an audit's end. */
#define FILES_VERDICT_NAME "verdict.txt"

/* Paths are built from our own folder and short names. */
#define FILES_PATH_BYTES 4096
/* "folder/name"; STATUS_LIMIT where that is too long. */
MUST_CHECK enum status files_join(char ret_path[FILES_PATH_BYTES], struct error *err,
                                  const char *folder, const char *format, ...) PRINTF_LIKE(4, 5);

#endif
