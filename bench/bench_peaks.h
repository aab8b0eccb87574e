/* bench_peaks.h - the ceilings that matmul is compared with: reading memory and doing nothing
 * else, and issuing one instruction without ever waiting for memory. */
#ifndef GRETA_BENCH_PEAKS_H
#define GRETA_BENCH_PEAKS_H

#include <stddef.h>
#include <stdint.h>

enum bench_peak {
    BENCH_PEAK_VNNI,    /* vpdpbusd, 512 bits */
    BENCH_PEAK_BF16,    /* vdpbf16ps, 512 bits */
    BENCH_PEAK_FMA,     /* vfmadd231ps, 512 bits */
    BENCH_PEAK_FMA_256, /* vfmadd231ps, 256 bits */
    BENCH_PEAK_BYTES,   /* vpmaddubsw, 256 bits: what products of small levels are made of */
    BENCH_PEAK_BYTES_2, /* vpmaddubsw and vpmaddwd: of levels of 8 bits, whose pairs fill 16 */
    BENCH_PEAK_COUNT
};

const char *bench_peak_name(enum bench_peak peak);

/* Issues the instruction for about 10 ms. The processor must have it. */
uint64_t bench_peak_run(enum bench_peak peak);

/* Multiply-adds of one bench_peak_run. */
double bench_peak_products(enum bench_peak peak);

/* Reads every byte, in order, with the widest loads. */
uint64_t bench_read(const uint8_t *bytes, size_t count);

#endif
