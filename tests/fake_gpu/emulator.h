/* emulator.h - portable.h's third machine: a processor that plays a GPU, so that kernels run in
 * tests without one. Each thread of a block is a fiber; warp and block operations switch between
 * them. It is stricter than a GPU: a warp operation that not all 32 threads reach, or a barrier
 * that some never reach, ends the program with words; a background copy shows its bytes only once
 * it is waited for, a product of matrix units its sums, and what it is made of must stay until
 * then.
 */
#ifndef GRETA_TESTS_FAKE_GPU_EMULATOR_H
#define GRETA_TESTS_FAKE_GPU_EMULATOR_H

#include "device/abi/abi.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define KERNEL(name)                                                                               \
    void emulated_##name(struct gpu_call call);                                                    \
    void emulated_##name(struct gpu_call call)
#define GLOBAL
#define SHARED

typedef void (*emulated_kernel)(struct gpu_call call);

/* Runs a whole grid, block by block. Returns a digest of what the first block read by load_if
 * before it came to early_wait. */
uint64_t emulator_run(emulated_kernel kernel, const struct gpu_call *call, uint32_t grid_x,
                      uint32_t grid_y, uint32_t threads, uint32_t shared_bytes);
/* Runs the first block up to early_wait and no further; the same digest, of memory as it is now. */
uint64_t emulator_run_early(emulated_kernel kernel, const struct gpu_call *call, uint32_t grid_x,
                            uint32_t threads, uint32_t shared_bytes);

/* What the running thread sees. */
struct emulator_view {
    uint32_t thread, threads, block_x, block_y, grid_x;
    uint8_t *shared;
};
const struct emulator_view *emulator_view(void);
void emulator_block_sync(void);
void emulator_warp_sync(void);
uint32_t emulator_warp_swap(uint32_t value, uint32_t distance);
uint32_t emulator_warp_pick(uint32_t value, uint32_t lane);
/* Eight words of every thread of the warp, to each of them. */
void emulator_warp_gather(const uint32_t words[8], uint32_t all[32][8]);
/* 4 or 16 bytes. */
void emulator_copy_async(uint8_t *target, const uint8_t *source, uint32_t bytes);
void emulator_copy_commit(void);
void emulator_copy_wait(uint32_t pending);
void emulator_early_wait(void);
/* 16 bytes were read. */
void emulator_note_read(const void *bytes);
/* The head of a multiply-add under way (warpgroup.h). digest: of its operands as they are now. */
struct emulator_mma {
    uint64_t (*digest)(const struct emulator_mma *product);
    void (*multiply)(const struct emulator_mma *product);
    uint64_t began_with;
};
/* Copies the multiply-add, `bytes` in all. */
void emulator_mma_begin(struct emulator_mma *product, uint32_t bytes);
/* Does those that are waited for, in order, if their operands have not changed. */
void emulator_mma_wait(uint32_t pending);

#define EMULATED_INLINE static inline __attribute__((always_inline))

EMULATED_INLINE uint8_t *shared_memory(void)
{
    return emulator_view()->shared;
}
EMULATED_INLINE uint32_t thread_index(void)
{
    return emulator_view()->thread;
}
EMULATED_INLINE uint32_t thread_count(void)
{
    return emulator_view()->threads;
}
EMULATED_INLINE uint32_t block_x(void)
{
    return emulator_view()->block_x;
}
EMULATED_INLINE uint32_t block_y(void)
{
    return emulator_view()->block_y;
}
EMULATED_INLINE uint32_t block_count_x(void)
{
    return emulator_view()->grid_x;
}
EMULATED_INLINE void block_sync(void)
{
    emulator_block_sync();
}
EMULATED_INLINE void warp_sync(void)
{
    emulator_warp_sync();
}
EMULATED_INLINE uint32_t warp_swap(uint32_t value, uint32_t distance)
{
    return emulator_warp_swap(value, distance);
}
EMULATED_INLINE uint32_t warp_pick(uint32_t value, uint32_t lane)
{
    return emulator_warp_pick(value, lane);
}
EMULATED_INLINE void fence_device(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
EMULATED_INLINE void fence_system(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
EMULATED_INLINE int32_t dot4(uint32_t a, uint32_t b, int32_t sum)
{
    for (int i = 0; i < 4; i++)
        sum += (int8_t)(a >> 8 * i) * (int8_t)(b >> 8 * i);
    return sum;
}
EMULATED_INLINE int32_t dot4_upper(uint32_t a, uint32_t b, int32_t sum)
{
    return dot4(a >> 4 & 0x0F0F0F0Fu, b, 0) * 16 + sum;
}
EMULATED_INLINE int32_t dot4_unsigned(uint32_t a, uint32_t b, int32_t sum)
{
    for (uint32_t i = 0; i < 4; i++)
        sum += (int32_t)(uint8_t)(a >> (8 * i)) * (int8_t)(b >> (8 * i));
    return sum;
}
EMULATED_INLINE uint32_t byte_selector(uint32_t first, uint32_t second, uint32_t third,
                                       uint32_t fourth)
{
    return first | second << 4 | third << 8 | fourth << 12;
}
EMULATED_INLINE uint32_t pick_bytes(uint32_t low, uint32_t high, uint32_t selector)
{
    uint64_t bytes = (uint64_t)high << 32 | low;
    uint32_t result = 0;
    for (int i = 0; i < 4; i++)
        result |= (uint32_t)(bytes >> 8 * (selector >> 4 * i & 7u) & 255u) << 8 * i;
    return result;
}
EMULATED_INLINE float exp2_fast(float x)
{
    return exp2f(x);
}
EMULATED_INLINE void copy_async(uint8_t *target, const uint8_t *source)
{
    emulator_copy_async(target, source, 16);
}
EMULATED_INLINE void copy_async_once(uint8_t *target, const uint8_t *source)
{
    emulator_copy_async(target, source, 16);
}
EMULATED_INLINE void copy_async_kept(uint8_t *target, const uint8_t *source)
{
    emulator_copy_async(target, source, 16);
}
EMULATED_INLINE void copy_commit(void)
{
    emulator_copy_commit();
}
#define copy_wait(pending) emulator_copy_wait(pending)
EMULATED_INLINE void early_allow(void)
{
}
EMULATED_INLINE void early_wait(void)
{
    emulator_early_wait();
}

/* Values of all f16, from a table: not every compiler has the type. */
extern const float *emulator_f16_values;
EMULATED_INLINE float f16_value(uint16_t bits)
{
    return emulator_f16_values[bits];
}
EMULATED_INLINE uint16_t f16_bits(float value)
{
    uint16_t sign = signbit(value) ? 0x8000u : 0;
    float magnitude = fabsf(value);
    if (isnan(value))
        return sign | 0x7E00u;
    if (magnitude >= 65520.0f)
        return sign | 0x7C00u;
    if (magnitude == 0.0f)
        return sign; /* has no exponent */
    int exponent = 0;
    frexpf(magnitude, &exponent);
    exponent = exponent < -13 ? -13 : exponent;
    float units = rintf(ldexpf(magnitude, 11 - exponent)); /* a carry goes to the exponent */
    return (uint16_t)(sign | (uint16_t)(((uint32_t)(exponent + 13) << 10) + (uint32_t)units));
}

#endif
