/* line_header.c - see line_header.h. */
#include "coredump/line_header.h"

#include "coredump/elf.h"

/* How DWARF 5 writes a field of a name. */
enum {
    FORM_BLOCK2 = 0x03,
    FORM_BLOCK4 = 0x04,
    FORM_DATA2 = 0x05,
    FORM_DATA4 = 0x06,
    FORM_DATA8 = 0x07,
    FORM_STRING = 0x08,
    FORM_BLOCK = 0x09,
    FORM_BLOCK1 = 0x0A,
    FORM_DATA1 = 0x0B,
    FORM_STRP = 0x0E,
    FORM_UDATA = 0x0F,
    FORM_DATA16 = 0x1E,
    FORM_LINE_STRP = 0x1F,
    CONTENT_PATH = 1,
    CONTENT_DIRECTORY = 2
};

static struct cursor cursor_at(const struct line_sources *sources, uint64_t at, uint64_t end)
{
    return (struct cursor){ (const uint8_t *)sources->lines.bytes, at, end, false };
}

static bool is_empty(struct text_view text)
{
    return text.length == 0;
}

/* ---- The head ------------------------------------------------------------------------------- */

/* Length and version. False: where the unit ends is not known. */
static bool read_unit(struct cursor *cursor, struct line_header *header)
{
    uint64_t length = cursor_number(cursor, 4);
    header->offset_bytes = 4;
    if (length == 0xFFFFFFFF) {
        length = cursor_number(cursor, 8);
        header->offset_bytes = 8;
    } else if (length >= 0xFFFFFFF0) {
        return false;
    }
    if (cursor->bad || length > cursor->end - cursor->at || length < 2)
        return false;
    header->end = cursor->end = cursor->at + length;
    header->version = (uint16_t)cursor_number(cursor, 2);
    return true;
}

/* Directories and files of versions 2 to 4; NVIDIA's compiler adds where the names of inlined
 * functions begin. */
static bool pass_names(struct cursor *cursor, struct line_header *header)
{
    while (!is_empty(cursor_string(cursor)))
        continue;
    while (!is_empty(cursor_string(cursor)))
        for (int i = 0; i < 3; i++)
            (void)cursor_unsigned(cursor);
    if (cursor->bad)
        return false;
    if (header->program - cursor->at >= 4)
        header->strings_base = cursor_number(cursor, 4);
    return true;
}

enum line_unit line_header_read(const struct line_sources *sources, uint64_t offset,
                                struct line_header *ret_header)
{
    struct line_header *header = ret_header;
    struct cursor cursor = cursor_at(sources, offset, sources->lines.length);
    *header = (struct line_header){ 0 };
    if (!read_unit(&cursor, header))
        return LINE_UNIT_DAMAGED;
    if (header->version < 2 || header->version > 5)
        return LINE_UNIT_UNKNOWN;
    if (header->version == 5)
        cursor_skip(&cursor, 2); /* sizes of an address and of a segment */
    uint64_t length = cursor_number(&cursor, header->offset_bytes);
    if (cursor.bad || length > cursor.end - cursor.at)
        return LINE_UNIT_UNKNOWN;
    header->program = cursor.end = cursor.at + length;
    header->instruction_bytes = (uint8_t)cursor_number(&cursor, 1);
    uint64_t operations = header->version >= 4 ? cursor_number(&cursor, 1) : 1;
    cursor_skip(&cursor, 1); /* whether rows are statements: not used */
    header->line_base = (int8_t)cursor_number(&cursor, 1);
    header->line_range = (uint8_t)cursor_number(&cursor, 1);
    header->opcode_base = (uint8_t)cursor_number(&cursor, 1);
    if (cursor.bad || operations != 1 || header->line_range == 0 || header->opcode_base == 0)
        return LINE_UNIT_UNKNOWN;
    for (int i = 1; i < header->opcode_base; i++)
        header->operands[i - 1] = (uint8_t)cursor_number(&cursor, 1);
    header->files = cursor.at;
    if (cursor.bad || (header->version < 5 && !pass_names(&cursor, header)))
        return LINE_UNIT_UNKNOWN;
    return LINE_UNIT_READ;
}

/* ---- Files of versions 2 to 4 ---------------------------------------------------------------- */

static bool find_file(const struct line_sources *sources, const struct line_header *header,
                      uint64_t file, struct line_file *ret_file)
{
    struct cursor cursor = cursor_at(sources, header->files, header->program);
    struct cursor directories = cursor;
    uint64_t directory = 0;
    struct text_view name;
    while (!is_empty(cursor_string(&cursor)))
        continue;
    for (uint64_t i = 1;; i++) {
        name = cursor_string(&cursor);
        directory = cursor_unsigned(&cursor);
        (void)cursor_unsigned(&cursor);
        (void)cursor_unsigned(&cursor);
        if (cursor.bad || is_empty(name))
            return false;
        if (i == file)
            break;
    }
    *ret_file = (struct line_file){ .name = name, .directory = { "", 0 } };
    /* Directory 0 is where the compiler ran; its name is not here. */
    for (uint64_t i = 1; i <= directory; i++) {
        struct text_view text = cursor_string(&directories);
        if (is_empty(text))
            break;
        if (i == directory)
            ret_file->directory = text;
    }
    return true;
}

