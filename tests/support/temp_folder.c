/* temp_folder.c - see temp_folder.h. */
#include "temp_folder.h"

#include "base/status.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void temp_folder_init(struct temp_folder *folder)
{
    const char *base = getenv("TMPDIR");
    int wanted = snprintf(folder->path, sizeof(folder->path), "%s/greta-test-XXXXXX",
                          base && base[0] ? base : "/tmp");
    ASSERT(wanted > 0 && (size_t)wanted < sizeof(folder->path));
    ASSERT(mkdtemp(folder->path) != NULL);
}

struct temp_path temp_folder_path(const struct temp_folder *folder, const char *name)
{
    struct temp_path path;
    int wanted = snprintf(path.text, sizeof(path.text), "%s/%s", folder->path, name);
    ASSERT(wanted > 0 && (size_t)wanted < sizeof(path.text));
    return path;
}

/* Calls unlink on every entry if remove_all; returns how many there are. */
static size_t walk(const struct temp_folder *folder, bool remove_all)
{
    DIR *directory = opendir(folder->path);
    ASSERT(directory != NULL);
    size_t count = 0;
    for (struct dirent *entry = readdir(directory); entry; entry = readdir(directory)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        count++;
        if (remove_all)
            remove(temp_folder_path(folder, entry->d_name).text);
    }
    closedir(directory);
    return count;
}

void temp_folder_release(struct temp_folder *folder)
{
    walk(folder, true);
    rmdir(folder->path);
}

size_t temp_folder_count(const struct temp_folder *folder)
{
    return walk(folder, false);
}

bool temp_folder_has(const struct temp_folder *folder, const char *name)
{
    struct stat info;
    return lstat(temp_folder_path(folder, name).text, &info) == 0;
}

void temp_folder_write(const struct temp_folder *folder, const char *name, const void *bytes,
                       size_t count)
{
    FILE *out = fopen(temp_folder_path(folder, name).text, "wb");
    ASSERT(out != NULL);
    ASSERT(count == 0 || fwrite(bytes, 1, count, out) == count);
    ASSERT(fclose(out) == 0);
}

void temp_folder_read(const struct temp_folder *folder, const char *name, struct text *text)
{
    FILE *in = fopen(temp_folder_path(folder, name).text, "rb");
    ASSERT(in != NULL);
    text_clear(text);
    char buffer[4096];
    for (size_t got = fread(buffer, 1, sizeof(buffer), in); got > 0;
         got = fread(buffer, 1, sizeof(buffer), in))
        text_add_bytes(text, buffer, got);
    ASSERT(!ferror(in) && !text->failed);
    fclose(in);
}
