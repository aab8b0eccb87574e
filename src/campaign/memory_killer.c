/* memory_killer.c - see memory_killer.h. */
#include "campaign/memory_killer.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Most records read from the kernel log, which may be written to while it is read. */
#define LOG_RECORD_LIMIT 65536u

static bool read_text(const char *path, char *text, size_t capacity)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t count = file < 0 ? -1 : read(file, text, capacity - 1);
    if (file >= 0)
        close(file);
    if (count < 0)
        return false;
    text[count] = '\0';
    return true;
}

uint64_t memory_killer_parse(const char *events)
{
    for (const char *line = events; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, "oom_kill ", 9) == 0)
            return strtoull(line + 9, NULL, 10);
    }
    return 0;
}

uint64_t memory_killer_count(void)
{
    char groups[4096], path[8192], events[1024];
    if (!read_text("/proc/self/cgroup", groups, sizeof(groups)))
        return 0;
    /* Version 2 has one line, "0::/path". */
    const char *line = strncmp(groups, "0::", 3) == 0 ? groups : strstr(groups, "\n0::");
    if (!line)
        return 0;
    const char *group = strstr(line, "0::") + 3;
    snprintf(path, sizeof(path), "/sys/fs/cgroup%.*s/memory.events", (int)strcspn(group, "\n"),
             group);
    return read_text(path, events, sizeof(events)) ? memory_killer_parse(events) : 0;
}

bool memory_killer_names(const char *line, pid_t pid)
{
    static const char mark[] = "Killed process ";
    const char *at = strstr(line, mark);
    if (!at)
        return false;
    char *end;
    long number = strtol(at + sizeof(mark) - 1, &end, 10);
    return number == (long)pid && (*end == ' ' || *end == ',');
}

/* Only a privileged user may read it; each read gives one record. */
static bool is_in_log(pid_t pid)
{
    char record[2048];
    bool named = false;
    int file = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    for (unsigned i = 0; file >= 0 && !named && i < LOG_RECORD_LIMIT; i++) {
        ssize_t count = read(file, record, sizeof(record) - 1);
        if (count <= 0)
            break;
        record[count] = '\0';
        named = memory_killer_names(record, pid);
    }
    if (file >= 0)
        close(file);
    return named;
}

bool memory_killer_took(pid_t pid, uint64_t before)
{
    return memory_killer_count() > before || is_in_log(pid);
}
