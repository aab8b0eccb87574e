/* coredump.c - a GPU core dump as people read it: what died where, then the evidence for it. */
#include "report/coredump_texts.h"

#include "base/size.h"
#include "report/table.h"

#include <inttypes.h>
#include <stdio.h>

/* Rows of a list that the text shows; the JSON has all. */
#define LISTED 8u
/* Bytes of an argument that the text shows. */
#define VALUE_BYTES 64u

/* ---- Rows of labels and values --------------------------------------------------------------- */

static void add_row(struct table *table, enum report_language language, enum word label,
                    struct text *value)
{
    table_add(table, words_get(language, label));
    table_add(table, text_get(value));
    table->cells.failed = table->cells.failed || value->failed;
    text_clear(value);
}

static void add_frames(struct table *table, const struct coredump_place *place,
                       enum report_language language, struct text *value)
{
    for (size_t i = 0; i < place->frame_count; i++) {
        coredump_add_line(value, &place->frames[i]);
        if (place->frames[i].function.length) {
            text_add(value, ", ");
            coredump_add_function(value, place->frames[i].function, false);
        }
        if (place->frames_cut && i + 1 == place->frame_count)
            text_add(value, " ...");
        add_row(table, language, i ? WORD_COREDUMP_INLINED_AT : WORD_COREDUMP_WHERE, value);
    }
}

static void add_place(struct table *table, const struct coredump_place *place,
                      enum report_language language, struct text *value)
{
    add_frames(table, place, language, value);
    text_addf(value, "0x%" PRIx64, place->address);
    if (coredump_name_is_known(&place->function)) {
        text_add(value, ", ");
        coredump_add_function(value, place->function.candidates[0], false);
        text_addf(value, " + 0x%" PRIx64, place->offset);
    }
    add_row(table, language, WORD_COREDUMP_ADDRESS, value);
}

static void add_device(struct table *table, const struct coredump_device *device, size_t index,
                       enum report_language language, struct text *value)
{
    const struct text_view parts[] = { device->name, device->chip, device->architecture };
    text_addf(value, "%zu", index);
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        text_add(value, parts[i].length ? ", " : "");
        text_add_printable(value, parts[i], 256);
    }
    text_addf(value, ", %" PRIu32 " SMs, PCI %02" PRIx32 ":%02" PRIx32, device->sm_count,
              device->pci_bus, device->pci_device);
    add_row(table, language, WORD_COREDUMP_DEVICE, value);
}

static void add_exception(struct table *table, const struct coredump *dump,
                          const struct coredump_exception *exception, enum report_language language,
                          struct text *value)
{
    const struct coredump_place *place = coredump_place_of(dump, exception);
    text_addf(value, "%s (%" PRIu32 ")", coredump_exception_words(exception->kind, language),
              exception->kind);
    add_row(table, language, WORD_COREDUMP_EXCEPTION, value);
    if (place)
        add_place(table, place, language, value);
    if (exception->has_warp) {
        text_addf(value, "%" PRIu32 ", %" PRIu32, exception->sm, exception->warp);
        add_row(table, language, WORD_COREDUMP_WARP, value);
    }
    for (int lane = 0; lane < COREDUMP_LANE_COUNT; lane++)
        if (exception->thread_mask >> lane & 1) {
            text_add(value, value->length ? " " : "");
            coredump_add_index(value, exception->threads[lane]);
        }
    if (value->length)
        add_row(table, language, WORD_COREDUMP_THREADS, value);
}

static void add_origin(struct table *table, const struct coredump *dump,
                       enum report_language language, struct text *value)
{
    const struct coredump_info *info = coredump_info(dump);
    char numbers[4][WORDS_NUMBER_BYTES], bytes[TEXT_BYTES_CAPACITY], driver[32], cuda[32];
    uint64_t modules = 0, images = 0;
    if (info->generator_known) {
        struct text generator;
        text_init(&generator);
        text_add_printable(&generator, info->generator, 256);
        snprintf(driver, sizeof(driver), "%" PRIu32 ".%02" PRIu32, info->driver_major,
                 info->driver_minor);
        snprintf(cuda, sizeof(cuda), "%" PRIu32 ".%" PRIu32, info->cuda_major, info->cuda_minor);
        words_add(value, language, WORD_COREDUMP_WRITER, text_get(&generator), driver, cuda, NULL);
        text_release(&generator);
        add_row(table, language, WORD_COREDUMP_WRITTEN_BY, value);
    }
    for (size_t i = 0; i < coredump_context_count(dump); i++) {
        modules += coredump_context_at(dump, i)->module_count;
        images += coredump_context_at(dump, i)->image_count;
    }
    words_add(value, language, WORD_COREDUMP_CONTENTS_ARE,
              words_number(info->section_count, numbers[0]), text_bytes(info->bytes, bytes),
              words_number(coredump_context_count(dump), numbers[1]),
              words_number(modules, numbers[2]), words_number(images, numbers[3]), NULL);
    add_row(table, language, WORD_COREDUMP_CONTENTS, value);
}

