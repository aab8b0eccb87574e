/* walking.h - how one kernel walks through a whole recorded sequence; shared by the plan and the
 * kernel.
 *
 * A table in device memory has a row for each step: the call its own kernel would have had, with
 * the words below. Every block goes through all rows in order and does its share of each. What one
 * row makes and the next one needs of all blocks goes through cells: 32 bits and the number of the
 * replay in one word, so that whoever reads a cell sees whether it has come. Blocks never meet. */
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

enum walk_kind { WALK_EMBED, WALK_NORM, WALK_PRODUCT, WALK_ATTENTION, WALK_SWIGLU };

/* In the place of a cell's number: none. */
#define WALK_NOWHERE 0xFFFFFFFFu

/* Words of a row; those before WALK_SOURCE are of its kind. */
enum walk_row_word {
    /* norm */
    WALK_NORM_THREADS = 0, /* that its own kernel has: part of the order of its sum */
    /* product */
    WALK_PRODUCT_TYPE = 0, /* of all parts, or DTYPE_COUNT */
    WALK_PRODUCT_NUMBER,   /* among products */
    WALK_PRODUCT_GATED,    /* the row behind it is swiglu, and takes its sums */
    WALK_PRODUCT_WORDS,    /* 32-bit words of packed activations that are in its source */
    WALK_PRODUCT_MEMBERS,  /* teams of a row */
    /* swiglu */
    WALK_SWIGLU_NUMBER = 0, /* of the product before it */
    /* attention: those of attention_step.c, then */
    WALK_ATTENTION_UNITS = 4, /* shares of the work, parts and heads together */
    /* all */
    WALK_SOURCE = 6, /* the first of the cells it reads */
    WALK_TARGET,     /* the first of those it fills */
    WALK_KIND
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
    WALK_AT_STREAM,   /* the row x that products are added to, f32 */
    WALK_AT_PACKED,   /* packed activations of the product at hand */
    WALK_AT_SCRATCH,  /* of the row at hand */
    WALK_LIMIT_MS     /* a wait that takes longer has failed */
};

/* Parts of a product that a block shares out to its teams in units of this many rows where swiglu
 * packs what comes of them. */
#define WALK_GATE_ROWS 32u

/* What a block's teams must know of a product. Rows of the block in all parts are counted
 * together, part by part; team t of `members` teams a row has rows t / members, + slots, ... */
struct walk_product {
    uint64_t addresses[3]; /* of the block's first row in a part */
    uint32_t strides[3];   /* bytes */
    uint32_t firsts[3];    /* the block's first row in a part */
    uint16_t counts[4];    /* and how many it has; 0: no such part */
    uint16_t slices[4];    /* bytes of a row that a team has, ... */
    uint16_t lasts[4];     /* ... and the last one of a row */
    uint8_t turns[4];      /* rows before the part, modulo slots */
    uint8_t types[4];
    uint32_t k;
    uint32_t inverse; /* team / members is team * inverse >> 16 */
    uint32_t members, slots;
};

/* How far a team is with fetching, and its ring between products. */
struct walk_cursor {
    uint32_t product, part; /* that are fetched from next */
    uint32_t at, parity, left, advance, bytes, unused;
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
    uint64_t node; /* of the row at hand, for a wait that fails */
    uint32_t tag;  /* of this replay's cells */
    uint32_t unused;
    struct walk_lists lists;
    struct walk_cursor cursors[WALK_TEAMS];
};

/* Words of the walk's memory, before its cells. */
enum walk_memory {
    WALK_REPLAYS,        /* so far */
    WALK_BEGUN,          /* blocks that have begun, of all replays */
    WALK_FIRST_CELL = 16 /* the cells are from here on */
};

#endif
