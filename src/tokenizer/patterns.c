/* patterns.c - the splitting rules of byte-level BPE, by name.
 *
 * A rule is one or more patterns, applied in order: each divides every piece so far into its
 * matches and what is between them. All are written so that matching takes linear time: no pattern
 * fails after looking at a long run from each of the run's characters. */
#include "tokenizer/tokenizer_impl.h"

#include <string.h>

/* English contractions, in either case; not (?i:...), which would take U+017F for an s. */
#define CONTRACTION "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)"
#define LLAMA3                                                                                     \
    CONTRACTION "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}"                                       \
                "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
/* Letters that can begin a capitalised word, and letters that can follow in lower case. */
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED_END "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
/* What these models treat as Chinese, Japanese and Korean: nearly everything past U+0800. */
#define DEEPSEEK_CJK "[\\x{4E00}-\\x{9FA5}\\x{0800}-\\x{4E00}\\x{AC00}-\\x{D7FF}]+"

static const struct tokenizer_rule rules[] = {
    { .name = "llama-bpe",
      .aliases = "llama3 llama-v3 pixtral falcon3 falcon-h1 lfm2 midm-2.0",
      .ignore_merges = true,
      .add_bos = true,
      .patterns = { LLAMA3 } },
    { .name = "dbrx", .aliases = "smaug-bpe glm4 chatglm-bpe", .patterns = { LLAMA3 } },
    { .name = "qwen2",
      .aliases = "deepseek-r1-qwen stablelm2 hunyuan megrez",
      .patterns = { CONTRACTION
                    "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"
                    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+" } },
    { .name = "qwen35",
      .aliases = "",
      .patterns = { CONTRACTION
                    "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}"
                    "| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+" } },
    { .name = "gpt-2",
      .aliases = "phi-2 mpt olmo jais gigachat modern-bert roberta-bpe",
      .patterns = { GPT2 } },
    { .name = "default",
      .aliases = "",
      .patterns = { "[\\p{P}\\$\\+<=>\\^~\\|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]" } },
    { .name = "starcoder",
      .aliases = "refact command-r smollm codeshell exaone",
      .patterns = { "\\p{N}", GPT2 } },
    { .name = "falcon",
      .aliases = "",
      .patterns = { "[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT2, "[0-9][0-9][0-9]" } },
    /* The letters are approximate: the original lists the cased letters that Unicode had then. The
     * look-behind changes no match; without it every space of a long run would try the whole run.
     */
    { .name = "deepseek-llm",
      .aliases = "",
      .patterns = { "[\\r\\n]", "\\s?[\\p{Lu}\\p{Ll}\\p{Lt}]+",
                    "\\s?[!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}"
                    "\\x{3000}-\\x{3002}]+",
                    "(?<!\\s)\\s+$", DEEPSEEK_CJK, "\\p{N}+" } },
    { .name = "deepseek-coder",
      .aliases = "",
      .patterns = { "[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", DEEPSEEK_CJK, "\\p{N}" } },
    { .name = "deepseek-v3",
      .aliases = "hunyuan-dense joyai-llm",
      .patterns = { "\\p{N}{1,3}", "[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}]+",
                    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+"
                    "|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*"
                    "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+" } },
    { .name = "tekken",
      .aliases = "",
      .ignore_merges = true,
      .add_bos = true,
      .patterns = { "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+"
                    "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*|\\p{N}" CASED_END } },
    { .name = "gpt-4o",
      .aliases = "llama4 kanana2",
      .patterns = { "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" CONTRACTION "?"
                    "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" CONTRACTION
                    "?|\\p{N}{1,3}" CASED_END } },
};

/* Name number `index` of a rule; false past the last. */
static bool name_at(const struct tokenizer_rule *rule, size_t index, struct text_view *ret)
{
    *ret = text_view_of(rule->name);
    const char *at = rule->aliases;
    for (; index > 0; index--) {
        at += strspn(at, " ");
        *ret = (struct text_view){ at, strcspn(at, " ") };
        at += ret->length;
    }
    return ret->length > 0;
}

const struct tokenizer_rule *tokenizer_rule_find(struct text_view name)
{
    struct text_view known;
    for (size_t i = 0; i < COUNT_OF(rules); i++)
        for (size_t j = 0; name_at(&rules[i], j, &known); j++)
            if (text_view_equal(known, name))
                return &rules[i];
    return NULL;
}

struct text_view tokenizer_pre_name(size_t index)
{
    struct text_view known;
    for (size_t i = 0; i < COUNT_OF(rules); i++)
        for (size_t j = 0; name_at(&rules[i], j, &known); j++)
            if (index-- == 0)
                return known;
    return (struct text_view){ NULL, 0 };
}
