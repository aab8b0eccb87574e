/* hardware.h - what the hardware says of a fault: part of analyze.h.
 *
 * A GPU core dump shows which grid failed, where, and with which arguments, but not which call
 * launched it. The caller fills this in from a dump; the analysis compares it with the launches
 * that were recorded. What the dump does not say is empty here, never guessed. */
#ifndef GRETA_ANALYZE_HARDWARE_H
#define GRETA_ANALYZE_HARDWARE_H

#include "event/flight.h"

#define HARDWARE_GRID_LIMIT 8u
#define HARDWARE_SOURCE_BYTES 256

/* A grid with an exception. */
struct hardware_grid {
    char kernel[FLIGHT_NAME_BYTES]; /* as the runtime names it; "": not known */
    uint64_t number;                /* the driver's; 0: not known */
    bool by_device;                 /* launched by another kernel, which no recording shows */
    uint32_t grid[3], block[3];
    const uint8_t *arguments; /* NULL: not known; borrowed as long as the evidence */
    uint64_t argument_bytes;
    /* The events of greta's own launches that this kernel does, as its arguments name them (up to
     * three that were joined); 0: no more. All 0: a foreign kernel's. */
    uint64_t launches[3];
    /* What its first exception says. */
    uint32_t exception; /* the driver's number for it */
    bool thread_known;
    uint32_t at_block[3], at_thread[3];
    uint32_t warp_count; /* with exceptions */
    bool stopped_at;     /* the pc is where the warp was stopped, maybe past the instruction */
    uint64_t pc;         /* 0: not known */
    char function[FLIGHT_NAME_BYTES];   /* that holds the pc: the kernel or one it calls; "" */
    uint64_t offset;                    /* of the pc in it */
    char source[HARDWARE_SOURCE_BYTES]; /* file; "": not known */
    uint32_t line;
};

struct hardware_evidence {
    struct hardware_grid grids[HARDWARE_GRID_LIMIT];
    size_t grid_count;
    bool more_grids; /* that failed than there is room for */
    /* Only for a foreign program. What was recorded of a launch: its event is one of the recording.
     * False: nothing. The name is
     * "" if it is not known. */
    bool (*launch)(void *context, const struct event *event, struct flight_launch *ret_launch,
                   char ret_name[FLIGHT_NAME_BYTES]);
    void *context;
};

/* How a recorded launch compares with a grid of the dump. */
enum hardware_match {
    HARDWARE_DIFFERS, /* in its name, shape, arguments or number */
    HARDWARE_PARTLY,  /* in nothing that is known, but not all of it is */
    HARDWARE_AGREES,  /* in all of them; the number is one it can have */
    HARDWARE_SAME     /* and it can have no other number */
};

/* in_graph: a node of a graph, whose numbers say nothing. */
enum hardware_match hardware_compare(const struct hardware_grid *grid,
                                     const struct flight_launch *launch, const char *name,
                                     bool in_graph);

#endif
