/* matrix.h - the rows of an audit, as a user writes them: "A:bare:50,B:audit:50,C:stress:100".
 */
#ifndef GRETA_CAMPAIGN_MATRIX_H
#define GRETA_CAMPAIGN_MATRIX_H

#include "report/report.h"

#define MATRIX_ROW_LIMIT 16u
#define MATRIX_LABEL_BYTES 17
/* A larger matrix would run for weeks. */
#define MATRIX_ITERATION_LIMIT 1000000u

struct matrix_row {
    char label[MATRIX_LABEL_BYTES]; /* letters, digits, dashes: part of file names */
    enum report_row_mode mode;
    uint32_t iterations;
};

struct matrix {
    struct matrix_row rows[MATRIX_ROW_LIMIT];
    size_t count; /* at least 1 */
};

MUST_CHECK enum status matrix_parse(const char *text, struct matrix *ret_matrix, struct error *err);

#endif
