/* stop.c - see stop.h. */
#include "session/stop.h"

#include <string.h>

void stop_scan_init(struct stop_scan *scan, const char *const *stops, size_t stop_count)
{
    *scan = (struct stop_scan){ .stops = stops, .stop_count = stop_count };
    text_init(&scan->held);
}

void stop_scan_release(struct stop_scan *scan)
{
    text_release(&scan->held);
}

/* Offset of the first stop string; held.length if there is none. The text may contain NUL. */
static size_t find_stop(const struct stop_scan *scan)
{
    size_t first = scan->held.length;
    for (size_t i = 0; i < scan->stop_count; i++) {
        size_t length = strlen(scan->stops[i]);
        for (size_t at = 0; at + length <= scan->held.length && at < first; at++)
            if (memcmp(scan->held.bytes + at, scan->stops[i], length) == 0)
                first = at;
    }
    return first;
}

/* Number of bytes at the end that could be the beginning of a stop string. */
static size_t possible_start(const struct stop_scan *scan)
{
    size_t longest = 0;
    for (size_t i = 0; i < scan->stop_count; i++) {
        size_t length = strlen(scan->stops[i]);
        for (size_t start = length - 1; start > longest; start--)
            if (start <= scan->held.length &&
                memcmp(scan->held.bytes + scan->held.length - start, scan->stops[i], start) == 0)
                longest = start;
    }
    return longest;
}

bool stop_scan_add(struct stop_scan *scan, struct text_view part, struct text *out)
{
    text_add_bytes(&scan->held, part.bytes, part.length);
    if (scan->held.length == 0)
        return false;
    size_t found = find_stop(scan);
    bool stopped = found < scan->held.length;
    size_t given = stopped ? found : scan->held.length - possible_start(scan);
    text_add_bytes(out, scan->held.bytes, given);
    size_t kept = stopped ? 0 : scan->held.length - given;
    memmove(scan->held.bytes, scan->held.bytes + given, kept);
    scan->held.length = kept;
    scan->held.bytes[kept] = '\0';
    return stopped;
}

void stop_scan_finish(struct stop_scan *scan, struct text *out)
{
    text_add_bytes(out, text_get(&scan->held), scan->held.length);
    text_clear(&scan->held);
}
