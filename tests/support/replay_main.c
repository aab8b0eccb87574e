/* replay_main.c - gives every file of a folder to a fuzzing target once, without a fuzzer: what was
 * found once stays found, with any compiler.
 *
 *   fuzz_gguf_replay FOLDER...
 *
 * A folder that is missing or has no files is a failure: a replay of nothing proves nothing. */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input gets memory of exactly its size, so that sanitizers see a byte read past its end. */
static int replay_file(const char *path, size_t size)
{
    FILE *in = fopen(path, "rb");
    uint8_t *data = malloc(size ? size : 1);
    int result = -1;
    if (in && data && fread(data, 1, size, in) == size) {
        LLVMFuzzerTestOneInput(data, size);
        result = 0;
    } else {
        fprintf(stderr, "%s: cannot read it: %s\n", path, strerror(errno));
    }
    free(data);
    if (in)
        fclose(in);
    return result;
}

/* Returns how many files were replayed, or -1. */
static long replay_folder(const char *folder)
{
    DIR *directory = opendir(folder);
    if (!directory) {
        fprintf(stderr, "%s: cannot open it: %s\n", folder, strerror(errno));
        return -1;
    }
    long count = 0;
    for (struct dirent *entry = readdir(directory); entry && count >= 0;
         entry = readdir(directory)) {
        char path[4096];
        struct stat info;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (stat(path, &info) != 0 || !S_ISREG(info.st_mode))
            continue;
        count = replay_file(path, (size_t)info.st_size) ? -1 : count + 1;
    }
    closedir(directory);
    return count;
}

int main(int argument_count, char **arguments)
{
    if (argument_count < 2) {
        fprintf(stderr, "usage: %s FOLDER...\n", arguments[0]);
        return 2;
    }
    for (int i = 1; i < argument_count; i++) {
        long count = replay_folder(arguments[i]);
        if (count <= 0) {
            fprintf(stderr, "%s: expected files to replay, found none\n", arguments[i]);
            return 1;
        }
        printf("%s: %ld files replayed\n", arguments[i], count);
    }
    return 0;
}
