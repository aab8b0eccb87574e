/* gpu_log.h - what the operating system's log says about a GPU's memory fault. On NVIDIA only the
 * log has the address; for both vendors it tells a copy engine's fault from a kernel's.
 *
 * Lines are foreign text: any bytes may come. A line of NVIDIA's driver says all (Xid 31), amdgpu
 * says it in several. */
#ifndef GRETA_DEVICE_GPU_GPU_LOG_H
#define GRETA_DEVICE_GPU_GPU_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gpu_log_access { GPU_LOG_UNKNOWN, GPU_LOG_READ, GPU_LOG_WRITE };

struct gpu_log_fault {
    bool known;         /* an address was read; other fields are set as far as the log has them */
    uint64_t address;   /* of the page */
    int64_t process_id; /* in the kernel's own numbers; -1: not said */
    enum gpu_log_access access;
    char engine[24]; /* "GRAPHICS", "CE2", "TCP"; "" if not said */
    bool is_copy;    /* of a copy engine, not of a kernel */
};

/* The fault that is being read, and the last complete one. Zero it first. */
struct gpu_log {
    struct gpu_log_fault fault;
    uint64_t fault_count; /* that have an address */
};

/* One line, without its end. */
void gpu_log_feed(struct gpu_log *log, const char *line, size_t bytes);

/* Reads /dev/kmsg, or a file that is written like it. */
struct gpu_log_reader {
    int descriptor; /* -1: cannot be read */
    int os_code;    /* why */
};

/* Reads only what is logged from now on. path NULL: /dev/kmsg. */
void gpu_log_open(struct gpu_log_reader *reader, const char *path);
void gpu_log_close(struct gpu_log_reader *reader);

/* The first fault of this process logged since the reader was opened; waits a moment for it. False:
 * none, and words say why not. Where processes have other numbers than the kernel gives them (a
 * container), a fault counts as ours if it is the only one. */
bool gpu_log_find(struct gpu_log_reader *reader, struct gpu_log_fault *ret_fault, char *words,
                  size_t words_bytes);

#endif
