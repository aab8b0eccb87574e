/* table.h - aligned columns for terminals. */
#ifndef GRETA_REPORT_TABLE_H
#define GRETA_REPORT_TABLE_H

#include "base/text.h"

#define TABLE_COLUMN_LIMIT 8

/* Cells of all rows, one after another; each ends in NUL. */
struct table {
    struct text cells;
    size_t column_count, cell_count;
    size_t widths[TABLE_COLUMN_LIMIT]; /* in characters */
};

void table_init(struct table *table, size_t column_count);
void table_release(struct table *table);
/* The next cell; control characters and broken UTF-8 are escaped. */
void table_add(struct table *table, const char *cell);
/* Adds the rows to text; the last column is not padded. */
void table_print(const struct table *table, struct text *text);

#endif
