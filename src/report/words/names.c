/* names.c - outcomes, verdicts and the like, as people read them. */
#include "report/words.h"

#include <string.h>

static const char *const outcomes[][REPORT_LANGUAGE_COUNT] = {
    [AUDIT_CLEAN] = { "CLEAN", "LIMPIO" },
    [AUDIT_ROOT_CAUSE] = { "ROOT CAUSE FOUND", "CAUSA RAÍZ ENCONTRADA" },
    [AUDIT_DEFECT_SEEN] = { "DEFECT SEEN", "DEFECTO VISTO" },
    [AUDIT_NOT_SEEN] = { "NOT SEEN", "NO VISTO" },
    [AUDIT_NOT_REPRODUCED] = { "NOT REPRODUCED", "NO REPRODUCIDO" },
    [AUDIT_INCONCLUSIVE] = { "INCONCLUSIVE", "NO CONCLUYENTE" },
};
_Static_assert(COUNT_OF(outcomes) == AUDIT_OUTCOME_COUNT, "every outcome has words");

const char *words_outcome(enum report_language language, enum audit_outcome outcome)
{
    ASSERT((unsigned)outcome < AUDIT_OUTCOME_COUNT && (unsigned)language < REPORT_LANGUAGE_COUNT);
    return outcomes[outcome][language];
}

static const char *const verdicts[][REPORT_LANGUAGE_COUNT] = {
    [VERDICT_CONFIRMED] = { "CONFIRMED", "CONFIRMADA" },
    [VERDICT_REFUTED] = { "REFUTED", "REFUTADA" },
    [VERDICT_NOT_SEEN] = { "NOT SEEN", "NO VISTA" },
    [VERDICT_EXCLUDED] = { "EXCLUDED", "EXCLUIDA" },
    [VERDICT_INCONCLUSIVE] = { "INCONCLUSIVE", "NO CONCLUYENTE" },
};
_Static_assert(COUNT_OF(verdicts) == VERDICT_COUNT, "every verdict has words");

const char *words_verdict(enum report_language language, enum verdict verdict)
{
    ASSERT((unsigned)verdict < VERDICT_COUNT && (unsigned)language < REPORT_LANGUAGE_COUNT);
    return verdicts[verdict][language];
}

static const char *const severities[][REPORT_LANGUAGE_COUNT] = {
    [REPORT_SEVERITY_NONE] = { "None", "Ninguna" },
    [REPORT_SEVERITY_MEDIUM] = { "Medium", "Media" },
    [REPORT_SEVERITY_HIGH] = { "High", "Alta" },
    [REPORT_SEVERITY_CRITICAL] = { "Critical", "Crítica" },
};
_Static_assert(COUNT_OF(severities) == REPORT_SEVERITY_COUNT, "every severity has words");

const char *words_severity(enum report_language language, enum report_severity severity)
{
    ASSERT((unsigned)severity < REPORT_SEVERITY_COUNT &&
           (unsigned)language < REPORT_LANGUAGE_COUNT);
    return severities[severity][language];
}

static const char *const modes[][REPORT_LANGUAGE_COUNT] = {
    [REPORT_BARE] = { "bare", "sin registro" },
    [REPORT_AUDIT] = { "audit", "auditoría" },
    [REPORT_STRESS] = { "stress", "estrés" },
};
_Static_assert(COUNT_OF(modes) == REPORT_ROW_MODE_COUNT, "every mode has words");

const char *words_mode(enum report_language language, enum report_row_mode mode)
{
    ASSERT((unsigned)mode < REPORT_ROW_MODE_COUNT && (unsigned)language < REPORT_LANGUAGE_COUNT);
    return modes[mode][language];
}

const char *report_outcome_words(enum audit_outcome outcome, enum report_language language)
{
    /* In English the name that summary.json has. */
    return language == REPORT_ENGLISH ? audit_outcome_name(outcome)
                                      : words_outcome(language, outcome);
}

/* What an intervention changes. */
static const struct {
    const char *slug, *words[REPORT_LANGUAGE_COUNT];
} interventions[] = {
    { "serialised",
      { "every call waits for the one before", "cada llamada espera a la anterior" } },
    { "one-at-a-time",
      { "a wait after each launch, to single out one of the candidates",
        "una espera tras cada lanzamiento, para dejar un solo candidato" } },
    { "hashed-copies",
      { "every copy hashed at both ends, to see whether one brought the index",
        "cada copia con hash en ambos extremos, para ver si alguna trajo el índice" } },
    { "single-stream", { "one stream only", "un solo flujo" } },
    { "guards", { "guard pages and poison", "páginas de guarda y veneno" } },
    { "pinned", { "pinned staging", "tránsito en memoria fijada" } },
    { "pageable", { "pageable staging", "tránsito en memoria paginable" } },
    { "sync-copies",
      { "a wait before and after each copy to the host",
        "una espera antes y después de cada copia al anfitrión" } },
    { "chunking", { "other chunks of the prompt", "otra división del prompt" } },
    { "injected-removed", { "planted fault removed", "fallo inyectado retirado" } },
};

const char *words_intervention(enum report_language language, const char *slug)
{
    for (size_t i = 0; i < COUNT_OF(interventions); i++)
        if (strcmp(interventions[i].slug, slug) == 0)
            return interventions[i].words[language];
    return NULL;
}
