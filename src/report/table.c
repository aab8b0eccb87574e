/* table.c - see table.h. */
#include "report/table.h"

#include <string.h>

void table_init(struct table *table, size_t column_count)
{
    ASSERT(column_count > 0 && column_count <= TABLE_COLUMN_LIMIT);
    *table = (struct table){ .column_count = column_count };
    text_init(&table->cells);
}

void table_release(struct table *table)
{
    text_release(&table->cells);
}

void table_add(struct table *table, const char *cell)
{
    size_t start = table->cells.length;
    size_t column = table->cell_count++ % table->column_count;
    text_add_printable(&table->cells, text_view_of(cell), SIZE_MAX);
    text_add_fill(&table->cells, '\0', 1);
    if (table->cells.failed)
        return;
    size_t width = text_width(table->cells.bytes + start);
    if (width > table->widths[column])
        table->widths[column] = width;
}

void table_print(const struct table *table, struct text *text)
{
    if (table->cells.failed) {
        text->failed = true;
        return;
    }
    const char *cell = table->cells.bytes;
    for (size_t i = 0; i < table->cell_count; i++) {
        size_t column = i % table->column_count;
        bool last = column + 1 == table->column_count;
        text_add(text, cell);
        if (!last)
            text_add_fill(text, ' ', table->widths[column] - text_width(cell) + 2);
        text_add(text, last ? "\n" : "");
        cell += strlen(cell) + 1;
    }
}
