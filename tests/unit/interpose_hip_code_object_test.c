/* interpose_hip_code_object_test.c - what code objects say of their kernels, and what damaged ones
 * are refused for. */
#include "interpose_hip_code.h"

#include <stdio.h>
#include <stdlib.h>

static bool read_image(void *context, uint64_t offset, void *to, size_t bytes)
{
    const struct image *image = context;
    if (offset > image->size || bytes > image->size - offset)
        return false;
    memcpy(to, image->bytes + offset, bytes);
    return true;
}

static enum status read_code(struct image *image, struct code_object *object, struct error *err)
{
    struct code_source source = { read_image, image };
    return code_object_read(&source, object, err);
}

static void check_kernels(struct code_object *object)
{
    assert_int_equal(object->kernel_count, 2);
    const struct code_kernel *scale = code_object_find(object, "scale");
    assert_non_null(scale);
    assert_int_equal(scale->argument_count, 3); /* without the hidden one */
    assert_int_equal(scale->arguments[0].bytes, 8);
    assert_true(scale->arguments[0].reads_only);
    assert_int_equal(scale->arguments[1].offset, 8);
    assert_false(scale->arguments[1].reads_only);
    assert_int_equal(scale->arguments[1].bytes, 4);
    assert_int_equal(scale->arguments[2].bytes, 600);
    assert_int_equal(code_object_find(object, "empty")->argument_count, 0);
    assert_null(code_object_find(object, "other"));
}

/* ---- Tests ---------------------------------------------------------------------------------- */

static void test_read(void **state)
{
    (void)state;
    struct image image;
    struct code_object object;
    struct error err;
    build(&image);
    CHECK_OK(read_code(&image, &object, &err), &err);
    check_kernels(&object);
    code_object_release(&object);
    assert_null(code_object_find(&object, "scale"));
}

static void test_bundle(void **state)
{
    (void)state;
    struct image bundle;
    struct code_object object;
    struct error err;
    size_t target;
    build_bundle(&bundle, &target);
    CHECK_OK(read_code(&bundle, &object, &err), &err);
    check_kernels(&object);
    code_object_release(&object);
    bundle.bytes[target] = 'x';
    assert_int_equal(read_code(&bundle, &object, &err), STATUS_BAD_FILE);
    check_contains("why", err.text, "expected code for an AMD GPU, found none");
}

/* Cut anywhere it is refused, or says the same. */
static void test_cut(void **state)
{
    (void)state;
    struct image image;
    struct error err;
    build(&image);
    size_t whole = image.size;
    for (image.size = 0; image.size < whole; image.size++) {
        struct code_object object;
        assert_int_equal(read_code(&image, &object, &err), STATUS_BAD_FILE);
    }
}

/* Any one byte changed: nothing bad happens, whatever it says then. */
static void test_changed(void **state)
{
    (void)state;
    struct image image;
    build(&image);
    for (size_t at = 0; at < image.size; at++)
        for (unsigned flip = 1; flip < 256; flip += flip < 16 ? 1 : 17) {
            struct code_object object;
            struct error err;
            image.bytes[at] ^= (uint8_t)flip;
            if (read_code(&image, &object, &err) == STATUS_OK)
                code_object_release(&object);
            image.bytes[at] ^= (uint8_t)flip;
        }
}

static void test_refused(void **state)
{
    (void)state;
    struct image image;
    struct code_object object;
    struct error err;
    build(&image);
    put(&image, 18, 62, 2);
    assert_int_equal(read_code(&image, &object, &err), STATUS_BAD_FILE);
    check_contains("machine", err.text, "expected one for an AMD GPU");
    build(&image);
    put(&image, 64 + 32, UINT64_C(1) << 60, 8);
    assert_int_equal(read_code(&image, &object, &err), STATUS_BAD_FILE);
    check_contains("note", err.text, "expected a note below");
    build(&image);
    put(&image, 64 + 8, UINT64_MAX - 3, 8);
    assert_int_equal(read_code(&image, &object, &err), STATUS_BAD_FILE);
    memset(&image, 0, sizeof(image));
    memcpy(image.bytes, "CCOB", 4);
    image.size = 64;
    assert_int_equal(read_code(&image, &object, &err), STATUS_UNSUPPORTED);
}

/* The kernels of this build, where it has some: each takes one struct by value. */
static bool read_file(void *context, uint64_t offset, void *to, size_t bytes)
{
    return fseek(context, (long)offset, SEEK_SET) == 0 && fread(to, 1, bytes, context) == bytes;
}

static void test_build(void **state)
{
    (void)state;
    const char *path = getenv("GRETA_CODE_OBJECT");
    FILE *file = path ? fopen(path, "rb") : NULL;
    if (!file) {
        print_message("skipped: this build has no code object\n");
        skip();
    }
    struct code_source source = { read_file, file };
    struct code_object object;
    struct error err;
    CHECK_OK(code_object_read(&source, &object, &err), &err);
    static const char *const names[] = {
#define GPU_KERNEL(name, arguments, operands) #name,
#include "ops/gpu/kernels.def"
#undef GPU_KERNEL
    };
    assert_int_equal(object.kernel_count, COUNT_OF(names));
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const struct code_kernel *kernel = code_object_find(&object, names[i]);
        assert_non_null(kernel);
        assert_int_equal(kernel->argument_count, 1);
        assert_int_equal(kernel->arguments[0].offset, 0);
        assert_true(kernel->arguments[0].bytes > 100);
    }
    code_object_release(&object);
    fclose(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),    cmocka_unit_test(test_bundle),
        cmocka_unit_test(test_cut),     cmocka_unit_test(test_changed),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_build),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
