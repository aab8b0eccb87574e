/* npy.c - see npy.h. The format: "\x93NUMPY", major, minor, length of the header (u16, from version
 * 2 on u32), a Python dictionary as text, padded with spaces so that the data is aligned to 64. */
#include "tensor/npy.h"

#include "base/bytes.h"
#include "base/size.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const uint8_t magic[6] = { 0x93, 'N', 'U', 'M', 'P', 'Y' };

/* ---- Writing -------------------------------------------------------------------------------- */

void npy_header(const struct shape *shape, uint8_t header[NPY_HEADER_BYTES])
{
    char text[NPY_HEADER_BYTES];
    int used = snprintf(text, sizeof(text), "{'descr': '<f4', 'fortran_order': False, 'shape': (");
    for (uint32_t i = shape->rank; i-- > 0;)
        used += snprintf(text + used, sizeof(text) - (size_t)used, "%" PRIu64 "%s", shape->dims[i],
                         i > 0 || shape->rank == 1 ? ", " : "");
    used += snprintf(text + used, sizeof(text) - (size_t)used, "), }");
    size_t room = NPY_HEADER_BYTES - 10;
    ASSERT((size_t)used < room); /* 57 characters and four extents below 10^15 */
    memset(header, ' ', NPY_HEADER_BYTES);
    memcpy(header, magic, sizeof(magic));
    header[6] = 1;
    header[7] = 0;
    header[8] = (uint8_t)room;
    header[9] = 0;
    memcpy(header + 10, text, (size_t)used);
    header[NPY_HEADER_BYTES - 1] = '\n';
}

enum status npy_write(const char *path, const struct shape *shape, const float *values,
                      struct error *err)
{
    uint8_t header[NPY_HEADER_BYTES];
    uint64_t count = 0;
    ASSERT(shape_element_count(shape, &count));
    npy_header(shape, header);
    FILE *file = fopen(path, "wbx");
    if (!file)
        return error_set_os(err, errno, "%s: cannot create it", path);
    bool written = fwrite(header, 1, sizeof(header), file) == sizeof(header) &&
                   fwrite(values, sizeof(float), (size_t)count, file) == count;
    int os_code = errno;
    if (fclose(file) == 0 && written)
        return STATUS_OK;
    os_code = written ? errno : os_code;
    remove(path);
    return error_set_os(err, os_code, "%s: cannot write to it", path);
}

/* ---- Reading -------------------------------------------------------------------------------- */

/* The dictionary as text, read from left to right. */
struct scan {
    const char *at, *end;
};

static void skip_spaces(struct scan *scan)
{
    while (scan->at < scan->end && (*scan->at == ' ' || *scan->at == '\n'))
        scan->at++;
}

/* Skips the text if it comes next. */
static bool take(struct scan *scan, const char *text)
{
    skip_spaces(scan);
    size_t length = strlen(text);
    if ((size_t)(scan->end - scan->at) < length || memcmp(scan->at, text, length) != 0)
        return false;
    scan->at += length;
    return true;
}

/* 'text' in either kind of quotes; false if it does not fit. */
static bool take_string(struct scan *scan, char *text, size_t text_bytes)
{
    skip_spaces(scan);
    if (scan->at == scan->end || (*scan->at != '\'' && *scan->at != '"'))
        return false;
    char quote = *scan->at++;
    size_t length = 0;
    while (scan->at < scan->end && *scan->at != quote && length + 1 < text_bytes)
        text[length++] = *scan->at++;
    text[length] = '\0';
    return scan->at < scan->end && *scan->at++ == quote;
}

static bool take_number(struct scan *scan, uint64_t *ret_number)
{
    uint64_t number = 0;
    skip_spaces(scan);
    const char *first = scan->at;
    while (scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9') {
        if (!size_mul(number, 10, &number) ||
            !size_add(number, (uint64_t)(*scan->at - '0'), &number))
            return false;
        scan->at++;
    }
    *ret_number = number;
    return scan->at > first;
}

/* What the dictionary must hold. */
struct dictionary {
    char descr[16];
    bool fortran;
    uint64_t dims[SHAPE_RANK_LIMIT]; /* slowest first, as in the file */
    uint32_t rank;
    unsigned seen; /* a bit for each key */
};

/* "(5, 4096)", "(7,)", "()". */
static bool take_shape(struct scan *scan, struct dictionary *found)
{
    if (!take(scan, "("))
        return false;
    found->rank = 0;
    while (!take(scan, ")")) {
        uint64_t extent;
        if (!take_number(scan, &extent))
            return false;
        if (found->rank < SHAPE_RANK_LIMIT)
            found->dims[found->rank] = extent;
        found->rank++;
        if (!take(scan, ",")) {
            if (!take(scan, ")"))
                return false;
            break;
        }
    }
    return true;
}

