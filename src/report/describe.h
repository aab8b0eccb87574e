/* describe.h - shared by the files that put a finding into words. */
#ifndef GRETA_REPORT_DESCRIBE_H
#define GRETA_REPORT_DESCRIBE_H

#include "report/finding.h"

struct describer {
    struct text *text;
    enum analyze_language language;
    bool brief; /* a headline: no events, streams, tensors or places in the source */
};

/* Both may be formats: the compiler checks each. */
__attribute__((format_arg(2), format_arg(3))) static inline const char *
describe_say(const struct describer *out, const char *english, const char *spanish)
{
    return out->language == ANALYZE_SPANISH ? spanish : english;
}

void describe_name(const struct describer *out, const char *name);
/* "rope, layer 17, step 3", "D2H copy of logits, step 3"; unless brief, the call in brackets. */
void describe_place(const struct describer *out, const struct analyze_place *place);
/* Where memory was freed; nothing where that is not known. */
void describe_freed(const struct describer *out, const struct analyze_place *place);
/* The words, then the place with its article; nothing where there is none. */
void describe_other(const struct describer *out, const char *english, const char *spanish,
                    const struct analyze_place *place);
/* "4096 bytes", "1 byte" */
void describe_bytes(const struct describer *out, uint64_t count);

/* "operand positions (buffer indices)", "operand 1", "buffer logits", "memory"; as it stands after
 * "of", after a word that takes no "of" in English but "de" in Spanish, and with its article. */
void describe_operand(const struct describer *out, const struct analyze_place *place);
void describe_of_operand(const struct describer *out, const struct analyze_place *place);
void describe_from_operand(const struct describer *out, const struct analyze_place *place);
void describe_the_operand(const struct describer *out, const struct analyze_place *place);

/* What a check saw, for findings that are about one. */
void describe_check(const struct describer *out, const struct finding *finding);
/* What the cause did, right after its name: " read index 5 (bound 4) ..." or ": ...". */
void describe_what(const struct describer *out, const struct finding *finding);

#endif
