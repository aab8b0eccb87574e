/* inject_impl.h - the planter, shared by its files.
 *
 * caller.c plants bugs of the caller around the public calls, machine.c spoils commands below the
 * checks, hold.c keeps the work of a stream back so that what must be in flight is, decorator.c is
 * the method table that asks the others. */
#ifndef GRETA_INJECT_INJECT_IMPL_H
#define GRETA_INJECT_INJECT_IMPL_H

#include "device/device_impl.h"
#include "inject/inject.h"

/* Where a fault is planted. */
enum inject_where { INJECT_IN_CALL, INJECT_IN_LAUNCH, INJECT_IN_COPY };

struct inject_row {
    const char *name, *summary;
    enum inject_where where;
    const char *op, *operand; /* what it is about unless the spec says otherwise; "": any */
    const char *bound;        /* of an index: the operand whose rows it must stay below; "": none */
};

const struct inject_row *inject_row(enum inject_fault fault);

/* The device's memory, listed so that a fault can free it without its owner's knowledge. */
struct inject_memory {
    struct device_memory memory;
    bool gone; /* freed by the fault; the owner does not know */
};

#define INJECT_MEMORY_LIMIT 65536u

/* A method call on a stream that is kept back. */
enum inject_held_kind { INJECT_HELD_COMMAND, INJECT_HELD_RECORD, INJECT_HELD_WAIT };
struct inject_held {
    enum inject_held_kind kind;
    void *stream;
    struct device_command command;
    void *mark;
};

struct inject {
    struct device *device;
    const struct device_methods *real;
    struct inject_spec spec;

    pthread_mutex_t lock; /* guards everything below; never held while the device is called */
    struct inject_record record;

    /* The call that carries the fault, from before it until after it. */
    bool under_way;
    pthread_t thread; /* the thread that makes the call */
    bool acting;      /* the calls that arrive now are the planter's own */

    /* What the caller has. */
    char (*names)[EVENT_TENSOR_BYTES]; /* by buffer index */
    struct device_ticket ticket;       /* to be released too early, or twice */
    uint32_t victim_stream;            /* the stream whose next call is affected; 0: none */
    bool capturing;                    /* a graph is recorded */
    struct device_buffer graph_buffer; /* to be replaced; index 0: none yet */
    struct device_stream other;        /* our own */
    struct device_mark mark;           /* on the caller's stream */
    bool slots_again;                  /* the last staging slot is given to `thread` once more */

    /* Memory. */
    struct inject_memory *memories;
    size_t memory_count;
    struct device_memory indices; /* of a bad index; impl NULL: none */
    int32_t *index_values;
    struct device_command *recorded; /* of the graph that has the fault in it; NULL: none */

    /* A copy out whose bytes are changed once it has landed. */
    uint8_t *landing;
    uint64_t landing_bytes;
    void *landing_stream, *landing_mark;

    /* hold.c */
    bool hold_wanted; /* from the next command of `thread` on */
    void *held_streams[CRUMB_STREAM_LIMIT];
    size_t held_stream_count;
    struct inject_held *held; /* of all of them, in the order it was given */
    size_t held_count, held_capacity;
    bool lose_wanted; /* the next mark that `thread` records is lost */
    void *lost_mark, *lost_stream;
    pthread_cond_t released;
};

/* True if this kind of call can carry the fault. The spec decides which one does. */
bool inject_carries(enum inject_fault fault, enum event_kind kind);
/* False if it means nothing there: a NaN in what a launch only reads. */
bool inject_operand_can(enum inject_fault fault, const struct device_operand_rule *rule);
/* True if the fault can be in this operand: the spec or the fault names it, or it suits. */
bool inject_operand_fits(const struct inject_spec *spec, const struct device_operand_rule *rule);
/* With the lock held: true if the spec matches this call. */
bool inject_fits(const struct inject *inject, const char *op, const struct event_scope *scope);
/* With the lock held: notes it as planted here. operand -1: none; contract NULL: no launch. */
void inject_note(struct inject *inject, const char *op, const struct event_scope *scope,
                 const struct device_contract *contract, int operand, uint64_t event_id);
