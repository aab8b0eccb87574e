/* ptx_statement.h - the text of one instruction: its opcode, and the names among its operands; for
 * ptx_flow.c. */
#ifndef GRETA_INTERPOSE_CUDA_PTX_STATEMENT_H
#define GRETA_INTERPOSE_CUDA_PTX_STATEMENT_H

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PTX_OPERAND_LIMIT 256u

/* A name among the operands: which operand, and in which pair of brackets (0: in none). */
struct ptx_operand {
    struct text_view name;
    uint32_t operand, bracket;
};

struct ptx_statement {
    struct text_view opcode;
    struct ptx_operand names[PTX_OPERAND_LIMIT];
    size_t count;
    const char *end; /* of its text */
    bool cut;        /* it has more names than fit */
};

/* The text ends before its semicolon. False: a directive, or nothing. */
bool ptx_statement_read(const char *at, const char *end, struct ptx_statement *ret);

/* The opcode has that part after one of its dots. */
bool ptx_has_part(struct text_view opcode, const char *part);
/* Bytes of each value that an opcode loads: its last type. */
uint32_t ptx_value_bytes(struct text_view opcode);
/* "+8" or nothing, up to the bracket; false: anything else. */
bool ptx_offset_after(const char *at, const char *end, uint32_t *ret_offset);

#endif
