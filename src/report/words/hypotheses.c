/* hypotheses.c - the words of hypotheses; hypotheses.def has them. */
#include "report/finding.h"

#define HYPOTHESIS(name, title_en, title_es, unit_en, unit_es, detector_en, detector_es,           \
                   advice_en, advice_es)                                                           \
    [HYPOTHESIS_##name] = { .title = { title_en, title_es },                                       \
                            .detector = { detector_en, detector_es },                              \
                            .unit = { unit_en, unit_es },                                          \
                            .advice = { advice_en, advice_es } },
static const struct report_hypothesis_words words[] = {
#include "report/words/hypotheses.def"
};
#undef HYPOTHESIS
_Static_assert(COUNT_OF(words) == HYPOTHESIS_COUNT, "every hypothesis has words");

const struct report_hypothesis_words *report_hypothesis_words(enum hypothesis hypothesis)
{
    ASSERT((unsigned)hypothesis < HYPOTHESIS_COUNT);
    return &words[hypothesis];
}
