/* gguf_faults_test.c - reading, hashing and writing models with every call of the system failing
 * once. */
#include "fail_nth.h"

#include "gguf/gguf.h"
#include "gguf_build.h"
#include "temp_folder.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PARTS 2
#define TENSOR_BYTES 32

/* One site: see fail_nth.h. */
#define CALLS 12

struct scene {
    struct temp_folder folder;
    struct temp_path whole, part, manifest, written;
};

/* A model in one file and one in two. */
static void write_model(struct scene *scene, const char *name, const char *tensor, int part)
{
    struct gguf_build build;
    gguf_build_init(&build, 3);
    gguf_build_string(&build, "general.name", name);
    gguf_build_string(&build, "general.architecture", "llama");
    if (part >= 0) {
        gguf_build_number(&build, "split.no", BUILD_U16, (uint64_t)part);
        gguf_build_number(&build, "split.count", BUILD_U16, PARTS);
        gguf_build_number(&build, "split.tensors.count", BUILD_I32, PARTS);
    }
    gguf_build_tensor(&build, tensor, 1, (const uint64_t[]){ 8 }, BUILD_TENSOR_F32, TENSOR_BYTES);
    gguf_build_finish(&build);
    temp_folder_write(&scene->folder, name, text_get(&build.text), build.text.length);
    gguf_build_release(&build);
}

static int set_up(void **state)
{
    static struct scene scene;
    fail_nth_pause();
    temp_folder_init(&scene.folder);
    write_model(&scene, "whole.gguf", "one", -1);
    write_model(&scene, "m-00001-of-00002.gguf", "one", 0);
    write_model(&scene, "m-00002-of-00002.gguf", "two", 1);
    static const char manifest[] = "xxh64 0123456789abcdef m.gguf:one\nxxh64 0123456789abcdef "
                                   "m.gguf:two\n";
    temp_folder_write(&scene.folder, "m.manifest", manifest, sizeof(manifest) - 1);
    scene.whole = temp_folder_path(&scene.folder, "whole.gguf");
    scene.part = temp_folder_path(&scene.folder, "m-00002-of-00002.gguf");
    scene.manifest = temp_folder_path(&scene.folder, "m.manifest");
    scene.written = temp_folder_path(&scene.folder, "written.gguf");
    *state = &scene;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *scene = *state;
    temp_folder_release(&scene->folder);
    return 0;
}

/* ---- Reading -------------------------------------------------------------------------------- */

static enum status read_one(const char *path, uint32_t shards, struct error *err)
{
    struct gguf_file *file = NULL;
    enum status status = gguf_open(path, &file, err);
    if (status) {
        assert_null(file);
        return status;
    }
    assert_int_equal(gguf_shard_count(file), shards);
    assert_int_equal(gguf_tensor_count(file), shards);
    const struct gguf_tensor *tensor = gguf_tensor_find(file, "one");
    assert_non_null(tensor);
    assert_int_equal(tensor->data[TENSOR_BYTES - 1], gguf_build_data(TENSOR_BYTES - 1));
    gguf_tensor_drop(file, tensor);
    gguf_close(file);
    return STATUS_OK;
}

static enum status read_files(void *context, struct error *err)
{
    const struct scene *scene = context;
    TRY(read_one(scene->whole.text, 1, err));
    return read_one(scene->part.text, PARTS, err);
}

static void test_reading(void **state)
{
    fail_nth_sweep("read", CALLS, read_files, *state);
}

static enum status read_memory(void *context, struct error *err)
{
    struct text *bytes = context;
    struct gguf_file *file = NULL;
    TRY(gguf_open_memory(text_get(bytes), bytes->length, "memory.gguf", &file, err));
    assert_int_equal(gguf_tensor_count(file), 1);
    assert_string_equal(gguf_path(file), "memory.gguf");
    gguf_close(file);
    return STATUS_OK;
}

static void test_reading_memory(void **state)
{
    struct scene *scene = *state;
    struct text bytes;
    text_init(&bytes);
    temp_folder_read(&scene->folder, "whole.gguf", &bytes);
    fail_nth_sweep("read memory", CALLS, read_memory, &bytes);
    text_release(&bytes);
}

/* ---- Hashing -------------------------------------------------------------------------------- */

static enum status hash(void *context, struct error *err)
{
    const struct scene *scene = context;
    struct gguf_file *file;
    struct gguf_hash hashes[PARTS];
    TRY(gguf_open(scene->part.text, &file, err));
    enum status status = gguf_hash_tensors(file, NULL, hashes, err);
    /* Both tensors have the same bytes. */
    if (!status)
        assert_memory_equal(hashes[0].sha256, hashes[1].sha256, GGUF_SHA256_BYTES);
    gguf_close(file);
    return status;
}

