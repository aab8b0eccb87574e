/* findings.c - the tables of words about findings; the *.def files have the words. */
#include "report/finding_words.h"

static const char *const defects[][REPORT_LANGUAGE_COUNT] = {
#define DEFECT(name, english, spanish) [DEFECT_##name] = { english, spanish },
#include "report/words/defects.def"
#undef DEFECT
};
_Static_assert(COUNT_OF(defects) == DEFECT_COUNT, "every kind of defect has a sentence");

const char *words_defect(enum finding_defect defect, enum report_language language)
{
    ASSERT((unsigned)defect < DEFECT_COUNT && (unsigned)language < REPORT_LANGUAGE_COUNT);
    return defects[defect][language];
}

static const char *const clauses[][REPORT_LANGUAGE_COUNT] = {
#define CLAUSE(name, english, spanish) [CLAUSE_##name] = { english, spanish },
#include "report/words/clauses.def"
#undef CLAUSE
};
_Static_assert(COUNT_OF(clauses) == CLAUSE_COUNT, "every clause has words");

const char *words_clause(enum clause clause, enum report_language language)
{
    ASSERT((unsigned)clause < CLAUSE_COUNT && (unsigned)language < REPORT_LANGUAGE_COUNT);
    return clauses[clause][language];
}

static const char *const reasons[][REPORT_LANGUAGE_COUNT] = {
#define REASON(name, english, spanish) [REASON_##name] = { english, spanish },
#include "report/words/reasons.def"
#undef REASON
};
_Static_assert(COUNT_OF(reasons) == REASON_COUNT, "every reason has words");

const char *report_reason_words(enum finding_reason reason, enum report_language language)
{
    ASSERT((unsigned)reason < REASON_COUNT && (unsigned)language < REPORT_LANGUAGE_COUNT);
    return reasons[reason][language];
}

static const char *const missing_words[][REPORT_LANGUAGE_COUNT] = {
#define MISSING(name, english, spanish) [VERDICT_MISSING_##name] = { english, spanish },
#include "report/words/missing.def"
#undef MISSING
};
_Static_assert(COUNT_OF(missing_words) == VERDICT_MISSING_COUNT, "all that is missing has words");

const char *report_missing_words(enum verdict_missing missing, enum report_language language)
{
    ASSERT((unsigned)missing < VERDICT_MISSING_COUNT);
    ASSERT((unsigned)language < REPORT_LANGUAGE_COUNT);
    return missing_words[missing][language];
}

#define HYPOTHESIS(name, title_en, title_es, unit_en, units_en, unit_es, units_es, detector_en,    \
                   detector_es, advice_en, advice_es)                                              \
    [HYPOTHESIS_##name] = { .title = { title_en, title_es },                                       \
                            .detector = { detector_en, detector_es },                              \
                            .unit = { unit_en, unit_es },                                          \
                            .units = { units_en, units_es },                                       \
                            .advice = { advice_en, advice_es } },
static const struct report_hypothesis_words hypotheses[] = {
#include "report/words/hypotheses.def"
};
#undef HYPOTHESIS
_Static_assert(COUNT_OF(hypotheses) == HYPOTHESIS_COUNT, "every hypothesis has words");

const struct report_hypothesis_words *report_hypothesis_words(enum hypothesis hypothesis)
{
    ASSERT((unsigned)hypothesis < HYPOTHESIS_COUNT);
    return &hypotheses[hypothesis];
}
