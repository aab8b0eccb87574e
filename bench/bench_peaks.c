/* bench_peaks.c - see bench_peaks.h. Ten chains of each instruction: more than its latency. */
#include "bench_peaks.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>

#define CHAINS 10
#define STEPS ((size_t)1 << 22)

/* All chains in one statement: sums of registers 0 to 9, one after the other, factors a and b. */
#define TEN_CHAINS(instruction)                                                                    \
    __asm__ volatile(instruction " %11, %10, %0\n\t" instruction " %11, %10, %1\n\t" instruction   \
                                 " %11, %10, %2\n\t" instruction " %11, %10, %3\n\t" instruction   \
                                 " %11, %10, %4\n\t" instruction " %11, %10, %5\n\t" instruction   \
                                 " %11, %10, %6\n\t" instruction " %11, %10, %7\n\t" instruction   \
                                 " %11, %10, %8\n\t" instruction " %11, %10, %9"                   \
                     : "+v"(s0), "+v"(s1), "+v"(s2), "+v"(s3), "+v"(s4), "+v"(s5), "+v"(s6),       \
                       "+v"(s7), "+v"(s8), "+v"(s9)                                                \
                     : "v"(a), "v"(a))

#define DEFINE_RUN(name, instructions, chains, vector, zero)                                       \
    __attribute__((target(instructions))) static uint64_t name(void)                               \
    {                                                                                              \
        vector a = zero, s0 = zero, s1 = zero, s2 = zero, s3 = zero, s4 = zero, s5 = zero,         \
               s6 = zero, s7 = zero, s8 = zero, s9 = zero;                                         \
        for (size_t i = 0; i < STEPS; i++) {                                                       \
            chains;                                                                                \
        }                                                                                          \
        return STEPS;                                                                              \
    }

DEFINE_RUN(run_vnni, "avx512f,avx512vnni", TEN_CHAINS("vpdpbusd"), __m512i, _mm512_setzero_si512())
DEFINE_RUN(run_bf16, "avx512f,avx512bf16", TEN_CHAINS("vdpbf16ps"), __m512, _mm512_setzero_ps())
DEFINE_RUN(run_fma, "avx512f", TEN_CHAINS("vfmadd231ps"), __m512, _mm512_setzero_ps())
DEFINE_RUN(run_fma_256, "avx2,fma", TEN_CHAINS("vfmadd231ps"), __m256, _mm256_setzero_ps())
DEFINE_RUN(run_bytes, "avx2", TEN_CHAINS("vpmaddubsw"), __m256i, _mm256_setzero_si256())
DEFINE_RUN(run_bytes_2, "avx2", TEN_CHAINS("vpmaddubsw");
           TEN_CHAINS("vpmaddwd"), __m256i, _mm256_setzero_si256())

__attribute__((target("avx512f"))) static uint64_t read_512(const uint8_t *bytes, size_t count)
{
    __m512i mixed[4];
    for (size_t j = 0; j < 4; j++)
        mixed[j] = _mm512_setzero_si512();
    for (size_t i = 0; i + 256 <= count; i += 256) {
        for (size_t j = 0; j < 4; j++) {
            /* A page ahead: 3 to 5 % more than the hardware's own prefetching reaches. */
            _mm_prefetch((const char *)((uintptr_t)bytes + i + 64 * j + 4096), _MM_HINT_T1);
            mixed[j] = _mm512_xor_si512(mixed[j], _mm512_loadu_si512(bytes + i + 64 * j));
        }
    }
    mixed[0] = _mm512_or_si512(_mm512_or_si512(mixed[0], mixed[1]),
                               _mm512_or_si512(mixed[2], mixed[3]));
    return (uint64_t)_mm512_reduce_or_epi64(mixed[0]);
}
#endif

static const struct {
    const char *name;
    double multiplies_per_instruction;
} peaks[] = {
    [BENCH_PEAK_VNNI] = { "vpdpbusd", 64 },    [BENCH_PEAK_BF16] = { "vdpbf16ps", 32 },
    [BENCH_PEAK_FMA] = { "fma ps", 16 },       [BENCH_PEAK_FMA_256] = { "fma ps 256", 8 },
    [BENCH_PEAK_BYTES] = { "vpmaddubsw", 32 }, [BENCH_PEAK_BYTES_2] = { "vpmaddubsw vpmaddwd", 32 },
};
_Static_assert(sizeof(peaks) / sizeof(peaks[0]) == BENCH_PEAK_COUNT, "every peak has a row");

const char *bench_peak_name(enum bench_peak peak)
{
    return peaks[peak].name;
}

#if defined(__x86_64__)

double bench_peak_products(enum bench_peak peak)
{
    return peaks[peak].multiplies_per_instruction * (double)CHAINS * (double)STEPS;
}

uint64_t bench_peak_run(enum bench_peak peak)
{
    switch (peak) {
    case BENCH_PEAK_VNNI:
        return run_vnni();
    case BENCH_PEAK_BF16:
        return run_bf16();
    case BENCH_PEAK_FMA:
        return run_fma();
    case BENCH_PEAK_BYTES:
        return run_bytes();
    case BENCH_PEAK_BYTES_2:
        return run_bytes_2();
    default:
        return run_fma_256();
    }
}

#else

/* No instruction to name: ratios are without meaning. */
double bench_peak_products(enum bench_peak peak)
{
    return peaks[peak].multiplies_per_instruction;
}

uint64_t bench_peak_run(enum bench_peak peak)
{
    return (uint64_t)peak;
}

#endif

uint64_t bench_read(const uint8_t *bytes, size_t count)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return read_512(bytes, count);
#endif
    uint64_t mixed[4] = { 0 };
    for (size_t i = 0; i + sizeof(mixed) <= count; i += sizeof(mixed)) {
        uint64_t words[4];
        memcpy(words, bytes + i, sizeof(words));
        for (size_t j = 0; j < 4; j++)
            mixed[j] ^= words[j];
    }
    return mixed[0] ^ mixed[1] ^ mixed[2] ^ mixed[3];
}
