/* finding_fill.h - shared by the files that fill in the templates of sentences about findings. */
#ifndef GRETA_REPORT_FINDING_FILL_H
#define GRETA_REPORT_FINDING_FILL_H

#include "report/finding_words.h"

#include <inttypes.h>

struct filler {
    const char *name;
    /* Adds what its name stands for; false, and nothing added, where that is not known. */
    bool (*fill)(const struct telling *telling, struct text *text);
};
/* finding_calls.c; ends with an empty one. */
extern const struct filler call_fillers[];
/* finding_hardware.c; the same. Only of a finding with a core dump. */
extern const struct filler hardware_fillers[];

/* Such a call is named by its op; others are named by what they are: "the D2H copy". */
bool telling_is_op(const struct analyze_place *place);

static inline bool add_name(struct text *text, const char *name)
{
    text_add_printable(text, text_view_of(name), REPORT_NAME_LIMIT);
    return name[0] != '\0';
}

static inline bool add_number(struct text *text, uint64_t number)
{
    text_addf(text, "%" PRIu64, number);
    return true;
}

static inline bool add_clause(const struct telling *telling, enum clause clause, struct text *text)
{
    tell_clause(telling, clause, text);
    return true;
}

#endif