/* ---- Grids ---------------------------------------------------------------------------------- */

static void add_grid_shape(const struct coredump_grid *grid, enum report_language language,
                           struct text *value)
{
    struct text blocks, threads;
    char registers[WORDS_NUMBER_BYTES];
    text_init(&blocks);
    text_init(&threads);
    coredump_add_shape(&blocks, grid->blocks);
    coredump_add_shape(&threads, grid->threads);
    words_add(value, language, WORD_COREDUMP_SHAPE_IS, text_get(&blocks), text_get(&threads),
              words_number(grid->registers, registers), NULL);
    text_clear(&blocks);
    coredump_add_shape(&blocks, grid->cluster);
    if (grid->cluster.x > 1 || grid->cluster.y > 1 || grid->cluster.z > 1)
        words_add(value, language, WORD_COREDUMP_CLUSTER_IS, text_get(&blocks), NULL);
    text_release(&blocks);
    text_release(&threads);
}

static void add_arguments(const struct coredump_grid *grid, enum report_language language,
                          struct text *text)
{
    const struct coredump_argument whole = { 0, (uint32_t)min_u64(grid->argument_byte_count,
                                                                  UINT32_MAX) };
    const struct coredump_argument *arguments = grid->arguments_known ? grid->arguments : &whole;
    size_t count = grid->arguments_known ? grid->argument_count : 1;
    struct table table;
    struct text value;
    if (!grid->argument_bytes || count == 0)
        return;
    table_init(&table, 3);
    text_init(&value);
    text_addf(text, "%s\n", words_get(language, WORD_COREDUMP_ARGUMENTS));
    text_addf(&value, "  %s", words_get(language, WORD_COREDUMP_OFFSET));
    table_add(&table, text_get(&value));
    table_add(&table, words_get(language, WORD_COREDUMP_ARGUMENT_BYTES));
    table_add(&table, words_get(language, WORD_COREDUMP_VALUE));
    for (size_t i = 0; i < count; i++) {
        char bytes[WORDS_NUMBER_BYTES];
        text_clear(&value);
        text_addf(&value, "  %" PRIu32, arguments[i].offset);
        table_add(&table, text_get(&value));
        table_add(&table, words_number(arguments[i].bytes, bytes));
        text_clear(&value);
        coredump_add_value(&value, grid->argument_bytes + arguments[i].offset, arguments[i].bytes,
                           VALUE_BYTES);
        table_add(&table, text_get(&value));
    }
    table_print(&table, text);
    text->failed = text->failed || value.failed;
    table_release(&table);
    text_release(&value);
}

static void add_grid(const struct coredump_grid *grid, enum report_language language,
                     struct text *text)
{
    char number[WORDS_NUMBER_BYTES];
    struct table table;
    struct text value;
    text_init(&value);
    table_init(&table, 2);
    coredump_add_name(&value, &grid->name, false, language);
    text_add(text, "\n");
    words_add_line(text, language, WORD_COREDUMP_GRID, words_number(grid->number, number),
                   text_get(&value), NULL);
    text_clear(&value);
    text_add(&value, coredump_status_words(grid->status, language));
    add_row(&table, language, WORD_COREDUMP_STATE, &value);
    add_grid_shape(grid, language, &value);
    add_row(&table, language, WORD_COREDUMP_SHAPE, &value);
    if (grid->from_gpu)
        words_add(&value, language, WORD_COREDUMP_BY_GRID, words_number(grid->parent, number),
                  NULL);
    else
        words_add(&value, language, WORD_COREDUMP_BY_HOST, words_number(grid->host_thread, number),
                  NULL);
    add_row(&table, language, WORD_COREDUMP_LAUNCHED_BY, &value);
    table_print(&table, text);
    add_arguments(grid, language, text);
    table_release(&table);
    text_release(&value);
}

/* "and 12 more; --json lists more" */
static void add_more(size_t count, enum report_language language, struct text *text)
{
    char number[WORDS_NUMBER_BYTES];
    if (count == 0)
        return;
    text_add(text, "  ");
    words_add_line(text, language, WORD_COREDUMP_MORE, words_number(count, number), NULL);
}