static bool take_entry(struct scan *scan, struct dictionary *found)
{
    char key[16];
    if (!take_string(scan, key, sizeof(key)) || !take(scan, ":"))
        return false;
    if (strcmp(key, "descr") == 0) {
        found->seen |= 1;
        return take_string(scan, found->descr, sizeof(found->descr));
    }
    if (strcmp(key, "fortran_order") == 0) {
        found->seen |= 2;
        found->fortran = take(scan, "True");
        return found->fortran || take(scan, "False");
    }
    found->seen |= 4;
    return strcmp(key, "shape") == 0 && take_shape(scan, found);
}

static bool take_dictionary(struct scan *scan, struct dictionary *found)
{
    if (!take(scan, "{"))
        return false;
    while (!take(scan, "}")) {
        if (!take_entry(scan, found))
            return false;
        if (!take(scan, ",")) {
            if (!take(scan, "}"))
                return false;
            break;
        }
    }
    skip_spaces(scan);
    return scan->at == scan->end && found->seen == 7;
}

static enum status read_dictionary(struct bytes *in, struct dictionary *found, struct error *err)
{
    const uint8_t *start, *text;
    uint8_t major, minor;
    uint16_t short_length;
    uint32_t length;
    TRY(bytes_take(in, "magic", sizeof(magic), &start, err));
    if (memcmp(start, magic, sizeof(magic)) != 0)
        return bytes_fail(in, 0, "magic", err, "expected \\x93NUMPY, found something else");
    TRY(bytes_u8(in, "major version", &major, err));
    TRY(bytes_u8(in, "minor version", &minor, err));
    if (major < 1 || major > 3)
        return bytes_fail(in, 6, "version", err, "expected 1, 2 or 3, found %u", major);
    if (major == 1) {
        TRY(bytes_u16(in, "header length", &short_length, err));
        length = short_length;
    } else {
        TRY(bytes_u32(in, "header length", &length, err));
    }
    uint64_t at = in->at;
    TRY(bytes_take(in, "header", length, &text, err));
    struct scan scan = { (const char *)text, (const char *)text + length };
    if (!take_dictionary(&scan, found))
        return bytes_fail(in, at, "header", err,
                          "expected a dictionary of descr, fortran_order and shape, found another "
                          "text at its byte %zu",
                          (size_t)(scan.at - (const char *)text));
    return STATUS_OK;
}

static enum status read_shape(struct npy *npy, const struct bytes *in,
                              const struct dictionary *found, struct error *err)
{
    char shown[SHAPE_TEXT_BYTES];
    if (strcmp(found->descr, "<f4") != 0 || found->fortran || found->rank > SHAPE_RANK_LIMIT) {
        struct text_view descr = text_view_of(found->descr);
        char safe[64];
        return error_set(err, STATUS_UNSUPPORTED,
                         "%s: expected '<f4' in C order with at most %d dimensions, found '%s' in "
                         "%s order with %" PRIu32,
                         in->source, SHAPE_RANK_LIMIT, text_printable(descr, safe, sizeof(safe)),
                         found->fortran ? "Fortran" : "C", found->rank);
    }
    uint64_t dims[SHAPE_RANK_LIMIT] = { 0 };
    for (uint32_t i = 0; i < found->rank; i++)
        dims[i] = found->dims[found->rank - 1 - i];
    npy->shape = shape_make(found->rank, dims);
    uint64_t bytes;
    if (!shape_element_count(&npy->shape, &npy->count) || !size_mul(npy->count, 4, &bytes) ||
        bytes != bytes_left(in))
        return bytes_fail(in, in->at, "data", err,
                          "expected the values of shape %s, found %" PRIu64 " bytes",
                          shape_text(&npy->shape, shown), bytes_left(in));
    if (in->at % sizeof(float))
        return bytes_fail(in, in->at, "data", err, "expected it to be aligned to 4 bytes");
    npy->values = (const float *)(const void *)(in->data + in->at);
    return STATUS_OK;
}

enum status npy_read(struct npy *npy, const void *bytes, uint64_t count, const char *name,
                     struct error *err)
{
    struct bytes in;
    struct dictionary found = { 0 };
    *npy = (struct npy){ 0 };
    bytes_init(&in, bytes, count, name);
    TRY(read_dictionary(&in, &found, err));
    return read_shape(npy, &in, &found, err);
}

enum status npy_open(struct npy *npy, const char *path, struct error *err)
{
    struct mapfile map;
    *npy = (struct npy){ 0 };
    TRY(mapfile_open(&map, path, err));
    enum status status = npy_read(npy, map.data, map.size, path, err);
    npy->map = map;
    if (status)
        npy_release(npy);
    return status;
}

void npy_release(struct npy *npy)
{
    mapfile_release(&npy->map);
    *npy = (struct npy){ 0 };
}
