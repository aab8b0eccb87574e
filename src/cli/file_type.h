/* file_type.h - the name of general.file_type, a label for the whole file; only the types of its
 * tensors decide anything. */
#ifndef GRETA_CLI_FILE_TYPE_H
#define GRETA_CLI_FILE_TYPE_H

#include <stdint.h>

/* "Q4_K - Medium"; "unknown" for numbers without a name. */
const char *cli_file_type_name(uint64_t number);

#endif
