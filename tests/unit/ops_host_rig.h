/* ops_host_rig.h - for tests of host kernels: a hand-made call whose operands end where an
 * inaccessible page begins and stand between bytes that must not change. */
#ifndef GRETA_TESTS_OPS_HOST_RIG_H
#define GRETA_TESTS_OPS_HOST_RIG_H

#include "test.h"

#include "ops/host/kernels.h"
#include "ops/params.h"
#include "tensor_random.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RIG_OPERANDS 8
#define RIG_UNTOUCHED 0xC5
#define RIG_LAUNCH_ID 77

/* [front page(s): red zone][operand][page without access] */
struct rig_memory {
    uint8_t *mapping;
    size_t mapping_bytes;
    uint8_t *bytes; /* of the operand */
    size_t byte_count;
    size_t row_bytes;
};

struct rig {
    struct device_host_call call;
    struct device_host_operand operands[RIG_OPERANDS];
    struct rig_memory memory[RIG_OPERANDS];
    struct rig_memory scratch;
    struct crumb_page *crumbs;
    char name[160]; /* for messages */
};

/* The red zone and the first `filled` bytes hold RIG_UNTOUCHED. */
static inline struct rig_memory rig_map(size_t bytes, size_t filled)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t usable = (bytes + page - 1) / page * page + page;
    struct rig_memory memory = { .mapping_bytes = usable + page, .byte_count = bytes };
    int flags = MAP_PRIVATE | 0x20; /* MAP_ANONYMOUS, which POSIX has no name for */
    memory.mapping = mmap(NULL, memory.mapping_bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    assert_true(memory.mapping != MAP_FAILED);
    assert_int_equal(mprotect(memory.mapping + usable, page, PROT_NONE), 0);
    memory.bytes = memory.mapping + usable - bytes;
    memset(memory.mapping, RIG_UNTOUCHED, usable - bytes + filled);
    return memory;
}

static inline void rig_init(struct rig *rig, const void *params, const char *name)
{
    memset(rig, 0, sizeof(*rig));
    snprintf(rig->name, sizeof(rig->name), "%s", name);
    rig->crumbs = calloc(1, sizeof(*rig->crumbs));
    rig->scratch = rig_map(DEVICE_SCRATCH_BYTES, 0);
    rig->call = (struct device_host_call){ .params = params,
                                           .operands = rig->operands,
                                           .scratch = rig->scratch.bytes,
                                           .crumbs = rig->crumbs,
                                           .launch_id = RIG_LAUNCH_ID };
}

static inline void rig_release(struct rig *rig)
{
    for (size_t i = 0; i < RIG_OPERANDS; i++) {
        if (rig->memory[i].mapping)
            munmap(rig->memory[i].mapping, rig->memory[i].mapping_bytes);
    }
    munmap(rig->scratch.mapping, rig->scratch.mapping_bytes);
    free(rig->crumbs);
}

/* Rows gap_bytes apart; the last one ends at the guard page. */
static inline void rig_operand(struct rig *rig, size_t index, enum dtype dtype, uint64_t width,
                               uint64_t rows, size_t gap_bytes)
{
    uint64_t row_bytes;
    assert_true(dtype_row_bytes(dtype, width, &row_bytes));
    size_t stride = row_bytes + gap_bytes;
    size_t bytes = stride * rows - gap_bytes;
    rig->memory[index] = rig_map(bytes, bytes);
    rig->memory[index].row_bytes = row_bytes;
    rig->operands[index] =
        (struct device_host_operand){ .data = rig->memory[index].bytes,
                                      .row_stride_bytes = stride,
                                      .dtype = dtype,
                                      .shape = shape_make(2, (uint64_t[]){ width, rows }) };
}

/* A list of I32. */
static inline void rig_list(struct rig *rig, size_t index, const int32_t *values, uint64_t count)
{
    rig->memory[index] = rig_map(count * sizeof(int32_t), count * sizeof(int32_t));
    rig->memory[index].row_bytes = count * sizeof(int32_t);
    if (values)
        memcpy(rig->memory[index].bytes, values, count * sizeof(int32_t));
    rig->operands[index] = (struct device_host_operand){ .data = rig->memory[index].bytes,
                                                         .row_stride_bytes = count * 4,
                                                         .dtype = DTYPE_I32,
                                                         .shape = shape_make(1, &count) };
}

static inline float *rig_row(const struct rig *rig, size_t index, uint64_t row)
{
    return (float *)(void *)(rig->memory[index].bytes +
                             row * rig->operands[index].row_stride_bytes);
}

/* f32 rows of gaussian numbers. */
static inline void rig_fill(struct rig *rig, size_t index, uint64_t seed, float size)
{
    struct random_state random = { .counter = seed };
    const struct shape *shape = &rig->operands[index].shape;
    for (uint64_t r = 0; r < shape->dims[1]; r++) {
        for (uint64_t i = 0; i < shape->dims[0]; i++)
            rig_row(rig, index, r)[i] = size * random_gaussian(&random);
    }
}

