/* ptx.h - what kernels do with the pointers among their parameters, read from PTX text.
 *
 * Each instruction is taken to pass on what its operands carry, wherever it stands; so what is said
 * holds for every path through the kernel. A word of the parameters is only read if the addresses
 * that come of it are loaded from and nothing else; a word that is stored, passed to a function or
 * used by an instruction that is not known here may be written through. Pointers that lie in memory
 * are not followed, here as elsewhere. */
#ifndef GRETA_INTERPOSE_CUDA_PTX_H
#define GRETA_INTERPOSE_CUDA_PTX_H

#include "interpose/interpose.h"

/* Calls found for each kernel that could be understood, in order; uses and name are borrowed. The
 * text is foreign and need not end with 0. Work and memory are bounded by its length. */
void ptx_read(const char *text, size_t bytes,
              void (*found)(void *context, const char *name, size_t name_bytes,
                            const struct kernel_uses *uses),
              void *context);

#endif
