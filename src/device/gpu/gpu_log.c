/* gpu_log.c - see gpu_log.h. */
#define _GNU_SOURCE
#include "device/gpu/gpu_log.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A record of the kernel's log is at most this long. */
#define RECORD_BYTES 8192u
/* The log is written as the fault is handled, often before the runtime says anything. */
#define WAIT_NS UINT64_C(200000000)
#define PAUSE_US 5000u
/* The number that the kernel gives the first of all namespaces. */
#define FIRST_NAMESPACE "pid:[4026531836]"

/* ---- Words of a line ------------------------------------------------------------------------ */

/* What is left of a line. */
struct rest {
    const char *at, *end;
};

/* Moves to right after the first occurrence of text. */
static bool skip_to(struct rest *rest, const char *text)
{
    size_t length = strlen(text);
    const char *found = memmem(rest->at, (size_t)(rest->end - rest->at), text, length);
    if (found)
        rest->at = found + length;
    return found != NULL;
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 16;
}

/* Digits of a base, at least one, within 64 bits. */
static bool take_number(struct rest *rest, uint64_t base, uint64_t *ret_value)
{
    const char *start = rest->at;
    uint64_t value = 0;
    for (; rest->at < rest->end && (uint64_t)digit_of(*rest->at) < base; rest->at++) {
        if (value > (UINT64_MAX - 15) / base)
            return false;
        value = value * base + (uint64_t)digit_of(*rest->at);
    }
    *ret_value = value;
    return rest->at > start;
}

/* NVIDIA writes addresses with the upper half apart: 0x7fad_e69ec000. */
static bool take_address(struct rest *rest, uint64_t *ret_address)
{
    uint64_t high, low;
    if (!take_number(rest, 16, &high))
        return false;
    if (rest->at == rest->end || *rest->at != '_') {
        *ret_address = high;
        return true;
    }
    rest->at++;
    const char *start = rest->at;
    if (!take_number(rest, 16, &low) || rest->at - start > 8 || high > UINT32_MAX)
        return false;
    *ret_address = high << 32 | low;
    return true;
}

/* A word of letters, digits and _, cut to fit. */
static void take_word(struct rest *rest, char *word, size_t bytes)
{
    size_t count = 0;
    for (; rest->at < rest->end; rest->at++) {
        char c = *rest->at;
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     c == '_';
        if (!plain)
            break;
        if (count + 1 < bytes)
            word[count++] = c;
    }
    word[count] = '\0';
}

/* ---- NVIDIA --------------------------------------------------------------------------------- */

static int64_t read_process(struct rest rest, const char *key)
{
    uint64_t id;
    return skip_to(&rest, key) && take_number(&rest, 10, &id) && id <= INT32_MAX ? (int64_t)id : -1;
}

static void feed_xid(struct gpu_log *log, struct rest rest)
{
    struct gpu_log_fault fault = { .process_id = -1 };
    uint64_t number;
    if (!skip_to(&rest, "): ") || !take_number(&rest, 10, &number) || number != 31)
        return;
    fault.process_id = read_process(rest, "pid=");
    if (skip_to(&rest, "ENGINE "))
        take_word(&rest, fault.engine, sizeof(fault.engine));
    if (!skip_to(&rest, "faulted @ 0x") || !take_address(&rest, &fault.address))
        return;
    struct rest access = rest;
    if (skip_to(&access, "ACCESS_TYPE_VIRT_READ"))
        fault.access = GPU_LOG_READ;
    else if (skip_to(&rest, "ACCESS_TYPE_VIRT_WRITE") || skip_to(&rest, "ACCESS_TYPE_VIRT_ATOMIC"))
        fault.access = GPU_LOG_WRITE;
    fault.is_copy = strncmp(fault.engine, "CE", 2) == 0;
    fault.known = true;
    log->fault = fault;
    log->fault_count++;
}

/* ---- AMD: several lines --------------------------------------------------------------------- */

