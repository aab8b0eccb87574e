/* ending.c - how a run ended. */
#include "analyze/analyze.h"

#include <signal.h>

const char *run_ending_name(enum run_ending_kind kind)
{
    static const char *const names[] = {
        [ENDING_UNKNOWN] = "unknown",
        [ENDING_IN_ORDER] = "in-order",
        [ENDING_EXITED] = "exited",
        [ENDING_KILLED] = "killed",
        [ENDING_OUT_OF_MEMORY] = "out-of-memory",
        [ENDING_ABORTED] = "aborted",
        [ENDING_HUNG] = "hung",
        [ENDING_STOPPED] = "stopped",
        [ENDING_DEVICE_LOST] = "device-lost",
        [ENDING_UNCLOSED] = "unclosed",
    };
    _Static_assert(COUNT_OF(names) == ENDING_COUNT, "every ending has a name");
    ASSERT((unsigned)kind < ENDING_COUNT);
    return names[kind];
}

struct run_ending run_ending_of_signal(int number)
{
    switch (number) {
    case SIGABRT:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGSEGV:
    case SIGSYS:
    case SIGTRAP:
        return (struct run_ending){ ENDING_ABORTED, number };
    default:
        return (struct run_ending){ ENDING_KILLED, number };
    }
}
