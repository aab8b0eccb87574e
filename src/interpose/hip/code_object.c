/* code_object.c - see code_object.h. */
#include "interpose/hip/code_object.h"

#include "base/size.h"

#include "interpose/hip/message.h"

#include <stdlib.h>
#include <string.h>

#define ELF_HEADER_BYTES 64u
#define ELF_SEGMENT_BYTES 56u
#define ELF_SEGMENT_LIMIT 64u /* code objects have about ten */
#define ELF_NOTE_SEGMENT 4u
#define NOTE_LIMIT_BYTES (64u << 20)
#define NOTE_METADATA 32u
#define BUNDLE_MAGIC "__CLANG_OFFLOAD_BUNDLE__"
#define BUNDLE_MAGIC_BYTES 24u
#define BUNDLE_ENTRY_LIMIT 4096u
#define TRIPLE_LIMIT 256u

/* Grows while the note is read. Places instead of pointers: the arrays move. */
struct building {
    struct kernel_place {
        size_t name, argument;
        uint32_t argument_count;
    } * kernels;
    size_t kernel_count, kernel_room;
    struct code_argument *arguments;
    size_t argument_count, argument_room;
    char *names;
    size_t name_bytes, name_room;
};

/* Room for more items; the pointer is moved. */
static enum status reserve(void **items, size_t item_bytes, size_t count, size_t more, size_t *room,
                           struct error *err)
{
    if (count + more <= *room)
        return STATUS_OK;
    size_t wanted = 2 * (count + more) + 64;
    void *moved = wanted > SIZE_MAX / item_bytes ? NULL : realloc(*items, wanted * item_bytes);
    if (!moved)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a code object's kernels");
    *items = moved;
    *room = wanted;
    return STATUS_OK;
}

/* ---- The note ------------------------------------------------------------------------------- */

static bool is_hidden(struct text_view kind)
{
    return kind.length > 7 && memcmp(kind.bytes, "hidden_", 7) == 0;
}

static enum status read_argument(struct bytes *in, struct building *building, struct error *err)
{
    uint64_t pairs, offset = 0, bytes = 0;
    bool hidden = false, reads_only = false;
    TRY(message_map(in, "argument", &pairs, err));
    for (uint64_t i = 0; i < pairs; i++) {
        struct text_view key, kind;
        TRY(message_text(in, "argument's key", &key, err));
        if (text_view_is(key, ".offset"))
            TRY(message_number(in, ".offset", &offset, err));
        else if (text_view_is(key, ".size"))
            TRY(message_number(in, ".size", &bytes, err));
        else if (text_view_is(key, ".value_kind")) {
            TRY(message_text(in, ".value_kind", &kind, err));
            hidden = is_hidden(kind);
        } else if (text_view_is(key, ".actual_access")) {
            TRY(message_text(in, ".actual_access", &kind, err));
            reads_only = text_view_is(kind, "read_only");
        } else
            TRY(message_skip(in, err));
    }
    if (hidden)
        return STATUS_OK;
    if (offset > UINT32_MAX || bytes > UINT32_MAX)
        return bytes_fail(in, in->at, ".size", err, "expected fewer than 4 GiB of arguments");
    TRY(reserve((void **)&building->arguments, sizeof(*building->arguments),
                building->argument_count, 1, &building->argument_room, err));
    building->arguments[building->argument_count++] =
        (struct code_argument){ (uint32_t)offset, (uint32_t)bytes, reads_only };
    return STATUS_OK;
}

static enum status read_arguments(struct bytes *in, struct building *building, struct error *err)
{
    uint64_t count;
    TRY(message_array(in, ".args", &count, err));
    for (uint64_t i = 0; i < count; i++)
        TRY(read_argument(in, building, err));
    return STATUS_OK;
}

static enum status add_name(struct building *building, struct text_view name, size_t *ret_place,
                            struct error *err)
{
    TRY(reserve((void **)&building->names, 1, building->name_bytes, name.length + 1,
                &building->name_room, err));
    *ret_place = building->name_bytes;
    memcpy(building->names + building->name_bytes, name.bytes, name.length);
    building->names[building->name_bytes + name.length] = '\0';
    building->name_bytes += name.length + 1;
    return STATUS_OK;
}

