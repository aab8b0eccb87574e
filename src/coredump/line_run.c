/* line_run.c - runs the programs of a line table. Every step takes at least a byte of the section,
 * which was paid for; rows are kept for one sequence at a time. */
#include "coredump/line_run.h"

#include "base/array.h"
#include "base/size.h"

/* Rows of a sequence that are kept, to follow inlined calls: more than any kernel has. */
#define ROW_LIMIT (1u << 20)

enum {
    STANDARD_COPY = 1,
    STANDARD_ADVANCE_PC = 2,
    STANDARD_ADVANCE_LINE = 3,
    STANDARD_SET_FILE = 4,
    STANDARD_CONST_ADD_PC = 8,
    STANDARD_FIXED_ADVANCE_PC = 9,
    EXTENDED_END_SEQUENCE = 1,
    EXTENDED_SET_ADDRESS = 2,
    EXTENDED_INLINED_CALL = 0x90 /* NVIDIA's */
};

/* ---- Frames --------------------------------------------------------------------------------- */

static bool add_frame(struct run *run, struct coredump_place *place, const struct row_state *row)
{
    struct line_file file;
    struct error ignored;
    uint64_t bytes = run->header.program - run->header.files;
    if (work_spend(run->work, 2 * bytes, &ignored)) {
        run->work_used_up = true;
        return false;
    }
    if (row->line > UINT32_MAX || !line_header_file(&run->sources, &run->header, row->file, &file))
        return false;
    struct coredump_frame *frame = &place->frames[place->frame_count++];
    *frame = (struct coredump_frame){ .function = { "", 0 },
                                      .directory = file.directory,
                                      .file = file.name,
                                      .line = (uint32_t)row->line };
    uint64_t name = row->function + run->header.strings_base;
    if (row->context && name >= row->function)
        frame->function = elf_string(run->sources.strings, name);
    return true;
}

/* The row and what it is inlined into. A call's row is before the row itself: the chain ends. */
static bool read_frames(struct run *run, struct row_state row, uint64_t number,
                        struct coredump_place *place)
{
    place->frame_count = 0;
    place->frames_cut = false;
    if (!add_frame(run, place, &row))
        return false;
    while (row.context) {
        if (place->frame_count == COREDUMP_FRAME_LIMIT || row.context >= number ||
            row.context > run->row_count) {
            place->frames_cut = true;
            break;
        }
        number = row.context;
        row = run->rows[number - 1];
        if (!add_frame(run, place, &row)) {
            place->frames_cut = true;
            break;
        }
    }
    return true;
}

static bool frames_equal(const struct coredump_place *a, const struct coredump_place *b)
{
    if (a->frame_count != b->frame_count)
        return false;
    for (size_t i = 0; i < a->frame_count; i++)
        if (a->frames[i].line != b->frames[i].line ||
            !text_view_equal(a->frames[i].file, b->frames[i].file) ||
            !text_view_equal(a->frames[i].directory, b->frames[i].directory))
            return false;
    return true;
}

static void found(struct run *run, struct coredump_place *place)
{
    struct coredump_place other = { 0 };
    if (!read_frames(run, run->last, run->rows_seen, &other))
        return;
    if (place->lines == COREDUMP_LINES_FOUND && !frames_equal(place, &other)) {
        place->lines = COREDUMP_LINES_AMBIGUOUS;
        place->frame_count = 0;
    }
    if (place->lines != COREDUMP_LINES_NOT_HERE)
        return;
    place->lines = COREDUMP_LINES_FOUND;
    place->frame_count = other.frame_count;
    place->frames_cut = other.frames_cut;
    for (size_t i = 0; i < other.frame_count; i++)
        place->frames[i] = other.frames[i];
}

/* ---- Rows ----------------------------------------------------------------------------------- */

/* Where the target is in the space of the sequence. */
static bool target_address(const struct run *run, const struct line_target *target,
                           uint64_t *ret_address)
{
    const struct function *function = target->function;
    if (run->space == SPACE_DEVICE && function->address_known) {
        *ret_address = function->address + target->place->offset;
        return true;
    }
    if (run->space == SPACE_SECTION && function->offset_known &&
        function->section == run->section) {
        *ret_address = function->section_offset + target->place->offset;
        return true;
    }
    return false;
}

/* Most rows are far from all places: they need not be compared with each. */
static void find_bounds(struct run *run)
{
    run->lowest = UINT64_MAX;
    run->highest = 0;
    for (size_t i = 0; i < run->target_count; i++) {
        uint64_t address;
        if (!target_address(run, &run->targets[i], &address))
            continue;
        run->lowest = min_u64(address, run->lowest);
        run->highest = max_u64(address, run->highest);
    }
}

/* The last row holds up to the address of the state, which begins another one. */
static void end_last_row(struct run *run)
{
    struct error ignored;
    uint64_t start = run->last.address, end = run->state.address;
    bool far = end <= run->lowest || start > run->highest;
    bool empty = !run->has_last || run->space == SPACE_UNKNOWN || end <= start;
    run->has_last = false;
    if (empty || far)
        return;
    if (work_spend(run->work, run->target_count, &ignored)) {
        run->work_used_up = true;
        return;
    }
    for (size_t i = 0; i < run->target_count; i++) {
        uint64_t address;
        if (target_address(run, &run->targets[i], &address) && address >= start && address < end)
            found(run, run->targets[i].place);
    }
}

static void add_row(struct run *run)
{
    end_last_row(run);
    run->last = run->state;
    run->has_last = true;
    run->rows_seen++;
    if (run->rows_seen > ROW_LIMIT || run->space == SPACE_UNKNOWN)
        return;
    struct row_state *grown = array_reserve(run->rows, run->row_count, &run->row_capacity,
                                            sizeof(*grown));
    if (!grown) {
        run->no_memory = true;
        return;
    }
    run->rows = grown;
    run->rows[run->row_count++] = run->state;
}

