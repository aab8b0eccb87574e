/* memory_killer.h - whether the kernel killed a process for want of memory. Known where the control
 * group counts it or the kernel log names the process; elsewhere nothing is claimed. */
#ifndef GRETA_CAMPAIGN_MEMORY_KILLER_H
#define GRETA_CAMPAIGN_MEMORY_KILLER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Processes of our control group killed so far; 0 where that is not counted. */
uint64_t memory_killer_count(void);
/* True if the kernel killed this child for want of memory. before: memory_killer_count() when the
 * child was started. */
bool memory_killer_took(pid_t pid, uint64_t before);

/* "oom_kill" of the text of a memory.events file; 0: it is not in it. */
uint64_t memory_killer_parse(const char *events);
/* True if a line of the kernel log says that the process was killed for want of memory. */
bool memory_killer_names(const char *line, pid_t pid);

#endif
