/* infer_prompts.c - see infer_prompts.h. */
#include "cli/infer_prompts.h"

#include "cli/token_input.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- Escapes -------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void infer_add_unescaped(struct text *out, const char *text)
{
    static const char letters[] = "nrt'\"\\", bytes[] = "\n\r\t'\"\\";
    while (*text) {
        const char *known = text[0] == '\\' && text[1] ? strchr(letters, text[1]) : NULL;
        if (known) {
            text_add_bytes(out, &bytes[known - letters], 1);
            text += 2;
        } else if (text[0] == '\\' && text[1] == 'x' && hex_digit(text[2]) >= 0 &&
                   hex_digit(text[3]) >= 0) {
            char byte = (char)(hex_digit(text[2]) * 16 + hex_digit(text[3]));
            text_add_bytes(out, &byte, 1);
            text += 4;
        } else {
            text_add_bytes(out, text++, 1);
        }
    }
}

/* ---- The list ------------------------------------------------------------------------------- */

/* Adds an empty prompt. NULL without memory. */
static struct text *add_prompt(struct infer_prompts *prompts, struct error *err)
{
    struct text *texts = realloc(prompts->texts, (prompts->count + 1) * sizeof(*texts));
    if (!texts) {
        error_set_at(err, STATUS_NO_MEMORY, __FILE__, __LINE__, "no memory for prompts");
        return NULL;
    }
    prompts->texts = texts;
    text_init(&texts[prompts->count]);
    return &texts[prompts->count++];
}

static const char *find(const char *bytes, size_t length, const struct text *separator)
{
    for (size_t i = 0; i + separator->length <= length; i++)
        if (memcmp(bytes + i, separator->bytes, separator->length) == 0)
            return bytes + i;
    return NULL;
}

static enum status add_pieces(struct infer_prompts *prompts, const struct text *whole,
                              const struct text *separator, bool exact, struct error *err)
{
    const char *at = text_get(whole), *end = at + whole->length;
    for (bool more = true; more;) {
        const char *next = separator->length ? find(at, (size_t)(end - at), separator) : NULL;
        const char *stop = next ? next : end;
        more = next != NULL;
        size_t length = (size_t)(stop - at);
        if (!exact && length && at[length - 1] == '\n')
            length--; /* editors put it there */
        /* A separator at the very end separates nothing. */
        if (!next && length == 0 && prompts->count)
            break;
        if (prompts->count == INFER_PROMPT_LIMIT)
            return error_set(err, STATUS_LIMIT, "prompts: expected at most %u in a file",
                             INFER_PROMPT_LIMIT);
        struct text *prompt = add_prompt(prompts, err);
        if (!prompt)
            return STATUS_NO_MEMORY;
        text_add_bytes(prompt, at, length);
        at = stop + separator->length;
    }
    return STATUS_OK;
}

static enum status add_file(struct infer_prompts *prompts, const struct infer_prompt_source *source,
                            struct error *err)
{
    struct text whole, separator;
    text_init(&whole);
    text_init(&separator);
    if (source->separator && source->escapes)
        infer_add_unescaped(&separator, source->separator);
    else if (source->separator)
        text_add(&separator, source->separator);
    enum status status = token_input_read_file(source->file ? source->file : source->binary_file,
                                               TOKENIZER_TEXT_LIMIT_BYTES, &whole, err);
    if (!status && separator.failed)
        status = error_set(err, STATUS_NO_MEMORY, "no memory for the prompt");
    if (!status)
        status = add_pieces(prompts, &whole, &separator, source->file == NULL, err);
    text_release(&whole);
    text_release(&separator);
    return status;
}

static enum status add_arguments(struct infer_prompts *prompts,
                                 const struct infer_prompt_source *source, struct error *err)
{
    for (size_t i = 0; i < source->prompts->count; i++) {
        struct text *prompt = add_prompt(prompts, err);
        if (!prompt)
            return STATUS_NO_MEMORY;
        if (source->escapes)
            infer_add_unescaped(prompt, source->prompts->items[i]);
        else
            text_add(prompt, source->prompts->items[i]);
    }
    return STATUS_OK;
}

static enum status check_prompts(const struct infer_prompts *prompts, struct error *err)
{
    for (size_t i = 0; i < prompts->count; i++) {
        if (prompts->texts[i].failed)
            return error_set(err, STATUS_NO_MEMORY, "no memory for the prompt");
        if (prompts->texts[i].length == 0)
            return prompts->count == 1
                       ? error_set(err, STATUS_USAGE, "prompt: expected some text, found none")
                       : error_set(err, STATUS_USAGE,
                                   "prompt %zu of %zu: expected some text, found none", i + 1,
                                   prompts->count);
    }
    return STATUS_OK;
}

enum status infer_prompts_read(struct infer_prompts *prompts,
                               const struct infer_prompt_source *source, struct error *err)
{
    *prompts = (struct infer_prompts){ 0 };
    bool from_file = source->file || source->binary_file;
    if (source->file && source->binary_file)
        return error_set(err, STATUS_USAGE, "expected --prompt-file or --binary-file, found both");
    if (source->prompts->count && from_file)
        return error_set(err, STATUS_USAGE, "expected --prompt or --prompt-file, found both");
    if (!source->prompts->count && !from_file)
        return error_set(err, STATUS_USAGE,
                         "expected --prompt TEXT or --prompt-file FILE, found neither");
    if (source->separator && (!from_file || source->separator[0] == '\0'))
        return error_set(err, STATUS_USAGE,
                         "--prompt-separator: expected some text, and a --prompt-file to divide");
    enum status status = from_file ? add_file(prompts, source, err)
                                   : add_arguments(prompts, source, err);
    if (!status)
        status = check_prompts(prompts, err);
    if (status)
        infer_prompts_release(prompts);
    return status;
}

void infer_prompts_release(struct infer_prompts *prompts)
{
    for (size_t i = 0; i < prompts->count; i++)
        text_release(&prompts->texts[i]);
    free(prompts->texts);
    *prompts = (struct infer_prompts){ 0 };
}
