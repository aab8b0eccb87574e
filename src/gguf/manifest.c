/* manifest.c - hash lists of tensors as text: "sha256 <hex> model.gguf:blk.0.attn_q.weight", a line
 * for each algorithm and tensor. Other tools write the same form. Lines of other algorithms and of
 * whole files are counted and ignored. */
#include "gguf/gguf_impl.h"

#include "base/array.h"
#include "base/mapfile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Enough for a million tensors. */
#define MANIFEST_LIMIT_BYTES ((uint64_t)128 << 20)

struct row {
    struct text_view tensor; /* borrowed from the mapping */
    bool has_xxh64, has_sha256;
    struct gguf_hash hash;
    uint64_t line;
};

struct gguf_manifest {
    struct mapfile map;
    struct row *rows; /* sorted by tensor; owned */
    size_t row_count;
    size_t capacity;
    uint64_t ignored_count;
};

void gguf_manifest_close(struct gguf_manifest *manifest)
{
    if (!manifest)
        return;
    mapfile_release(&manifest->map);
    free(manifest->rows);
    free(manifest);
}

/* ---- Lines ---------------------------------------------------------------------------------- */

/* Cuts the next word off *line. */
static struct text_view take_word(struct text_view *line)
{
    size_t start = 0;
    while (start < line->length && (line->bytes[start] == ' ' || line->bytes[start] == '\t'))
        start++;
    size_t end = start;
    while (end < line->length && line->bytes[end] != ' ' && line->bytes[end] != '\t')
        end++;
    struct text_view word = { line->bytes + start, end - start };
    *line = (struct text_view){ line->bytes + end, line->length - end };
    return word;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Exactly byte_count bytes, most significant first. */
static bool parse_hex(struct text_view hex, uint8_t *bytes, size_t byte_count)
{
    if (hex.length != 2 * byte_count)
        return false;
    for (size_t i = 0; i < byte_count; i++) {
        int high = hex_digit(hex.bytes[2 * i]), low = hex_digit(hex.bytes[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* What follows the last colon of "file:tensor"; empty for the line of a whole file. */
static struct text_view tensor_of(struct text_view name)
{
    while (name.length && (name.bytes[0] == ' ' || name.bytes[0] == '\t' || name.bytes[0] == '*')) {
        name.bytes++;
        name.length--;
    }
    size_t at = name.length;
    while (at > 0 && name.bytes[at - 1] != ':')
        at--;
    if (at == 0)
        return (struct text_view){ name.bytes, 0 };
    return (struct text_view){ name.bytes + at, name.length - at };
}

static enum status add_row(struct gguf_manifest *manifest, const struct row *row, struct error *err)
{
    struct row *rows = array_reserve(manifest->rows, manifest->row_count, &manifest->capacity,
                                     sizeof(*rows));
    if (!rows)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a manifest");
    manifest->rows = rows;
    manifest->rows[manifest->row_count++] = *row;
    return STATUS_OK;
}

static enum status read_line(struct gguf_manifest *manifest, const char *path,
                             struct text_view line, uint64_t number, struct error *err)
{
    if (line.length && line.bytes[line.length - 1] == '\r')
        line.length--;
    struct text_view algorithm = take_word(&line);
    if (algorithm.length == 0 || algorithm.bytes[0] == '#')
        return STATUS_OK;
    struct text_view hex = take_word(&line);
    struct row row = { .tensor = tensor_of(line), .line = number };
    row.has_xxh64 = text_view_is(algorithm, "xxh64");
    row.has_sha256 = text_view_is(algorithm, "sha256");
    bool other = text_view_is(algorithm, "sha1") || text_view_is(algorithm, "uuid") ||
                 text_view_is(algorithm, "xxh3");
    char shown[64];
    if (!row.has_xxh64 && !row.has_sha256 && !other)
        return error_set(err, STATUS_BAD_FILE,
                         "%s: line %" PRIu64 ": algorithm: expected xxh64 or sha256, found '%s'",
                         path, number, text_printable(algorithm, shown, sizeof(shown)));
    if (other || row.tensor.length == 0) {
        manifest->ignored_count++;
        return STATUS_OK;
    }
    uint8_t big_endian[8] = { 0 };
    bool good = row.has_sha256 ? parse_hex(hex, row.hash.sha256, GGUF_SHA256_BYTES)
                               : parse_hex(hex, big_endian, sizeof(big_endian));
    if (!good)
        return error_set(err, STATUS_BAD_FILE,
                         "%s: line %" PRIu64 ": hash: expected %u hexadecimal digits, found '%s'",
                         path, number, row.has_sha256 ? 64u : 16u,
                         text_printable(hex, shown, sizeof(shown)));
    for (size_t i = 0; row.has_xxh64 && i < sizeof(big_endian); i++)
        row.hash.xxh64 = row.hash.xxh64 << 8 | big_endian[i];
    return add_row(manifest, &row, err);
}

/* ---- Rows by tensor ------------------------------------------------------------------------- */

static int by_tensor(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    int order = text_view_compare(a->tensor, b->tensor);
    return order ? order : (a->line > b->line) - (a->line < b->line);
}

/* Joins the rows of one tensor. A manifest with two different hashes of one kind for a tensor is
 * broken. */
static enum status join_rows(struct gguf_manifest *manifest, const char *path, struct error *err)
{
    if (manifest->row_count == 0)
        return STATUS_OK; /* rows is NULL, which qsort may not get */
    qsort(manifest->rows, manifest->row_count, sizeof(*manifest->rows), by_tensor);
    size_t kept = 0;
    for (size_t i = 0; i < manifest->row_count; i++) {
        const struct row *row = &manifest->rows[i];
        struct row *last = kept ? &manifest->rows[kept - 1] : NULL;
        if (!last || !text_view_equal(last->tensor, row->tensor)) {
            manifest->rows[kept++] = *row;
            continue;
        }
        bool conflict = (row->has_xxh64 && last->has_xxh64 &&
                         row->hash.xxh64 != last->hash.xxh64) ||
                        (row->has_sha256 && last->has_sha256 &&
                         memcmp(row->hash.sha256, last->hash.sha256, GGUF_SHA256_BYTES) != 0);
        char shown[96];
        if (conflict)
            return error_set(
                err, STATUS_BAD_FILE,
                "%s: line %" PRIu64
                ": expected one hash of tensor %s, found another than in line %" PRIu64,
                path, row->line, text_printable(row->tensor, shown, sizeof(shown)), last->line);
        if (row->has_xxh64) {
            last->has_xxh64 = true;
            last->hash.xxh64 = row->hash.xxh64;
        } else {
            last->has_sha256 = true;
            memcpy(last->hash.sha256, row->hash.sha256, GGUF_SHA256_BYTES);
        }
    }
    manifest->row_count = kept;
    return STATUS_OK;
}

static enum status read_all(struct gguf_manifest *manifest, const char *path, struct error *err)
{
    TRY(mapfile_open(&manifest->map, path, err));
    if (manifest->map.size > MANIFEST_LIMIT_BYTES)
        return error_set(err, STATUS_LIMIT,
                         "%s: expected a manifest of at most %" PRIu64 " bytes, found %" PRIu64,
                         path, MANIFEST_LIMIT_BYTES, manifest->map.size);
    struct text_view rest = { (const char *)manifest->map.data, (size_t)manifest->map.size };
    for (uint64_t number = 1; rest.length; number++) {
        const char *newline = memchr(rest.bytes, '\n', rest.length);
        size_t length = newline ? (size_t)(newline - rest.bytes) : rest.length;
        TRY(read_line(manifest, path, (struct text_view){ rest.bytes, length }, number, err));
        size_t used = newline ? length + 1 : length;
        rest = (struct text_view){ rest.bytes + used, rest.length - used };
    }
    return join_rows(manifest, path, err);
}

enum status gguf_manifest_open(const char *path, struct gguf_manifest **ret_manifest,
                               struct error *err)
{
    struct gguf_manifest *manifest = calloc(1, sizeof(*manifest));
    if (!manifest)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a manifest");
    enum status status = read_all(manifest, path, err);
    if (status)
        gguf_manifest_close(manifest);
    else
        *ret_manifest = manifest;
    return status;
}

size_t gguf_manifest_count(const struct gguf_manifest *manifest)
{
    return manifest->row_count;
}

enum gguf_match gguf_manifest_compare(const struct gguf_manifest *manifest, struct text_view tensor,
                                      const struct gguf_hash *hash)
{
    struct row wanted = { .tensor = tensor };
    size_t low = 0, high = manifest->row_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct row *row = &manifest->rows[middle];
        int order = text_view_compare(row->tensor, wanted.tensor);
        if (order == 0) {
            bool same = (!row->has_xxh64 || row->hash.xxh64 == hash->xxh64) &&
                        (!row->has_sha256 ||
                         memcmp(row->hash.sha256, hash->sha256, GGUF_SHA256_BYTES) == 0);
            return same ? GGUF_MATCH_SAME : GGUF_MATCH_DIFFERENT;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return GGUF_MATCH_UNLISTED;
}
