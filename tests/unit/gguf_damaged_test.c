/* gguf_damaged_test.c - files that are not what they should be: every one is refused, in words that
 * help (file, byte, field, what was expected and found), quickly, and with little memory.
 *
 * `gguf_damaged_test --write-corpus FOLDER` writes the files a fuzzer starts from: well-formed
 * ones, and one for each check of the reader that refuses a file, under the name of what it is. */
#include "gguf_damaged.h"
#include "gguf_open.h"
#include "memory_limit.h"
#include "temp_folder.h"
#include "test.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Above the mapping of the file itself. */
#define MEMORY_LIMIT_BYTES ((uint64_t)64 << 20)
#define TIME_LIMIT_NS 1000000000u
#define CORPUS_FILE_LIMIT_BYTES 4096u

/* ---- The corpus ----------------------------------------------------------------------------- */

#define NAME_LIMIT 4096

struct corpus {
    struct temp_folder folder;
    size_t count, refused_count, harmless_count;
    char (*names)[sizeof(((struct damaged *)0)->name)];
};

static void check_message(const struct damaged *damaged, const struct error *err, const char *file)
{
    char words[64];
    check_contains(damaged->name, err->text, file);
    snprintf(words, sizeof(words), "%s: expected ", damaged->field);
    check_contains(damaged->name, err->text, words);
    check_contains(damaged->name, err->text, "found");
    check_contains(damaged->name, err->text, damaged->words ? damaged->words : "");
    const char *byte = strstr(err->text, ".gguf: byte ");
    if (!byte)
        fail_msg("%s: expected a byte offset in \"%s\"", damaged->name, err->text);
    uint64_t at = strtoull(byte + strlen(".gguf: byte "), NULL, 10);
    if (at != damaged->at && !(damaged->at_or_after && at > damaged->at && at < damaged->size))
        fail_msg("%s: expected byte %" PRIu64 "%s, found \"%s\"", damaged->name, damaged->at,
                 damaged->at_or_after ? " or later" : "", err->text);
}

static void check_outcome(const struct damaged *damaged, enum status status,
                          const struct error *err, const char *file)
{
    if (damaged->harmless) {
        if (status)
            fail_msg("%s: expected no error (%s), found \"%s\"", damaged->name, damaged->harmless,
                     err->text);
        return;
    }
    if (status == STATUS_OK)
        fail_msg("%s: expected an error about %s at byte %" PRIu64 ", found none", damaged->name,
                 damaged->field, damaged->at);
    if (status != STATUS_BAD_FILE)
        fail_msg("%s: expected bad-file, found %s: \"%s\"", damaged->name, status_name(status),
                 err->text);
    check_message(damaged, err, file);
}

static void check_damaged(void *context, const struct damaged *damaged)
{
    struct corpus *corpus = context;
    for (size_t i = 0; i < corpus->count; i++)
        if (strcmp(corpus->names[i], damaged->name) == 0)
            fail_msg("%s: expected a new name, found it twice", damaged->name);
    ASSERT(corpus->count < NAME_LIMIT);
    memcpy(corpus->names[corpus->count++], damaged->name, sizeof(damaged->name));
    *(damaged->harmless ? &corpus->harmless_count : &corpus->refused_count) += 1;

    struct opened opened = open_bytes(damaged->bytes, damaged->size);
    check_outcome(damaged, opened.status, &opened.err, "built.gguf");
    opened_release(&opened);

    temp_folder_write(&corpus->folder, "damaged.gguf", damaged->bytes, damaged->size);
    struct temp_path path = temp_folder_path(&corpus->folder, "damaged.gguf");
    struct gguf_file *file = NULL;
    struct error err;
    uint64_t limit_before = memory_limit_begin(MEMORY_LIMIT_BYTES + damaged->size);
    uint64_t start_ns = processor_ns();
    enum status status = gguf_open(path.text, &file, &err);
    uint64_t took_ns = processor_ns() - start_ns;
    memory_limit_end(limit_before);
    check_outcome(damaged, status, &err, path.text);
    if (took_ns > TIME_LIMIT_NS)
        fail_msg("%s: expected at most a second of a processor, found %" PRIu64 " ns",
                 damaged->name, took_ns);
    gguf_close(file);
}

static void test_corpus(void **state)
{
    (void)state;
    struct corpus corpus = { .names = calloc(NAME_LIMIT, sizeof(*corpus.names)) };
    assert_non_null(corpus.names);
    temp_folder_init(&corpus.folder);
    gguf_damaged_all(check_damaged, &corpus);
    temp_folder_release(&corpus.folder);
    free(corpus.names);
    print_message("%zu damaged files: %zu refused, %zu still well-formed%s\n", corpus.count,
                  corpus.refused_count, corpus.harmless_count,
                  memory_limit_works() ? "" : "; memory not limited under a sanitizer");
    assert_true(corpus.refused_count >= 300);
}

