/* fuzz_grammar.c - any text as a grammar in GBNF: refused with its place, or a text is written
 * under it, which then fits. */
#include "grammar_writer.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEPS 24u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct grammar *grammar = NULL;
    struct grammar_matcher *matcher;
    struct text text;
    struct error err;
    if (grammar_create_gbnf(writer_vocabulary(), (struct text_view){ (const char *)data, size },
                            "fuzz", &grammar, &err)) {
        writer_require(!grammar, "what is refused is not made");
        writer_require(err.status == STATUS_LIMIT || strncmp(err.text, "fuzz:", 5) == 0,
                       "an error says where it is");
        return 0;
    }
    text_init(&text);
    if (writer_write(grammar, size, STEPS, &text)) {
        writer_require(!grammar_matcher_create(grammar, &matcher, &err), "once more");
        struct text_view view = { text_get(&text), text.length };
        bool fits = !grammar_matcher_accept_bytes(matcher, view, &err);
        writer_require(fits ? grammar_matcher_may_end(matcher) : err.status == STATUS_LIMIT,
                       "what was written fits");
        grammar_matcher_destroy(matcher);
    }
    text_release(&text);
    grammar_destroy(grammar);
    return 0;
}
