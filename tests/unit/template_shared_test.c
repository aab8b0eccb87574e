/* template_shared_test.c - real chat templates, and small ones by subject, with what Jinja makes of
 * them: the folders templates, cases and language of shared/chat next to the project. Skipped where
 * they are not there. Each test prints how many cases are exact. */
#include "test.h"

#include "memory_limit.h"
#include "template/template.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SHOWN_FAILURES 20

struct path {
    char text[768];
};

struct tally {
    size_t cases, exact;
};

static struct path shared_path(const char *folder, const char *name)
{
    struct path path;
    const char *source = getenv("GRETA_SOURCE");
    snprintf(path.text, sizeof(path.text), "%s/../shared/chat/%s/%s", source ? source : ".", folder,
             name);
    return path;
}

static struct tm parse_now(const char *text)
{
    struct tm now = { 0 };
    if (sscanf(text, "%d-%d-%dT%d:%d:%d", &now.tm_year, &now.tm_mon, &now.tm_mday, &now.tm_hour,
               &now.tm_min, &now.tm_sec) != 6)
        fail_msg("expected a time, found %s", text);
    now.tm_year -= 1900;
    now.tm_mon--;
    now.tm_isdst = -1;
    mktime(&now); /* the day of the week */
    return now;
}

static void read_file(const char *path, struct text *text)
{
    char bytes[4096];
    size_t count;
    FILE *in = fopen(path, "rb");
    text_init(text);
    if (!in)
        fail_msg("cannot read %s", path);
    while ((count = fread(bytes, 1, sizeof(bytes), in)) > 0)
        text_add_bytes(text, bytes, count);
    fclose(in);
}

/* ---- One case -------------------------------------------------------------------------------- */

struct result {
    struct text out;
    struct template_failure failure;
    enum status status;
};

static void render(struct text_view source, const json_t *variables, const json_t *now,
                   struct result *ret)
{
    struct template *template = NULL;
    struct error err;
    text_init(&ret->out);
    template_failure_init(&ret->failure);
    ret->status = template_parse(source, &template, &ret->failure, &err);
    if (!ret->status) {
        struct template_input input = { .variables = variables };
        if (now)
            input.now = parse_now(json_string_value(now));
        ret->status = template_render(template, &input, &ret->out, &ret->failure, &err);
    }
    template_destroy(template);
}

static void result_release(struct result *result)
{
    text_release(&result->out);
    template_failure_release(&result->failure);
}

static bool text_is(const struct text *text, const json_t *expected)
{
    return text->length == json_string_length(expected) &&
           memcmp(text_get(text), json_string_value(expected), text->length) == 0;
}

static bool repeats(const struct text *text, const json_t *expected)
{
    size_t length = json_string_length(json_array_get(expected, 0));
    const char *part = json_string_value(json_array_get(expected, 0));
    size_t times = (size_t)json_integer_value(json_array_get(expected, 1));
    if (text->length != length * times)
        return false;
    for (size_t i = 0; i < times; i++)
        if (memcmp(text->bytes + i * length, part, length) != 0)
            return false;
    return true;
}

static bool fails_as(const struct result *result, const char *kind, const json_t *message)
{
    if (!result->status)
        return false;
    if (strcmp(kind, "raise_exception") != 0)
        return true;
    return result->failure.problem == TEMPLATE_PROBLEM_RAISED &&
           text_is(&result->failure.message, message);
}

static bool is_right(const struct result *result, const json_t *wanted)
{
    const json_t *expected = json_object_get(wanted, "expected");
    const json_t *error = json_object_get(wanted, "error");
    const json_t *repeat = json_object_get(wanted, "expected_repeat");
    if (json_is_string(error))
        return fails_as(result, json_string_value(error), NULL);
    if (error)
        return fails_as(result, json_string_value(json_object_get(error, "kind")),
                        json_object_get(error, "message"));
    if (repeat)
        return !result->status && repeats(&result->out, repeat);
    return !result->status && text_is(&result->out, expected);
}

static bool case_is_right(const struct result *result, const json_t *row)
{
    const json_t *accept = json_object_get(row, "accept");
    for (size_t i = 0; i < json_array_size(accept); i++)
        if (is_right(result, json_array_get(accept, i)))
            return true;
    return !accept && is_right(result, row);
}

