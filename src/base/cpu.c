/* cpu.c - asks the processor (and, through the compiler's runtime, whether the operating system
 * saves the wide registers). */
#include "base/cpu.h"

#include "base/status.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

static const char *const path_names[] = {
    [CPU_PATH_PORTABLE] = "portable",
    [CPU_PATH_AVX2] = "avx2",
    [CPU_PATH_AVX512] = "avx512",
};
_Static_assert(COUNT_OF(path_names) == CPU_PATH_COUNT, "every path has a name");

const char *cpu_path_name(enum cpu_path path)
{
    return path_names[path];
}

#if defined(__x86_64__)

/* Not every compiler's __builtin_cpu_supports knows the name f16c. */
static bool has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}

static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni") &&
           __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("gfni");
}

bool cpu_path_is_supported(enum cpu_path path)
{
    switch (path) {
    case CPU_PATH_PORTABLE:
        return true;
    case CPU_PATH_AVX2:
        return has_avx2();
    case CPU_PATH_AVX512:
        return has_avx2() && has_avx512();
    default:
        return false;
    }
}

#else

bool cpu_path_is_supported(enum cpu_path path)
{
    return path == CPU_PATH_PORTABLE;
}

#endif

/* Asked only once: under a hypervisor a single cpuid takes longer than a small kernel. */
enum cpu_path cpu_path_best(void)
{
    static int known; /* atomic: path + 1, or 0 */
    int cached = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (cached)
        return (enum cpu_path)(cached - 1);
    enum cpu_path best = CPU_PATH_PORTABLE;
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        if (cpu_path_is_supported((enum cpu_path)path))
            best = (enum cpu_path)path;
    }
    __atomic_store_n(&known, (int)best + 1, __ATOMIC_RELAXED);
    return best;
}
