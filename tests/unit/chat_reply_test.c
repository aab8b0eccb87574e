/* chat_reply_test.c - answers divided into what is thought, said and called, however they arrive.
 */
#include "test.h"

#include "chat/reply.h"

#include <string.h>

struct parts {
    struct text texts[CHAT_PART_COUNT];
};

static void on_part(void *context, enum chat_part part, struct text_view text)
{
    struct parts *parts = context;
    text_add_bytes(&parts->texts[part], text.bytes, text.length);
}

/* The answer in chunks of `step` bytes. */
static struct parts divide(const char *prompt, const char *answer, size_t step)
{
    struct parts parts;
    struct chat_reply reply;
    for (size_t i = 0; i < CHAT_PART_COUNT; i++)
        text_init(&parts.texts[i]);
    chat_reply_begin(&reply, text_view_of(prompt), on_part, &parts);
    for (size_t at = 0, length = strlen(answer); at < length; at += step)
        chat_reply_add(&reply,
                       (struct text_view){ answer + at, length - at < step ? length - at : step });
    chat_reply_end(&reply);
    chat_reply_release(&reply);
    return parts;
}

static void parts_release(struct parts *parts)
{
    for (size_t i = 0; i < CHAT_PART_COUNT; i++)
        text_release(&parts->texts[i]);
}

static void test_parts(void **state)
{
    (void)state;
    static const struct {
        const char *prompt, *answer, *content, *reasoning, *tools;
    } rows[] = {
        { "", "plain text", "plain text", "", "" },
        { "", "<think>\nhm\n</think>\n\nYes.", "Yes.", "hm\n", "" },
        { "ends with <think>\n", "hm</think>Yes.", "Yes.", "hm", "" },
        { "<think>\n\n</think>\n\n", "Yes.", "Yes.", "", "" },
        { "", "About <think> in text", "About <think> in text", "", "" },
        { "", "a < b <thin", "a < b <thin", "", "" },
        { "", "[THINK]hm[/THINK]Yes", "Yes", "hm", "" },
        { "",
          "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final"
          "<|message|>Yes",
          "Yes", "hm", "" },
        { "", "<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>Yes<|END_RESPONSE|>", "Yes",
          "hm", "" },
        { "", "One moment. <tool_call>\n{\"name\": \"f\"}\n</tool_call>", "One moment. ", "",
          "<tool_call>\n{\"name\": \"f\"}\n</tool_call>" },
        { "", "<think>a</think><tool_call>{}</tool_call>\n<tool_call>{}</tool_call>", "", "a",
          "<tool_call>{}</tool_call>\n<tool_call>{}</tool_call>" },
        { "", "[TOOL_CALLS][{}]", "", "", "[TOOL_CALLS][{}]" },
        { "", "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>", "", "",
          "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>" },
        { "", "", "", "", "" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (size_t step = 1; step < 20; step++) {
            struct parts parts = divide(rows[i].prompt, rows[i].answer, step);
            assert_string_equal(text_get(&parts.texts[CHAT_PART_CONTENT]), rows[i].content);
            assert_string_equal(text_get(&parts.texts[CHAT_PART_REASONING]), rows[i].reasoning);
            assert_string_equal(text_get(&parts.texts[CHAT_PART_TOOLS]), rows[i].tools);
            parts_release(&parts);
        }
}

static void test_wanted_tokens(void **state)
{
    (void)state;
    static const struct {
        const char *token;
        bool wanted;
    } rows[] = {
        { "<think>", true },      { "<|channel|>", true }, { "<|message|>", true },
        { "[TOOL_CALLS]", true }, { "[ARGS]", true },      { "<|im_start|>", false },
        { "<|eot_id|>", false },  { "<s>", false },        { "", false },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_int_equal(chat_reply_wants(text_view_of(rows[i].token)), rows[i].wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_wanted_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
