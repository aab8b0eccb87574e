/* coredump.h - GPU core dumps of NVIDIA's driver: what died where, and what else was alive.
 *
 * The file is foreign: it is mapped, and every offset, count and link is checked before it is used.
 * A layout that is not known is refused by name. The work grows with the bytes of the file, also
 * where its sections overlap. Nothing is guessed: where the dump does not decide something, the
 * structs say so. docs/coredump.md has the format. One thread at a time for each dump. */
#ifndef GRETA_COREDUMP_COREDUMP_H
#define GRETA_COREDUMP_COREDUMP_H

#include "base/status.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

struct coredump;

/* Views and arrays below are borrowed until coredump_close. Texts hold any bytes. */
MUST_CHECK enum status coredump_open(const char *path, struct coredump **ret_dump,
                                     struct error *err);
/* The same for bytes in memory, which the caller keeps until coredump_close. */
MUST_CHECK enum status coredump_open_memory(const void *data, uint64_t bytes, const char *source,
                                            struct coredump **ret_dump, struct error *err);
void coredump_close(struct coredump *dump); /* NULL is fine */

/* STATUS_IO if the file became shorter while it was read. Call it before the results are used. */
MUST_CHECK enum status coredump_check(const struct coredump *dump, struct error *err);

/* ---- Devices and contexts ------------------------------------------------------------------- */

struct coredump_dim3 {
    uint32_t x, y, z;
};

struct coredump_info {
    const char *source; /* file name */
    uint64_t bytes;
    uint32_t section_count;
    bool generator_known; /* the fields below are in the dump */
    struct text_view generator;
    uint32_t driver_major, driver_minor, cuda_major, cuda_minor;
    uint32_t timestamp; /* seconds since 1970, UTC; 0: not in the dump */
};
const struct coredump_info *coredump_info(const struct coredump *dump);

struct coredump_device {
    struct text_view name, chip, architecture; /* "NVIDIA H200", "GH100", "sm_90"; may be empty */
    uint32_t id, pci_bus, pci_device;
    uint32_t sm_count, warps_per_sm, lanes_per_warp;
    uint32_t sm_major, sm_minor;
};
size_t coredump_device_count(const struct coredump *dump);
const struct coredump_device *coredump_device_at(const struct coredump *dump, size_t index);

struct coredump_context {
    uint64_t id;
    uint32_t device_index; /* in coredump_device_at */
    uint32_t host_thread;  /* the thread that made it, as the operating system numbers threads */
    size_t module_count, image_count; /* loaded modules; images of them in the dump */
};
size_t coredump_context_count(const struct coredump *dump);
const struct coredump_context *coredump_context_at(const struct coredump *dump, size_t index);

/* ---- Names and places ----------------------------------------------------------------------- */

enum coredump_naming {
    COREDUMP_NAME_NO_IMAGE,   /* the dump has no image of the module, or none that can be read */
    COREDUMP_NAME_NOT_FOUND,  /* no function of the images holds the address */
    COREDUMP_NAME_BY_ADDRESS, /* exactly one function holds the address */
    COREDUMP_NAME_ONLY_FIT,   /* the image has no addresses; one kernel alone fits the arguments */
    COREDUMP_NAME_CANDIDATES, /* several functions are possible, and nothing decides */
    COREDUMP_NAMING_COUNT
};
const char *coredump_naming_name(enum coredump_naming naming); /* "by-address" */

#define COREDUMP_CANDIDATE_LIMIT 8
struct coredump_name {
    enum coredump_naming naming;
    size_t candidate_count; /* in all; the first COREDUMP_CANDIDATE_LIMIT are here */
    /* Mangled. The first one is the name where naming is BY_ADDRESS or ONLY_FIT. */
    struct text_view candidates[COREDUMP_CANDIDATE_LIMIT];
};
/* True if naming says that there is exactly one name. */
bool coredump_name_is_known(const struct coredump_name *name);

enum coredump_lines {
    COREDUMP_LINES_FOUND,
    COREDUMP_LINES_NO_FUNCTION, /* the function is not known */
    COREDUMP_LINES_NONE,        /* the image has no line table: it was built without -lineinfo */
    COREDUMP_LINES_NOT_HERE,    /* its line table does not cover the address */
    COREDUMP_LINES_AMBIGUOUS,   /* two parts of the line table disagree */
    COREDUMP_LINES_DAMAGED,     /* the line table breaks its own format */
    COREDUMP_LINES_LIMIT,       /* more addresses or bytes than are looked at */
    COREDUMP_LINES_COUNT
};
const char *coredump_lines_name(enum coredump_lines lines); /* "no-line-table" */

/* A line of source. If the next frame exists, this one is inlined code of it. */
struct coredump_frame {
    struct text_view function;        /* mangled; empty: not given */
    struct text_view directory, file; /* directory is empty if file is absolute */
    uint32_t line;
};

