/* temp_folder.h - a folder of its own for a test, gone with everything in it afterwards. */
#ifndef GRETA_TESTS_TEMP_FOLDER_H
#define GRETA_TESTS_TEMP_FOLDER_H

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>

struct temp_folder {
    char path[128];
};

struct temp_path {
    char text[384];
};

/* What fails here is an ASSERT: the machine is broken, not what is tested. */
void temp_folder_init(struct temp_folder *folder);
void temp_folder_release(struct temp_folder *folder); /* plain files and links, no subfolders */

struct temp_path temp_folder_path(const struct temp_folder *folder, const char *name);
/* Creates or replaces. */
void temp_folder_write(const struct temp_folder *folder, const char *name, const void *bytes,
                       size_t count);
/* Replaces what text held. */
void temp_folder_read(const struct temp_folder *folder, const char *name, struct text *text);
bool temp_folder_has(const struct temp_folder *folder, const char *name);
size_t temp_folder_count(const struct temp_folder *folder);

#endif
