/* fault.h - turns illegal accesses into values.
 *
 * The process has one handler for SIGSEGV and SIGBUS. A thread that runs code it does not trust
 * calls fault_run; a fault in that code makes fault_run return. A mapped file that becomes shorter
 * faults wherever it is read; if its range is watched, the reader goes on with zeros and can ask
 * whether that happened. Every other fault goes to the handler that was installed before: a
 * sanitizer, a crash reporter, the default. */
#ifndef GRETA_BASE_FAULT_H
#define GRETA_BASE_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fault_info {
    bool address_known; /* false: the processor does not say (a non-canonical address) */
    uint64_t address;
};

/* Installs the handler, again if another has replaced it. */
void fault_install(void);

/* Runs body. Returns false, with what is known of the fault, if body faulted. The frames of body
 * are gone then, so body must not hold anything that needs releasing. Calls must not be nested. */
bool fault_run(void (*body)(void *context), void *context, struct fault_info *ret_info);

/* memcpy that returns false if a part could not be read or written. Not to be called inside
 * fault_run. */
bool fault_copy(void *target, const void *source, size_t bytes);

/* Watches a mapping of a file. Returns its place, or 0 if all places are taken and the mapping is
 * not watched. */
uint32_t fault_watch(const void *address, size_t bytes);
void fault_unwatch(uint32_t place); /* 0 is fine; call it before unmapping */
/* True if the mapping was read where the file had ended; the reader got zeros there. */
bool fault_was_seen(uint32_t place);

/* Guards memory that is closed at times (PROT_NONE). At an access there `met` is called, by the
 * thread that made it and in the handler; true: it has opened the memory, and the access goes on.
 * Returns its place, or 0 if all places are taken and the memory is not guarded. */
uint32_t fault_guard(const void *address, size_t bytes,
                     bool (*met)(void *context, uint64_t address), void *context);
void fault_unguard(uint32_t place); /* 0 is fine; call it before unmapping */

#endif