static void begin_sequence(struct run *run)
{
    run->state = (struct row_state){ .file = 1, .line = 1 };
    run->space = SPACE_UNKNOWN;
    run->row_count = 0;
    run->rows_seen = 0;
    run->has_last = false;
}

/* ---- Addresses ------------------------------------------------------------------------------ */

static const struct relocation *find_relocation(const struct run *run, uint64_t at)
{
    size_t low = 0, high = run->relocation_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (run->relocations[middle].at < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low < run->relocation_count && run->relocations[low].at == at ? &run->relocations[low]
                                                                         : NULL;
}

/* `at`: where the value stands in the section. It may have been relocated, or still be an offset
 * from a symbol that a relocation names, or an offset in the only section with code. */
static void set_address(struct run *run, uint64_t value, uint64_t at)
{
    const struct function *functions[COREDUMP_CANDIDATE_LIMIT];
    const struct relocation *relocation = find_relocation(run, at);
    enum space space = SPACE_UNKNOWN;
    uint32_t section = 0;
    struct error ignored;
    uint64_t offset;
    /* A look-up goes through some functions. */
    if (work_spend(run->work, COREDUMP_CANDIDATE_LIMIT, &ignored))
        run->work_used_up = true;
    else if (run->image->addressed_count && image_find(run->image, value, functions) > 0) {
        space = SPACE_DEVICE;
    } else if (relocation) {
        if (image_symbol_place(run->image, relocation->symbol, &section, &offset)) {
            space = SPACE_SECTION;
            value = offset + (relocation->has_addend ? relocation->addend : value);
        }
    } else if (run->image->only_code) {
        space = SPACE_SECTION;
        section = run->image->only_code;
    }
    /* A row does not reach from one space into another. */
    if (space != run->space || section != run->section)
        run->has_last = false;
    run->space = space;
    run->section = section;
    run->state.address = value;
    find_bounds(run);
}

/* ---- Opcodes -------------------------------------------------------------------------------- */

static void extended(struct run *run, struct cursor *cursor)
{
    uint64_t length = cursor_unsigned(cursor);
    if (cursor->bad || length == 0 || length > cursor->end - cursor->at) {
        cursor->bad = true;
        return;
    }
    struct cursor operands = *cursor;
    operands.end = cursor->at + length;
    cursor->at = operands.end;
    uint64_t opcode = cursor_number(&operands, 1);
    if (opcode == EXTENDED_END_SEQUENCE) {
        end_last_row(run);
        begin_sequence(run);
    } else if (opcode == EXTENDED_SET_ADDRESS && (length == 5 || length == 9)) {
        uint64_t at = operands.at;
        set_address(run, cursor_number(&operands, length - 1), at);
    } else if (opcode == EXTENDED_INLINED_CALL) {
        run->state.context = cursor_unsigned(&operands);
        run->state.function = cursor_unsigned(&operands);
        if (operands.bad)
            cursor->bad = true;
    }
}

static void advance(struct run *run, uint64_t operations)
{
    run->state.address += operations * run->header.instruction_bytes;
}

static void special(struct run *run, unsigned opcode)
{
    unsigned adjusted = opcode - run->header.opcode_base;
    advance(run, adjusted / run->header.line_range);
    run->state.line += (uint64_t)(int64_t)(run->header.line_base +
                                           (int)(adjusted % run->header.line_range));
    add_row(run);
}

static void standard(struct run *run, struct cursor *cursor, unsigned opcode)
{
    const struct line_header *header = &run->header;
    switch (opcode) {
    case STANDARD_COPY:
        add_row(run);
        break;
    case STANDARD_ADVANCE_PC:
        advance(run, cursor_unsigned(cursor));
        break;
    case STANDARD_ADVANCE_LINE:
        run->state.line += (uint64_t)cursor_signed(cursor);
        break;
    case STANDARD_SET_FILE:
        run->state.file = cursor_unsigned(cursor);
        break;
    case STANDARD_CONST_ADD_PC:
        advance(run, (255u - header->opcode_base) / header->line_range);
        break;
    case STANDARD_FIXED_ADVANCE_PC:
        run->state.address += cursor_number(cursor, 2);
        break;
    default: /* the head says how many operands it has; none changes an address or a line */
        for (unsigned i = 0; i < header->operands[opcode - 1]; i++)
            (void)cursor_unsigned(cursor);
    }
}

/* Stops early if the work is used up. */
static bool run_unit(struct run *run)
{
    struct cursor cursor = { (const uint8_t *)run->sources.lines.bytes, run->header.program,
                             run->header.end, false };
    begin_sequence(run);
    while (cursor.at < cursor.end && !cursor.bad && !run->work_used_up && !run->no_memory) {
        unsigned opcode = (unsigned)cursor_number(&cursor, 1);
        if (opcode >= run->header.opcode_base)
            special(run, opcode);
        else if (opcode == 0)
            extended(run, &cursor);
        else
            standard(run, &cursor, opcode);
    }
    return !cursor.bad;
}

void line_run_units(struct run *run)
{
    uint64_t at = 0;
    while (at < run->sources.lines.length && !run->work_used_up && !run->no_memory) {
        enum line_unit unit = line_header_read(&run->sources, at, &run->header);
        if (unit == LINE_UNIT_DAMAGED || (unit == LINE_UNIT_READ && !run_unit(run)))
            run->damaged = true;
        if (unit == LINE_UNIT_DAMAGED)
            return;
        at = run->header.end;
    }
}