static enum status read_kernel(struct bytes *in, struct building *building, struct error *err)
{
    uint64_t pairs;
    struct text_view name = { "", 0 };
    struct kernel_place kernel = { .argument = building->argument_count };
    TRY(message_map(in, "kernel", &pairs, err));
    for (uint64_t i = 0; i < pairs; i++) {
        struct text_view key;
        TRY(message_text(in, "kernel's key", &key, err));
        if (text_view_is(key, ".name"))
            TRY(message_text(in, ".name", &name, err));
        else if (text_view_is(key, ".args"))
            TRY(read_arguments(in, building, err));
        else
            TRY(message_skip(in, err));
    }
    kernel.argument_count = (uint32_t)(building->argument_count - kernel.argument);
    TRY(add_name(building, name, &kernel.name, err));
    TRY(reserve((void **)&building->kernels, sizeof(*building->kernels), building->kernel_count, 1,
                &building->kernel_room, err));
    building->kernels[building->kernel_count++] = kernel;
    return STATUS_OK;
}

static enum status read_metadata(struct bytes *in, struct building *building, struct error *err)
{
    uint64_t pairs, count;
    TRY(message_map(in, "metadata", &pairs, err));
    for (uint64_t i = 0; i < pairs; i++) {
        struct text_view key;
        TRY(message_text(in, "metadata's key", &key, err));
        if (!text_view_is(key, "amdhsa.kernels")) {
            TRY(message_skip(in, err));
            continue;
        }
        TRY(message_array(in, "amdhsa.kernels", &count, err));
        for (uint64_t kernel = 0; kernel < count; kernel++)
            TRY(read_kernel(in, building, err));
    }
    return STATUS_OK;
}

/* ---- The file ------------------------------------------------------------------------------- */

/* A note is: bytes of its name, bytes of what it says, its type, then both, each filled to 4. */
static enum status read_notes(struct bytes *in, struct building *building, struct error *err)
{
    while (bytes_left(in) >= 12) {
        uint32_t name_bytes, bytes, type;
        const uint8_t *name, *data;
        TRY(bytes_u32(in, "note's name", &name_bytes, err));
        TRY(bytes_u32(in, "note's bytes", &bytes, err));
        TRY(bytes_u32(in, "note's type", &type, err));
        TRY(bytes_take(in, "note's name", ((uint64_t)name_bytes + 3) / 4 * 4, &name, err));
        TRY(bytes_take(in, "note", bytes, &data, err));
        uint64_t fill = (4 - bytes % 4) % 4;
        in->at += min_u64(fill, bytes_left(in));
        if (type != NOTE_METADATA || name_bytes != 7 || memcmp(name, "AMDGPU", 7) != 0)
            continue;
        struct bytes note;
        bytes_init(&note, data, bytes, "code object");
        TRY(read_metadata(&note, building, err));
    }
    return STATUS_OK;
}

static enum status read_at(const struct code_source *source, uint64_t base, uint64_t offset,
                           void *to, size_t bytes, struct error *err)
{
    uint64_t place;
    if (__builtin_add_overflow(base, offset, &place) ||
        !source->read(source->context, place, to, bytes))
        return error_set(err, STATUS_BAD_FILE,
                         "code object: expected %zu bytes at %llu, found fewer", bytes,
                         (unsigned long long)offset);
    return STATUS_OK;
}

static enum status read_segment(const struct code_source *source, uint64_t base, uint64_t offset,
                                uint64_t bytes, struct building *building, struct error *err)
{
    struct bytes in;
    if (bytes > NOTE_LIMIT_BYTES)
        return error_set(err, STATUS_BAD_FILE, "code object: expected a note below %u bytes",
                         NOTE_LIMIT_BYTES);
    uint8_t *data = malloc((size_t)bytes + 1);
    if (!data)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a code object's note");
    enum status status = read_at(source, base, offset, data, (size_t)bytes, err);
    if (!status) {
        bytes_init(&in, data, bytes, "code object");
        status = read_notes(&in, building, err);
    }
    free(data);
    return status;
}

static enum status read_elf(const struct code_source *source, uint64_t base,
                            struct building *building, struct error *err)
{
    uint8_t header[ELF_HEADER_BYTES], segment[ELF_SEGMENT_BYTES];
    TRY(read_at(source, base, 0, header, sizeof(header), err));
    /* 64 bits, lowest byte first, machine AMDGPU. */
    if (memcmp(header, "\177ELF\2\1", 6) != 0 || bytes_load_u16(header + 18) != 224)
        return error_set(err, STATUS_BAD_FILE, "code object: expected one for an AMD GPU");
    uint64_t offset = bytes_load_u64(header + 32);
    uint32_t count = bytes_load_u16(header + 56);
    if (bytes_load_u16(header + 54) != ELF_SEGMENT_BYTES || count > ELF_SEGMENT_LIMIT)
        return error_set(err, STATUS_BAD_FILE, "code object: expected at most %u segments",
                         ELF_SEGMENT_LIMIT);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t place;
        if (__builtin_add_overflow(offset, (uint64_t)i * ELF_SEGMENT_BYTES, &place))
            return error_set(err, STATUS_BAD_FILE, "code object: segments past the end");
        TRY(read_at(source, base, place, segment, sizeof(segment), err));
        if (bytes_load_u32(segment) == ELF_NOTE_SEGMENT)
            TRY(read_segment(source, base, bytes_load_u64(segment + 8),
                             bytes_load_u64(segment + 32), building, err));
    }
    return STATUS_OK;
}

