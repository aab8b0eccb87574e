/* abi.c - holds abi.h and the headers it cannot include together. */
#include "device/abi/abi.h"

#include "event/crumb.h"

#include <stddef.h>

_Static_assert(GPU_CRUMB_ENTERED == offsetof(struct crumb_stream, entered), "as in crumb.h");
_Static_assert(GPU_CRUMB_FINISHED == offsetof(struct crumb_stream, finished), "as in crumb.h");
_Static_assert(GPU_CRUMB_NODE == offsetof(struct crumb_stream, node), "as in crumb.h");
_Static_assert(GPU_CRUMB_TRAP_COUNT == offsetof(struct crumb_page, trap_count), "as in crumb.h");
_Static_assert(GPU_CRUMB_TRAPS == offsetof(struct crumb_page, traps), "as in crumb.h");
_Static_assert(GPU_CRUMB_TRAP_BYTES == sizeof(struct crumb_trap), "as in crumb.h");
_Static_assert(GPU_CRUMB_TRAP_LIMIT == CRUMB_TRAP_LIMIT, "as in crumb.h");
_Static_assert(offsetof(struct crumb_trap, operand) == 24, "as kernels write it");
_Static_assert(offsetof(struct crumb_trap, written) == 28, "as kernels write it");
_Static_assert(sizeof(struct gpu_call) <= 4096, "what a kernel's parameters may take");
