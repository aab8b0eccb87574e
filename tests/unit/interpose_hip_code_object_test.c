/* interpose_hip_code_object_test.c - what code objects say of their kernels, and what damaged ones
 * are refused for. */
#include "interpose/hip/code_object.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- A code object by hand ------------------------------------------------------------------ */

struct image {
    uint8_t bytes[4096];
    size_t size;
};

static void add(struct image *image, const void *bytes, size_t count)
{
    assert_true(image->size + count <= sizeof(image->bytes));
    memcpy(image->bytes + image->size, bytes, count);
    image->size += count;
}

static void add_byte(struct image *image, unsigned byte)
{
    uint8_t value = (uint8_t)byte;
    add(image, &value, 1);
}

static void add_text(struct image *image, const char *text)
{
    add_byte(image, 0xA0u | (unsigned)strlen(text));
    add(image, text, strlen(text));
}

static void put(struct image *image, size_t at, uint64_t value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        image->bytes[at + i] = (uint8_t)(value >> 8 * i);
}

static void add_argument(struct image *image, unsigned offset, unsigned bytes, const char *kind)
{
    add_byte(image, 0x84); /* a map of four */
    add_text(image, ".address_space");
    add_text(image, "global");
    add_text(image, ".offset");
    add_byte(image, offset);
    add_text(image, ".size");
    add_byte(image, 0xCD); /* in 16 bits, highest first */
    add_byte(image, bytes >> 8);
    add_byte(image, bytes & 255);
    add_text(image, ".value_kind");
    add_text(image, kind);
}

static void add_metadata(struct image *image)
{
    add_byte(image, 0x82);
    add_text(image, "amdhsa.version");
    add_byte(image, 0x92);
    add_byte(image, 1);
    add_byte(image, 2);
    add_text(image, "amdhsa.kernels");
    add_byte(image, 0x92);
    add_byte(image, 0x83);
    add_text(image, ".name");
    add_text(image, "scale");
    add_text(image, ".args");
    add_byte(image, 0x94);
    add_argument(image, 0, 8, "global_buffer");
    add_argument(image, 8, 4, "by_value");
    add_argument(image, 16, 600, "by_value");
    add_argument(image, 24, 8, "hidden_block_count_x");
    add_text(image, ".uses");
    add_byte(image, 0x91); /* lists in lists, to be passed over */
    add_byte(image, 0x91);
    add_byte(image, 0xC3);
    add_byte(image, 0x81);
    add_text(image, ".name");
    add_text(image, "empty");
}

/* Header, one segment, one note of another kind and the one that counts. */
static void build(struct image *image)
{
    memset(image, 0, sizeof(*image));
    memcpy(image->bytes, "\177ELF\2\1\1", 7);
    image->size = 64 + 56;
    put(image, 18, 224, 2); /* machine */
    put(image, 32, 64, 8);  /* segments */
    put(image, 54, 56, 2);
    put(image, 56, 1, 2);
    size_t note = image->size;
    add(image, "\4\0\0\0\2\0\0\0\1\0\0\0GNU\0hi\0\0", 20);
    size_t head = image->size;
    add(image, "\7\0\0\0\0\0\0\0\40\0\0\0AMDGPU\0\0", 20);
    size_t begin = image->size;
    add_metadata(image);
    put(image, head + 4, image->size - begin, 4);
    put(image, 64, 4, 4); /* a note segment */
    put(image, 64 + 8, note, 8);
    put(image, 64 + 32, image->size - note, 8);
}

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
    assert_int_equal(scale->arguments[1].offset, 8);
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
    static const char host[] = "host-x86_64-unknown-linux-gnu-";
    static const char chip[] = "hipv4-amdgcn-amd-amdhsa--gfx942";
    struct image image, bundle = { .size = 0 };
    struct code_object object;
    struct error err;
    build(&image);
    add(&bundle, "__CLANG_OFFLOAD_BUNDLE__\2\0\0\0\0\0\0", 32);
    size_t first = bundle.size, second = first + 24 + sizeof(host) - 1;
    bundle.size = second + 24 + sizeof(chip) - 1;
    put(&bundle, first + 16, sizeof(host) - 1, 8); /* no bytes: the host's */
    memcpy(bundle.bytes + first + 24, host, sizeof(host) - 1);
    put(&bundle, second, 512, 8);
    put(&bundle, second + 8, image.size, 8);
    put(&bundle, second + 16, sizeof(chip) - 1, 8);
    memcpy(bundle.bytes + second + 24, chip, sizeof(chip) - 1);
    bundle.size = 512;
    add(&bundle, image.bytes, image.size);
    CHECK_OK(read_code(&bundle, &object, &err), &err);
    check_kernels(&object);
    code_object_release(&object);
    put(&bundle, second + 24, 'x', 1);
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
#define GPU_KERNEL(name) #name,
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
