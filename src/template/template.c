/* template.c - from a source to a template. */
#include "template/template.h"

#include "template/parser.h"
#include "template/strings.h"

#include <stdlib.h>
#include <string.h>

/* A tree takes at most about 100 bytes a byte of source. */
#define TREE_LIMIT_BYTES ((uint64_t)256 << 20)

/* CRLF and CR become LF; one line end at the very end goes. The text must be UTF-8. */
static enum status normalise(struct text_view source, struct text *out, struct report *report)
{
    size_t at = 0;
    while (at < source.length) {
        size_t step = text_utf8_length(source.bytes + at, source.length - at);
        if (step == 0)
            return jinja_report(report, TEMPLATE_PROBLEM_SYNTAX, (uint32_t)out->length,
                                "expected UTF-8, found the byte 0x%02x",
                                (unsigned char)source.bytes[at]);
        if (source.bytes[at] == '\r') {
            text_add(out, "\n");
            at += at + 1 < source.length && source.bytes[at + 1] == '\n' ? 2 : 1;
            continue;
        }
        text_add_bytes(out, source.bytes + at, step);
        at += step;
    }
    if (out->length > 0 && out->bytes[out->length - 1] == '\n')
        out->length--;
    return out->failed ? jinja_report_memory(report) : STATUS_OK;
}

static enum status lex_and_parse(struct template *template, struct report *report)
{
    struct lexer lexer = { .template = template,
                           .report = report,
                           .source = text_get(&template->source),
                           .length = (uint32_t) template->source.length };
    struct parser parser = { .template = template, .report = report };
    enum status status = jinja_lex(&lexer);
    if (status)
        goto done;
    parser.tokens = lexer.tokens;
    status = jinja_parse_block(&parser, NULL, &template->root);
    if (!status)
        status = jinja_check(&parser, template->root);
done:
    free(parser.stack);
    free(lexer.tokens);
    return status;
}

enum status template_parse(struct text_view source, struct template **ret,
                           struct template_failure *failure, struct error *err)
{
    struct report report;
    struct template *template = calloc(1, sizeof(*template));
    if (!template)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a template");
    jinja_report_init(&report);
    text_init(&template->source);
    template->arena.limit_bytes = TREE_LIMIT_BYTES;
    enum status status;
    if (source.length > SOURCE_LIMIT_BYTES)
        status = jinja_report(&report, TEMPLATE_PROBLEM_LIMIT, UINT32_MAX,
                              "a template of %zu bytes; the limit is %zu", source.length,
                              SOURCE_LIMIT_BYTES);
    else
        status = normalise(source, &template->source, &report);
    if (!status)
        status = lex_and_parse(template, &report);
    if (status) {
        jinja_report_finish(&report, &template->source, failure, err);
        template_destroy(template);
        return status;
    }
    template_failure_release(&report.failure);
    *ret = template;
    return STATUS_OK;
}

void template_destroy(struct template *template)
{
    if (!template)
        return;
    arena_release(&template->arena);
    text_release(&template->source);
    free(template);
}

static bool node_mentions(const struct node *node, const char *name)
{
    if ((node->kind == NODE_CONSTANT || node->kind == NODE_ATTRIBUTE) &&
        value_is(node->value, VALUE_STRING) && jinja_text_is(node->value.string, name))
        return true;
    for (uint32_t i = 0; i < node->count; i++)
        if (node->kids[i] && node_mentions(node->kids[i], name))
            return true;
    return false;
}

bool template_mentions(const struct template *template, const char *name)
{
    for (uint32_t i = 0; i < template->name_count; i++)
        if (jinja_text_is(template->names[i], name))
            return true;
    return node_mentions(template->root, name);
}
