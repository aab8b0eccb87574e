/* fuzz_gguf.c - any bytes as a GGUF file: opened, and everything in it read the way the program
 * does. The input is the file, from its first byte.
 *
 * Beyond what sanitizers see, it checks what the reader promises: every view lies inside the file,
 * what is listed is found under its name, and an error has words.
 *
 * Seeds: `gguf_damaged_test --write-corpus fuzz/corpus/fuzz_gguf`; the files there that are named
 * by a hash were found by the fuzzer. */
#include "gguf/gguf.h"
#include "model/model.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Keeps reads from being optimised away. */
static volatile uint64_t sink;

static void require(bool holds, const char *what)
{
    if (!holds)
        assert_failed(what, __FILE__, __LINE__);
}

static bool inside(const void *part, uint64_t bytes, const uint8_t *data, size_t size)
{
    uintptr_t start = (uintptr_t)part, whole = (uintptr_t)data;
    return start >= whole && start - whole <= size && bytes <= size - (start - whole);
}

static void read_bytes(const void *bytes, uint64_t count)
{
    const uint8_t *at = bytes;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += at[i];
    sink = sum;
}

/* Keys and names have no NUL, so they can be asked for. */
static char *copy_text(struct text_view view)
{
    char *copy = malloc(view.length + 1);
    require(copy != NULL, "memory for a key");
    memcpy(copy, view.bytes, view.length);
    copy[view.length] = '\0';
    require(strlen(copy) == view.length, "no NUL in keys and names");
    return copy;
}

static void read_value(const struct gguf_value *value)
{
    uint64_t u64;
    int64_t i64;
    double f64;
    /* All of a short array; of a long one the ends, which is where mistakes are. */
    for (uint64_t i = 0; i <= value->count;
         i = i < 16 || i >= value->count ? i + 1 : value->count) {
        bool is_u64 = gguf_value_u64(value, i, &u64);
        bool is_i64 = gguf_value_i64(value, i, &i64);
        bool is_f64 = gguf_value_f64(value, i, &f64);
        require(i < value->count || (!is_u64 && !is_i64 && !is_f64), "nothing past the end");
        require(is_f64 || (!is_u64 && !is_i64), "an integer is a number");
    }
    struct gguf_strings strings = gguf_strings_of(value);
    struct text_view view;
    uint64_t string_count = 0;
    for (; gguf_strings_next(&strings, &view); string_count++)
        read_bytes(view.bytes, view.length);
    require(string_count == (value->element_type == GGUF_STRING ? value->count : 0),
            "every string is walked");
}

static void read_by_key(const struct gguf_file *file, const char *key)
{
    struct error err = { 0 };
    uint64_t u64;
    double f64;
    bool flag;
    struct text_view text;
    bool failed[] = {
        gguf_get_u64(file, key, &u64, &err) != STATUS_OK,
        gguf_get_f64(file, key, &f64, &err) != STATUS_OK,
        gguf_get_flag(file, key, &flag, &err) != STATUS_OK,
        gguf_get_text(file, key, &text, &err) != STATUS_OK,
    };
    for (size_t i = 0; i < COUNT_OF(failed); i++)
        require(!failed[i] || err.text[0], "an error has words");
}

static void read_entries(const struct gguf_file *file, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < gguf_entry_count(file); i++) {
        const struct gguf_entry *entry = gguf_entry_at(file, i);
        require(inside(entry->key.bytes, entry->key.length, data, size), "key inside");
        require(inside(entry->value.data, entry->value.bytes, data, size), "value inside");
        char *key = copy_text(entry->key);
        require(gguf_find(file, key) == &entry->value, "a listed key is found");
        read_bytes(entry->value.data, entry->value.bytes);
        read_value(&entry->value);
        read_by_key(file, key);
        free(key);
    }
    read_by_key(file, "no such key");
}

static void read_tensors(const struct gguf_file *file, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *tensor = gguf_tensor_at(file, i);
        require(inside(tensor->name.bytes, tensor->name.length, data, size), "name inside");
        require(inside(tensor->data, tensor->bytes, data, size), "tensor inside");
        char *name = copy_text(tensor->name);
        require(gguf_tensor_find(file, name) == tensor, "a listed tensor is found");
        free(name);
        char words[SHAPE_TEXT_BYTES];
        shape_text(&tensor->shape, words);
        require(dtype_name(tensor->dtype) != NULL, "a type has a name");
        read_bytes(tensor->data, tensor->bytes);
        gguf_tensor_drop(file, tensor);
    }
}

static void check_model(const struct gguf_file *file)
{
    static struct model_report report; /* too large for a stack */
    model_check(file, NULL, &report);
    require(report.problem_count <= MODEL_PROBLEM_LIMIT, "problems are kept up to the limit");
    for (size_t i = 0; i < report.problem_count; i++)
        require(report.problems[i].text[0], "a problem has words");
    sink = model_report_refuses(&report, false);
    if (report.config_known) {
        bool exact;
        sink = model_kv_bytes(&report.config, report.config.context_length, DTYPE_F16);
        sink = model_shape_of(&report.config, &exact) != NULL;
    }
    model_check(file, model_shape_at(0), &report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gguf_file *file = NULL;
    struct error err = { 0 };
    if (gguf_open_memory(data, size, "fuzz.gguf", &file, &err)) {
        require(file == NULL && strstr(err.text, "fuzz.gguf"), "an error names the file");
        return 0;
    }
    require(gguf_size_bytes(file) == size && gguf_shard_count(file) == 1, "one file, whole");
    read_entries(file, data, size);
    read_tensors(file, data, size);
    check_model(file);
    gguf_close(file);
    return 0;
}