static void add_other_grids(const struct coredump *dump, size_t own, enum report_language language,
                            struct text *text)
{
    size_t count = coredump_grid_count(dump), shown = 0, others = 0;
    struct table table;
    struct text value;
    table_init(&table, 4);
    text_init(&value);
    for (size_t i = 0; i < count; i++) {
        const struct coredump_grid *grid = coredump_grid_at(dump, i);
        others += i != own;
        if (i == own || shown == LISTED)
            continue;
        shown++;
        text_addf(&value, "  %" PRIu64, grid->number);
        table_add(&table, text_get(&value));
        table_add(&table, coredump_status_words(grid->status, language));
        text_clear(&value);
        coredump_add_name(&value, &grid->name, true, language);
        table_add(&table, text_get(&value));
        text_clear(&value);
        add_grid_shape(grid, language, &value);
        table_add(&table, text_get(&value));
        text_clear(&value);
    }
    if (shown) {
        text_addf(text, "\n%s\n",
                  words_get(language, own == COREDUMP_NO_INDEX ? WORD_COREDUMP_LIVE_GRIDS
                                                               : WORD_COREDUMP_OTHER_GRIDS));
        table_print(&table, text);
        add_more(others - shown, language, text);
    }
    table_release(&table);
    text_release(&value);
}

/* ---- The other exceptions -------------------------------------------------------------------- */

static void add_other_exceptions(const struct coredump *dump, enum report_language language,
                                 struct text *text)
{
    uint64_t total;
    size_t count = coredump_exception_count(dump, &total), shown = 0;
    struct table table;
    struct text value;
    if (count < 2)
        return;
    table_init(&table, 3);
    text_init(&value);
    for (size_t i = 1; i < count && shown < LISTED; i++, shown++) {
        const struct coredump_exception *exception = coredump_exception_at(dump, i);
        char sm[WORDS_NUMBER_BYTES], warp[WORDS_NUMBER_BYTES];
        text_addf(&value, "  %s", coredump_exception_words(exception->kind, language));
        table_add(&table, text_get(&value));
        text_clear(&value);
        words_add(&value, language,
                  exception->has_warp ? WORD_COREDUMP_AT_WARP : WORD_COREDUMP_AT_SM,
                  words_number(exception->sm, sm), words_number(exception->warp, warp), NULL);
        table_add(&table, text_get(&value));
        text_clear(&value);
        if (exception->has_warp)
            coredump_add_threads(exception, language, &value);
        coredump_add_where(dump, exception, language, &value);
        table_add(&table, text_get(&value));
        text_clear(&value);
    }
    text_addf(text, "\n%s\n", words_get(language, WORD_COREDUMP_OTHER_EXCEPTIONS));
    table_print(&table, text);
    add_more(total - 1 - shown, language, text);
    table_release(&table);
    text_release(&value);
}

/* ---- All of it ------------------------------------------------------------------------------ */

static void add_facts(const struct coredump *dump, const struct coredump_exception *first,
                      enum report_language language, struct text *text)
{
    struct table table;
    struct text value;
    table_init(&table, 2);
    text_init(&value);
    if (first)
        add_exception(&table, dump, first, language, &value);
    for (size_t i = 0; i < coredump_device_count(dump); i++)
        if (!first || first->device_index == i)
            add_device(&table, coredump_device_at(dump, i), i, language, &value);
    add_origin(&table, dump, language, &value);
    text_add(text, "\n");
    table_print(&table, text);
    table_release(&table);
    text_release(&value);
}

void report_coredump(const struct coredump *dump, enum report_language language, struct text *text)
{
    uint64_t total;
    size_t count = coredump_exception_count(dump, &total);
    const struct coredump_exception *first = count ? coredump_exception_at(dump, 0) : NULL;
    size_t own = first ? first->grid_index : COREDUMP_NO_INDEX;
    struct text gaps;
    coredump_add_first_line(dump, language, text);
    add_facts(dump, first, language, text);
    if (own != COREDUMP_NO_INDEX)
        add_grid(coredump_grid_at(dump, own), language, text);
    add_other_exceptions(dump, language, text);
    add_other_grids(dump, own, language, text);
    text_init(&gaps);
    coredump_add_gaps(dump, language, &gaps);
    if (gaps.length) {
        text_addf(text, "\n%s\n", words_get(language, WORD_COREDUMP_GAPS));
        text_add(text, text_get(&gaps));
    }
    text->failed = text->failed || gaps.failed;
    text_release(&gaps);
}
