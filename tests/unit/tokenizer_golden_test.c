/* tokenizer_golden_test.c - the small models in shared/golden next to the project, of every
 * architecture: their prompts give the ids that llama.cpp gave. Skipped where they are absent. */
#include "test.h"

#include "tokenizer/tokenizer.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct path {
    char text[1024];
};

static struct path golden_path(const char *file, const char *ending)
{
    struct path path;
    const char *source = getenv("GRETA_SOURCE"), *dot = strrchr(file, '.');
    int length = dot ? (int)(dot - file) : (int)strlen(file);
    snprintf(path.text, sizeof(path.text), "%s/../shared/golden/%.*s%s", source ? source : ".",
             length, file, ending);
    return path;
}

static void check_model(const char *file)
{
    struct path model = golden_path(file, ".gguf"), answers = golden_path(file, ".json");
    struct gguf_file *opened;
    struct tokenizer *tokenizer;
    struct tokenizer_ids ids;
    struct error err;
    json_t *expected = json_load_file(answers.text, 0, NULL), *id;
    const char *prompt = json_string_value(json_object_get(expected, "prompt"));
    size_t index;
    assert_non_null(prompt);
    CHECK_OK(gguf_open(model.text, &opened, &err), &err);
    CHECK_OK(tokenizer_create(opened, &tokenizer, &err), &err);
    tokenizer_ids_init(&ids);
    CHECK_OK(tokenizer_encode(tokenizer, text_view_of(prompt), TOKENIZER_ADD_SPECIAL, &ids, &err),
             &err);
    if (ids.count != json_array_size(json_object_get(expected, "tokens")))
        fail_msg("%s: expected %zu tokens, found %zu", file,
                 json_array_size(json_object_get(expected, "tokens")), ids.count);
    json_array_foreach (json_object_get(expected, "tokens"), index, id)
        if (ids.ids[index] != (uint32_t)json_integer_value(id))
            fail_msg("%s: token %zu: expected %d, found %u", file, index,
                     (int)json_integer_value(id), ids.ids[index]);
    tokenizer_ids_release(&ids);
    tokenizer_destroy(tokenizer);
    gguf_close(opened);
    json_decref(expected);
}

static void test_prompts(void **state)
{
    json_t *models = json_object_get(*state, "models"), *model;
    size_t index;
    assert_true(json_array_size(models) > 0);
    json_array_foreach (models, index, model)
        check_model(json_string_value(json_object_get(model, "file")));
}

int main(void)
{
    json_t *list = json_load_file(golden_path("index", ".json").text, 0, NULL);
    if (!list) {
        printf("skipped: shared/golden is not here\n");
        return 77;
    }
    const struct CMUnitTest tests[] = { cmocka_unit_test_prestate(test_prompts, list) };
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    json_decref(list);
    return failures ? 1 : 0;
}
