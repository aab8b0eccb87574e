/* version.h - the output of `greta --version`. The build sets the number. */
#ifndef GRETA_CLI_VERSION_H
#define GRETA_CLI_VERSION_H

#ifndef GRETA_VERSION
#define GRETA_VERSION "unknown"
#endif

/* The commit of the source, known when it is built; "" where there is no git. */
#ifdef GRETA_COMMIT_HEADER
#include GRETA_COMMIT_HEADER
#else
#define GRETA_COMMIT ""
#endif

#endif
