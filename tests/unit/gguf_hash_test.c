/* gguf_hash_test.c - hashes of tensors against published values, and manifests: what is read, what
 * is passed over, what is refused. */
#include "gguf_open.h"
#include "temp_folder.h"
#include "test.h"

#include <stdio.h>
#include <unistd.h>

/* ---- Hashes --------------------------------------------------------------------------------- */

/* XXH64 with seed 0, computed by another implementation; SHA-256 from FIPS 180-2. */
static const struct known {
    const char *name;
    const char *bytes;
    uint64_t xxh64;
    const char *sha256;
} known[] = {
    { "empty", "", 0xEF46DB3751D8E999ull,
      "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
    { "abc", "abc", 0x44BC2CF5AD770999ull,
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    { "two blocks", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      0xF06103773E8585DFull, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
};

static void hex_of(const uint8_t *bytes, size_t count, char *hex)
{
    for (size_t i = 0; i < count; i++)
        snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
}

/* A file whose tensors hold the known bytes. */
static struct opened open_known(void)
{
    struct gguf_build build;
    gguf_build_init(&build, 3);
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        uint64_t length = strlen(known[i].bytes);
        gguf_build_tensor(&build, known[i].name, 1, &length, BUILD_TENSOR_I8, length);
    }
    struct opened opened = open_built(&build);
    CHECK_OK(opened.status, &opened.err);
    for (size_t i = 0; i < COUNT_OF(known); i++)
        memcpy(opened.bytes + gguf_tensor_at(opened.file, i)->offset_bytes, known[i].bytes,
               strlen(known[i].bytes));
    return opened;
}

static void test_known_values(void **state)
{
    (void)state;
    struct opened opened = open_known();
    struct gguf_hash hashes[COUNT_OF(known)];
    CHECK_OK(gguf_hash_tensors(opened.file, NULL, hashes, &opened.err), &opened.err);
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        char hex[2 * GGUF_SHA256_BYTES + 1];
        hex_of(hashes[i].sha256, GGUF_SHA256_BYTES, hex);
        assert_string_equal(hex, known[i].sha256);
        if (hashes[i].xxh64 != known[i].xxh64)
            fail_msg("%s: found xxh64 %016llx", known[i].name, (unsigned long long)hashes[i].xxh64);
    }
    opened_release(&opened);
}

static bool stop_at_once(void *context, uint64_t done, uint64_t total)
{
    uint64_t *call_count = context;
    (*call_count)++;
    assert_true(done <= total);
    return false;
}

static bool note_progress(void *context, uint64_t done, uint64_t total)
{
    uint64_t *last = context;
    assert_true(done >= *last && done <= total);
    *last = done;
    return true;
}

static void test_progress_and_stop(void **state)
{
    (void)state;
    struct opened opened = open_known();
    struct gguf_hash hashes[COUNT_OF(known)];
    uint64_t last = 0, call_count = 0;
    struct progress watched = { note_progress, &last };
    CHECK_OK(gguf_hash_tensors(opened.file, &watched, hashes, &opened.err), &opened.err);
    assert_int_equal(last, 3 + 56);
    struct progress stopped = { stop_at_once, &call_count };
    CHECK_FAILS(gguf_hash_tensors(opened.file, &stopped, hashes, &opened.err), STATUS_INTERRUPTED,
                &opened.err);
    assert_int_equal(call_count, 1);
    opened_release(&opened);
}

static void test_file_without_tensors(void **state)
{
    (void)state;
    struct gguf_build build;
    gguf_build_init(&build, 3);
    struct opened opened = open_built(&build);
    struct gguf_hash none;
    CHECK_OK(gguf_hash_tensors(opened.file, NULL, &none, &opened.err), &opened.err);
    opened_release(&opened);
}

/* ---- Manifests ------------------------------------------------------------------------------ */

#define SHA_ABC "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#define SHA_EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define XXH_ABC "44bc2cf5ad770999"
#define XXH_EMPTY "ef46db3751d8e999"

static enum status open_manifest(const char *text, struct gguf_manifest **ret, struct error *err)
{
    struct temp_folder folder;
    temp_folder_init(&folder);
    temp_folder_write(&folder, "m.manifest", text, strlen(text));
    enum status status = gguf_manifest_open(temp_folder_path(&folder, "m.manifest").text, ret, err);
    temp_folder_release(&folder); /* the mapping holds on */
    return status;
}

/* Both hashes of "abc". */
static struct gguf_hash hash_of_abc(void)
{
    struct opened opened = open_known();
    struct gguf_hash hashes[COUNT_OF(known)];
    CHECK_OK(gguf_hash_tensors(opened.file, NULL, hashes, &opened.err), &opened.err);
    opened_release(&opened);
    return hashes[1];
}

static void test_good_manifests(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *text;
        size_t count;
        enum gguf_match match; /* of tensor "t" with the hashes of "abc" */
    } rows[] = {
        { "nothing", "", 0, GGUF_MATCH_UNLISTED },
        { "blank lines", "\n\n  \n", 0, GGUF_MATCH_UNLISTED },
        { "comment", "# xxh64 nothing m.gguf:t\n", 0, GGUF_MATCH_UNLISTED },
        { "one hash", "xxh64     " XXH_ABC "  m.gguf:t\n", 1, GGUF_MATCH_SAME },
        { "no final newline", "xxh64 " XXH_ABC " m.gguf:t", 1, GGUF_MATCH_SAME },
        { "upper case", "xxh64 44BC2CF5AD770999 m.gguf:t\n", 1, GGUF_MATCH_SAME },
        { "tabs", "xxh64\t" XXH_ABC "\tm.gguf:t\n", 1, GGUF_MATCH_SAME },
        { "CRLF", "xxh64 " XXH_ABC " m.gguf:t\r\nsha256 " SHA_ABC " m.gguf:t\r\n", 1,
          GGUF_MATCH_SAME },
        { "binary mark", "sha256  " SHA_ABC " *m.gguf:t\n", 1, GGUF_MATCH_SAME },
        { "colon in the path", "sha256 " SHA_ABC " C:\\m.gguf:t\n", 1, GGUF_MATCH_SAME },
        { "space in the path", "sha256 " SHA_ABC " my model.gguf:t\n", 1, GGUF_MATCH_SAME },
        { "both hashes", "sha256 " SHA_ABC " m:t\nxxh64 " XXH_ABC " m:t\n", 1, GGUF_MATCH_SAME },
        { "one of two differs", "sha256 " SHA_ABC " m:t\nxxh64 " XXH_EMPTY " m:t\n", 1,
          GGUF_MATCH_DIFFERENT },
        { "other sha256", "sha256 " SHA_EMPTY " m:t\n", 1, GGUF_MATCH_DIFFERENT },
        { "said twice", "xxh64 " XXH_ABC " m:t\nxxh64 " XXH_ABC " m:t\n", 1, GGUF_MATCH_SAME },
        { "other tensor", "xxh64 " XXH_ABC " m:u\n", 1, GGUF_MATCH_UNLISTED },
        { "several", "xxh64 " XXH_EMPTY " m:v\nxxh64 " XXH_ABC " m:t\nxxh64 " XXH_EMPTY " m:uu\n",
          3, GGUF_MATCH_SAME },
        { "last of several",
          "xxh64 " XXH_ABC " m:t\nxxh64 " XXH_EMPTY " m:a\nxxh64 " XXH_EMPTY " m:b\n", 3,
          GGUF_MATCH_SAME },
        /* Lines that other tools write in addition to those of tensors. */
        { "whole file", "xxh64 " XXH_EMPTY " m.gguf\nxxh64 " XXH_ABC " m.gguf:t\n", 1,
          GGUF_MATCH_SAME },
        { "sha1", "sha1 a9993e364706816aba3e25717850c26c9cd0d89d m:t\n", 0, GGUF_MATCH_UNLISTED },
        { "uuid", "uuid 1c1b6e4b-4b4b-5e7c-9f7e-3b3b3b3b3b3b m.gguf\n", 0, GGUF_MATCH_UNLISTED },
    };
    struct gguf_hash hash = hash_of_abc();
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gguf_manifest *manifest = NULL;
        struct error err;
        if (open_manifest(rows[i].text, &manifest, &err))
            fail_msg("%s: %s", rows[i].name, err.text);
        enum gguf_match match = gguf_manifest_compare(manifest, text_view_of("t"), &hash);
        if (gguf_manifest_count(manifest) != rows[i].count || match != rows[i].match)
            fail_msg("%s: found %zu tensors, match %d", rows[i].name, gguf_manifest_count(manifest),
                     match);
        gguf_manifest_close(manifest);
    }
    gguf_manifest_close(NULL);
}

