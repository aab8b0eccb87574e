/* message.c - see message.h. */
#include "interpose/hip/message.h"

enum head_kind { HEAD_NUMBER, HEAD_TEXT, HEAD_BLOB, HEAD_ARRAY, HEAD_MAP, HEAD_OTHER };

struct head {
    enum head_kind kind;
    uint64_t value; /* a number; bytes, items or pairs that follow */
};

/* Numbers stand with their highest byte first. */
static enum status read_big(struct bytes *in, const char *field, uint32_t bytes, uint64_t *ret,
                            struct error *err)
{
    const uint8_t *data;
    TRY(bytes_take(in, field, bytes, &data, err));
    uint64_t value = 0;
    for (uint32_t i = 0; i < bytes; i++)
        value = value << 8 | data[i];
    *ret = value;
    return STATUS_OK;
}

/* The heads from 0xC0 to 0xDF: what follows the first byte as a number, and what else there is in
 * addition to that number. A row of 0 bytes that is no HEAD_OTHER does not exist. */
static const struct {
    uint8_t kind, bytes, more;
} heads[32] = {
    [0x00] = { HEAD_OTHER, 0, 0 }, /* nil */
    [0x02] = { HEAD_OTHER, 0, 0 }, /* false */
    [0x03] = { HEAD_OTHER, 0, 0 }, /* true */
    [0x04] = { HEAD_BLOB, 1, 0 },  /* bytes */
    [0x05] = { HEAD_BLOB, 2, 0 },   [0x06] = { HEAD_BLOB, 4, 0 },
    [0x07] = { HEAD_BLOB, 1, 1 }, /* extensions: a length, a type, bytes */
    [0x08] = { HEAD_BLOB, 2, 1 },   [0x09] = { HEAD_BLOB, 4, 1 },
    [0x0A] = { HEAD_OTHER, 4, 0 }, /* float32, float64 */
    [0x0B] = { HEAD_OTHER, 8, 0 },  [0x0C] = { HEAD_NUMBER, 1, 0 },
    [0x0D] = { HEAD_NUMBER, 2, 0 }, [0x0E] = { HEAD_NUMBER, 4, 0 },
    [0x0F] = { HEAD_NUMBER, 8, 0 }, [0x10] = { HEAD_OTHER, 1, 0 }, /* signed */
    [0x11] = { HEAD_OTHER, 2, 0 },  [0x12] = { HEAD_OTHER, 4, 0 },
    [0x13] = { HEAD_OTHER, 8, 0 },  [0x14] = { HEAD_OTHER, 2, 0 }, /* extensions of a fixed size */
    [0x15] = { HEAD_OTHER, 3, 0 },  [0x16] = { HEAD_OTHER, 5, 0 },
    [0x17] = { HEAD_OTHER, 9, 0 },  [0x18] = { HEAD_OTHER, 17, 0 },
    [0x19] = { HEAD_TEXT, 1, 0 },   [0x1A] = { HEAD_TEXT, 2, 0 },
    [0x1B] = { HEAD_TEXT, 4, 0 },   [0x1C] = { HEAD_ARRAY, 2, 0 },
    [0x1D] = { HEAD_ARRAY, 4, 0 },  [0x1E] = { HEAD_MAP, 2, 0 },
    [0x1F] = { HEAD_MAP, 4, 0 },
};

static enum status read_head(struct bytes *in, const char *field, struct head *ret,
                             struct error *err)
{
    uint64_t at = in->at;
    uint8_t first;
    TRY(bytes_u8(in, field, &first, err));
    if (first < 0x80)
        *ret = (struct head){ HEAD_NUMBER, first };
    else if (first < 0x90)
        *ret = (struct head){ HEAD_MAP, first & 0x0Fu };
    else if (first < 0xA0)
        *ret = (struct head){ HEAD_ARRAY, first & 0x0Fu };
    else if (first < 0xC0)
        *ret = (struct head){ HEAD_TEXT, first & 0x1Fu };
    else if (first >= 0xE0)
        *ret = (struct head){ HEAD_OTHER, 0 }; /* a small negative number */
    else if (first == 0xC1)
        return bytes_fail(in, at, field, err, "expected a value, found a byte of no kind");
    else {
        *ret = (struct head){ (enum head_kind)heads[first & 31].kind, 0 };
        TRY(read_big(in, field, heads[first & 31].bytes, &ret->value, err));
        ret->value += heads[first & 31].more;
    }
    return STATUS_OK;
}

static enum status read_kind(struct bytes *in, const char *field, enum head_kind kind,
                             const char *wanted, uint64_t *ret, struct error *err)
{
    uint64_t at = in->at;
    struct head head;
    TRY(read_head(in, field, &head, err));
    if (head.kind != kind)
        return bytes_fail(in, at, field, err, "expected %s, found something else", wanted);
    *ret = head.value;
    return STATUS_OK;
}

enum status message_map(struct bytes *in, const char *field, uint64_t *ret_count, struct error *err)
{
    return read_kind(in, field, HEAD_MAP, "a map", ret_count, err);
}

enum status message_array(struct bytes *in, const char *field, uint64_t *ret_count,
                          struct error *err)
{
    return read_kind(in, field, HEAD_ARRAY, "a list", ret_count, err);
}

enum status message_number(struct bytes *in, const char *field, uint64_t *ret, struct error *err)
{
    return read_kind(in, field, HEAD_NUMBER, "a number", ret, err);
}

enum status message_text(struct bytes *in, const char *field, struct text_view *ret,
                         struct error *err)
{
    uint64_t length;
    const uint8_t *data;
    TRY(read_kind(in, field, HEAD_TEXT, "a text", &length, err));
    TRY(bytes_take(in, field, length, &data, err));
    *ret = (struct text_view){ (const char *)data, (size_t)length };
    return STATUS_OK;
}

enum status message_skip(struct bytes *in, struct error *err)
{
    /* Every value that is owed takes a byte at least: what is owed beyond the bytes left ends the
     * loop at their end. */
    for (uint64_t owed = 1; owed; owed--) {
        struct head head;
        const uint8_t *data;
        TRY(read_head(in, "value", &head, err));
        if (head.kind == HEAD_TEXT || head.kind == HEAD_BLOB)
            TRY(bytes_take(in, "value", head.value, &data, err));
        else if (head.kind == HEAD_ARRAY)
            owed += head.value;
        else if (head.kind == HEAD_MAP)
            owed += 2 * head.value;
    }
    return STATUS_OK;
}