static void test_hashing(void **state)
{
    fail_nth_sweep("hash", CALLS, hash, *state);
}

static enum status read_manifest(void *context, struct error *err)
{
    const struct scene *scene = context;
    struct gguf_manifest *manifest = NULL;
    struct gguf_hash hash = { .xxh64 = UINT64_C(0x0123456789abcdef) };
    TRY(gguf_manifest_open(scene->manifest.text, &manifest, err));
    assert_int_equal(gguf_manifest_count(manifest), 2);
    assert_int_equal(gguf_manifest_compare(manifest, text_view_of("two"), &hash), GGUF_MATCH_SAME);
    gguf_manifest_close(manifest);
    return STATUS_OK;
}

static void test_manifest(void **state)
{
    fail_nth_sweep("manifest", CALLS, read_manifest, *state);
}

/* ---- Writing -------------------------------------------------------------------------------- */

/* More entries and tensors than an array has at first: it grows on the way. */
#define MANY 70

static enum status declare(struct gguf_writer *writer, const struct gguf_file *source,
                           struct error *err)
{
    struct text strings;
    text_init(&strings);
    gguf_add_string(&strings, text_view_of("a"));
    gguf_add_string(&strings, text_view_of("b"));
    bool whole = !strings.failed;
    gguf_writer_put_text(writer, "general.architecture", "llama");
    gguf_writer_put_f32(writer, "a.number", 1.5f);
    gguf_writer_put_flag(writer, "a.flag", true);
    gguf_writer_put_strings(writer, "a.list", &strings, 2);
    gguf_writer_put_array(writer, "an.array", GGUF_U32, (const uint32_t[]){ 1, 2 }, 2);
    gguf_writer_put_value(writer, text_view_of("general.name"), gguf_find(source, "general.name"));
    text_release(&strings);
    char name[32];
    for (uint32_t i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "key.%" PRIu32, i);
        gguf_writer_put_u32(writer, name, i);
    }
    const uint64_t eight = 8;
    struct shape shape = shape_make(1, &eight);
    for (uint32_t i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "tensor.%" PRIu32, i);
        TRY(gguf_writer_add_tensor(writer, text_view_of(name), DTYPE_F32, &shape, err));
    }
    return whole ? STATUS_OK : error_set(err, STATUS_NO_MEMORY, "no memory for the list");
}

static enum status write_with(struct gguf_writer *writer, const struct scene *scene, bool replace,
                              struct error *err)
{
    struct gguf_file *source;
    TRY(gguf_open(scene->whole.text, &source, err));
    enum status status = declare(writer, source, err);
    if (!status)
        status = gguf_writer_begin_data(writer, scene->written.text, replace, err);
    const float values[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    for (uint32_t i = 0; i < MANY && !status; i++)
        status = gguf_writer_append(writer, values, sizeof(values), err);
    if (!status)
        status = gguf_writer_finish(writer, err);
    gguf_close(source);
    return status;
}

/* A file that is there is whole; one that is not has left no other file. */
static enum status check_written(const struct scene *scene, enum status written, size_t files,
                                 struct error *err)
{
    if (temp_folder_has(&scene->folder, "written.gguf")) {
        struct gguf_file *file;
        TRY(gguf_open(scene->written.text, &file, err));
        assert_int_equal(gguf_tensor_count(file), MANY);
        const struct gguf_tensor *last = gguf_tensor_at(file, MANY - 1);
        float value;
        memcpy(&value, last->data + 28, sizeof(value));
        assert_true(value == 8.0f);
        gguf_close(file);
        fail_nth_pause();
        unlink(scene->written.text);
        fail_nth_resume();
    } else {
        assert_int_not_equal(written, STATUS_OK);
    }
    assert_int_equal(temp_folder_count(&scene->folder), files);
    return written;
}

static enum status write_one(const struct scene *scene, bool replace, struct error *err)
{
    size_t files = temp_folder_count(&scene->folder);
    struct gguf_writer *writer;
    TRY(gguf_writer_create(&writer, err));
    enum status status = write_with(writer, scene, replace, err);
    gguf_writer_destroy(writer);
    fail_nth_pause();
    struct error unused;
    enum status checked = check_written(scene, status, files, &unused);
    assert_int_equal(checked, status);
    fail_nth_resume();
    return status;
}

static enum status write_new(void *context, struct error *err)
{
    return write_one(context, false, err);
}

static enum status write_over(void *context, struct error *err)
{
    return write_one(context, true, err);
}

static void test_writing(void **state)
{
    fail_nth_sweep("write", CALLS, write_new, *state);
    fail_nth_sweep("replace", CALLS, write_over, *state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_reading, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_reading_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_hashing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_manifest, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_writing, set_up, tear_down),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fail_nth_write_sites();
    return failed;
}