static void test_bad_manifests(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        const char *text;
        const char *words;
    } rows[] = {
        { "not a manifest", "GGUF", "line 1: algorithm: expected xxh64 or sha256, found 'GGUF'" },
        { "unknown algorithm", "xxh64 " XXH_ABC " m:t\nmd5 00 m:t\n",
          "line 2: algorithm: expected xxh64 or sha256, found 'md5'" },
        { "control bytes", "\x1B[31m 00 m:t\n", "found '\\x1B[31m'" },
        { "short hash", "xxh64 44bc2cf5ad77099 m:t\n",
          "line 1: hash: expected 16 hexadecimal digits, found '44bc2cf5ad77099'" },
        { "long hash", "xxh64 " XXH_ABC "0 m:t\n", "expected 16 hexadecimal digits" },
        { "not hexadecimal", "xxh64 44bc2cf5ad77099g m:t\n", "expected 16 hexadecimal digits" },
        { "sha256 too short", "sha256 " XXH_ABC " m:t\n", "expected 64 hexadecimal digits" },
        { "conflict", "xxh64 " XXH_ABC " m:t\n\nxxh64 " XXH_EMPTY " m:t\n",
          "line 3: expected one hash of tensor t, found another than in line 1" },
        { "sha256 conflict",
          "sha256 " SHA_ABC " m:t\nxxh64 " XXH_ABC " m:t\nsha256 " SHA_EMPTY " m:t\n",
          "line 3: expected one hash of tensor t" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gguf_manifest *manifest = NULL;
        struct error err;
        CHECK_FAILS(open_manifest(rows[i].text, &manifest, &err), STATUS_BAD_FILE, &err);
        check_contains(rows[i].name, err.text, rows[i].words);
        check_contains(rows[i].name, err.text, "m.manifest: line ");
        assert_null(manifest);
    }
}

