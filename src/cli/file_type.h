/* file_type.h - the label a file has as a whole (general.file_type); the tensors' own types are
 * what counts. */
#ifndef GRETA_CLI_FILE_TYPE_H
#define GRETA_CLI_FILE_TYPE_H

#include <stdint.h>

/* "Q4_K - Medium"; "unknown" for numbers without a name. */
const char *cli_file_type_name(uint64_t number);

#endif
