/* program_lines.c - one pass over a file's line table for each address that is asked about; answers
 * are remembered, because a report asks for the same places again and again. */
#include "coredump/program_lines.h"

#include "base/array.h"
#include "base/mapfile.h"
#include "coredump/program_debug.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of line tables that are gone through for one file in all. */
#define WORK_LIMIT (UINT64_C(1) << 30)

struct answer {
    uint64_t address;
    uint32_t line; /* 0: not known */
    uint64_t unit; /* offset of its unit */
    uint64_t file; /* number of the source file there */
};

struct program_file {
    char *path;
    struct program_debug debug;
    uint64_t work; /* done so far */
    struct answer *answers;
    size_t answer_count, answer_capacity;
};

struct program_lines {
    struct program_file *files;
    size_t count, capacity;
};

/* ---- A line program ------------------------------------------------------------------------- */

struct row {
    uint64_t address, file, line;
};

struct program_run {
    const struct line_header *header;
    struct cursor cursor;
    struct row now, last;
    bool has_last; /* of this sequence */
    uint64_t wanted;
    bool found;
    struct row hit;
};

static void reset(struct program_run *run)
{
    run->now = (struct row){ .file = 1, .line = 1 };
    run->has_last = false;
}

/* A row covers the addresses up to the next one's. */
static void emit(struct program_run *run, bool ends)
{
    if (run->has_last && run->wanted >= run->last.address && run->wanted < run->now.address &&
        run->last.line) {
        run->found = true;
        run->hit = run->last;
    }
    run->last = run->now;
    run->has_last = true;
    if (ends)
        reset(run);
}

static void advance(struct program_run *run, uint64_t operations)
{
    run->now.address += operations * run->header->instruction_bytes;
}

static void run_extended(struct program_run *run)
{
    enum { END_SEQUENCE = 1, SET_ADDRESS = 2 };
    uint64_t length = cursor_unsigned(&run->cursor);
    if (run->cursor.bad || length == 0 || length > run->cursor.end - run->cursor.at) {
        run->cursor.bad = true;
        return;
    }
    uint64_t next = run->cursor.at + length;
    uint64_t code = cursor_number(&run->cursor, 1);
    if (code == END_SEQUENCE)
        emit(run, true);
    if (code == SET_ADDRESS && (length == 5 || length == 9))
        run->now.address = cursor_number(&run->cursor, length - 1);
    run->cursor.at = next;
}

static void run_standard(struct program_run *run, uint8_t opcode)
{
    enum { COPY = 1, ADVANCE_PC, ADVANCE_LINE, SET_FILE, CONST_ADD_PC = 8, FIXED_ADVANCE_PC = 9 };
    const struct line_header *header = run->header;
    switch (opcode) {
    case COPY:
        emit(run, false);
        return;
    case ADVANCE_PC:
        advance(run, cursor_unsigned(&run->cursor));
        return;
    case ADVANCE_LINE:
        run->now.line += (uint64_t)cursor_signed(&run->cursor);
        return;
    case SET_FILE:
        run->now.file = cursor_unsigned(&run->cursor);
        return;
    case CONST_ADD_PC:
        advance(run, (255u - header->opcode_base) / header->line_range);
        return;
    case FIXED_ADVANCE_PC:
        run->now.address += cursor_number(&run->cursor, 2);
        return;
    default:
        for (uint8_t i = 0; i < header->operands[opcode - 1]; i++)
            (void)cursor_unsigned(&run->cursor);
    }
}

/* True if the unit has the wanted address. */
static bool run_unit(struct program_run *run)
{
    const struct line_header *header = run->header;
    reset(run);
    while (run->cursor.at < run->cursor.end && !run->cursor.bad && !run->found) {
        uint8_t opcode = (uint8_t)cursor_number(&run->cursor, 1);
        if (opcode == 0) {
            run_extended(run);
        } else if (opcode < header->opcode_base) {
            run_standard(run, opcode);
        } else {
            unsigned special = opcode - header->opcode_base;
            advance(run, special / header->line_range);
            run->now.line += (uint64_t)(int64_t)(header->line_base +
                                                 (int)(special % header->line_range));
            emit(run, false);
        }
    }
    return run->found;
}

