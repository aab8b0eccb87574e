/* version.h - what `greta --version` says. The build gives the number. */
#ifndef GRETA_CLI_VERSION_H
#define GRETA_CLI_VERSION_H

#ifndef GRETA_VERSION
#define GRETA_VERSION "unknown"
#endif

#endif
