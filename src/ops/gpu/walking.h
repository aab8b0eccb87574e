/* walking.h - how one kernel walks through a whole recorded sequence; shared by the plan and the
 * kernel.
 *
 * A table in device memory has a row for each step: the call its own kernel would have had, with
 * the words below. Every block goes through all rows in order and does its share of each; the
 * blocks meet behind a row where the next one needs what all of them wrote. */
#ifndef GRETA_OPS_GPU_WALKING_H
#define GRETA_OPS_GPU_WALKING_H

#include "ops/gpu/tiling.h"

/* Teams of a block; a processor has one block. */
#ifndef WALK_TEAMS
#define WALK_TEAMS 16u
#endif
#define WALK_THREADS (WALK_TEAMS * 32u)
/* Of attention: as attention.c has. */
#define WALK_ATTENTION_THREADS 256u
#define WALK_STAGES_MOST 16u

enum walk_kind { WALK_EMBED, WALK_NORM, WALK_PRODUCT, WALK_ATTENTION, WALK_SWIGLU, WALK_ADD };

/* Words of a row; those before WALK_KIND are of its kind. */
enum walk_row_word {
    /* norm */
    WALK_NORM_THREADS = 0, /* that its own kernel has: part of the order of its sum */
    WALK_NORM_EVERYWHERE,  /* every block does all of it, for the product behind it */
    /* product */
    WALK_PRODUCT_TYPE = 0, /* of all parts, or DTYPE_COUNT */
    WALK_PRODUCT_MEMBERS,  /* teams of a row */
    WALK_PRODUCT_SHARED,   /* activations are in shared memory */
    WALK_PRODUCT_NUMBER,   /* among products */
    /* attention: those of attention_step.c, then */
    WALK_ATTENTION_UNITS = 4, /* shares of the work, parts and heads together */
    /* all */
    WALK_KIND = 8,
    WALK_MEET /* the blocks meet behind it */
};

/* Words of the walk: what it has, and where things are in shared memory, behind the rings. */
enum walk_word {
    WALK_ROWS,
    WALK_PRODUCTS,
    WALK_STAGES,
    WALK_STAGE_BYTES,
    WALK_AT_FULL,     /* u64 [teams][stages]: barriers of the rings */
    WALK_AT_PRODUCTS, /* struct walk_product of each: what is fetched ahead */
    WALK_AT_STATE,    /* struct walk_state */
    WALK_AT_CALLS,    /* two rows of the table: this one and the next */
    WALK_AT_PACKED,   /* the row a norm packed */
    WALK_AT_KEPT,     /* what a norm has yet to store */
    WALK_AT_SCRATCH,  /* of the row at hand */
    WALK_LIMIT_MS     /* a wait that takes longer has failed */
};

/* What a block's teams must know of a product to fetch its weights. */
struct walk_product {
    uint64_t addresses[3]; /* 0: no such part */
    uint32_t strides[3], rows[3];
    uint32_t first, end; /* groups of the block, counted over all parts */
    uint8_t types[4];
    uint32_t members, k;
};

/* How far a team is with fetching, and its ring between products. */
struct walk_cursor {
    uint32_t number; /* product behind the one at hand */
    uint32_t group, end;
    uint32_t at, parity, left, advance, bytes, second;
    uint32_t unused;
    uint64_t source;
};

/* The largest heads of a walk's attention. */
#define WALK_HEAD_MOST 128u

/* What attention's lists and its table of angles say of the token: the same in every layer. */
struct walk_lists {
    uint64_t from[4]; /* their addresses; other ones: it must be read again */
    uint64_t start, position, slot;
    float angles[WALK_HEAD_MOST];
};

/* What a block knows of itself. Kept here and not by its threads: it would cost each of them
 * registers, of which attention and products have none to spare. */
struct walk_state {
    uint64_t node;    /* of the row at hand, for a wait that fails */
    uint64_t goal;    /* the counter, when all have come to the last meeting */
    uint64_t kept_at; /* where fours of a row go, once no block reads the old ones */
    uint32_t kept_count, unused;
    struct walk_lists lists;
    struct walk_cursor cursors[WALK_TEAMS];
};

#endif
