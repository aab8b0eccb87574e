/* cpu.h - which instruction sets this processor has, as the paths that host kernels are written
 * for.
 *
 * Every kernel of a path may use every instruction that the path names. The answers never change
 * while the process runs; any thread may ask. */
#ifndef GRETA_BASE_CPU_H
#define GRETA_BASE_CPU_H

#include <stdbool.h>

enum cpu_path {
    CPU_PATH_PORTABLE, /* plain C: the reference */
    CPU_PATH_AVX2,     /* AVX2, FMA, F16C */
    CPU_PATH_AVX512,   /* AVX-512 F, BW, DQ, VL, VBMI, VNNI, BF16; GFNI */
    CPU_PATH_COUNT
};

/* "portable", "avx2", "avx512". Static. */
const char *cpu_path_name(enum cpu_path path);

/* True if the path was built in and is usable on this processor and operating system. */
bool cpu_path_is_supported(enum cpu_path path);

/* The last path in the list above that is supported. */
enum cpu_path cpu_path_best(void);

#endif