static void show_failure(const char *file, const json_t *row, const struct result *result)
{
    char *wanted = json_dumps(json_object_get(row, "expected") ? json_object_get(row, "expected")
                              : json_object_get(row, "error")  ? json_object_get(row, "error")
                                                               : json_object_get(row, "accept"),
                              JSON_ENCODE_ANY);
    char shown[1024];
    const struct text *found = result->status ? &result->failure.message : &result->out;
    text_printable((struct text_view){ text_get(found), found->length }, shown, sizeof(shown));
    print_message("%s %s: expected %.1000s\n    found %s%s (line %u, column %u)\n", file,
                  json_string_value(json_object_get(row, "name")), wanted,
                  result->status ? "the error " : "", shown, result->failure.line,
                  result->failure.column);
    free(wanted);
}

static void check_case(const char *file, const json_t *row, struct text_view source,
                       const char *variables, struct tally *tally)
{
    struct result result;
    render(source, json_object_get(row, variables), json_object_get(row, "now"), &result);
    tally->cases++;
    if (case_is_right(&result, row))
        tally->exact++;
    else if (tally->cases - tally->exact <= SHOWN_FAILURES)
        show_failure(file, row, &result);
    result_release(&result);
}

/* ---- Files ----------------------------------------------------------------------------------- */

typedef void (*check_file)(const char *name, const json_t *rows, struct tally *tally);

/* Every JSON file of a folder, in any order. False if the folder is not there. */
static bool each_file(const char *folder, check_file check, struct tally *tally)
{
    DIR *listing = opendir(shared_path(folder, "").text);
    struct dirent *entry;
    if (!listing)
        return false;
    while ((entry = readdir(listing))) {
        json_error_t error;
        if (!strstr(entry->d_name, ".json"))
            continue;
        json_t *rows = json_load_file(shared_path(folder, entry->d_name).text, JSON_ALLOW_NUL,
                                      &error);
        if (!rows)
            fail_msg("%s: %s", entry->d_name, error.text);
        check(entry->d_name, rows, tally);
        json_decref(rows);
    }
    closedir(listing);
    return true;
}

static void check_conversations(const char *name, const json_t *rows, struct tally *tally)
{
    char file[300];
    struct text source;
    snprintf(file, sizeof(file), "%.*s.jinja", (int)(strlen(name) - strlen(".json")), name);
    read_file(shared_path("templates", file).text, &source);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (!json_is_true(json_object_get(row, "continue_final_message")))
            check_case(name, row, (struct text_view){ text_get(&source), source.length }, "input",
                       tally);
    }
    text_release(&source);
}

static void join_parts(const json_t *parts, struct text *source)
{
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i);
        json_int_t times = json_integer_value(json_array_get(part, 1));
        for (json_int_t t = 0; t < times; t++)
            text_add(source, json_string_value(json_array_get(part, 0)));
    }
}

/* Processor time that one snippet may take; sanitizers slow everything down by far. */
#define SNIPPET_LIMIT_NS UINT64_C(2000000000)

static void check_snippets(const char *name, const json_t *rows, struct tally *tally)
{
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const json_t *whole = json_object_get(row, "template");
        struct text source;
        text_init(&source);
        if (whole)
            text_add_bytes(&source, json_string_value(whole), json_string_length(whole));
        else
            join_parts(json_object_get(row, "template_parts"), &source);
        uint64_t start = processor_ns();
        check_case(name, row, (struct text_view){ text_get(&source), source.length }, "vars",
                   tally);
        uint64_t ns = processor_ns() - start;
        if (ns > SNIPPET_LIMIT_NS && memory_limit_works())
            fail_msg("%s took %.1f s", json_string_value(json_object_get(row, "name")),
                     (double)ns / 1e9);
        text_release(&source);
    }
}

static void run_folder(const char *folder, check_file check, size_t least)
{
    struct tally tally = { 0 };
    if (!each_file(folder, check, &tally))
        skip();
    print_message("%s: %zu of %zu cases exact\n", folder, tally.exact, tally.cases);
    assert_true(tally.cases >= least);
    assert_int_equal(tally.exact, tally.cases);
}

static void test_conversations(void **state)
{
    (void)state;
    run_folder("cases", check_conversations, 1400);
}

static void test_language(void **state)
{
    (void)state;
    run_folder("language", check_snippets, 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conversations),
        cmocka_unit_test(test_language),
    };
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    /* Skipped is not passed: ctest is to say so. */
    return failures ? 1 : access(shared_path("cases", "").text, R_OK) == 0 ? 0 : 77;
}
