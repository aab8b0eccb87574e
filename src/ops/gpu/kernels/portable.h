/* portable.h - all that differs between the machines kernels are compiled for: NVIDIA GPUs, AMD
 * GPUs, and a processor that plays one in tests (EMULATED). Builtins only, no vendor headers.
 *
 * The matrix units are in matrix.h and warpgroup.h, in the same way.
 *
 * Kernels are written for teams of 32 neighbouring threads, a whole wave on NVIDIA, half of one on
 * AMD's wide waves. All threads of a team take the same path around team operations. */
#ifndef GRETA_OPS_GPU_KERNELS_PORTABLE_H
#define GRETA_OPS_GPU_KERNELS_PORTABLE_H

#include "device/abi/abi.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEAM 32u
#define INLINE static inline __attribute__((always_inline))
/* On GPUs arrays live in registers only if every index is known; elsewhere it does not matter. */
#if defined(__NVPTX__) || defined(__AMDGCN__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL
#endif

typedef uint32_t words4 __attribute__((vector_size(16)));
typedef uint32_t words2 __attribute__((vector_size(8)));
typedef float floats4 __attribute__((vector_size(16)));
typedef float floats2 __attribute__((vector_size(8)));

#if defined(__NVPTX__)

#define KERNEL(name) __attribute__((nvptx_kernel)) void name(struct gpu_call call)
#define GLOBAL __attribute__((address_space(1)))
#define SHARED __attribute__((address_space(3)))

/* As matrix units want their panels. */
extern SHARED words4 shared_array[] __attribute__((aligned(1024)));
INLINE SHARED uint8_t *shared_memory(void)
{
    return (SHARED uint8_t *)shared_array;
}

INLINE uint32_t thread_index(void)
{
    return (uint32_t)__nvvm_read_ptx_sreg_tid_x();
}
INLINE uint32_t thread_count(void)
{
    return (uint32_t)__nvvm_read_ptx_sreg_ntid_x();
}
INLINE uint32_t block_x(void)
{
    return (uint32_t)__nvvm_read_ptx_sreg_ctaid_x();
}
INLINE uint32_t block_y(void)
{
    return (uint32_t)__nvvm_read_ptx_sreg_ctaid_y();
}
INLINE uint32_t block_count_x(void)
{
    return (uint32_t)__nvvm_read_ptx_sreg_nctaid_x();
}

INLINE void block_sync(void)
{
    __syncthreads();
}
INLINE void team_sync(void)
{
    __nvvm_bar_warp_sync(0xFFFFFFFFu);
}
INLINE uint32_t team_swap(uint32_t value, uint32_t distance)
{
    return (uint32_t)__nvvm_shfl_sync_bfly_i32(0xFFFFFFFFu, (int)value, (int)distance, 31);
}
/* What lane `lane` of the team has. */
INLINE uint32_t team_pick(uint32_t value, uint32_t lane)
{
    return (uint32_t)__nvvm_shfl_sync_idx_i32(0xFFFFFFFFu, (int)value, (int)lane, 31);
}

INLINE void fence_device(void)
{
    __nvvm_membar_gl();
}
INLINE void fence_system(void)
{
    __nvvm_membar_sys();
}

