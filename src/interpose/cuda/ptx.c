/* ptx.c - finds the kernels of a PTX text and their parameters; ptx_flow.c reads their bodies. */
#include "interpose/cuda/ptx.h"
#include "interpose/cuda/ptx_flow.h"

#include <stdlib.h>
#include <string.h>

/* ---- Plain text ----------------------------------------------------------------------------- */

/* Lines of these directives end without a semicolon, and say nothing of what a kernel does. */
static bool is_line_directive(const char *at, size_t left)
{
    static const char *const names[] = { ".loc", ".file", ".section", ".version", ".target" };
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        size_t length = strlen(names[i]);
        if (left > length && memcmp(at, names[i], length) == 0 &&
            (at[length] == ' ' || at[length] == '\t'))
            return true;
    }
    return false;
}

/* Bytes from here on that are a comment or such a line; 0: none. */
static size_t dropped_here(const char *text, size_t at, size_t bytes, bool at_line_start)
{
    const char *end = NULL;
    if (at + 1 < bytes && text[at] == '/' && text[at + 1] == '*') {
        for (size_t i = at + 2; i + 1 < bytes && !end; i++)
            if (text[i] == '*' && text[i + 1] == '/')
                end = text + i + 2;
        return end ? (size_t)(end - text) - at : bytes - at;
    }
    bool line = (at + 1 < bytes && text[at] == '/' && text[at + 1] == '/') ||
                (at_line_start && is_line_directive(text + at, bytes - at));
    if (!line)
        return 0;
    end = memchr(text + at, '\n', bytes - at);
    return end ? (size_t)(end - text) - at : bytes - at;
}

/* Without comments, strings and directives of a line; all white space is blanks. The result has at
 * most `bytes` bytes and is freed by the caller; NULL without memory. */
static char *plain_of(const char *text, size_t bytes, size_t *ret_bytes)
{
    char *plain = malloc(bytes + 1);
    size_t count = 0;
    bool line_start = true;
    for (size_t at = 0; plain && at < bytes; at++) {
        size_t dropped = dropped_here(text, at, bytes, line_start);
        if (dropped) {
            at += dropped - 1;
            plain[count++] = ' ';
            continue;
        }
        if (text[at] == '"') {
            const char *end = memchr(text + at + 1, '"', bytes - at - 1);
            at = end ? (size_t)(end - text) : bytes - 1;
            continue;
        }
        bool blank = text[at] == ' ' || text[at] == '\t' || text[at] == '\r' || text[at] == '\n';
        line_start = text[at] == '\n' || (line_start && blank);
        plain[count++] = blank ? ' ' : text[at];
    }
    *ret_bytes = count;
    return plain;
}

/* ---- Parameters ----------------------------------------------------------------------------- */

static struct text_view trimmed(const char *from, const char *to)
{
    while (from < to && *from == ' ')
        from++;
    while (from < to && to[-1] == ' ')
        to--;
    return (struct text_view){ from, (size_t)(to - from) };
}

/* "8" of ".u64"; 0: not a type. */
static uint32_t type_bytes(struct text_view word)
{
    static const struct {
        const char *bits;
        uint32_t bytes;
    } sizes[] = { { "8", 1 }, { "16", 2 }, { "32", 4 }, { "64", 8 }, { "128", 16 } };
    if (word.length < 3 || word.bytes[0] != '.' || !strchr("busf", word.bytes[1]))
        return 0;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        if (word.length - 2 == strlen(sizes[i].bits) &&
            memcmp(word.bytes + 2, sizes[i].bits, word.length - 2) == 0)
            return sizes[i].bytes;
    return 0;
}

static bool number_of(struct text_view digits, uint32_t *ret_number)
{
    uint32_t number = 0;
    for (size_t i = 0; i < digits.length; i++) {
        if (digits.bytes[i] < '0' || digits.bytes[i] > '9' || number > 65536)
            return false;
        number = number * 10 + (uint32_t)(digits.bytes[i] - '0');
    }
    *ret_number = number;
    return digits.length > 0;
}

