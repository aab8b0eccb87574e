/* variables.c - the environment variables that greta reads, for the man page. run.c reads them; a
 * test compares both and docs/environment.md. */
#include "cli/cli.h"

static const struct cli_variable variables[] = {
    { "GRETA_DISABLE_GUARD_RAIL", "1",
      "A model that is not the one pinned by --expect gives a warning instead of a refusal. What "
      "cannot run is refused all the same." },
    { "GRETA_TRACE_MEMCPY", "1",
      "Lines before and after every copy from the device, and one for a copy that failed, on "
      "standard error." },
    { "GCORE_D2H_AUDIT", "1",
      "A line at the start and one at the end of every copy from the device; the first is written "
      "out before the copy." },
    { "GCORE_D2H_AUDIT_LOG", "FILE",
      "Those lines go to the end of FILE instead of standard error." },
    { "GRETA_D2H_DEBUG", "1",
      "What was checked of every copy from the device: offset, size, allocation." },
    { "NO_COLOR", "1", "No colours, also on a terminal; --color always overrides it." },
    { "TERM", "NAME", "If it is `dumb` or not set, no colours and no progress are shown." },
    { "XDG_CACHE_HOME", "DIR",
      "Results of self-tests are kept in DIR/greta (default: ~/.cache/greta)." },
    { "HOME", "DIR", "Gives the default of XDG_CACHE_HOME, ~/.cache." },
    { "XDG_RUNTIME_DIR", "DIR", "Locks of greta audit --locked (default: TMPDIR)." },
    { "TMPDIR", "DIR", "Short-lived files (default: /tmp)." },
};

size_t cli_variable_count(void)
{
    return COUNT_OF(variables);
}

const struct cli_variable *cli_variable_at(size_t index)
{
    ASSERT(index < COUNT_OF(variables));
    return &variables[index];
}
