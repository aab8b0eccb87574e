/* hits.h - the rows of a dump's tables that tell of exceptions, found in one pass over them. */
#ifndef GRETA_COREDUMP_HITS_H
#define GRETA_COREDUMP_HITS_H

#include "coredump/coredump_impl.h"

/* Fields of rows. */
enum {
    SM_NUMBER = 0,
    SM_EXCEPTION = 8,
    SM_ERROR_PC_VALID = 12,
    SM_ERROR_PC = 16,
    BLOCK_GRID = 0,
    BLOCK_INDEX = 8,
    WARP_ERROR_PC = 0,
    WARP_NUMBER = 8,
    WARP_ACTIVE_LANES = 16,
    WARP_ERROR_PC_VALID = 24,
    LANE_PC = 0,
    LANE_NUMBER = 16,
    LANE_THREAD = 20,
    LANE_EXCEPTION = 32
};

/* What one table says of a warp. */
enum hit_kind {
    HIT_LANES_FAILED, /* a table of lanes, some with an exception */
    HIT_WARP_FAILED,  /* the warp's own row: the hardware recorded where it failed */
    HIT_LANES         /* a table of lanes, all without an exception */
};

struct hit {
    uint32_t warps, row; /* section of the table of warps; row of it */
    uint32_t lanes;      /* section of the table of lanes; 0 for HIT_WARP_FAILED */
    enum hit_kind kind;
};

/* An SM whose row has an exception. */
struct sm_hit {
    uint32_t section, row;
    bool reported; /* by one of its warps */
};

/* hits are by warp, then by kind; sms by section, then by row. Release with hits_release. */
struct hits {
    struct hit *items;
    size_t count, capacity;
    struct sm_hit *sms;
    size_t sm_count, sm_capacity;
};

/* Release it also after a failure. */
MUST_CHECK enum status hits_find(struct coredump *dump, struct hits *hits, struct error *err);
void hits_release(struct hits *hits);

#endif
