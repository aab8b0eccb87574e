/* base_symbols_test.c - functions of this very program by address, of files that are damaged or
 * none, and names as they were written. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "test.h"

#include "base/mapfile.h"
#include "base/symbols.h"
#include "own_address.h"
#include "temp_folder.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Not static: it must be in the table under this name. */
int symbols_test_landmark(int value);
__attribute__((noinline)) int symbols_test_landmark(int value)
{
    return value * 3 + 1;
}

static uint64_t landmark_address(void)
{
    return address_in_file((const void *)(uintptr_t)symbols_test_landmark);
}

static void test_own_function(void **state)
{
    (void)state;
    struct symbols *symbols = symbols_create();
    char name[64];
    uint64_t offset = 99;
    assert_int_equal(symbols_test_landmark(2), 7);
    for (uint64_t into = 0; into < 2; into++) {
        assert_true(symbols_find(symbols, "/proc/self/exe", landmark_address() + into, name,
                                 sizeof(name), &offset));
        assert_string_equal(name, "symbols_test_landmark");
        assert_int_equal(offset, into);
    }
    char cut[8];
    assert_true(
        symbols_find(symbols, "/proc/self/exe", landmark_address(), cut, sizeof(cut), &offset));
    assert_string_equal(cut, "symbols");
    symbols_destroy(symbols);
}

static void test_nothing_there(void **state)
{
    (void)state;
    struct symbols *symbols = symbols_create();
    char name[64] = "before";
    uint64_t offset = 99;
    assert_false(symbols_find(symbols, "/proc/self/exe", 1, name, sizeof(name), &offset));
    assert_string_equal(name, "");
    assert_false(symbols_find(symbols, "/proc/self/exe", UINT64_MAX, name, sizeof(name), &offset));
    assert_false(symbols_find(symbols, "/nowhere/at/all", 1, name, sizeof(name), &offset));
    assert_false(symbols_find(symbols, "/dev/null", 1, name, sizeof(name), &offset));
    assert_int_equal(offset, 99);
    symbols_destroy(symbols);
    symbols_destroy(NULL);
}

/* Whatever a file says, nothing outside it is read. The sanitized builds watch. */
static void test_damaged(void **state)
{
    (void)state;
    struct mapfile map;
    struct error err;
    CHECK_OK(mapfile_open(&map, "/proc/self/exe", &err), &err);
    uint8_t *copy = malloc(map.size);
    assert_non_null(copy);
    struct temp_folder folder;
    temp_folder_init(&folder);
    uint64_t table;
    memcpy(&table, map.data + 40, sizeof(table));
    for (unsigned round = 0; round < 64; round++) {
        memcpy(copy, map.data, map.size);
        /* Random bytes of the file's header and of the section headers. */
        uint64_t seed = round * UINT64_C(0x9E3779B97F4A7C15) + 1;
        for (int i = 0; i < 24; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1;
            uint64_t at = i % 6 == 0 ? 16 + (seed >> 33) % 48
                                     : table + (seed >> 33) % (map.size - table);
            copy[at] = (uint8_t)(seed >> 56);
        }
        uint64_t size = round % 4 == 3 ? (seed >> 33) % map.size : map.size;
        temp_folder_write(&folder, "damaged", copy, size);
        struct symbols *symbols = symbols_create();
        char name[64];
        uint64_t offset;
        for (uint64_t address = 0; address < 1u << 20; address += 4099)
            (void)symbols_find(symbols, temp_folder_path(&folder, "damaged").text, address, name,
                               sizeof(name), &offset);
        symbols_destroy(symbols);
    }
    free(copy);
    mapfile_release(&map);
    temp_folder_release(&folder);
}

static const struct {
    const char *mangled, *whole, *brief;
} names[] = {
    { "main", "main", "main" },
    { "_Z4fillPfif", "fill(float*, int, float)", "fill" },
    { "_ZN12_GLOBAL__N_13addEv", "(anonymous namespace)::add()", "(anonymous namespace)::add" },
    { "_Z3runIiEvT_", "void run<int>(int)", "void run<int>" },
    { "_ZN1AclEi", "A::operator()(int)", "A::operator()" },
    { "_Z", "_Z", "_Z" },
    { "_Znonsense!", "_Znonsense!", "_Znonsense!" },
};

static void test_demangle(void **state)
{
    (void)state;
    char text[64];
    symbols_demangle("_Z4fillPfif", false, text, sizeof(text));
    bool known = strcmp(text, "_Z4fillPfif") != 0; /* else there is no C++ library here */
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        symbols_demangle(names[i].mangled, false, text, sizeof(text));
        assert_string_equal(text, known ? names[i].whole : names[i].mangled);
        symbols_demangle(names[i].mangled, true, text, sizeof(text));
        assert_string_equal(text, known ? names[i].brief : names[i].mangled);
    }
    symbols_demangle("_Z4fillPfif", false, text, 5);
    assert_string_equal(text, known ? "fill" : "_Z4f");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_function),
        cmocka_unit_test(test_nothing_there),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_demangle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
