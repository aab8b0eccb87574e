/* gguf_cut_test.c - a file that somebody cuts while it is open: an error that says so, whatever was
 * being done with it, and no death. */
#define _GNU_SOURCE /* truncate */
#include "gguf/gguf.h"
#include "gguf_build.h"
#include "temp_folder.h"
#include "test.h"

#include <stdio.h>
#include <unistd.h>

#define TENSOR_BYTES 65536u

struct scene {
    struct temp_folder folder;
    struct temp_path path;
    struct gguf_file *file;
    uint64_t size;
};

/* Two tensors of many pages, opened. */
static void open_scene(struct scene *scene)
{
    struct gguf_build build;
    struct error err;
    temp_folder_init(&scene->folder);
    gguf_build_init(&build, 3);
    gguf_build_string(&build, "general.name", "whole");
    gguf_build_tensor(&build, "first", 1, (const uint64_t[]){ TENSOR_BYTES }, BUILD_TENSOR_I8,
                      TENSOR_BYTES);
    gguf_build_tensor(&build, "second", 1, (const uint64_t[]){ TENSOR_BYTES }, BUILD_TENSOR_I8,
                      TENSOR_BYTES);
    gguf_build_finish(&build);
    scene->size = build.text.length;
    temp_folder_write(&scene->folder, "m.gguf", text_get(&build.text), build.text.length);
    gguf_build_release(&build);
    scene->path = temp_folder_path(&scene->folder, "m.gguf");
    CHECK_OK(gguf_open(scene->path.text, &scene->file, &err), &err);
    CHECK_OK(gguf_check_whole(scene->file, &err), &err);
}

static void close_scene(struct scene *scene)
{
    gguf_close(scene->file);
    temp_folder_release(&scene->folder);
}

static void test_hashing(void **state)
{
    (void)state;
    struct scene scene;
    struct gguf_hash hashes[2];
    struct error err;
    open_scene(&scene);
    CHECK_OK(gguf_hash_tensors(scene.file, NULL, hashes, &err), &err);
    assert_int_equal(truncate(scene.path.text, 20000), 0);
    CHECK_FAILS(gguf_hash_tensors(scene.file, NULL, hashes, &err), STATUS_IO, &err);
    check_contains("hash", err.text, "m.gguf: it became shorter while it was read");
    check_contains("hash", err.text, "found 20000");
    close_scene(&scene);
}

/* Bytes after the cut read as zeros, bytes before it as they were. */
static void test_reading_goes_on(void **state)
{
    (void)state;
    struct scene scene;
    struct error err;
    open_scene(&scene);
    const struct gguf_tensor *first = gguf_tensor_find(scene.file, "first");
    const struct gguf_tensor *second = gguf_tensor_find(scene.file, "second");
    assert_int_equal(truncate(scene.path.text, 8192), 0);
    static const uint8_t zeros[TENSOR_BYTES];
    assert_memory_equal(second->data, zeros, TENSOR_BYTES);
    assert_int_equal(first->data[64], gguf_build_data(64));
    struct text_view name;
    CHECK_OK(gguf_get_text(scene.file, "general.name", &name, &err), &err);
    assert_true(text_view_is(name, "whole"));
    CHECK_FAILS(gguf_check_whole(scene.file, &err), STATUS_IO, &err);
    close_scene(&scene);
}

/* Within the last page nothing faults. */
static void test_cut_by_one_byte(void **state)
{
    (void)state;
    struct scene scene;
    struct error err;
    open_scene(&scene);
    assert_int_equal(truncate(scene.path.text, (off_t)scene.size - 1), 0);
    CHECK_FAILS(gguf_check_whole(scene.file, &err), STATUS_IO, &err);
    close_scene(&scene);
}

/* A file that is replaced stays what it was for whoever has it open. */
static void test_replaced(void **state)
{
    (void)state;
    struct scene scene;
    struct gguf_hash hashes[2];
    struct error err;
    open_scene(&scene);
    struct temp_path other = temp_folder_path(&scene.folder, "other.gguf");
    temp_folder_write(&scene.folder, "other.gguf", "short", 5);
    assert_int_equal(rename(other.text, scene.path.text), 0);
    CHECK_OK(gguf_hash_tensors(scene.file, NULL, hashes, &err), &err);
    close_scene(&scene);
}

/* Read past the mapping: what is there, and an error that names the file for what is not. */
static void test_tensor_read(void **state)
{
    (void)state;
    struct scene scene;
    struct error err;
    uint8_t found[TENSOR_BYTES];
    open_scene(&scene);
    const struct gguf_tensor *first = gguf_tensor_find(scene.file, "first");
    const struct gguf_tensor *second = gguf_tensor_find(scene.file, "second");
    CHECK_OK(gguf_tensor_read(scene.file, second, 0, found, TENSOR_BYTES, &err), &err);
    assert_memory_equal(found, second->data, TENSOR_BYTES);
    CHECK_OK(gguf_tensor_read(scene.file, second, 1001, found, 77, &err), &err);
    assert_memory_equal(found, second->data + 1001, 77);
    assert_int_equal(truncate(scene.path.text, 8192), 0);
    CHECK_OK(gguf_tensor_read(scene.file, first, 64, found, 64, &err), &err);
    assert_int_equal(found[0], gguf_build_data(64));
    CHECK_FAILS(gguf_tensor_read(scene.file, second, 0, found, 1, &err), STATUS_IO, &err);
    check_contains("the message", err.text, "m.gguf");
    check_contains("the message", err.text, "found the file's end");
    close_scene(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hashing),         cmocka_unit_test(test_reading_goes_on),
        cmocka_unit_test(test_cut_by_one_byte), cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_tensor_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