/* The operand the spec or the fault names, or the first that suits and is there; -1 if none. */
int inject_operand(const struct inject *inject, const struct device_contract *contract,
                   const bool *present);

/* caller.c */
bool inject_before(void *context, struct device_tampered *call);
void inject_after(void *context, const struct device_tampered *call);
bool inject_take_again(void *context);

/* acts.c: without the lock; between begin and end of acting. */
void inject_act_name(struct inject *inject, struct device_buffer buffer, char *name);
void inject_act_destroy(struct inject *inject, struct device_buffer buffer);
void inject_act_release(struct inject *inject, struct device_ticket ticket);
/* Another buffer of the same name. Zero handle on failure. */
struct device_buffer inject_act_create_like(struct inject *inject, struct device_buffer buffer,
                                            uint64_t bytes);
/* Spoils the call; false: it is not made at all. */
bool inject_act_launch(struct inject *inject, struct device_tampered *call, int operand);
bool inject_act_copy(struct inject *inject, struct device_tampered *call);
/* The next mark this thread records is lost. */
void inject_act_lose_mark(struct inject *inject);
/* The next call on this stream suffers. */
void inject_act_watch(struct inject *inject, struct device_stream stream);
/* After the call: the second use of a slot, the second copy. */
void inject_act_rewrite_slot(struct inject *inject, const struct device_tampered *call);
void inject_act_overlap(struct inject *inject, const struct device_tampered *call);

/* machine.c, with the lock held: the commands to submit instead of a command; count 0: submit it
 * unchanged. */
#define INJECT_SPOILT_LIMIT 3
struct inject_spoilt {
    bool hit;
    size_t count; /* of commands */
    struct device_command commands[INJECT_SPOILT_LIMIT];
    struct inject_memory *vanishes; /* memory to give back first, when the stream is idle */
};
enum status inject_spoil(struct inject *inject, void *stream, const struct device_command *command,
                         struct inject_spoilt *ret_spoilt, struct error *err);

/* memory.c: without the lock, but for inject_find_memory. */
void inject_memory_note(struct inject *inject, const struct device_memory *memory);
/* The fault freed it. */
bool inject_memory_is_gone(struct inject *inject, const struct device_memory *memory);
/* Called when the owner frees it; true if the fault has freed it already. */
bool inject_memory_forget(struct inject *inject, const struct device_memory *memory);
/* Frees it when the stream is idle. The owner does not know. */
enum status inject_memory_vanish(struct inject *inject, void *stream, struct inject_memory *memory,
                                 struct error *err);
/* The memory that holds the address, or NULL. */
struct inject_memory *inject_find_memory(struct inject *inject, uint64_t address);

/* decorator.c: stands before the device's own methods. */
extern const struct device_methods inject_methods;

/* install.c */
void inject_free(struct inject *inject);

/* hold.c: with the lock held. */

/* Keeps a method call back; false: it is not to be kept back, go on. */
bool inject_hold_command(struct inject *inject, void *stream, const struct device_command *command);
bool inject_hold_mark(struct inject *inject, enum inject_held_kind kind, void *stream, void *mark);
bool inject_hold_has(const struct inject *inject, const void *stream);
/* Gives everything that was kept back, in order. */
void inject_hold_flush(struct inject *inject);
/* Before the host waits for a stream or a mark (the other is NULL): submits what is kept back, or
 * hangs if a wakeup was lost. */
void inject_hold_wait(struct inject *inject, void *stream, void *mark);
/* A mark that cannot be passed yet: its record is kept back, or lost. */
bool inject_hold_pending(const struct inject *inject, const void *mark);
/* The lost wakeup comes. */
void inject_hold_release(struct inject *inject);

#endif
