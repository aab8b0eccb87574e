/* fuzz_schema.c - any bytes as a JSON schema: refused by name, or JSON is written under it. */
#include "grammar_writer.h"

#include <jansson.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEPS 48u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct grammar *grammar = NULL;
    struct text text;
    struct error err;
    if (grammar_create_schema(writer_vocabulary(), (struct text_view){ (const char *)data, size },
                              "fuzz", &grammar, &err)) {
        writer_require(!grammar, "what is refused is not made");
        writer_require(err.status == STATUS_LIMIT || strncmp(err.text, "fuzz:", 5) == 0,
                       "an error says where it is");
        return 0;
    }
    for (uint64_t seed = 0; seed < 2; seed++) {
        text_init(&text);
        if (writer_write(grammar, size + seed, STEPS, &text)) {
            json_error_t problem;
            json_t *value = json_loadb(text_get(&text), text.length,
                                       JSON_DECODE_ANY | JSON_ALLOW_NUL, &problem);
            writer_require(value != NULL, "what was written is JSON");
            json_decref(value);
        }
        text_release(&text);
    }
    grammar_destroy(grammar);
    return 0;
}