/* ---- Files of version 5 ---------------------------------------------------------------------- */

struct field {
    uint64_t content, form;
};
#define FIELD_LIMIT 16

struct entry {
    struct text_view path; /* in the table itself, if `table` is NULL */
    const struct text_view *table;
    uint64_t path_at, directory;
};

/* Only for the entry that is wanted: looking for the end of every name would be slow. */
static struct text_view entry_path(const struct entry *entry)
{
    return entry->table ? elf_string(*entry->table, entry->path_at) : entry->path;
}

static bool is_block(uint64_t form)
{
    return form == FORM_BLOCK1 || form == FORM_BLOCK2 || form == FORM_BLOCK4;
}

static void read_field(const struct line_sources *sources, const struct line_header *header,
                       struct cursor *cursor, const struct field *field, struct entry *entry)
{
    static const uint8_t sizes[] = {
        [FORM_DATA1] = 1,  [FORM_DATA2] = 2,  [FORM_DATA4] = 4, [FORM_DATA8] = 8,
        [FORM_BLOCK1] = 1, [FORM_BLOCK2] = 2, [FORM_BLOCK4] = 4
    };
    const struct text_view *table = NULL;
    struct text_view text = { "", 0 };
    uint64_t number = 0;
    if (field->form == FORM_STRING) {
        text = cursor_string(cursor);
    } else if (field->form == FORM_LINE_STRP || field->form == FORM_STRP) {
        table = field->form == FORM_STRP ? &sources->strings : &sources->line_names;
        number = cursor_number(cursor, header->offset_bytes);
    } else if (field->form == FORM_UDATA) {
        number = cursor_unsigned(cursor);
    } else if (field->form == FORM_DATA16) {
        cursor_skip(cursor, 16);
    } else if (field->form == FORM_BLOCK) {
        cursor_skip(cursor, cursor_unsigned(cursor));
    } else if (field->form < COUNT_OF(sizes) && sizes[field->form]) {
        number = cursor_number(cursor, sizes[field->form]);
        if (is_block(field->form))
            cursor_skip(cursor, number);
    } else {
        cursor->bad = true;
    }
    if (field->content == CONTENT_PATH) {
        entry->path = text;
        entry->table = table;
        entry->path_at = number;
    } else if (field->content == CONTENT_DIRECTORY) {
        entry->directory = number;
    }
}

/* Reads a table of directories or files and leaves the cursor after it. Copies entry number
 * `wanted`; false: the table has none, or cannot be read. */
static bool read_table(const struct line_sources *sources, const struct line_header *header,
                       struct cursor *cursor, uint64_t wanted, struct entry *ret_entry)
{
    struct field fields[FIELD_LIMIT] = { { 0, 0 } };
    uint64_t count = cursor_number(cursor, 1);
    bool found = false;
    if (count > FIELD_LIMIT)
        cursor->bad = true;
    for (uint64_t i = 0; i < count && !cursor->bad; i++) {
        fields[i].content = cursor_unsigned(cursor);
        fields[i].form = cursor_unsigned(cursor);
    }
    uint64_t entries = cursor_unsigned(cursor);
    /* An entry without fields has no bytes: their number must not keep anyone busy. */
    if (count == 0 && entries > 0)
        cursor->bad = true;
    for (uint64_t i = 0; i < entries && !cursor->bad; i++) {
        struct entry entry = { .path = { "", 0 } };
        for (uint64_t j = 0; j < count && !cursor->bad; j++)
            read_field(sources, header, cursor, &fields[j], &entry);
        if (i == wanted && !cursor->bad) {
            *ret_entry = entry;
            found = true;
        }
    }
    return found;
}

static bool find_file_5(const struct line_sources *sources, const struct line_header *header,
                        uint64_t file, struct line_file *ret_file)
{
    struct cursor cursor = cursor_at(sources, header->files, header->program);
    struct entry entry = { .path = { "", 0 } }, directory = entry;
    (void)read_table(sources, header, &cursor, 0, &directory);
    if (cursor.bad || !read_table(sources, header, &cursor, file, &entry))
        return false;
    cursor = cursor_at(sources, header->files, header->program);
    directory = (struct entry){ .path = { "", 0 } };
    (void)read_table(sources, header, &cursor, entry.directory, &directory);
    *ret_file = (struct line_file){ entry_path(&directory), entry_path(&entry) };
    return !is_empty(ret_file->name);
}

bool line_header_file(const struct line_sources *sources, const struct line_header *header,
                      uint64_t file, struct line_file *ret_file)
{
    bool found = header->version == 5 ? find_file_5(sources, header, file, ret_file)
                                      : find_file(sources, header, file, ret_file);
    /* An absolute name needs no directory. */
    if (found && ret_file->name.length && ret_file->name.bytes[0] == '/')
        ret_file->directory = (struct text_view){ "", 0 };
    return found;
}
