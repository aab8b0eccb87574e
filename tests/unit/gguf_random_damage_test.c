/* gguf_random_damage_test.c - a well-formed file with random changes is refused with the byte at
 * fault, or opened; then every byte it claims to have can be read. */
#include "gguf_open.h"
#include "test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUTATION_COUNT 20000

static uint64_t next_random(uint64_t *state)
{
    /* splitmix64: the same files on every machine. */
    uint64_t z = *state += 0x9E3779B97F4A7C15ull;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ z >> 27) * 0x94D049BB133111EBull;
    return z ^ z >> 31;
}

/* Up to four changes: a bit, a byte, eight bytes, or the end cut off. Returns the new size. */
static size_t mutate(char *bytes, size_t size, uint64_t *random)
{
    uint64_t change_count = 1 + next_random(random) % 4;
    for (uint64_t i = 0; i < change_count && size > 8; i++) {
        size_t at = (size_t)(next_random(random) % (size - 8));
        uint64_t value = next_random(random);
        value >>= next_random(random) % 64;
        switch (next_random(random) % 8) {
        case 0:
            size = at;
            break;
        case 1:
        case 2:
            for (size_t j = 0; j < 8; j++)
                bytes[at + j] = (char)(value >> 8 * j);
            break;
        case 3:
        case 4:
            bytes[at] = (char)(bytes[at] ^ 1 << value % 8);
            break;
        default:
            bytes[at] = (char)value;
            break;
        }
    }
    return size;
}

/* Touches every byte that the file says it has; the sum keeps the compiler from leaving it out. */
static uint64_t read_everything(const struct gguf_file *file)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < gguf_entry_count(file); i++) {
        const struct gguf_value *value = &gguf_entry_at(file, i)->value;
        for (uint64_t j = 0; j < value->bytes; j++)
            sum += value->data[j];
        struct gguf_strings strings = gguf_strings_of(value);
        struct text_view view;
        while (gguf_strings_next(&strings, &view))
            sum += view.length;
        assert_int_equal(strings.strings_left, 0);
        assert_int_equal(strings.bytes_left, 0);
    }
    for (size_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *tensor = gguf_tensor_at(file, i);
        for (uint64_t j = 0; j < tensor->bytes; j++)
            sum += tensor->data[j];
    }
    return sum;
}

static void test_random_damage(void **state)
{
    (void)state;
    struct gguf_build build;
    gguf_build_specimen(&build, 3);
    char *bytes = malloc(build.text.length);
    assert_non_null(bytes);
    uint64_t random = 1, sum = 0;
    size_t opened_count = 0;
    for (size_t i = 0; i < MUTATION_COUNT; i++) {
        memcpy(bytes, build.text.bytes, build.text.length);
        size_t size = mutate(bytes, build.text.length, &random);
        struct opened opened = open_bytes(bytes, size);
        if (opened.status)
            check_contains("mutation", opened.err.text, "built.gguf: byte ");
        else
            sum += read_everything(opened.file);
        opened_count += opened.status == STATUS_OK;
        opened_release(&opened);
    }
    print_message("%d mutations: %zu still well-formed (sum %" PRIu64 ")\n", MUTATION_COUNT,
                  opened_count, sum);
    /* Most data bytes may be anything; most lengths may not. */
    assert_in_range(opened_count, MUTATION_COUNT / 20, MUTATION_COUNT / 2);
    free(bytes);
    gguf_build_release(&build);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
