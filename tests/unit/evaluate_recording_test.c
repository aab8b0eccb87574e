/* evaluate_recording_test.c - recordings of logits: written, read, and refused when damaged. */
#include "test.h"

#include "evaluate/evaluate_impl.h"
#include "temp_folder.h"

#include <string.h>

#define HEAD_BYTES 64u
/* Two chunks of 6 tokens, 2 scored of each, 3 in the vocabulary. */
#define ROWS 4u
static const struct evaluate_recording_info info = { 6, 3, 2, 0x1234567890ABCDEF };

struct fixture {
    struct temp_folder folder;
    struct temp_path path;
    struct text bytes; /* of a good recording */
    struct error err;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    float rows[ROWS * 3];
    struct outfile out;
    fixture = (struct fixture){ 0 };
    temp_folder_init(&fixture.folder);
    fixture.path = temp_folder_path(&fixture.folder, "logits");
    text_init(&fixture.bytes);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        rows[i] = (float)i * 0.5f;
    CHECK_OK(evaluate_recording_begin(&out, fixture.path.text, false, &info, &fixture.err),
             &fixture.err);
    CHECK_OK(outfile_write(&out, rows, sizeof(rows), &fixture.err), &fixture.err);
    CHECK_OK(outfile_commit(&out, &fixture.err), &fixture.err);
    temp_folder_read(&fixture.folder, "logits", &fixture.bytes);
    assert_int_equal(fixture.bytes.length, HEAD_BYTES + sizeof(rows));
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    text_release(&fixture->bytes);
    temp_folder_release(&fixture->folder);
    return 0;
}

static void test_round_trip(void **state)
{
    struct fixture *f = *state;
    struct evaluate_recording *recording;
    CHECK_OK(evaluate_recording_open(f->path.text, &recording, &f->err), &f->err);
    assert_memory_equal(evaluate_recording_info(recording), &info, sizeof(info));
    for (unsigned row = 0; row < ROWS; row++)
        for (unsigned i = 0; i < 3; i++)
            assert_true(evaluate_recording_row(recording, row)[i] == (float)(row * 3 + i) * 0.5f);
    evaluate_recording_close(recording);
    evaluate_recording_close(NULL);
}

static void check_refused(struct fixture *f, size_t count, const char *words)
{
    struct evaluate_recording *recording;
    temp_folder_write(&f->folder, "logits", f->bytes.bytes, count);
    CHECK_FAILS(evaluate_recording_open(f->path.text, &recording, &f->err), STATUS_BAD_FILE,
                &f->err);
    assert_null(recording);
    check_contains("damaged", f->err.text, words);
}

static void test_cut(void **state)
{
    struct fixture *f = *state;
    for (size_t count = 0; count < f->bytes.length; count++)
        check_refused(f, count, "logits");
    check_refused(f, f->bytes.length - 1, "was it copied whole?");
    text_add_bytes(&f->bytes, "", 1);
    check_refused(f, f->bytes.length, "was it copied whole?");
}

static void test_damaged_head(void **state)
{
    struct fixture *f = *state;
    static const struct {
        size_t at;
        const char *bytes;
        size_t count;
        const char *words;
    } rows[] = {
        { 0, "x", 1, "magic" },
        { 8, "\2", 1, "version" },
        { 12, "\3", 1, "context" },
        { 12, "\0", 1, "context" },
        { 12, "\6\0\0\x80", 4, "context" },
        { 12, "\7", 1, "was it copied whole?" },
        { 16, "\0", 1, "more than 0" },
        { 16, "\xFF\xFF\xFF\xFF", 4, "was it copied whole?" },
        { 24, "\0", 1, "more than 0" },
        { 24, "\3", 1, "was it copied whole?" },
        { 24, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 8, "was it copied whole?" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char saved[8];
        memcpy(saved, f->bytes.bytes + rows[i].at, rows[i].count);
        memcpy(f->bytes.bytes + rows[i].at, rows[i].bytes, rows[i].count);
        check_refused(f, f->bytes.length, rows[i].words);
        memcpy(f->bytes.bytes + rows[i].at, saved, rows[i].count);
    }
}

static void test_no_file(void **state)
{
    struct fixture *f = *state;
    struct evaluate_recording *recording;
    struct temp_path path = temp_folder_path(&f->folder, "nothing");
    CHECK_FAILS(evaluate_recording_open(path.text, &recording, &f->err), STATUS_NOT_FOUND, &f->err);
    assert_null(recording);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_damaged_head, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_no_file, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