#define COREDUMP_FRAME_LIMIT 16
/* What stands at one address of code. */
struct coredump_place {
    uint64_t address;
    struct coredump_name function; /* the kernel itself, or a function that it calls */
    uint64_t offset;               /* from the function's start, if its name is known */
    enum coredump_lines lines;
    size_t frame_count; /* innermost first; 0 unless lines is FOUND */
    bool frames_cut;    /* there are more, or the line table does not say how they go on */
    struct coredump_frame frames[COREDUMP_FRAME_LIMIT];
};

/* ---- Grids ---------------------------------------------------------------------------------- */

enum coredump_grid_status {
    COREDUMP_GRID_INVALID,
    COREDUMP_GRID_PENDING,
    COREDUMP_GRID_ACTIVE,
    COREDUMP_GRID_SLEEPING,
    COREDUMP_GRID_TERMINATED,
    COREDUMP_GRID_UNDETERMINED,
    COREDUMP_GRID_STATUS_COUNT /* and more: a newer driver's */
};
const char *coredump_grid_status_name(uint32_t status); /* "active"; "unknown" */

enum coredump_kernel_type {
    COREDUMP_KERNEL_UNKNOWN,
    COREDUMP_KERNEL_SYSTEM,
    COREDUMP_KERNEL_APPLICATION,
    COREDUMP_KERNEL_TYPE_COUNT
};
const char *coredump_kernel_type_name(uint32_t type); /* "application"; "unknown" */

/* Where an argument lies in the argument bytes. Whether it is a pointer is not known. */
struct coredump_argument {
    uint32_t offset, bytes;
};

struct coredump_grid {
    uint64_t number; /* the driver's; a replayed graph does not count on */
    size_t device_index;
    uint64_t context_id, module, function_handle;
    uint64_t entry;  /* address of the kernel's first instruction */
    uint64_t parent; /* number of the grid that launched it; 0: the host did */
    uint32_t status; /* enum coredump_grid_status, or a newer number */
    uint32_t type;   /* enum coredump_kernel_type, or a newer number */
    uint32_t registers;
    bool from_gpu, blocking;
    uint32_t host_thread;
    struct coredump_dim3 blocks, threads;
    struct coredump_dim3 cluster; /* 0, 0, 0: not in the dump */
    struct coredump_name name;
    const uint8_t *argument_bytes; /* NULL: not in the dump */
    uint64_t argument_byte_count;
    bool arguments_known;                      /* the image says how the bytes are divided */
    const struct coredump_argument *arguments; /* by offset; all lie inside the bytes */
    size_t argument_count;
};
size_t coredump_grid_count(const struct coredump *dump);
const struct coredump_grid *coredump_grid_at(const struct coredump *dump, size_t index);

/* ---- Exceptions ----------------------------------------------------------------------------- */

/* The driver's numbers. 0: the dump marks the warp but does not say what happened. */
#define COREDUMP_EXCEPTION_COUNT 23
/* "warp-illegal-address"; "unknown" for a number that is not known. */
const char *coredump_exception_name(uint32_t kind);

enum coredump_pc_origin {
    COREDUMP_PC_NONE,
    COREDUMP_PC_OF_ERROR, /* the hardware recorded the instruction that failed */
    COREDUMP_PC_OF_LANE   /* where the lane stood when it was stopped: may be past that */
};

#define COREDUMP_LANE_COUNT 32
#define COREDUMP_NO_INDEX SIZE_MAX

/* What happened to lanes of one warp; or, if has_warp is false, to an SM as a whole. */
struct coredump_exception {
    uint32_t kind;
    bool kind_of_sm; /* the SM's row has the kind, not a lane's */
    size_t device_index;
    uint32_t sm;
    bool has_warp;
    uint32_t warp;
    uint32_t lane_mask;   /* lanes that have the exception; 0: the warp as a whole */
    uint32_t thread_mask; /* lanes whose thread is known: those of lane_mask, else active ones */
    struct coredump_dim3 threads[COREDUMP_LANE_COUNT]; /* by lane, of thread_mask */
    struct coredump_dim3 block;
    uint64_t grid_number;
    size_t grid_index; /* in coredump_grid_at; COREDUMP_NO_INDEX: not in the table of grids */
    enum coredump_pc_origin pc_origin;
    uint64_t pc;
    size_t place_index; /* in coredump_place_at; COREDUMP_NO_INDEX: no pc */
};
/* At most COREDUMP_EXCEPTION_LIMIT are kept; *ret_total has the number in the dump. Those that say
 * what happened come first, then by device, SM and warp. That is no order in time: the dump has
 * none. */
#define COREDUMP_EXCEPTION_LIMIT 1024
size_t coredump_exception_count(const struct coredump *dump, uint64_t *ret_total);
const struct coredump_exception *coredump_exception_at(const struct coredump *dump, size_t index);

/* The different addresses of exceptions. Lines are looked up for the first 64 of them. */
size_t coredump_place_count(const struct coredump *dump);
const struct coredump_place *coredump_place_at(const struct coredump *dump, size_t index);

/* Images that cannot be read, and why the first of them cannot. "" if there is none. */
size_t coredump_bad_image_count(const struct coredump *dump);
const char *coredump_bad_image_reason(const struct coredump *dump);

#endif
