/* interpose_hip_kernels_test.c - from the function a program launches to the kernel's name and
 * arguments. */
#define _GNU_SOURCE
#include "interpose/hip/hip.h"
#include "interpose_hip_code.h"

#include <sys/mman.h>

static const char *const handles = "abcdefgh"; /* places in it are handles */

static void test_module(void **state)
{
    (void)state;
    const void *module = handles, *function = handles + 1;
    struct image image;
    struct hip_kernel kernel;
    build(&image);
    struct code_source source = hip_memory_source(image.bytes);
    hip_module_add(module, &source);
    memset(&image, 0, sizeof(image)); /* the program gives it back */
    hip_kernel_find(function, &kernel);
    assert_null(kernel.name);
    assert_false(kernel.known);
    hip_module_function(module, function, "scale");
    hip_kernel_find(function, &kernel);
    assert_string_equal(kernel.name, "scale");
    assert_true(kernel.known);
    assert_int_equal(kernel.argument_count, 3);
    assert_int_equal(kernel.arguments[2].bytes, 600);
    /* Another function with the handle of an old one. */
    hip_module_function(module, function, "empty");
    hip_kernel_find(function, &kernel);
    assert_string_equal(kernel.name, "empty");
    assert_int_equal(kernel.argument_count, 0);
    hip_module_function(module, function, "not in the note");
    hip_kernel_find(function, &kernel);
    assert_string_equal(kernel.name, "not in the note");
    assert_false(kernel.known);
    hip_module_function(module, function, "scale");
    hip_kernel_find(function, &kernel);
    assert_string_equal(kernel.name, "scale");
    assert_true(kernel.known);
    hip_module_remove(module);
    hip_kernel_find(function, &kernel);
    assert_false(kernel.known);
}

static void test_bundle(void **state)
{
    (void)state;
    static struct image bundle;
    struct hip_kernel kernel;
    size_t target;
    build_bundle(&bundle, &target);
    hip_bundle_add(handles + 2, bundle.bytes);
    hip_bundle_function(handles + 2, handles + 3, "scale");
    hip_kernel_find(handles + 3, &kernel);
    assert_true(kernel.known);
    assert_int_equal(kernel.argument_count, 3);
}

/* Bytes that are not there, or not what they should be: the name is known, no more. */
static void test_unreadable(void **state)
{
    (void)state;
    struct hip_kernel kernel;
    void *gone = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(gone != MAP_FAILED);
    hip_bundle_add(handles + 4, gone);
    hip_bundle_function(handles + 4, handles + 5, "scale");
    munmap(gone, 4096);
    hip_kernel_find(handles + 5, &kernel);
    assert_string_equal(kernel.name, "scale");
    assert_false(kernel.known);
    hip_module_add_file(handles + 6, "/nowhere/code.co");
    hip_module_function(handles + 6, handles + 7, "scale");
    hip_kernel_find(handles + 7, &kernel);
    assert_false(kernel.known);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_module),
                                        cmocka_unit_test(test_bundle),
                                        cmocka_unit_test(test_unreadable) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