/* ---- Running -------------------------------------------------------------------------------- */

static inline device_host_kernel rig_kernel(enum cpu_path path, const char *op)
{
    const struct device_image *image = host_kernels_image(path);
    for (size_t i = 0; i < image->count; i++) {
        if (strcmp(image->entries[i].contract->name, op) == 0)
            return image->entries[i].host;
    }
    fail_msg("no kernel for %s on %s", op, cpu_path_name(path));
    return NULL;
}

static inline uint64_t rig_tiles(uint64_t rows, uint64_t rows_per_tile)
{
    return (rows + rows_per_tile - 1) / rows_per_tile;
}

/* The scratch is unset, as the kernels must expect it: each tile finds other bytes there. */
static inline void rig_run(struct rig *rig, device_host_kernel kernel, uint64_t tiles,
                           bool backwards)
{
    for (uint64_t i = 0; i < tiles; i++) {
        memset(rig->scratch.bytes, (int)(0xFB + i), 65536);
        kernel(&rig->call, backwards ? tiles - 1 - i : i);
    }
}

/* ---- Checks --------------------------------------------------------------------------------- */

static inline bool rig_is_untouched(const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != RIG_UNTOUCHED)
            return false;
    }
    return true;
}

/* Nothing was written before an operand or between its rows. */
static inline void rig_check_margins(const struct rig *rig)
{
    for (size_t i = 0; i < RIG_OPERANDS; i++) {
        const struct rig_memory *memory = &rig->memory[i];
        if (!memory->mapping)
            continue;
        if (!rig_is_untouched(memory->mapping, (size_t)(memory->bytes - memory->mapping)))
            fail_msg("%s: wrote in front of operand %zu", rig->name, i);
        size_t stride = rig->operands[i].row_stride_bytes;
        for (size_t at = memory->row_bytes; at < memory->byte_count; at += stride) {
            if (!rig_is_untouched(memory->bytes + at, stride - memory->row_bytes))
                fail_msg("%s: wrote past a row of operand %zu", rig->name, i);
        }
    }
    if (!rig_is_untouched(rig->scratch.mapping,
                          (size_t)(rig->scratch.bytes - rig->scratch.mapping)))
        fail_msg("%s: wrote in front of the scratch", rig->name);
}

static inline void rig_check_no_traps(const struct rig *rig)
{
    if (rig->crumbs->trap_count)
        fail_msg("%s: %llu traps", rig->name, (unsigned long long)rig->crumbs->trap_count);
}

/* Trap number place is this one. index as the kernel read it: negative ones wrap. */
static inline void rig_check_trap(const struct rig *rig, uint64_t place, uint32_t operand,
                                  int64_t index, uint64_t bound)
{
    struct crumb_trap trap;
    if (!crumb_trap_get(rig->crumbs, place, &trap))
        fail_msg("%s: no trap %llu", rig->name, (unsigned long long)place);
    assert_int_equal(trap.launch_id, RIG_LAUNCH_ID);
    assert_int_equal(trap.operand, operand);
    assert_int_equal(trap.index, (uint64_t)index);
    assert_int_equal(trap.bound, bound);
}

static inline void rig_check_near(const struct rig *rig, uint64_t row, uint64_t place, float found,
                                  double expected, double allowed)
{
    if (!(fabs((double)found - expected) <= allowed))
        fail_msg("%s: row %llu place %llu: expected %.9g, found %.9g, allowed %.3g", rig->name,
                 (unsigned long long)row, (unsigned long long)place, expected, (double)found,
                 allowed);
}

/* A copy of an operand's bytes, gaps and all; free it. */
static inline uint8_t *rig_copy(const struct rig *rig, size_t index)
{
    size_t count = rig->memory[index].byte_count; /* 0: an absent operand */
    uint8_t *copy = calloc(1, count + 1);
    assert_non_null(copy);
    if (count)
        memcpy(copy, rig->memory[index].bytes, count);
    return copy;
}

static inline void rig_restore(struct rig *rig, size_t index, const uint8_t *copy)
{
    memcpy(rig->memory[index].bytes, copy, rig->memory[index].byte_count);
}

static inline void rig_check_same(const struct rig *rig, const char *what, size_t index,
                                  const uint8_t *copy)
{
    const struct rig_memory *memory = &rig->memory[index];
    for (size_t i = 0; i < memory->byte_count; i++) {
        if (memory->bytes[i] != copy[i])
            fail_msg("%s: %s: operand %zu differs at byte %zu of %zu", rig->name, what, index, i,
                     memory->byte_count);
    }
}

#endif
