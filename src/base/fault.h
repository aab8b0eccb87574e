/* fault.h - illegal accesses become values.
 *
 * There is one handler for SIGSEGV and SIGBUS in the whole process. A thread that runs code it does
 * not trust says so (fault_run): a fault there comes back to it. A file that is mapped and becomes
 * shorter faults wherever it is read; where its range is watched the reader goes on with zeros and
 * can be told. Any other fault goes to whoever was installed before: a sanitizer, a crash reporter,
 * the default. */
#ifndef GRETA_BASE_FAULT_H
#define GRETA_BASE_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fault_info {
    bool address_known; /* false: the processor does not tell (a non-canonical address) */
    uint64_t address;
};

/* Puts the handler in place, again if another has taken it. */
void fault_install(void);

/* Runs body; false, with what is known of it, if it faulted. The frames it had are gone: it must
 * hold nothing. Not to be nested. */
bool fault_run(void (*body)(void *context), void *context, struct fault_info *ret_info);

/* memcpy; false if a part could not be read or written. Not inside of fault_run. */
bool fault_copy(void *target, const void *source, size_t bytes);

/* Watches a mapping of a file. Returns its place, 0 if there is none left: then nothing is watched.
 */
uint32_t fault_watch(const void *address, size_t bytes);
void fault_unwatch(uint32_t place); /* 0 is fine; before it is unmapped */
/* Was it read where the file was no more? What was read there is zeros. */
bool fault_was_seen(uint32_t place);

#endif
