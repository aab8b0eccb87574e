/* fuzz_template.c - hostile templates and variables: the JSON object with the variables, a line
 * of ---, and the template. Without that line everything is the template. */
#include "template/template.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A rendering within the limits of a server takes too long for a fuzzer. */
static const struct template_limits small_limits = { .steps = 20000,
                                                     .output_bytes = 1u << 20,
                                                     .memory_bytes = 16u << 20 };

static void render(const struct template *template, const json_t *variables)
{
    struct template_input input = { .variables = variables,
                                    .now = { .tm_year = 126, .tm_mon = 1, .tm_mday = 3 },
                                    .limits = small_limits };
    struct template_failure failure;
    struct text out;
    struct error err;
    text_init(&out);
    template_failure_init(&failure);
    enum status status = template_render(template, &input, &out, &failure, &err);
    ASSERT(status == STATUS_OK || (out.length == 0 && err.status == status));
    ASSERT(out.length <= small_limits.output_bytes);
    template_failure_release(&failure);
    text_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char divider[] = "\n---\n";
    const char *text = (const char *)data;
    size_t begin = 0;
    json_t *variables = NULL;
    for (size_t i = 0; i + strlen(divider) <= size; i++)
        if (memcmp(text + i, divider, strlen(divider)) == 0) {
            variables = json_loadb(text, i, JSON_ALLOW_NUL, NULL);
            begin = i + strlen(divider);
            break;
        }
    if (!json_is_object(variables)) {
        json_decref(variables);
        variables = json_object();
    }
    struct template *template = NULL;
    struct error err;
    if (!template_parse((struct text_view){ text + begin, size - begin }, &template, NULL, &err))
        render(template, variables);
    template_destroy(template);
    json_decref(variables);
    return 0;
}
