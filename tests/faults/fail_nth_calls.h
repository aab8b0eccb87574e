/* fail_nth_calls.h - what the redirected calls (fail_nth_calls.c) need from the sweep (fail_nth.c).
 */
#ifndef GRETA_TESTS_FAIL_NTH_CALLS_H
#define GRETA_TESTS_FAIL_NTH_CALLS_H

#include <stdbool.h>
#include <stdint.h>

/* Decides which status a failure may come out as. */
enum call_class { CALL_MEMORY, CALL_FILE, CALL_THREAD, CALL_LIBRARY, CALL_DRIVER };

/* Counts a call that returns to address; true if this run wants it to fail. name: static. */
bool fail_nth_must_fail(const char *address, const char *name, enum call_class class);

/* Memory that a run took: returns pointer. NULL is fine. */
void *fail_nth_keep(void *pointer);
/* Memory that is given back; false if the run did not take it. */
bool fail_nth_forget(void *pointer);
void fail_nth_count_mapped(int64_t bytes);
void fail_nth_count_threads(int64_t count);

#endif
