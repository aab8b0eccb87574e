/* fuzz_coredump.c - any bytes as a GPU core dump: what is read lies within them, and can be printed
 * in both languages and as JSON. */
#include "coredump/coredump.h"
#include "report/report.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_printed(struct text *text)
{
    for (size_t i = 0; i < text->length; i++)
        ASSERT((unsigned char)text->bytes[i] >= 0x20 || text->bytes[i] == '\n');
    text_release(text);
}

static void print_all(const struct coredump *dump)
{
    struct text text;
    for (int language = 0; language < REPORT_LANGUAGE_COUNT; language++) {
        text_init(&text);
        report_coredump(dump, (enum report_language)language, &text);
        check_printed(&text);
    }
    text_init(&text);
    report_coredump_json(dump, &text);
    check_printed(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy of exactly that size, so that a byte too much is noticed. */
    uint8_t *bytes = malloc(size ? size : 1);
    struct coredump *dump;
    struct error err;
    ASSERT(bytes);
    if (size)
        memcpy(bytes, data, size);
    if (coredump_open_memory(bytes, size, "fuzz", &dump, &err)) {
        ASSERT(err.text[0] != '\0');
    } else {
        print_all(dump);
        coredump_close(dump);
    }
    free(bytes);
    return 0;
}
