/* portable_nvidia.h - portable.h for NVIDIA GPUs: builtins of clang and PTX. What a function is to
 * do is said here; other machines do the same. */
#ifndef GRETA_OPS_GPU_KERNELS_PORTABLE_NVIDIA_H
#define GRETA_OPS_GPU_KERNELS_PORTABLE_NVIDIA_H

#define IS_EMULATED 0
#define WAVE 32u /* of all chips; the compiler has no macro for it */
#define HAS_F16 1
#define HAS_WHOLE_WARP 1
#define HAS_SHORTCUTS 1
#define HAS_WARP_MATRIX 1
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define HAS_WARPGROUPS 1
#else
#define HAS_WARPGROUPS 0
#endif

/* Arrays live in registers only if every index is known. */
#define UNROLL _Pragma("clang loop unroll(full)")

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
INLINE void warp_sync(void)
{
    __nvvm_bar_warp_sync(0xFFFFFFFFu);
}
INLINE uint32_t warp_swap(uint32_t value, uint32_t distance)
{
    return (uint32_t)__nvvm_shfl_sync_bfly_i32(0xFFFFFFFFu, (int)value, (int)distance, 31);
}
/* What lane `lane` of the warp has. */
INLINE uint32_t warp_pick(uint32_t value, uint32_t lane)
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

/* Over all lanes of a warp; every lane has the result. */
INLINE uint32_t whole_warp_max(uint32_t value)
{
    uint32_t result;
    __asm__ volatile("redux.sync.max.u32 %0, %1, -1;" : "=r"(result) : "r"(value));
    return result;
}
INLINE int32_t whole_warp_sum(int32_t value)
{
    int32_t result;
    __asm__ volatile("redux.sync.add.s32 %0, %1, -1;" : "=r"(result) : "r"(value));
    return result;
}

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
/* The same if `wanted`; otherwise the words keep their values. */
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

/* Prefetches into the L2 cache, which all SMs share; nothing is read. */
INLINE void prefetch(const GLOBAL void *at)
{
    __asm__ volatile("prefetch.global.L2 [%0];" ::"l"(at) : "memory");
}

/* 16 bytes of global memory, at a multiple of 16, where they are wanted; else zeros. The compiler
 * does not move it: what it reads is on its way while the code after it goes on. */
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

/* Makes the compiler compute these values here, not where they are first used. */
INLINE void made_here(uint32_t a, uint32_t b, float c)
{
    __asm__ volatile("" ::"r"(a), "r"(b), "f"(c) : "memory");
}

/* Hides a value from the optimiser: what depends on it is recomputed, not kept in registers. */
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
/* The same for bytes that are read once: they leave the L2 cache first. */
INLINE void copy_async_once(SHARED uint8_t *target, const GLOBAL uint8_t *source)
{
    __asm__ volatile("cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, %2;" ::"r"(
                         (uint32_t)(uintptr_t)target),
                     "l"(source), "l"(UINT64_C(0x12F0000000000000))
                     : "memory");
}
/* The same through the SM's L1 cache, for bytes next to those copied next. */
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

/* The kernel before this one may still run until early_wait; the next kernel may begin after
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

/* Two f16 in a word, the first in the low half: one instruction, which the compiler does not find.
 */
INLINE uint32_t two_halves(float low, float high)
{
    uint32_t word;
    __asm__("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
}

/* Some bits of a word, and others over them: one instruction; of two known words the compiler makes
 * two. */
INLINE uint32_t bits_under(uint32_t word, uint32_t mask, uint32_t above)
{
    uint32_t result;
    __asm__("lop3.b32 %0, %1, %2, %3, 0xEA;" : "=r"(result) : "r"(word), "r"(mask), "r"(above));
    return result;
}

/* The first half of a pair (or the second) as both of another. Costs nothing: the assembler makes
 * it part of the next instruction. */
INLINE uint32_t half_twice(uint32_t pair, bool second)
{
    uint32_t word;
    if (second)
        __asm__("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %1;\nmov.b32 %0, {h, h};\n}"
                : "=r"(word)
                : "r"(pair));
    else
        __asm__("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %1;\nmov.b32 %0, {l, l};\n}"
                : "=r"(word)
                : "r"(pair));
    return word;
}

/* For both f16 of a word: (value - base) * scale - min, the difference exact where it is a whole
 * number; every operand a pair. */
INLINE uint32_t scale_halves(uint32_t values, uint32_t base, uint32_t scale, uint32_t min)
{
    uint32_t word;
    __asm__("{\n.reg .b32 t, m;\nsub.f16x2 t, %1, %2;\nneg.f16x2 m, %4;\n"
            "fma.rn.f16x2 %0, t, %3, m;\n}"
            : "=r"(word)
            : "r"(values), "r"(base), "r"(scale), "r"(min));
    return word;
}

#endif
