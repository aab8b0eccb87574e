/* audit_result.h - what the audit of a run found, as text and as JSON. */
#ifndef GRETA_CLI_AUDIT_RESULT_H
#define GRETA_CLI_AUDIT_RESULT_H

#include "analyze/analyze.h"

#include <jansson.h>
#include <stdio.h>

struct audit_result {
    enum audit_level level;
    const char *recording;           /* path of the flight file */
    const struct analysis *analysis; /* NULL: it failed */
    const char *failure;             /* why */
};

void audit_result_print(const struct audit_result *result, FILE *out);
/* A JSON object that the caller owns; NULL without memory. */
json_t *audit_result_json(const struct audit_result *result);

#endif
