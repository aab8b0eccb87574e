/* file_type.h - the label of a file as a whole (general.file_type); what counts are the types of
 * its tensors. */
#ifndef GRETA_CLI_FILE_TYPE_H
#define GRETA_CLI_FILE_TYPE_H

#include <stdint.h>

/* "Q4_K - Medium"; "unknown" for numbers without a name. */
const char *cli_file_type_name(uint64_t number);

#endif