static void feed_amdgpu(struct gpu_log *log, struct rest rest)
{
    struct gpu_log_fault *fault = &log->fault;
    struct rest words = rest;
    uint64_t value;
    if (skip_to(&words, "page fault (")) {
        *fault = (struct gpu_log_fault){ .process_id = read_process(words, " pid ") };
    } else if (words = rest, skip_to(&words, "in page starting at address 0x")) {
        if (fault->known || !take_number(&words, 16, &fault->address))
            return; /* of the same fault once more, or damaged */
        fault->known = true;
        log->fault_count++;
    } else if (words = rest, skip_to(&words, "client ID: ")) {
        take_word(&words, fault->engine, sizeof(fault->engine));
        fault->is_copy = strncmp(fault->engine, "SDMA", 4) == 0;
    } else if (words = rest, skip_to(&words, "RW: 0x")) {
        if (take_number(&words, 16, &value))
            fault->access = value ? GPU_LOG_WRITE : GPU_LOG_READ;
    } else if (words = rest, skip_to(&words, "Process ") && fault->process_id < 0) {
        fault->process_id = read_process(words, " pid ");
    }
}

void gpu_log_feed(struct gpu_log *log, const char *line, size_t bytes)
{
    struct rest rest = { line, line + bytes }, words = rest;
    if (skip_to(&words, "NVRM: Xid ("))
        feed_xid(log, words);
    else if (words = rest, skip_to(&words, "amdgpu"))
        feed_amdgpu(log, words);
}

/* ---- Reading -------------------------------------------------------------------------------- */

void gpu_log_open(struct gpu_log_reader *reader, const char *path)
{
    reader->descriptor = open(path ? path : "/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    reader->os_code = reader->descriptor < 0 ? errno : 0;
    if (reader->descriptor >= 0 && lseek(reader->descriptor, 0, SEEK_END) < 0) {
        reader->os_code = errno;
        gpu_log_close(reader);
    }
}

void gpu_log_close(struct gpu_log_reader *reader)
{
    if (reader->descriptor >= 0)
        close(reader->descriptor);
    reader->descriptor = -1;
}

/* Whether the kernel's numbers of processes are those this process sees. */
static bool numbers_are_ours(void)
{
    char name[64];
    ssize_t length = readlink("/proc/self/ns/pid", name, sizeof(name) - 1);
    name[length < 0 ? 0 : length] = '\0';
    return strcmp(name, FIRST_NAMESPACE) == 0;
}

/* Where several faults were read, the first of this process is kept. */
struct search {
    struct gpu_log log;
    struct gpu_log_fault first, mine;
    uint64_t count;
};

static void feed_all(struct search *search, const char *text, size_t bytes)
{
    const char *end = text + bytes;
    while (text < end) {
        const char *line_end = memchr(text, '\n', (size_t)(end - text));
        line_end = line_end ? line_end : end;
        gpu_log_feed(&search->log, text, (size_t)(line_end - text));
        if (search->log.fault.known && search->log.fault_count > search->count) {
            search->first = search->count ? search->first : search->log.fault;
            search->count = search->log.fault_count;
        }
        if (search->log.fault.known && !search->mine.known &&
            search->log.fault.process_id == (int64_t)getpid())
            search->mine = search->log.fault;
        text = line_end + 1;
    }
}

/* Reads what there is. */
static void read_all(const struct gpu_log_reader *reader, struct search *search)
{
    char record[RECORD_BYTES];
    ssize_t length;
    while ((length = read(reader->descriptor, record, sizeof(record))) > 0 ||
           (length < 0 && errno == EPIPE)) /* records were lost: go on with the next */
        if (length > 0)
            feed_all(search, record, (size_t)length);
    /* Lines that follow the address say more of the same fault. */
    bool same = search->log.fault.known && search->count == 1;
    if (same)
        search->first = search->log.fault;
    if (same && search->mine.known)
        search->mine = search->log.fault;
}

bool gpu_log_find(struct gpu_log_reader *reader, struct gpu_log_fault *ret_fault, char *words,
                  size_t words_bytes)
{
    struct search search = { .count = 0 };
    if (reader->descriptor < 0) {
        snprintf(words, words_bytes, "the kernel log cannot be read (%s)",
                 strerror(reader->os_code));
        return false;
    }
    bool ours = numbers_are_ours();
    uint64_t end_ns = clock_ns() + WAIT_NS;
    for (;;) {
        read_all(reader, &search);
        if (search.mine.known || (!ours && search.count) || clock_ns() >= end_ns)
            break;
        usleep(PAUSE_US);
    }
    bool found = search.mine.known || (!ours && search.count == 1);
    if (found)
        *ret_fault = search.mine.known ? search.mine : search.first;
    snprintf(words, words_bytes, "%s",
             found          ? ""
             : search.count ? "the kernel log has faults, none known to be of this process"
                            : "the kernel log has no fault");
    return found;
}