static void test_manifest_that_is_no_file(void **state)
{
    (void)state;
    struct temp_folder folder;
    temp_folder_init(&folder);
    struct gguf_manifest *manifest = NULL;
    struct error err;
    CHECK_FAILS(gguf_manifest_open(folder.path, &manifest, &err), STATUS_IO, &err);
    struct temp_path none = temp_folder_path(&folder, "none");
    CHECK_FAILS(gguf_manifest_open(none.text, &manifest, &err), STATUS_NOT_FOUND, &err);
    check_contains("missing", err.text, none.text);
    /* A model by mistake, say. No byte of it is read. */
    temp_folder_write(&folder, "large", "", 0);
    struct temp_path large = temp_folder_path(&folder, "large");
    assert_int_equal(truncate(large.text, (128 << 20) + 1), 0);
    CHECK_FAILS(gguf_manifest_open(large.text, &manifest, &err), STATUS_LIMIT, &err);
    check_contains("large", err.text, "expected a manifest of at most 134217728 bytes");
    assert_null(manifest);
    temp_folder_release(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_values),
        cmocka_unit_test(test_progress_and_stop),
        cmocka_unit_test(test_file_without_tensors),
        cmocka_unit_test(test_good_manifests),
        cmocka_unit_test(test_bad_manifests),
        cmocka_unit_test(test_manifest_that_is_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
