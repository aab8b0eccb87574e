/* portable_amd.h - portable.h for AMD GPUs, by builtins of clang. What a function is to do is said
 * in portable_nvidia.h. */
#ifndef GRETA_OPS_GPU_KERNELS_PORTABLE_AMD_H
#define GRETA_OPS_GPU_KERNELS_PORTABLE_AMD_H

#define IS_EMULATED 0
#define WAVE ((uint32_t)__AMDGCN_WAVEFRONT_SIZE__)
#define HAS_F16 1
#define HAS_WHOLE_WARP 0
#define HAS_SHORTCUTS 0
#define HAS_WARP_MATRIX 0
#define HAS_WARPGROUPS 0

/* Arrays live in registers only if every index is known. */
#define UNROLL _Pragma("clang loop unroll(full)")

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
    /* The block size in the dispatch packet; every grid here is whole blocks. */
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
INLINE void warp_sync(void)
{
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
    __builtin_amdgcn_wave_barrier();
}
INLINE uint32_t warp_swap(uint32_t value, uint32_t distance)
{
    return (uint32_t)__builtin_amdgcn_ds_bpermute((int)((thread_index() ^ distance) * 4u),
                                                  (int)value);
}
INLINE uint32_t warp_pick(uint32_t value, uint32_t lane)
{
    return (uint32_t)__builtin_amdgcn_ds_bpermute(
        (int)((thread_index() / WARP * WARP + lane % WARP) * 4u), (int)value);
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

#endif
