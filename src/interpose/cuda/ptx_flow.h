/* ptx_flow.h - what becomes of the words of a kernel's parameters in its body; for ptx.c. */
#ifndef GRETA_INTERPOSE_CUDA_PTX_FLOW_H
#define GRETA_INTERPOSE_CUDA_PTX_FLOW_H

#include "base/text.h"
#include "interpose/interpose.h"

struct ptx_parameter {
    struct text_view name;
    uint32_t bytes, word, words; /* its place among the words of all */
};

/* Plain text: no comments, no strings, blanks for all white space. */
struct ptx_kernel {
    struct text_view name, body;
    struct ptx_parameter parameters[KERNEL_PARAMETER_LIMIT];
    struct kernel_uses uses; /* ptx_flow_read fills in uses.uses */
};

struct ptx_flow;

struct ptx_flow *ptx_flow_create(void); /* NULL without memory */
void ptx_flow_destroy(struct ptx_flow *flow);
/* False if the body has more names, or longer chains, than are followed: nothing is known then. */
bool ptx_flow_read(struct ptx_flow *flow, struct ptx_kernel *kernel);

#endif
