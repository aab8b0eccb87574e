/* ptx_statement.c - see ptx_statement.h. Any word that is no number is a name. */
#include "interpose/cuda/ptx_statement.h"

#include <string.h>

static bool is_name_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '_' || byte == '$' || byte == '%';
}

/* Numbers, also 0f3F800000 and 0x10, begin with a digit. */
static void read_operands(const char *at, const char *end, struct ptx_statement *statement)
{
    uint32_t operand = 0, bracket = 0, depth = 0, braces = 0;
    while (at < end) {
        if (is_name_byte(*at)) {
            const char *from = at;
            while (at < end && is_name_byte(*at))
                at++;
            if (*from >= '0' && *from <= '9')
                continue;
            statement->cut = statement->cut || statement->count == PTX_OPERAND_LIMIT;
            if (statement->count < PTX_OPERAND_LIMIT)
                statement->names[statement->count++] = (struct ptx_operand){
                    { from, (size_t)(at - from) }, operand, depth ? bracket : 0
                };
            continue;
        }
        bracket += *at == '[';
        depth = *at == '[' ? 1 : *at == ']' ? 0 : depth;
        braces += *at == '{' || *at == '(';
        braces -= (*at == '}' || *at == ')') && braces;
        operand += *at == ',' && !depth && !braces;
        at++;
    }
}

/* Past labels, braces and the predicate. */
static const char *begin_of(const char *at, const char *end)
{
    for (;;) {
        while (at < end && (*at == ' ' || *at == '{' || *at == '}'))
            at++;
        const char *after = at;
        if (after < end && *after == '@')
            for (after++; after < end && *after == '!';)
                after++;
        bool predicate = after > at;
        while (after < end && is_name_byte(*after))
            after++;
        bool label = !predicate && after > at && after < end && *after == ':' &&
                     (after + 1 == end || after[1] != ':');
        if (!predicate && !label)
            return at;
        at = after + label;
    }
}

bool ptx_statement_read(const char *at, const char *end, struct ptx_statement *ret)
{
    at = begin_of(at, end);
    const char *from = at;
    while (at < end && (is_name_byte(*at) || *at == '.' || *at == ':'))
        at++;
    ret->opcode = (struct text_view){ from, (size_t)(at - from) };
    ret->count = 0;
    ret->cut = false;
    ret->end = end;
    if (from == at || *from == '.')
        return false;
    read_operands(at, end, ret);
    return true;
}

/* ---- Parts of it ---------------------------------------------------------------------------- */

bool ptx_has_part(struct text_view opcode, const char *part)
{
    size_t length = strlen(part);
    for (size_t at = 0; at + length < opcode.length; at++)
        if (opcode.bytes[at] == '.' && memcmp(opcode.bytes + at + 1, part, length) == 0 &&
            (at + 1 + length == opcode.length || opcode.bytes[at + 1 + length] == '.' ||
             opcode.bytes[at + 1 + length] == ':'))
            return true;
    return false;
}

uint32_t ptx_value_bytes(struct text_view opcode)
{
    const char *end = opcode.bytes + opcode.length, *digits = end;
    uint32_t bits = 0;
    while (digits > opcode.bytes && digits[-1] >= '0' && digits[-1] <= '9')
        digits--;
    for (; digits < end && bits < 1000; digits++)
        bits = bits * 10 + (uint32_t)(*digits - '0');
    return bits / 8;
}

bool ptx_offset_after(const char *at, const char *end, uint32_t *ret_offset)
{
    uint32_t offset = 0;
    while (at < end && *at == ' ')
        at++;
    if (at < end && *at == '+')
        for (at++; at < end && *at >= '0' && *at <= '9' && offset < 65536; at++)
            offset = offset * 10 + (uint32_t)(*at - '0');
    while (at < end && *at == ' ')
        at++;
    *ret_offset = offset;
    return at < end && *at == ']';
}
