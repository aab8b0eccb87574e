/* matrix.c - see matrix.h. */
#include "campaign/matrix.h"

#include "campaign/campaign.h"

#include <stdlib.h>
#include <string.h>

static bool is_label(const char *text, size_t length)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-";
    return length > 0 && length < MATRIX_LABEL_BYTES && strspn(text, letters) >= length &&
           text[0] != '-';
}

/* An audit's own runs are called so; the files of a row of that name would be overwritten. */
static bool is_reserved(const char *label)
{
    static const char *const names[] = { "narrowed", "compare-host" };
    static const char *const beginnings[] = { "rerun-", "search-", "transfers-" };
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (strcmp(label, names[i]) == 0)
            return true;
    for (size_t i = 0; i < COUNT_OF(beginnings); i++)
        if (strncmp(label, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

static enum status refuse(const char *text, size_t length, struct error *err)
{
    return error_set(err, STATUS_USAGE,
                     "matrix: expected LABEL:MODE:COUNT with a mode of bare, audit or stress "
                     "and a count from 1 to %u, found '%.*s'",
                     MATRIX_ITERATION_LIMIT, (int)length, text);
}

/* The first audits called it so; today a baseline is an earlier audit to compare with. */
#define BARE_EARLIER_NAME "baseline"

static bool find_mode(const char *text, size_t length, enum report_row_mode *ret_mode)
{
    if (length == sizeof(BARE_EARLIER_NAME) - 1 && memcmp(text, BARE_EARLIER_NAME, length) == 0) {
        *ret_mode = REPORT_BARE;
        return true;
    }
    for (int mode = 0; mode < REPORT_ROW_MODE_COUNT; mode++) {
        const char *name = report_row_mode_name((enum report_row_mode)mode);
        if (strlen(name) == length && memcmp(name, text, length) == 0) {
            *ret_mode = (enum report_row_mode)mode;
            return true;
        }
    }
    return false;
}

/* One row of `length` characters. */
static enum status parse_row(const char *text, size_t length, struct matrix_row *row,
                             struct error *err)
{
    const char *colon = memchr(text, ':', length);
    const char *second = colon ? memchr(colon + 1, ':', length - (size_t)(colon + 1 - text)) : NULL;
    if (!second || !is_label(text, (size_t)(colon - text)) ||
        !find_mode(colon + 1, (size_t)(second - colon - 1), &row->mode))
        return refuse(text, length, err);
    const char *digits = second + 1;
    size_t digit_count = length - (size_t)(digits - text);
    if (digit_count == 0 || digit_count > 7 || strspn(digits, "0123456789") < digit_count)
        return refuse(text, length, err);
    unsigned long count = strtoul(digits, NULL, 10);
    if (count == 0 || count > MATRIX_ITERATION_LIMIT)
        return refuse(text, length, err);
    row->iterations = (uint32_t)count;
    memcpy(row->label, text, (size_t)(colon - text));
    row->label[colon - text] = '\0';
    if (is_reserved(row->label))
        return error_set(err, STATUS_USAGE,
                         "matrix: expected a label that is not the name of one of the audit's own "
                         "runs, found '%s'",
                         row->label);
    return STATUS_OK;
}

enum status matrix_parse(const char *text, struct matrix *ret_matrix, struct error *err)
{
    struct matrix matrix = { 0 };
    for (;;) {
        size_t length = strcspn(text, ",");
        if (matrix.count == MATRIX_ROW_LIMIT)
            return error_set(err, STATUS_USAGE, "matrix: expected at most %u rows",
                             MATRIX_ROW_LIMIT);
        struct matrix_row *row = &matrix.rows[matrix.count];
        TRY(parse_row(text, length, row, err));
        for (size_t i = 0; i < matrix.count; i++)
            if (strcmp(matrix.rows[i].label, row->label) == 0)
                return error_set(err, STATUS_USAGE,
                                 "matrix: expected every label once, found '%s' twice", row->label);
        matrix.count++;
        if (!text[length])
            break;
        text += length + 1;
    }
    *ret_matrix = matrix;
    return STATUS_OK;
}

enum status campaign_check_matrix(const char *text, struct error *err)
{
    struct matrix matrix;
    return matrix_parse(text, &matrix, err);
}
