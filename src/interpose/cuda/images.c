/* images.c - walks a fat binary: a header, then entries, each with a header of its own and PTX or
 * machine code, which may be compressed. */
#include "interpose/cuda/images.h"

#include "base/bytes.h"
#include "base/size.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define WRAPPER_MAGIC UINT32_C(0x466243B1)
#define CONTAINER_MAGIC UINT32_C(0xBA55ED50)
#define ELF_MAGIC UINT32_C(0x464C457F)
#define CONTAINER_BYTES 16u
#define ENTRY_BYTES 64u
#define ENTRY_LIMIT 64u
enum { KIND_PTX = 1, KIND_ELF = 2 };
enum { FLAG_LZ4 = 0x2000, FLAG_ZSTD = 0x8000, FLAG_OTHER_COMPRESSION = 0x1000 };

struct entry {
    uint16_t kind;
    uint32_t chip; /* 90 */
    uint64_t flags, address, bytes, expanded_bytes;
};

struct container {
    struct entry entries[ENTRY_LIMIT];
    size_t count;
};

static uint64_t number_at(const uint8_t *bytes, size_t at, size_t count)
{
    uint64_t number = 0;
    for (size_t i = 0; i < count; i++)
        number |= (uint64_t)bytes[at + i] << (8 * i);
    return number;
}

static bool read_entries(const struct image_reader *reader, uint64_t address, uint64_t left,
                         struct container *container)
{
    while (left) {
        uint8_t head[ENTRY_BYTES];
        uint64_t head_bytes, padded;
        if (left < sizeof(head) || container->count == ENTRY_LIMIT ||
            !reader->read(reader->context, address, head, sizeof(head)))
            return false;
        struct entry *entry = &container->entries[container->count++];
        head_bytes = number_at(head, 4, 4);
        padded = number_at(head, 8, 8);
        entry->kind = (uint16_t)number_at(head, 0, 2);
        entry->bytes = number_at(head, 16, 4);
        entry->chip = (uint32_t)number_at(head, 28, 4);
        entry->flags = number_at(head, 40, 8);
        entry->expanded_bytes = number_at(head, 56, 8);
        if (head_bytes < sizeof(head) || head_bytes > left || padded > left - head_bytes)
            return false;
        entry->address = address + head_bytes;
        if (!entry->bytes || !(entry->flags & (FLAG_LZ4 | FLAG_ZSTD)))
            entry->bytes = padded; /* not compressed: zeros at its end are no text */
        if (entry->bytes > padded)
            return false;
        address += head_bytes + padded;
        left -= head_bytes + padded;
    }
    return true;
}

/* Machine code is what its chip runs; it is taken to be compiled from the PTX for that chip. */
static bool stands_for_all(const struct container *container)
{
    bool any = false;
    for (size_t i = 0; i < container->count; i++) {
        const struct entry *code = &container->entries[i];
        bool has_text = code->kind == KIND_PTX;
        if (!has_text && code->kind != KIND_ELF)
            return false;
        any = any || has_text;
        for (size_t j = 0; j < container->count && !has_text; j++)
            has_text = container->entries[j].kind == KIND_PTX &&
                       container->entries[j].chip == code->chip;
        if (!has_text)
            return false;
    }
    return any;
}

/* ---- Compression ---------------------------------------------------------------------------- */

/* A length of 15 goes on in further bytes; false past the end. */
static bool more_length(const uint8_t **at, const uint8_t *end, size_t *length)
{
    uint8_t byte = 255;
    if (*length != 15)
        return true;
    while (byte == 255) {
        if (*at == end)
            return false;
        byte = *(*at)++;
        *length += byte;
    }
    return true;
}

bool lz4_expand(const uint8_t *from, size_t from_bytes, uint8_t *to, size_t to_bytes)
{
    const uint8_t *end = from + from_bytes;
    size_t at = 0;
    while (from < end) {
        uint8_t token = *from++;
        size_t literals = token >> 4, match = token & 15;
        if (!more_length(&from, end, &literals) || literals > (size_t)(end - from) ||
            literals > to_bytes - at)
            return false;
        memcpy(to + at, from, literals);
        at += literals;
        from += literals;
        if (from == end)
            break; /* the last sequence has no match */
        if (end - from < 2)
            return false;
        size_t distance = (size_t)from[0] | (size_t)from[1] << 8;
        from += 2;
        if (!more_length(&from, end, &match) || distance == 0 || distance > at ||
            match + 4 > to_bytes - at)
            return false;
        for (size_t i = 0; i < match + 4; i++, at++)
            to[at] = to[at - distance];
    }
    return at == to_bytes;
}

