/* coredump_lines_test.c - line programs by hand: versions 2 to 5, unknown opcodes, tables that
 * disagree, and tables that break their own format. */
#include "coredump_line_table.h"
#include "coredump_opened.h"

static void open_lines(struct opened *opened, const struct text *lines, uint64_t offset)
{
    struct text image;
    make_image(lines, false, &image);
    struct dump_specimen specimen = { .image = image.bytes,
                                      .image_bytes = image.length,
                                      .entry = CODE,
                                      .pc = CODE + offset,
                                      .exception = 1,
                                      .error_pc = true };
    opened_specimen(opened, &specimen);
    text_release(&image);
}

static void check_line(const char *what, const struct text *lines, uint64_t offset,
                       enum coredump_lines result, uint32_t line)
{
    struct opened opened;
    open_lines(&opened, lines, offset);
    const struct coredump_place *place = coredump_place_at(opened.dump, 0);
    if (place->lines != result)
        fail_msg("%s at %u: expected %s, found %s", what, (unsigned)offset,
                 coredump_lines_name(result), coredump_lines_name(place->lines));
    if (result == COREDUMP_LINES_FOUND && place->frames[0].line != line)
        fail_msg("%s at %u: expected line %u, found %u", what, (unsigned)offset, line,
                 place->frames[0].line);
    if (result == COREDUMP_LINES_FOUND) {
        check_view(place->frames[0].file, "k.cu");
        check_view(place->frames[0].directory, "/src");
    }
    opened_release(&opened);
}

/* ---- Tests ---------------------------------------------------------------------------------- */

static void test_versions(void **state)
{
    (void)state;
    for (unsigned version = 1; version <= 6; version++) {
        bool known = version >= 2 && version <= 5;
        struct text lines, program;
        text_init(&lines);
        text_init(&program);
        put_sequence(&program, CODE);
        put_unit(&lines, version, &program, 0);
        char what[32];
        snprintf(what, sizeof(what), "version %u", version);
        enum coredump_lines found = known ? COREDUMP_LINES_FOUND : COREDUMP_LINES_NOT_HERE;
        check_line(what, &lines, 0x0F, COREDUMP_LINES_NOT_HERE, 0);
        check_line(what, &lines, 0x10, found, 30);
        check_line(what, &lines, 0x3F, found, 30);
        check_line(what, &lines, 0x40, found, 35);
        check_line(what, &lines, 0xFF, found, 35);
        text_release(&lines);
        text_release(&program);
    }
}

/* What stands between two rows; the second one still has line 35. */
static void test_opcodes(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        const char *bytes;
        size_t count;
    } rows[] = {
        { "nothing", "\3\5\2\60\1", 5 },
        { "unknown extended opcode", "\0\4\377abc\3\5\2\60\1", 11 },
        { "NVIDIA's function name", "\0\2\221\0\3\5\2\60\1", 9 },
        { "column, statement, block", "\5\11\6\7\3\5\2\60\1", 9 },
        { "fixed advance", "\11\60\0\3\5\1", 6 },
        { "constant advance", "\10\3\5\2\37\1", 6 }, /* (255 - 10) / 14 = 17 */
        { "special opcode", "\3\4\2\57\36", 5 },     /* 1 byte and 1 line on: 10 + 14 + 5 + 1 */
        { "set address", "\0\11\2\100\0\0\0\0\177\0\0\3\5\1", 14 },
        { "set a short address of elsewhere and back",
          "\0\5\2\1\2\3\4\0\11\2\100\0\0\0\0\177\0\0\3\5\1", 21 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct text lines, program;
        text_init(&lines);
        text_init(&program);
        put_address(&program, CODE);
        PUT(&program, "\3\35\2\20\1");
        put(&program, rows[i].bytes, rows[i].count);
        PUT(&program, "\2\300\1\0\1\1");
        put_unit(&lines, 2, &program, 0);
        check_line(rows[i].what, &lines, 0x40, COREDUMP_LINES_FOUND, 35);
        check_line(rows[i].what, &lines, 0x3E,
                   i < 8 ? COREDUMP_LINES_FOUND : COREDUMP_LINES_NOT_HERE, 30);
        text_release(&lines);
        text_release(&program);
    }
}

/* Two parts that say the same are one answer; two that do not are none. */
static void test_disagreement(void **state)
{
    (void)state;
    for (unsigned other = 0; other < 2; other++) {
        struct text lines, program;
        text_init(&lines);
        text_init(&program);
        put_sequence(&program, CODE);
        put_unit(&lines, 2, &program, 0);
        program.bytes[12] = (char)(29 + other); /* the line of the first row */
        put_unit(&lines, 3, &program, 0);
        check_line("two units", &lines, 0x20,
                   other ? COREDUMP_LINES_AMBIGUOUS : COREDUMP_LINES_FOUND, 30);
        text_release(&lines);
        text_release(&program);
    }
}