/* ---- Answers -------------------------------------------------------------------------------- */

static struct answer look_up(struct program_file *file, uint64_t address)
{
    const struct line_sources *sources = &file->debug.sources;
    struct answer answer = { .address = address };
    struct line_header header;
    uint64_t offset = 0;
    while (offset < sources->lines.length && file->work < WORK_LIMIT) {
        enum line_unit unit = line_header_read(sources, offset, &header);
        if (unit == LINE_UNIT_DAMAGED)
            break;
        struct program_run run = { .header = &header,
                                   .cursor = { (const uint8_t *)sources->lines.bytes,
                                               header.program, header.end, false },
                                   .wanted = address };
        file->work += header.end - offset;
        if (unit == LINE_UNIT_READ && run_unit(&run)) {
            answer.line = run.hit.line <= UINT32_MAX ? (uint32_t)run.hit.line : 0;
            answer.unit = offset;
            answer.file = run.hit.file;
            break;
        }
        offset = header.end;
    }
    return answer;
}

static struct program_file *find_file(struct program_lines *lines, const char *path)
{
    for (size_t i = 0; i < lines->count; i++)
        if (strcmp(lines->files[i].path, path) == 0)
            return &lines->files[i];
    struct program_file *files = array_reserve(lines->files, lines->count, &lines->capacity,
                                               sizeof(*files));
    char *copy = strdup(path);
    if (files)
        lines->files = files;
    if (!files || !copy) {
        free(copy);
        return NULL;
    }
    struct program_file *file = &files[lines->count++];
    *file = (struct program_file){ .path = copy };
    program_debug_open(&file->debug, path);
    return file;
}

static struct answer answer_of(struct program_file *file, uint64_t address)
{
    for (size_t i = 0; i < file->answer_count; i++)
        if (file->answers[i].address == address)
            return file->answers[i];
    struct answer answer = look_up(file, address);
    struct answer *answers = array_reserve(file->answers, file->answer_count,
                                           &file->answer_capacity, sizeof(*answers));
    if (answers) {
        file->answers = answers;
        answers[file->answer_count++] = answer;
    }
    return answer;
}

/* The end of a long path distinguishes files. */
static void copy_path(const struct line_file *file, char *target, size_t target_bytes)
{
    char path[1024];
    struct text_view directory = file->directory, name = file->name;
    size_t room = sizeof(path) - 2;
    if (name.length > room) {
        name.bytes += name.length - room;
        name.length = room;
    }
    if (directory.length > room - name.length)
        directory.length = 0;
    snprintf(path, sizeof(path), "%.*s%s%.*s", (int)directory.length, directory.bytes,
             directory.length ? "/" : "", (int)name.length, name.bytes);
    size_t length = strlen(path);
    snprintf(target, target_bytes, "%s",
             length < target_bytes ? path : path + length - target_bytes + 1);
}

bool program_lines_find(struct program_lines *lines, const char *path, uint64_t address,
                        char *source, size_t source_bytes, uint32_t *ret_line)
{
    struct program_file *file = find_file(lines, path);
    struct line_header header;
    struct line_file name;
    source[0] = '\0';
    if (!file || !file->debug.sources.lines.length)
        return false;
    struct answer answer = answer_of(file, address);
    if (!answer.line ||
        line_header_read(&file->debug.sources, answer.unit, &header) != LINE_UNIT_READ ||
        !line_header_file(&file->debug.sources, &header, answer.file, &name))
        return false;
    copy_path(&name, source, source_bytes);
    *ret_line = answer.line;
    return source[0] != '\0';
}

struct program_lines *program_lines_create(void)
{
    return calloc(1, sizeof(struct program_lines));
}

void program_lines_destroy(struct program_lines *lines)
{
    if (!lines)
        return;
    for (size_t i = 0; i < lines->count; i++) {
        program_debug_close(&lines->files[i].debug);
        free(lines->files[i].answers);
        free(lines->files[i].path);
    }
    free(lines->files);
    free(lines);
}
