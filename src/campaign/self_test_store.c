/* self_test_store.c - results of self-tests, kept by binary and device: a later audit of the same
 * binary on the same device need not plant everything again. */
#include "campaign/self_test.h"

#include <stdlib.h>
#include <string.h>

static bool store_path(const struct campaign_options *options, const struct identity *identity,
                       char ret_path[FILES_PATH_BYTES])
{
    struct error unused;
    return options->cache_folder && !files_join(ret_path, &unused, options->cache_folder,
                                                "self-test-%.24s.json", identity->key);
}

void self_test_save(const struct campaign_options *options, const struct identity *identity,
                    const struct self_test *test)
{
    char path[FILES_PATH_BYTES];
    struct error unused;
    if (!store_path(options, identity, path) || files_make_folder(options->cache_folder, &unused))
        return;
    json_t *planted = json_array();
    for (size_t i = 0; i < test->planted_count; i++) {
        const struct report_planted *one = &test->planted[i];
        json_array_append_new(
            planted, json_pack("{s:s, s:s, s:b, s:b, s:b}", "fault", one->fault, "hypothesis",
                               hypothesis_info(one->hypothesis)->slug, "absent", one->absent,
                               "detected", one->detected, "culprit_ok", one->culprit_ok));
    }
    json_t *document = json_pack("{s:s, s:s, s:s, s:I, s:o}", "key", identity->key, "binary_sha256",
                                 identity->binary_sha256, "device", identity->device.name,
                                 "clean_findings", (json_int_t)test->clean_findings, "planted",
                                 planted);
    if (files_write_json(path, document, &unused))
        return; /* made again next time */
}

static const struct self_test_row *find_row(const char *fault)
{
    for (size_t i = 0; fault && i < self_test_row_count; i++)
        if (strcmp(self_test_rows[i].fault, fault) == 0)
            return &self_test_rows[i];
    return NULL;
}

static bool read_planted(const json_t *item, struct report_planted *ret_planted)
{
    const char *slug = json_string_value(json_object_get(item, "hypothesis"));
    const struct self_test_row *row = find_row(json_string_value(json_object_get(item, "fault")));
    enum hypothesis hypothesis;
    if (!row || !slug || !hypothesis_from_slug(slug, &hypothesis))
        return false;
    *ret_planted = (struct report_planted){
        .fault = row->fault,
        .hypothesis = hypothesis,
        .absent = json_is_true(json_object_get(item, "absent")),
        .detected = json_is_true(json_object_get(item, "detected")),
        .culprit_ok = json_is_true(json_object_get(item, "culprit_ok")),
        .only_seen = (row->needs & SELF_TEST_ONLY_SEEN) != 0,
        .found_hypothesis = HYPOTHESIS_COUNT,
    };
    if (ret_planted->detected)
        ret_planted->found_hypothesis = hypothesis;
    self_test_set_place(row, &ret_planted->planted);
    return true;
}

/* A file of another program, or a damaged one, counts as none. */
static bool read_test(const json_t *document, const struct identity *identity,
                      struct self_test *test)
{
    const char *key = json_string_value(json_object_get(document, "key"));
    const json_t *planted = json_object_get(document, "planted");
    bool alarmed = json_integer_value(json_object_get(document, "clean_findings")) != 0;
    if (!key || strcmp(key, identity->key) != 0 || json_array_size(planted) != self_test_row_count)
        return false;
    test->planted = calloc(self_test_row_count, sizeof(*test->planted));
    if (!test->planted)
        return false;
    for (size_t i = 0; i < self_test_row_count; i++) {
        struct report_planted *one = &test->planted[test->planted_count++];
        if (!read_planted(json_array_get(planted, i), one))
            return false;
        enum self_test_state *state = &test->states[one->hypothesis];
        bool ok = one->detected && one->culprit_ok && !alarmed;
        if (!one->absent && *state != SELF_TEST_FAILED)
            *state = ok ? SELF_TEST_PASSED : SELF_TEST_FAILED;
    }
    return true;
}

bool self_test_load(const struct campaign_options *options, const struct identity *identity,
                    struct self_test *ret_test)
{
    char path[FILES_PATH_BYTES];
    struct error unused;
    json_t *document;
    struct self_test test = { 0 };
    if (!store_path(options, identity, path) || files_read_json(path, &document, &unused))
        return false;
    bool known = read_test(document, identity, &test);
    json_decref(document);
    if (known)
        *ret_test = test;
    else
        self_test_release(&test);
    return known;
}