/* A row whose call is itself, comes later, or was never written: the frames end there. */
static void test_bad_calls(void **state)
{
    (void)state;
    static const char *const calls[] = { "\0\3\220\1\10", "\0\3\220\2\10", "\0\3\220\177\10" };
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        struct text lines, program;
        struct opened opened;
        text_init(&lines);
        text_init(&program);
        put_address(&program, CODE);
        put(&program, calls[i], 5);
        PUT(&program, "\3\35\1\2\300\1\0\1\1");
        put_unit(&lines, 2, &program, 0);
        open_lines(&opened, &lines, 0);
        const struct coredump_place *place = coredump_place_at(opened.dump, 0);
        assert_int_equal(place->frame_count, 1);
        assert_true(place->frames_cut);
        check_view(place->frames[0].function, "_Z1iv");
        opened_release(&opened);
        text_release(&lines);
        text_release(&program);
    }
}

/* Deeper than is kept: the innermost frames are there. */
static void test_deep_calls(void **state)
{
    (void)state;
    struct text lines, program;
    struct opened opened;
    text_init(&lines);
    text_init(&program);
    put_address(&program, CODE);
    for (int i = 0; i < 100; i++) {
        PUT(&program, "\0\3\220");
        build_add_number(&program, (uint64_t)i, 1);
        PUT(&program, "\10\3\1\1");
    }
    PUT(&program, "\2\300\1\0\1\1");
    put_unit(&lines, 2, &program, 0);
    open_lines(&opened, &lines, 0);
    const struct coredump_place *place = coredump_place_at(opened.dump, 0);
    assert_int_equal(place->frame_count, COREDUMP_FRAME_LIMIT);
    assert_true(place->frames_cut);
    assert_int_equal(place->frames[0].line, 101);
    assert_int_equal(place->frames[15].line, 86);
    opened_release(&opened);
    text_release(&lines);
    text_release(&program);
}

static void test_damaged(void **state)
{
    (void)state;
    struct text lines, program;
    text_init(&lines);
    text_init(&program);
    put_sequence(&program, CODE);
    put_unit(&lines, 2, &program, 1);
    check_line("a length past the section", &lines, 0x20, COREDUMP_LINES_DAMAGED, 0);
    text_clear(&lines);
    PUT(&program, "\0\377\177");
    put_unit(&lines, 2, &program, 0);
    check_line("found before the damage", &lines, 0x20, COREDUMP_LINES_FOUND, 30);
    check_line("after the damage", &lines, 0x00, COREDUMP_LINES_DAMAGED, 0);
    text_clear(&lines);
    check_line("no table", &lines, 0x20, COREDUMP_LINES_NONE, 0);
    PUT(&lines, "\360\377\377\377abc");
    check_line("a reserved length", &lines, 0x20, COREDUMP_LINES_DAMAGED, 0);
    text_release(&lines);
    text_release(&program);
}

/* Cut anywhere, and with each byte changed: nothing is read past the end, and it ends. */
static void test_cut_and_changed(void **state)
{
    (void)state;
    for (unsigned version = 2; version <= 5; version++) {
        struct text lines, program, part;
        struct opened opened;
        text_init(&lines);
        text_init(&program);
        put_sequence(&program, CODE);
        put_unit(&lines, version, &program, 0);
        for (size_t i = 0; i < lines.length; i++) {
            text_init(&part);
            text_add_bytes(&part, lines.bytes, i);
            open_lines(&opened, &part, 0x20);
            opened_release(&opened);
            text_release(&part);
            for (unsigned change = 1; change < 256; change *= 2) {
                char byte = lines.bytes[i];
                lines.bytes[i] = (char)(byte ^ (char)change);
                open_lines(&opened, &lines, 0x20);
                opened_release(&opened);
                lines.bytes[i] = byte;
            }
        }
        text_release(&lines);
        text_release(&program);
    }
}

/* Two names for the same code: which one it is called by is not known. */
static void test_two_names(void **state)
{
    (void)state;
    struct text lines, image;
    struct opened opened;
    text_init(&lines);
    make_image(&lines, true, &image);
    struct dump_specimen specimen = { .image = image.bytes,
                                      .image_bytes = image.length,
                                      .entry = CODE,
                                      .pc = CODE,
                                      .exception = 1,
                                      .error_pc = true };
    opened_specimen(&opened, &specimen);
    const struct coredump_grid *grid = coredump_grid_at(opened.dump, 0);
    assert_int_equal(grid->name.naming, COREDUMP_NAME_CANDIDATES);
    assert_int_equal(grid->name.candidate_count, 2);
    assert_int_equal(coredump_place_at(opened.dump, 0)->function.naming, COREDUMP_NAME_CANDIDATES);
    assert_int_equal(coredump_place_at(opened.dump, 0)->lines, COREDUMP_LINES_NO_FUNCTION);
    opened_release(&opened);
    text_release(&image);
    text_release(&lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),        cmocka_unit_test(test_opcodes),
        cmocka_unit_test(test_disagreement),    cmocka_unit_test(test_bad_calls),
        cmocka_unit_test(test_deep_calls),      cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_cut_and_changed), cmocka_unit_test(test_two_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
