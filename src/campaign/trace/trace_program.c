/* trace_program.c - what can be known of a program before it is started: whether libraries can be
 * put into it. */
#include "campaign/trace/trace.h"

#include "base/size.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Programs have about a dozen. */
#define SEGMENT_LIMIT 64u

static bool is_program(const char *path, struct stat *ret_info)
{
    return stat(path, ret_info) == 0 && S_ISREG(ret_info->st_mode) && access(path, X_OK) == 0;
}

/* False: there is none of that name. */
static bool find_program(const char *const *environment, const char *name,
                         char ret_path[FILES_PATH_BYTES], struct stat *ret_info)
{
    const char *paths = "";
    if (strchr(name, '/')) {
        snprintf(ret_path, FILES_PATH_BYTES, "%s", name);
        return is_program(name, ret_info);
    }
    for (size_t i = 0; environment[i]; i++)
        if (strncmp(environment[i], "PATH=", 5) == 0)
            paths = environment[i] + 5;
    while (*paths) {
        size_t length = strcspn(paths, ":");
        snprintf(ret_path, FILES_PATH_BYTES, "%.*s/%.1000s", (int)min_u64(length, 2000), paths,
                 name);
        if (is_program(ret_path, ret_info))
            return true;
        paths += length + (paths[length] == ':');
    }
    return false;
}

/* A program of this machine that names no dynamic linker. */
static bool is_static(const char *path)
{
    Elf64_Ehdr header;
    bool names_linker = false;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    bool read_well = pread(file, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
                     memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
                     header.e_ident[EI_CLASS] == ELFCLASS64 &&
                     header.e_phentsize == sizeof(Elf64_Phdr) && header.e_phnum <= SEGMENT_LIMIT;
    for (unsigned i = 0; read_well && i < header.e_phnum; i++) {
        Elf64_Phdr segment;
        off_t at = (off_t)(header.e_phoff + i * sizeof(segment));
        read_well = pread(file, &segment, sizeof(segment), at) == (ssize_t)sizeof(segment);
        names_linker = names_linker || (read_well && segment.p_type == PT_INTERP);
    }
    close(file);
    return read_well && !names_linker;
}

enum trace_program_kind trace_program_kind(const char *const *environment, const char *name)
{
    char path[FILES_PATH_BYTES];
    struct stat info;
    if (!find_program(environment, name, path, &info))
        return TRACE_PROGRAM_USUAL;
    if (info.st_mode & (S_ISUID | S_ISGID))
        return TRACE_PROGRAM_CHANGES_USER;
    return is_static(path) ? TRACE_PROGRAM_STATIC : TRACE_PROGRAM_USUAL;
}