/* Four products of signed bytes, added to sum. */
INLINE int32_t dot4(uint32_t a, uint32_t b, int32_t sum)
{
    int32_t result;
    __asm__("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
    return result;
}

/* The same with the upper four bits of a's bytes, without sign: sixteen times too much. */
INLINE int32_t dot4_upper(uint32_t a, uint32_t b, int32_t sum)
{
    int32_t result;
    __asm__("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(a & 0xF0F0F0F0u), "r"(b), "r"(sum));
    return result;
}

/* a's bytes without sign. */
INLINE int32_t dot4_unsigned(uint32_t a, uint32_t b, int32_t sum)
{
    int32_t result;
    __asm__("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
    return result;
}

/* Four bytes of eight, of which `low` has the first four: the order as byte_selector gives it. */
INLINE uint32_t byte_selector(uint32_t first, uint32_t second, uint32_t third, uint32_t fourth)
{
    return first | second << 4 | third << 8 | fourth << 12;
}
INLINE uint32_t pick_bytes(uint32_t low, uint32_t high, uint32_t selector)
{
    uint32_t result;
    __asm__("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(low), "r"(high), "r"(selector));
    return result;
}

INLINE float exp2_fast(float x)
{
    return __nvvm_ex2_approx_ftz_f(x);
}
/* 1 / x to a unit in the last place; numbers below 2^-126 count as 0. */
INLINE float reciprocal_fast(float x)
{
    return __nvvm_rcp_approx_ftz_f(x);
}
/* 1 / sqrt(x) as a root and a division round it, nearly always, without their branches:
 * the root by its remainder, then two steps of Newton's. */
INLINE float inverse_root(float x)
{
    float first = __nvvm_rsqrt_approx_ftz_f(x), root = x * first;
    root = __builtin_fmaf(__builtin_fmaf(-root, root, x), 0.5f * first, root);
    float inverse = __builtin_fmaf(first, __builtin_fmaf(-root, first, 1.0f), first);
    inverse = __builtin_fmaf(inverse, __builtin_fmaf(-root, inverse, 1.0f), inverse);
    return x > 0 && x < __builtin_inff() ? inverse : first;
}

/* Over all lanes of a team; every lane has the result. */
INLINE uint32_t whole_team_max(uint32_t value)
{
    uint32_t result;
    __asm__ volatile("redux.sync.max.u32 %0, %1, -1;" : "=r"(result) : "r"(value));
    return result;
}
INLINE int32_t whole_team_sum(int32_t value)
{
    int32_t result;
    __asm__ volatile("redux.sync.add.s32 %0, %1, -1;" : "=r"(result) : "r"(value));
    return result;
}
#define HAS_WHOLE_TEAM

/* 16 bytes of shared memory, at a multiple of 16, by one load: where each word is used once, the
 * compiler takes a vector apart into four, which meet in the same banks. */
INLINE words4 load_shared(const SHARED uint8_t *at)
{
    uint32_t a, b, c, d;
    __asm__ volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                     : "r"((uint32_t)(uintptr_t)at)
                     : "memory");
    return (words4){ a, b, c, d };
}
/* The same where they are wanted; else the words stay what they are. */
INLINE void load_shared_if(bool wanted, const SHARED uint8_t *at, words4 *words)
{
    uint32_t a = (*words)[0], b = (*words)[1], c = (*words)[2], d = (*words)[3];
    __asm__ volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %5, 0;\n"
                     "@p ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
                     : "+r"(a), "+r"(b), "+r"(c), "+r"(d)
                     : "r"((uint32_t)(uintptr_t)at), "r"((uint32_t)wanted)
                     : "memory");
    *words = (words4){ a, b, c, d };
}

/* Asks for what is there into the cache all processors share; nothing is read. */
INLINE void prefetch(const GLOBAL void *at)
{
    __asm__ volatile("prefetch.global.L2 [%0];" ::"l"(at) : "memory");
}

/* 16 bytes of global memory, at a multiple of 16, where they are wanted; else zeros. It stays where
 * it stands: what it reads is on its way while the code behind it goes on. */
INLINE words4 load_if(bool wanted, const GLOBAL uint8_t *at)
{
    uint32_t a, b, c, d;
    __asm__ volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %5, 0;\nmov.b32 %0, 0;\nmov.b32 %1, 0;\n"
                     "mov.b32 %2, 0;\nmov.b32 %3, 0;\n"
                     "@p ld.global.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
                     : "=&r"(a), "=&r"(b), "=&r"(c), "=&r"(d)
                     : "l"(at), "r"((uint32_t)wanted)
                     : "memory");
    return (words4){ a, b, c, d };
}

/* The compiler makes these values before what follows, and not where they are first used. */
INLINE void made_here(uint32_t a, uint32_t b, float c)
{
    __asm__ volatile("" ::"r"(a), "r"(b), "f"(c) : "memory");
}

/* The same value, of which the compiler knows nothing: what is made of it is made again, and takes
 * no registers meanwhile. */
INLINE uint32_t not_known(uint32_t value)
{
    __asm__ volatile("" : "+r"(value));
    return value;
}

/* 16 bytes from global to shared memory, in the background; groups are waited for in order. */
INLINE void copy_async(SHARED uint8_t *target, const GLOBAL uint8_t *source)
{
    __asm__ volatile(
        "cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"((uint32_t)(uintptr_t)target),
        "l"(source)
        : "memory");
}
/* The same of what is read once: it leaves the second-level cache first. */
INLINE void copy_async_once(SHARED uint8_t *target, const GLOBAL uint8_t *source)
{
    __asm__ volatile("cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, %2;" ::"r"(
                         (uint32_t)(uintptr_t)target),
                     "l"(source), "l"(UINT64_C(0x12F0000000000000))
                     : "memory");
}
/* The same through the processor's own cache, for neighbours of what is copied next. */
INLINE void copy_async_kept(SHARED uint8_t *target, const GLOBAL uint8_t *source)
{
    __asm__ volatile(
        "cp.async.ca.shared.global.L2::128B [%0], [%1], 16;" ::"r"((uint32_t)(uintptr_t)target),
        "l"(source)
        : "memory");
}
INLINE void copy_commit(void)
{
    __asm__ volatile("cp.async.commit_group;" ::: "memory");
}
#define copy_wait(pending) __asm__ volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory")

/* The kernel before this one may still run until early_wait; whoever comes next may begin after
 * early_allow. */
#if __CUDA_ARCH__ >= 900
INLINE void early_allow(void)
{
    __asm__ volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
INLINE void early_wait(void)
{
    __asm__ volatile("griddepcontrol.wait;" ::: "memory");
}
#else
INLINE void early_allow(void)
{
}
INLINE void early_wait(void)
{
}
#endif

INLINE float f16_value(uint16_t bits)
{
    union {
        uint16_t bits;
        _Float16 value;
    } half = { bits };
    return (float)half.value;
}
INLINE uint16_t f16_bits(float value)
{
    union {
        _Float16 value;
        uint16_t bits;
    } half = { (_Float16)value };
    return half.bits;
}

#elif defined(__AMDGCN__)

#define KERNEL(name) __attribute__((amdgpu_kernel)) void name(struct gpu_call call)
#define GLOBAL __attribute__((address_space(1)))
#define SHARED __attribute__((address_space(3)))

extern SHARED words4 shared_array[];
INLINE SHARED uint8_t *shared_memory(void)
{
    return (SHARED uint8_t *)shared_array;
}

INLINE uint32_t thread_index(void)
{
    return __builtin_amdgcn_workitem_id_x();
}
INLINE uint32_t thread_count(void)
{
    /* Of the dispatch packet; every grid here is whole blocks. */
    return ((const __attribute__((address_space(4))) uint16_t *)__builtin_amdgcn_dispatch_ptr())[2];
}
INLINE uint32_t block_x(void)
{
    return __builtin_amdgcn_workgroup_id_x();
}
INLINE uint32_t block_y(void)
{
    return __builtin_amdgcn_workgroup_id_y();
}
INLINE uint32_t block_count_x(void)
{
    return ((const __attribute__((address_space(4)))
             uint32_t *)__builtin_amdgcn_dispatch_ptr())[3] /
           thread_count();
}

INLINE void block_sync(void)
{
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
INLINE void team_sync(void)
{
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
    __builtin_amdgcn_wave_barrier();
}
INLINE uint32_t team_swap(uint32_t value, uint32_t distance)
{
    return (uint32_t)__builtin_amdgcn_ds_bpermute((int)((thread_index() ^ distance) * 4u),
                                                  (int)value);
}
INLINE uint32_t team_pick(uint32_t value, uint32_t lane)
{
    return (uint32_t)__builtin_amdgcn_ds_bpermute(
        (int)((thread_index() / TEAM * TEAM + lane % TEAM) * 4u), (int)value);
}

INLINE void fence_device(void)
{
    __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
}
INLINE void fence_system(void)
{
    __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "");
}

INLINE int32_t dot4(uint32_t a, uint32_t b, int32_t sum)
{
    return __builtin_amdgcn_sdot4((int)a, (int)b, sum, false);
}

INLINE int32_t dot4_upper(uint32_t a, uint32_t b, int32_t sum)
{
    return dot4(a >> 4 & 0x0F0F0F0Fu, b, 0) * 16 + sum;
}
INLINE int32_t dot4_unsigned(uint32_t a, uint32_t b, int32_t sum)
{
    return dot4(a >> 1 & 0x7F7F7F7Fu, b, 0) * 2 + dot4(a & 0x01010101u, b, sum);
}

INLINE uint32_t byte_selector(uint32_t first, uint32_t second, uint32_t third, uint32_t fourth)
{
    return first | second << 8 | third << 16 | fourth << 24;
}
INLINE uint32_t pick_bytes(uint32_t low, uint32_t high, uint32_t selector)
{
    return __builtin_amdgcn_perm(high, low, selector);
}

INLINE float exp2_fast(float x)
{
    return __builtin_amdgcn_exp2f(x);
}

INLINE words4 load_shared(const SHARED uint8_t *at)
{
    return *(const SHARED words4 *)at;
}
INLINE words4 load_if(bool wanted, const GLOBAL uint8_t *at)
{
    return wanted ? *(const GLOBAL words4 *)at : (words4){ 0, 0, 0, 0 };
}

INLINE void copy_async(SHARED uint8_t *target, const GLOBAL uint8_t *source)
{
    *(SHARED words4 *)target = *(const GLOBAL words4 *)source;
}
INLINE void copy_async_once(SHARED uint8_t *target, const GLOBAL uint8_t *source)
{
    copy_async(target, source);
}
INLINE void copy_async_kept(SHARED uint8_t *target, const GLOBAL uint8_t *source)
{
    copy_async(target, source);
}
INLINE void copy_commit(void)
{
}
#define copy_wait(pending) ((void)(pending))

INLINE void early_allow(void)
{
}
INLINE void early_wait(void)
{
}

INLINE float f16_value(uint16_t bits)
{
    union {
        uint16_t bits;
        _Float16 value;
    } half = { bits };
    return (float)half.value;
}
INLINE uint16_t f16_bits(float value)
{
    union {
        _Float16 value;
        uint16_t bits;
    } half = { (_Float16)value };
    return half.bits;
}

#else

#include <emulator.h> /* of the tests */

INLINE words4 load_shared(const uint8_t *at)
{
    return *(const words4 *)(const void *)at;
}
INLINE words4 load_if(bool wanted, const uint8_t *at)
{
    words4 words = wanted ? *(const words4 *)(const void *)at : (words4){ 0, 0, 0, 0 };
    emulator_note_read(&words);
    return words;
}

#endif

/* ---- The same everywhere -------------------------------------------------------------------- */

INLINE uint32_t lane_index(void)
{
    return thread_index() % TEAM;
}
INLINE uint32_t team_index(void)
{
    return thread_index() / TEAM;
}

INLINE uint32_t bits_of(float value)
{
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof(bits));
    return bits;
}
INLINE float float_of(uint32_t bits)
{
    float value;
    __builtin_memcpy(&value, &bits, sizeof(value));
    return value;
}

INLINE float team_swap_float(float value, uint32_t distance)
{
    return float_of(team_swap(bits_of(value), distance));
}

/* Over groups of `width` neighbouring lanes; every lane has the result. */
INLINE float team_sum(float value, uint32_t width)
{
    for (uint32_t distance = width / 2; distance > 0; distance /= 2)
        value += team_swap_float(value, distance);
    return value;
}
INLINE float team_max(float value, uint32_t width)
{
    for (uint32_t distance = width / 2; distance > 0; distance /= 2) {
        float other = team_swap_float(value, distance);
        value = other > value ? other : value;
    }
    return value;
}
/* The sum over all threads of the block; every thread has it. sums: TEAM floats, at a multiple of
 * 16 bytes. */
INLINE float block_sum(float value, SHARED float *sums)
{
    uint32_t teams = thread_count() / TEAM, i = thread_index();
    value = team_sum(value, TEAM);
    if (i >= teams && i < TEAM)
        sums[i] = 0; /* of teams there are not */
    if (lane_index() == 0)
        sums[team_index()] = value;
    block_sync();
    /* Every thread for itself: lanes that hand each other sums take longer. */
    floats4 all = { 0 };
    UNROLL
    for (uint32_t t = 0; t < TEAM / 4; t++)
        all += ((const SHARED floats4 *)sums)[t];
    return (all[0] + all[1]) + (all[2] + all[3]);
}
INLINE int32_t team_sum_int(int32_t value, uint32_t width)
{
#if defined(HAS_WHOLE_TEAM)
    if (width == TEAM)
        return whole_team_sum(value);
#endif
    for (uint32_t distance = width / 2; distance > 0; distance /= 2)
        value += (int32_t)team_swap((uint32_t)value, distance);
    return value;
}
INLINE uint32_t team_max_bits(uint32_t value, uint32_t width)
{
#if defined(HAS_WHOLE_TEAM)
    if (width == TEAM)
        return whole_team_max(value);
#endif
    for (uint32_t distance = width / 2; distance > 0; distance /= 2) {
        uint32_t other = team_swap(value, distance);
        value = other > value ? other : value;
    }
    return value;
}

#if !defined(__NVPTX__)
INLINE void prefetch(const GLOBAL void *at)
{
    (void)at;
}
INLINE float reciprocal_fast(float x)
{
    return 1.0f / x;
}
INLINE float inverse_root(float x)
{
    return 1.0f / __builtin_sqrtf(x);
}
INLINE void load_shared_if(bool wanted, const SHARED uint8_t *at, words4 *words)
{
    if (wanted)
        *words = load_shared(at);
}
INLINE uint32_t not_known(uint32_t value)
{
    return value;
}
INLINE void made_here(uint32_t a, uint32_t b, float c)
{
    (void)a;
    (void)b;
    (void)c;
}
#endif

/* Two f16 in a word, the first in the low half. */
INLINE uint32_t two_halves(float low, float high)
{
#if defined(__NVPTX__)
    uint32_t word; /* one instruction, which the compiler does not find */
    __asm__("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
#else
    return f16_bits(low) | (uint32_t)f16_bits(high) << 16;
#endif
}

/* Some bits of a word, and others over them. */
INLINE uint32_t bits_under(uint32_t word, uint32_t mask, uint32_t above)
{
#if defined(__NVPTX__)
    uint32_t result; /* one instruction; of two known words the compiler makes two */
    __asm__("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(result) : "r"(word), "r"(mask), "r"(above));
    return result;
#else
    return (word & mask) | above;
#endif
}

/* The first half of a pair (or the second) as both of another. */
INLINE uint32_t half_twice(uint32_t pair, bool second)
{
#if defined(__NVPTX__)
    uint32_t word; /* costs nothing: the assembler makes it part of the next instruction */
    if (second)
        __asm__("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %1;\nmov.b32 %0, {h, h};\n}"
                : "=r"(word)
                : "r"(pair));
    else
        __asm__("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %1;\nmov.b32 %0, {l, l};\n}"
                : "=r"(word)
                : "r"(pair));
    return word;
#else
    uint32_t half = pair >> (second ? 16 : 0) & 0xFFFFu;
    return half | half << 16;
#endif
}

/* Of both f16 of a word: (value - base) * scale - min, the difference exact where it is a whole
 * number; every operand a pair. */
INLINE uint32_t scale_halves(uint32_t values, uint32_t base, uint32_t scale, uint32_t min)
{
#if defined(__NVPTX__)
    uint32_t word;
    __asm__("{\n.reg .b32 t, m;\nsub.f16x2 t, %1, %2;\nneg.f16x2 m, %4;\n"
            "fma.rn.f16x2 %0, t, %3, m;\n}"
            : "=r"(word)
            : "r"(values), "r"(base), "r"(scale), "r"(min));
    return word;
#else
    float results[2];
    for (uint32_t i = 0; i < 2; i++) {
        float level = f16_value((uint16_t)(values >> (16 * i))) -
                      f16_value((uint16_t)(base >> (16 * i)));
        results[i] = __builtin_fmaf(level, f16_value((uint16_t)(scale >> (16 * i))),
                                    -f16_value((uint16_t)(min >> (16 * i))));
    }
    return two_halves(results[0], results[1]);
#endif
}

/* exp(x) to about 2 units in the last place: what x * log2(e) loses is put back. Without a branch:
 * lanes stay together, and several are on their way at a time. */
INLINE float exp_value(float x)
{
    const float log2e = 1.4426950408889634f, rest = 1.9259629911266175e-8f;
    x = x < -104.0f ? -104.0f : x; /* whose power is 0 */
    float high = x * log2e;
    float low = __builtin_fmaf(x, log2e, -high) + x * rest;
    float power = exp2_fast(high);
    return __builtin_fmaf(power, low * 0.6931471805599453f, power);
}

#define F32_INFINITY __builtin_inff()

/* ---- Crumbs and traps ----------------------------------------------------------------------- */

INLINE void store_crumb(uint64_t address, uint64_t value)
{
    *(volatile GLOBAL uint64_t *)address = value;
}

/* First in every kernel, before anything that another kernel may have written is read. */
#define ENTER(call)                                                                                \
    do {                                                                                           \
        early_allow();                                                                             \
        early_wait();                                                                              \
        leave_crumbs(&(call));                                                                     \
    } while (0)

/* The same in a kernel that may write weights, which others ask for before they wait for the
 * kernels before them: none begins until this one has ended. What it stores is to be fenced. */
#define ENTER_ALONE(call)                                                                          \
    do {                                                                                           \
        early_wait();                                                                              \
        leave_crumbs(&(call));                                                                     \
    } while (0)

INLINE void leave_crumbs(const struct gpu_call *call)
{
    if ((block_x() | block_y() | thread_index()) != 0 || call->crumbs == 0)
        return;
    if (call->entered) {
        store_crumb(call->crumbs + GPU_CRUMB_FINISHED, call->finished);
        store_crumb(call->crumbs + GPU_CRUMB_ENTERED, call->entered);
    }
    store_crumb(call->crumbs + GPU_CRUMB_NODE, call->node);
}

/* True if index < bound; else one thread (the one that asks) leaves a trap that names `launch`. */
INLINE bool index_of_ok(const struct gpu_call *call, uint64_t launch, uint32_t operand,
                        uint64_t index, uint64_t bound)
{
    if (index < bound)
        return true;
    uint64_t place = __atomic_fetch_add((GLOBAL uint64_t *)call->trap_counter, 1, __ATOMIC_RELAXED);
    if (place >= GPU_CRUMB_TRAP_LIMIT)
        return false;
    uint64_t trap = call->page + GPU_CRUMB_TRAPS + place * GPU_CRUMB_TRAP_BYTES;
    store_crumb(trap, launch);
    store_crumb(trap + 8, index);
    store_crumb(trap + 16, bound);
    *(volatile GLOBAL uint32_t *)(trap + 24) = operand;
    fence_system();
    *(volatile GLOBAL uint32_t *)(trap + 28) = 1;
    return false;
}
INLINE bool index_ok(const struct gpu_call *call, uint32_t operand, uint64_t index, uint64_t bound)
{
    return index_of_ok(call, call->trap_id, operand, index, bound);
}

/* ---- Blocks that share an output ------------------------------------------------------------ */

/* True in the last of `count` blocks to come here, for all its threads; it sees what the others
 * stored before. Leaves the counter 0, for the next launch. */
INLINE bool block_is_last(GLOBAL uint32_t *counter, uint32_t count, SHARED uint32_t *flag)
{
    fence_device();
    block_sync();
    if (thread_index() == 0) {
        *flag = __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED) == count - 1;
        if (*flag)
            *counter = 0;
    }
    block_sync();
    fence_device();
    return *flag != 0;
}

/* ---- Operands ------------------------------------------------------------------------------- */

INLINE GLOBAL uint8_t *row_at(const struct gpu_operand *operand, uint64_t row)
{
    return (GLOBAL uint8_t *)(operand->address + row * operand->row_stride_bytes);
}
INLINE GLOBAL float *row_f32(const struct gpu_operand *operand, uint64_t row)
{
    return (GLOBAL float *)row_at(operand, row);
}
/* An index from memory; a negative one becomes huge. */
INLINE uint64_t list_index(const struct gpu_operand *list, uint64_t place)
{
    return (uint64_t)(int64_t)((const GLOBAL int32_t *)list->address)[place];
}

#endif