/* ".param .align 8 .b8 name[24]" */
static bool read_parameter(struct text_view one, struct ptx_parameter *ret)
{
    struct ptx_parameter parameter = { .bytes = 0 };
    const char *at = one.bytes, *end = one.bytes + one.length;
    uint32_t count = 1;
    struct text_view word = { NULL, 0 };
    if (one.length < 7 || memcmp(at, ".param ", 7) != 0)
        return false;
    while (at < end) {
        const char *stop = memchr(at, ' ', (size_t)(end - at));
        word = (struct text_view){ at, (size_t)((stop ? stop : end) - at) };
        if (!parameter.bytes)
            parameter.bytes = type_bytes(word);
        for (at = stop ? stop : end; at < end && *at == ' ';)
            at++;
    }
    const char *bracket = memchr(word.bytes, '[', word.length);
    parameter.name = word;
    if (bracket) {
        parameter.name.length = (size_t)(bracket - word.bytes);
        if (word.bytes[word.length - 1] != ']' ||
            !number_of(trimmed(bracket + 1, word.bytes + word.length - 1), &count))
            return false;
    }
    parameter.bytes *= count;
    *ret = parameter;
    return parameter.bytes > 0 && parameter.name.length > 0;
}

/* What stands between the parentheses. False if it cannot be understood. */
static bool read_parameters(struct text_view list, struct ptx_kernel *kernel)
{
    const char *at = list.bytes, *end = list.bytes + list.length;
    struct kernel_uses *uses = &kernel->uses;
    uint32_t words = 0;
    while (at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        struct text_view one = trimmed(at, comma ? comma : end);
        struct ptx_parameter *parameter = &kernel->parameters[uses->parameter_count];
        if (one.length == 0 && !comma && uses->parameter_count == 0)
            return true;
        if (uses->parameter_count == KERNEL_PARAMETER_LIMIT || !read_parameter(one, parameter))
            return false;
        parameter->word = words;
        parameter->words = (parameter->bytes + 7) / 8;
        words += parameter->words;
        if (words > KERNEL_WORD_LIMIT)
            return false;
        uses->sizes[uses->parameter_count] = (uint16_t)parameter->bytes;
        uses->words[uses->parameter_count++] = (uint16_t)parameter->word;
        at = comma ? comma + 1 : end;
    }
    return true;
}

/* ---- Kernels -------------------------------------------------------------------------------- */

/* The first of these characters; NULL: none. */
static const char *find_any(const char *from, const char *to, const char *wanted)
{
    while (from < to && !strchr(wanted, *from))
        from++;
    return from < to && *from ? from : NULL;
}

/* The brace that closes the one at `from`; NULL: there is none. */
static const char *closing(const char *from, const char *to)
{
    size_t depth = 0;
    for (; from < to; from++) {
        depth += *from == '{';
        if (*from == '}' && --depth == 0)
            return from;
    }
    return NULL;
}

/* Reads the kernel whose name begins at `at`; returns where to go on. */
static const char *read_kernel(const char *at, const char *end, struct ptx_kernel *kernel,
                               bool *ret_good)
{
    const char *stop = find_any(at, end, "({;");
    *ret_good = false;
    memset(kernel, 0, sizeof(*kernel));
    if (!stop)
        return end;
    kernel->name = trimmed(at, stop);
    bool good = kernel->name.length > 0;
    if (*stop == '(') {
        const char *close = memchr(stop, ')', (size_t)(end - stop));
        if (!close)
            return end;
        good = good && read_parameters(trimmed(stop + 1, close), kernel);
        stop = find_any(close, end, "{;");
    }
    if (!stop || *stop == ';')
        return stop ? stop : end; /* declared, not defined */
    const char *close = closing(stop, end);
    if (!close)
        return end;
    kernel->body = (struct text_view){ stop + 1, (size_t)(close - stop - 1) };
    *ret_good = good;
    return close;
}

void ptx_read(const char *text, size_t bytes,
              void (*found)(void *context, const char *name, size_t name_bytes,
                            const struct kernel_uses *uses),
              void *context)
{
    static const char word[] = ".entry ";
    size_t count = 0;
    char *plain = plain_of(text, bytes, &count);
    struct ptx_kernel *kernel = malloc(sizeof(*kernel));
    struct ptx_flow *flow = ptx_flow_create();
    const char *at = plain, *end = plain ? plain + count : NULL;
    while (kernel && flow && at < end) {
        const char *dot = memchr(at, '.', (size_t)(end - at));
        if (!dot || (size_t)(end - dot) < sizeof(word))
            break;
        at = dot + 1;
        if (memcmp(dot, word, sizeof(word) - 1) != 0)
            continue;
        bool good;
        at = read_kernel(dot + sizeof(word) - 1, end, kernel, &good);
        if (good && ptx_flow_read(flow, kernel))
            found(context, kernel->name.bytes, kernel->name.length, &kernel->uses);
    }
    ptx_flow_destroy(flow);
    free(kernel);
    free(plain);
}