/* ---- What is not a file --------------------------------------------------------------------- */

static void check_not_a_file(const char *path, enum status wanted, const char *words)
{
    struct gguf_file *file = NULL;
    struct error err;
    CHECK_FAILS(gguf_open(path, &file, &err), wanted, &err);
    check_contains(path, err.text, path);
    check_contains(path, err.text, words);
    assert_null(file);
}

static void test_what_is_not_a_file(void **state)
{
    (void)state;
    struct temp_folder folder;
    temp_folder_init(&folder);
    struct temp_path fifo = temp_folder_path(&folder, "fifo.gguf");
    struct temp_path loop = temp_folder_path(&folder, "loop.gguf");
    struct temp_path locked = temp_folder_path(&folder, "locked.gguf");
    assert_int_equal(mkfifo(fifo.text, 0600), 0);
    assert_int_equal(symlink(loop.text, loop.text), 0);
    temp_folder_write(&folder, "locked.gguf", "GGUF", 4);
    assert_int_equal(chmod(locked.text, 0), 0);

    check_not_a_file(folder.path, STATUS_IO, "expected a file, found a directory");
    check_not_a_file(fifo.text, STATUS_IO, "expected a regular file, found a pipe"); /* at once */
    check_not_a_file("/dev/zero", STATUS_IO, "expected a regular file");
    check_not_a_file(temp_folder_path(&folder, "none.gguf").text, STATUS_NOT_FOUND, "No such file");
    check_not_a_file(temp_folder_path(&folder, "no/ne.gguf").text, STATUS_NOT_FOUND,
                     "No such file");
    check_not_a_file("", STATUS_NOT_FOUND, "No such file");
    check_not_a_file(loop.text, STATUS_IO, "symbolic link");
    if (geteuid() != 0) /* nothing is locked for root */
        check_not_a_file(locked.text, STATUS_IO, "Permission denied");
    temp_folder_release(&folder);
}

/* ---- Seeds for the fuzzer ------------------------------------------------------------------- */

static void write_seed(const char *folder, const char *name, const char *bytes, size_t size)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *out = fopen(path, "wb");
    ASSERT(out != NULL);
    ASSERT(size == 0 || fwrite(bytes, 1, size, out) == size);
    ASSERT(fclose(out) == 0);
}

#define SEED_LIMIT 128

struct seeds {
    const char *folder;
    char reasons[SEED_LIMIT][128];
    size_t count;
};

/* One file for each check that refuses one, and for each way to be harmless. */
static void write_damaged_seed(void *context, const struct damaged *damaged)
{
    struct seeds *seeds = context;
    struct opened opened = open_bytes(damaged->bytes, damaged->size);
    char reason[sizeof(seeds->reasons[0])];
    if (opened.status)
        snprintf(reason, sizeof(reason), "%s:%d: %s", opened.err.file, opened.err.line,
                 damaged->field);
    else
        snprintf(reason, sizeof(reason), "%s", damaged->harmless);
    opened_release(&opened);
    for (size_t i = 0; i < seeds->count; i++)
        if (strcmp(seeds->reasons[i], reason) == 0)
            return;
    if (damaged->size > CORPUS_FILE_LIMIT_BYTES)
        return;
    ASSERT(seeds->count < SEED_LIMIT);
    memcpy(seeds->reasons[seeds->count++], reason, sizeof(reason));
    write_seed(seeds->folder, damaged->name, damaged->bytes, damaged->size);
}

static int write_corpus(const char *folder)
{
    struct gguf_build build;
    gguf_build_specimen(&build, 2);
    write_seed(folder, "good-specimen-version-2", build.text.bytes, build.text.length);
    gguf_build_release(&build);
    gguf_build_specimen(&build, 3);
    write_seed(folder, "good-specimen-version-3", build.text.bytes, build.text.length);
    gguf_build_release(&build);
    gguf_build_llama(&build);
    write_seed(folder, "good-llama", build.text.bytes, build.text.length);
    gguf_build_release(&build);
    static struct seeds seeds; /* large */
    seeds.folder = folder;
    gguf_damaged_all(write_damaged_seed, &seeds);
    return 0;
}

int main(int argument_count, char **arguments)
{
    if (argument_count == 3 && strcmp(arguments[1], "--write-corpus") == 0)
        return write_corpus(arguments[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_corpus),
        cmocka_unit_test(test_what_is_not_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
