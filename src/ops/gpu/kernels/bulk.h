/* bulk.h - what sm_90 has for a kernel that stays: copies of whole slices in the background, told
 * by barriers in shared memory, and counters on which all blocks of a grid meet; and the same for
 * the emulator. Other chips have none of it (HAS_BULK). */
#ifndef GRETA_OPS_GPU_KERNELS_BULK_H
#define GRETA_OPS_GPU_KERNELS_BULK_H

#include "ops/gpu/kernels/portable.h"

#if defined(__NVPTX__) && __CUDA_ARCH__ >= 900
#define HAS_BULK 1

INLINE uint32_t shared_place(const SHARED void *at)
{
    return (uint32_t)(uintptr_t)at;
}

/* One thread of a block, before a block_sync: a barrier that is full once what was expected has
 * come. */
INLINE void full_init(SHARED uint64_t *full)
{
    __asm__ volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_place(full)) : "memory");
}
/* Behind the last full_init: copies in the background see the barriers. */
INLINE void full_publish(void)
{
    __asm__ volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    __asm__ volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
/* One thread: so many bytes will come, by bulk_copy. */
INLINE void full_expect(SHARED uint64_t *full, uint32_t bytes)
{
    __asm__ volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_place(full)),
        "r"(bytes)
        : "memory");
}
/* Multiples of 16 bytes, at multiples of 16, from memory that does not change. */
INLINE void bulk_copy(SHARED uint8_t *target, const GLOBAL uint8_t *source, uint32_t bytes,
                      SHARED uint64_t *full)
{
    /* What is read once leaves the second-level cache first. */
    const uint64_t once = 0x12F0000000000000u;
    __asm__ volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                     ".L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(shared_place(target)),
                     "l"(source), "r"(bytes), "r"(shared_place(full)), "l"(once)
                     : "memory");
}
/* Whether what was expected has come; parity: of how often that was waited for before. */
INLINE bool full_ready(SHARED uint64_t *full, uint32_t parity)
{
    uint32_t ready;
    __asm__ volatile("{\n.reg .pred p;\n"
                     "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n}"
                     : "=r"(ready)
                     : "r"(shared_place(full)), "r"(parity)
                     : "memory");
    return ready;
}

/* A counter of the device: what was written before is seen by whoever loads what this makes of it.
 */
INLINE void counter_add(GLOBAL uint64_t *counter)
{
    __asm__ volatile("red.release.gpu.global.add.u64 [%0], 1;" ::"l"(counter) : "memory");
}
INLINE uint64_t counter_load(GLOBAL uint64_t *counter)
{
    uint64_t value;
    __asm__ volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(counter) : "memory");
    return value;
}

/* A cell: 32 bits, and above them a number that says of when they are. Both are seen together or
 * not at all. */
INLINE void cell_store(GLOBAL uint64_t *cell, uint32_t value, uint32_t tag)
{
    __asm__ volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(cell),
                     "l"((uint64_t)tag << 32 | value)
                     : "memory");
}
INLINE uint64_t cell_load(const GLOBAL uint64_t *cell)
{
    uint64_t value;
    __asm__ volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(cell) : "memory");
    return value;
}
/* Two neighbours, the first of an even number. */
struct cells {
    uint64_t first, second;
};
INLINE struct cells cells_load(const GLOBAL uint64_t *cells)
{
    struct cells two;
    __asm__ volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                     : "=l"(two.first), "=l"(two.second)
                     : "l"(cells)
                     : "memory");
    return two;
}

/* Before a counter is touched, and behind: what was written before it is seen by whoever finds what
 * this made of it. Less than fence_device, which also orders what different counters say. */
INLINE void fence_counter(void)
{
    __asm__ volatile("fence.acq_rel.gpu;" ::: "memory");
}

/* True for one lane of a team; all are here together. Better than to ask for a lane's number: the
 * assembler knows that it is one, and needs no loop over lanes to start a copy. */
INLINE bool team_elect(void)
{
    uint32_t elected;
    __asm__ volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}"
                     : "=r"(elected)
                     :
                     : "memory");
    return elected;
}
/* A value that all lanes of a team have: said so, it takes a register of the team's and not one of
 * each lane. */
INLINE uint32_t team_same(uint32_t value)
{
    return team_pick(value, 0);
}

/* The value; but what is computed from it is not computed far ahead, and takes no registers there.
 */
INLINE uint32_t from_here(uint32_t value)
{
    uint32_t same;
    __asm__ volatile("mov.u32 %0, %1;" : "=r"(same) : "r"(value));
    return same;
}

/* Of the block's first `threads` threads, a multiple of TEAM. */
INLINE void part_sync(uint32_t threads)
{
    __asm__ volatile("bar.sync 1, %0;" ::"r"(threads) : "memory");
}

/* Asks the second-level cache for a line that is read soon. */
INLINE void ask_line(const GLOBAL void *at)
{
    __asm__ volatile("prefetch.global.L2 [%0];" ::"l"(at));
}

INLINE void pause_here(void)
{
}
INLINE uint64_t clock_ns(void)
{
    uint64_t now;
    __asm__ volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}
/* The kernel fails, and the device with it. */
INLINE void give_up(void)
{
    __asm__ volatile("trap;");
}

#elif defined(__NVPTX__) || defined(__AMDGCN__)
#define HAS_BULK 0

#else
#define HAS_BULK 1

INLINE void full_init(uint64_t *full)
{
    emulator_full_init(full);
}
INLINE void full_publish(void)
{
}
INLINE void full_expect(uint64_t *full, uint32_t bytes)
{
    emulator_full_expect(full, bytes);
}
INLINE void bulk_copy(uint8_t *target, const uint8_t *source, uint32_t bytes, uint64_t *full)
{
    emulator_bulk_copy(target, source, bytes, full);
}
INLINE bool full_ready(uint64_t *full, uint32_t parity)
{
    return emulator_full_ready(full, parity);
}
INLINE void counter_add(uint64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELEASE);
}
INLINE uint64_t counter_load(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_ACQUIRE);
}
struct cells {
    uint64_t first, second;
};
INLINE void cell_store(uint64_t *cell, uint32_t value, uint32_t tag)
{
    __atomic_store_n(cell, (uint64_t)tag << 32 | value, __ATOMIC_RELAXED);
}
INLINE uint64_t cell_load(const uint64_t *cell)
{
    return __atomic_load_n(cell, __ATOMIC_RELAXED);
}
INLINE struct cells cells_load(const uint64_t *cells)
{
    return (struct cells){ cell_load(cells), cell_load(cells + 1) };
}
INLINE void fence_counter(void)
{
    __atomic_thread_fence(__ATOMIC_ACQ_REL);
}
INLINE bool team_elect(void)
{
    return emulator_view()->thread % TEAM == 0;
}
INLINE uint32_t team_same(uint32_t value)
{
    return value;
}
INLINE uint32_t from_here(uint32_t value)
{
    return value;
}
INLINE void part_sync(uint32_t threads)
{
    emulator_part_sync(threads);
}
INLINE void ask_line(const void *at)
{
    (void)at;
}
INLINE void pause_here(void)
{
    emulator_pause();
}
INLINE uint64_t clock_ns(void)
{
    return emulator_clock_ns();
}
INLINE void give_up(void)
{
    emulator_give_up();
}

#endif
#endif