/* Where the first code object for an AMD chip begins; kernels take the same arguments on all. */
static enum status find_in_bundle(const struct code_source *source, uint64_t *ret_base,
                                  struct error *err)
{
    uint8_t head[24];
    char triple[TRIPLE_LIMIT];
    TRY(read_at(source, 0, BUNDLE_MAGIC_BYTES, head, 8, err));
    uint64_t count = bytes_load_u64(head), place = BUNDLE_MAGIC_BYTES + 8;
    for (uint64_t i = 0; i < count && i < BUNDLE_ENTRY_LIMIT; i++) {
        TRY(read_at(source, 0, place, head, sizeof(head), err));
        uint64_t bytes = bytes_load_u64(head + 8), length = bytes_load_u64(head + 16);
        if (length >= TRIPLE_LIMIT)
            return error_set(err, STATUS_BAD_FILE, "bundle: expected a target below %u bytes",
                             TRIPLE_LIMIT);
        TRY(read_at(source, 0, place + sizeof(head), triple, (size_t)length, err));
        triple[length] = '\0';
        if (bytes && strncmp(triple, "hip", 3) == 0 && strstr(triple, "amdgcn")) {
            *ret_base = bytes_load_u64(head);
            return STATUS_OK;
        }
        place += sizeof(head) + length; /* at most BUNDLE_ENTRY_LIMIT times a little */
    }
    return error_set(err, STATUS_BAD_FILE, "bundle: expected code for an AMD GPU, found none");
}

static int compare_kernels(const void *a, const void *b)
{
    return strcmp(((const struct code_kernel *)a)->name, ((const struct code_kernel *)b)->name);
}

/* Places become pointers; takes the arrays. */
static enum status finish(struct building *building, struct code_object *ret_object,
                          struct error *err)
{
    struct code_kernel *kernels = calloc(building->kernel_count + 1, sizeof(*kernels));
    if (!kernels)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a code object's kernels");
    for (size_t i = 0; i < building->kernel_count; i++)
        kernels[i] = (struct code_kernel){
            .name = building->names + building->kernels[i].name,
            .arguments = building->arguments ? building->arguments + building->kernels[i].argument
                                             : NULL,
            .argument_count = building->kernels[i].argument_count,
        };
    qsort(kernels, building->kernel_count, sizeof(*kernels), compare_kernels);
    *ret_object = (struct code_object){ kernels, building->kernel_count, building->arguments,
                                        building->names };
    building->arguments = NULL;
    building->names = NULL;
    return STATUS_OK;
}

enum status code_object_read(const struct code_source *source, struct code_object *ret_object,
                             struct error *err)
{
    char magic[BUNDLE_MAGIC_BYTES];
    struct building building = { 0 };
    uint64_t base = 0;
    enum status status = read_at(source, 0, 0, magic, sizeof(magic), err);
    if (!status && memcmp(magic, "CCOB", 4) == 0)
        status = error_set(err, STATUS_UNSUPPORTED, "bundle: compressed ones are not read");
    else if (!status && memcmp(magic, BUNDLE_MAGIC, sizeof(magic)) == 0)
        status = find_in_bundle(source, &base, err);
    if (!status)
        status = read_elf(source, base, &building, err);
    if (!status)
        status = finish(&building, ret_object, err);
    free(building.kernels);
    free(building.arguments);
    free(building.names);
    return status;
}

void code_object_release(struct code_object *object)
{
    free(object->kernels);
    free(object->arguments);
    free(object->names);
    *object = (struct code_object){ 0 };
}

const struct code_kernel *code_object_find(const struct code_object *object, const char *name)
{
    struct code_kernel key = { .name = name };
    return object->kernel_count
               ? bsearch(&key, object->kernels, object->kernel_count, sizeof(key), compare_kernels)
               : NULL;
}