/* By the library of the machine, if there is one: this one needs nothing but the C library. */
static bool zstd_expand(const uint8_t *from, size_t from_bytes, uint8_t *to, size_t to_bytes)
{
    void *library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    size_t (*decompress)(void *, size_t, const void *, size_t) = NULL;
    if (library)
        *(void **)&decompress = dlsym(library, "ZSTD_decompress");
    bool good = decompress && decompress(to, to_bytes, from, from_bytes) == to_bytes;
    if (library)
        dlclose(library);
    return good;
}

/* ---- Texts ---------------------------------------------------------------------------------- */

/* The caller frees it; NULL if it cannot be read. */
static char *text_of(const struct image_reader *reader, const struct entry *entry,
                     size_t *ret_bytes)
{
    bool packed = entry->flags & (FLAG_LZ4 | FLAG_ZSTD);
    uint64_t bytes = packed ? entry->expanded_bytes : entry->bytes;
    if (bytes == 0 || bytes > IMAGE_TEXT_BYTES || entry->bytes > IMAGE_TEXT_BYTES ||
        (entry->flags & FLAG_OTHER_COMPRESSION))
        return NULL;
    uint8_t *stored = malloc(entry->bytes), *text = packed ? malloc(bytes) : NULL;
    bool good = stored && (text || !packed) &&
                reader->read(reader->context, entry->address, stored, entry->bytes);
    if (good && packed)
        good = entry->flags & FLAG_LZ4 ? lz4_expand(stored, entry->bytes, text, bytes)
                                       : zstd_expand(stored, entry->bytes, text, bytes);
    uint8_t *kept = packed ? text : stored;
    if (packed)
        free(stored);
    if (!good) {
        free(kept);
        return NULL;
    }
    *ret_bytes = strnlen((const char *)kept, bytes);
    return (char *)kept;
}

static bool read_container(const struct image_reader *reader, uint64_t address,
                           void (*found)(void *context, const char *text, size_t bytes),
                           void *context)
{
    uint8_t head[CONTAINER_BYTES];
    struct container *container = calloc(1, sizeof(*container));
    char *texts[ENTRY_LIMIT] = { NULL };
    size_t sizes[ENTRY_LIMIT];
    uint64_t sum = 0;
    bool good = container && reader->read(reader->context, address, head, sizeof(head)) &&
                number_at(head, 0, 4) == CONTAINER_MAGIC && number_at(head, 4, 2) == 1 &&
                number_at(head, 6, 2) == CONTAINER_BYTES &&
                read_entries(reader, address + CONTAINER_BYTES, number_at(head, 8, 8), container) &&
                stands_for_all(container);
    for (size_t i = 0; good && i < container->count; i++) {
        if (container->entries[i].kind != KIND_PTX)
            continue;
        texts[i] = text_of(reader, &container->entries[i], &sizes[i]);
        sum += texts[i] ? sizes[i] : 0;
        good = texts[i] && sum <= IMAGE_TEXT_BYTES;
    }
    for (size_t i = 0; i < ENTRY_LIMIT; i++) {
        if (good && texts[i])
            found(context, texts[i], sizes[i]);
        free(texts[i]);
    }
    free(container);
    return good;
}

/* Text that ends with 0: read page by page, because the next page may not be there. */
static bool read_text(const struct image_reader *reader, uint64_t address,
                      void (*found)(void *context, const char *text, size_t bytes), void *context)
{
    enum { PAGE_BYTES = 4096 };
    size_t count = 0, room = 0;
    char *text = NULL;
    bool ended = false;
    while (!ended && count < IMAGE_TEXT_BYTES) {
        size_t part = PAGE_BYTES - (address + count) % PAGE_BYTES;
        if (room - count < part) {
            char *larger = realloc(text, room = 2 * room + PAGE_BYTES);
            if (!larger)
                break;
            text = larger;
        }
        if (!reader->read(reader->context, address + count, text + count, part))
            break;
        size_t length = strnlen(text + count, part);
        ended = length < part;
        count += length;
    }
    if (ended)
        found(context, text, count);
    free(text);
    return ended;
}

bool image_read(const struct image_reader *reader, uint64_t address,
                void (*found)(void *context, const char *text, size_t bytes), void *context)
{
    uint8_t head[24];
    if (!address || !reader->read(reader->context, address, head, 8))
        return false;
    uint64_t magic = number_at(head, 0, 4);
    if (magic == CONTAINER_MAGIC)
        return read_container(reader, address, found, context);
    if (magic == WRAPPER_MAGIC) {
        /* Version 2 points to further containers, of separately compiled parts. */
        bool single = number_at(head, 4, 4) == 1 &&
                      reader->read(reader->context, address, head, sizeof(head));
        return single && read_container(reader, number_at(head, 8, 8), found, context);
    }
    bool is_text = head[0] == '/' || head[0] == '.' || head[0] == '\n' || head[0] == '\r' ||
                   head[0] == ' ' || head[0] == '\t';
    return magic != ELF_MAGIC && is_text && read_text(reader, address, found, context);
}
