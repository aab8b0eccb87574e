/* intervene.c - see intervene.h. A run with the change and a run without it take turns, so that
 * what drifts over time meets both. */
#include "campaign/intervene.h"

#include "ops/ops.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define REPEATS_DEFAULT 3u
/* Iterations of a rerun: enough for what happens in a child at all, few enough to be repeated. */
#define ITERATION_LIMIT 6u

/* ---- What can be changed -------------------------------------------------------------------- */

struct change {
    const char *slug;
    /* Changes the job; false where it makes no difference to this one. */
    bool (*apply)(struct job *job);
    enum verdict_proof proof;                      /* what a flip proves */
    const char *flips[ANALYZE_LANGUAGE_COUNT];     /* what follows if it flips */
    const char *stays[ANALYZE_LANGUAGE_COUNT];     /* what follows if it does not */
    const char *not_flips[ANALYZE_LANGUAGE_COUNT]; /* what does not follow if it flips */
    const char *not_stays[ANALYZE_LANGUAGE_COUNT]; /* what does not follow if it does not */
};

static bool serialise(struct job *job)
{
    bool changes = !job->serialise;
    job->serialise = true;
    return changes;
}

static bool use_one_stream(struct job *job)
{
    bool changes = (job->work & JOB_STREAMS) && !job->single_stream;
    job->single_stream = true;
    return changes;
}

static bool drop_guards(struct job *job)
{
    bool changes = job->level >= AUDIT_GUARD && !job->no_guards;
    job->no_guards = true;
    return changes;
}

static bool unpin(struct job *job)
{
    bool changes = !job->pageable;
    job->pageable = true;
    return changes;
}

static bool wait_around_copies(struct job *job)
{
    bool changes = job->d2h_mode != DEVICE_D2H_SYNC;
    job->d2h_mode = DEVICE_D2H_SYNC;
    return changes;
}

static bool cut_prompt(struct job *job)
{
    bool changes = (job->work & JOB_INFER) && job->chunk != 1;
    job->chunk = 1;
    return changes;
}

static bool remove_fault(struct job *job)
{
    bool changes = job->inject != NULL;
    job->inject = NULL;
    return changes;
}

static const struct change changes[] = {
    { "serialised",
      serialise,
      VERDICT_PROOF_NONE,
      { "the fault needs work that overlaps: a race, or memory given back while work is queued",
        "el fallo necesita trabajo que se solapa: una condición de carrera, o memoria devuelta con "
        "trabajo pendiente" },
      { "the fault does not depend on overlap: it happens with one call after another too",
        "el fallo no depende del solapamiento: también ocurre con una llamada tras otra" },
      { "that it is a race: serialising hides use after free as well",
        "que sea una condición de carrera: serializar también oculta el uso tras liberación" },
      { "that no race exists elsewhere", "que no exista una condición de carrera en otra parte" } },
    { "single-stream",
      use_one_stream,
      VERDICT_PROOF_NONE,
      { "the fault needs several streams: an order between them is missing",
        "el fallo necesita varios flujos: falta un orden entre ellos" },
      { "with the streams workload on one stream the fault is still there: it is not an order "
        "between its streams that is missing",
        "con la carga de flujos en un solo flujo el fallo sigue: no falta un orden entre los "
        "suyos" },
      { "which wait is missing: see the finding for both accesses",
        "qué espera falta: vea ambos accesos en el hallazgo" },
      { "that the order between streams is right", "que el orden entre flujos sea el correcto" } },
    { "guards",
      drop_guards,
      VERDICT_PROOF_NONE,
      { "without guards the same fault does no visible harm: it would be silent in normal use",
        "sin guardas el mismo fallo no hace daño visible: sería silencioso en el uso normal" },
      { "the fault shows without guards too: they did not cause it",
        "el fallo se muestra también sin guardas: no lo causan ellas" },
      { "that running without guards is safe", "que ejecutar sin guardas sea seguro" },
      { "where the bad access goes: only guards catch it at its first byte",
        "adónde va el acceso erróneo: solo las guardas lo atrapan en su primer byte" } },
    { "pageable",
      unpin,
      VERDICT_PROOF_NONE,
      { "the kind of host memory decides: suspect the runtime's copy path or staging reuse",
        "decide el tipo de memoria del anfitrión: sospeche de la ruta de copia del runtime o de "
        "la reutilización del búfer intermedio" },
      { "pinned and pageable memory behave alike: the copy path is not the cause",
        "la memoria fijada y la paginable se comportan igual: la ruta de copia no es la causa" },
      { "that the runtime is at fault: a slot rewritten too early can flip the same way",
        "que la culpa sea del runtime: una ranura reescrita demasiado pronto puede cambiar igual" },
      { "that every copy was right", "que todas las copias fueran correctas" } },
    { "sync-copies",
      wait_around_copies,
      VERDICT_PROOF_NONE,
      { "waiting around each copy to the host makes it go away: the copy, or what is queued beside "
        "it, is where the order fails",
        "esperar antes y después de cada copia al anfitrión lo hace desaparecer: el orden falla en "
        "la "
        "copia o en lo que está en cola junto a ella" },
      { "waiting around copies does not help: the cause is upstream of the copy",
        "esperar alrededor de las copias no ayuda: la causa está antes de la copia" },
      { "that the copy is wrong: waiting also hides what runs beside it",
        "que la copia esté mal: esperar también oculta lo que se ejecuta junto a ella" },
      { "that copies are ordered rightly elsewhere",
        "que las copias estén bien ordenadas en otra parte" } },
    { "chunking",
      cut_prompt,
      VERDICT_PROOF_NONE,
      { "the size of a batch decides: look at shapes, offsets and limits that grow with it",
        "decide el tamaño del lote: revísense formas, desplazamientos y límites que crecen con "
        "él" },
      { "the fault does not depend on how the prompt is cut",
        "el fallo no depende de cómo se corta el prompt" },
      { "which of them is wrong", "cuál de ellos está mal" },
      { "that larger batches are right", "que los lotes mayores sean correctos" } },
    { "injected-removed",
      remove_fault,
      /* The plan is what goes wrong; which hypothesis describes it is for the findings to show. */
      VERDICT_PROOF_DEFECT,
      { "the planted fault is the cause: with it the run fails, without it it does not, and with "
        "it again it does",
        "el fallo inyectado es la causa: con él la ejecución falla, sin él no, y con él vuelve a "
        "fallar" },
      { "the planted fault is not the only cause: the run fails without it too",
        "el fallo inyectado no es la única causa: la ejecución falla también sin él" },
      { "anything about faults that were not planted", "nada sobre fallos que no se inyectaron" },
      { "that the planted fault is harmless", "que el fallo inyectado sea inocuo" } },
};

/* ---- Runs ----------------------------------------------------------------------------------- */

/* What a series of reruns shares. */
struct series {
    const struct campaign_options *options;
    const struct child_setup *setup;
    uint64_t done, total; /* runs */
    const char *what;     /* of the run: "serialised", "control" */
};

static enum status run_once(struct series *series, struct job job, bool *ret_fault,
                            struct error *err)
{
    const struct campaign_watcher *watcher = &series->options->watcher;
    struct analyze_options options = { .level = job.level,
                                       .hang_limit_ns = job.hang_limit_ns,
                                       .operand_name = ops_operand_name };
    struct child_outcome outcome;
    struct analyzer *analyzer = NULL;
    char flight[4096];
    struct error unused;
    if (watcher->step &&
        !watcher->step(watcher->context, "interventions", series->done, series->total))
        return error_set(err, STATUS_INTERRUPTED, "interrupted");
    char label[64];
    snprintf(label, sizeof(label), "rerun-%02" PRIu64 "-%s", series->done + 1, series->what);
    job.label = label;
    TRY(child_path(series->setup->folder, job.label, "flight", flight, err));
    job.flight = job.level == AUDIT_OFF ? NULL : flight;
    TRY(child_run(series->setup, &job, NULL, &outcome, err));
    bool fault = !outcome.ended || outcome.hung || outcome.errors;
    if (job.flight && !analyze_flight(flight, &options, &analyzer, &unused)) {
        fault = fault || analyzer_result(analyzer)->finding_count > 0;
        analyzer_destroy(analyzer);
    }
    unlink(flight);
    child_outcome_release(&outcome);
    series->done++;
    *ret_fault = fault;
    return STATUS_OK;
}

static uint32_t repeats_of(const struct campaign_options *options)
{
    return options->repeats ? options->repeats : REPEATS_DEFAULT;
}

static struct job short_job(const struct job *base)
{
    struct job job = *base;
    if (job.iterations > ITERATION_LIMIT)
        job.iterations = ITERATION_LIMIT;
    job.streams_interval = 1;
    return job;
}

typedef const char *const sentence[ANALYZE_LANGUAGE_COUNT];

/* The fault came and went, or did not come at all: the change says nothing. */
static sentence never_proves = { "nothing: the fault did not come without the change either",
                                 "nada: el fallo tampoco apareció sin el cambio" };
static sentence never_not = { "that the fault is gone", "que el fallo haya desaparecido" };
static sentence sometimes_proves = { "nothing for certain: the fault comes and goes; compare how "
                                     "often",
                                     "nada con certeza: el fallo va y viene; compárese con qué "
                                     "frecuencia" };
static sentence sometimes_not = { "that the change has no influence, or that it has",
                                  "que el cambio no influya, ni que influya" };

static void conclude(struct report_intervention *result, const struct change *change)
{
    bool never = result->control_faults == 0;
    bool always = result->control_faults == result->control_runs && result->faults == result->runs;
    for (int i = 0; i < ANALYZE_LANGUAGE_COUNT; i++) {
        result->proves[i] = result->flips ? change->flips[i]
                            : always      ? change->stays[i]
                            : never       ? never_proves[i]
                                          : sometimes_proves[i];
        result->does_not_prove[i] = result->flips ? change->not_flips[i]
                                    : always      ? change->not_stays[i]
                                    : never       ? never_not[i]
                                                  : sometimes_not[i];
    }
}

/* control, changed, control, changed, ...: both ways. */
static enum status try_change(struct series *series, const struct job *base,
                              const struct change *change, struct report_intervention *result,
                              struct error *err)
{
    struct job control = short_job(base), changed = control;
    change->apply(&changed);
    *result = (struct report_intervention){ .changed = change->slug };
    for (uint32_t i = 0; i < repeats_of(series->options); i++) {
        bool fault;
        series->what = "control";
        TRY(run_once(series, control, &fault, err));
        result->control_runs++;
        result->control_faults += fault;
        series->what = change->slug;
        TRY(run_once(series, changed, &fault, err));
        result->runs++;
        result->faults += fault;
    }
    result->flips = result->control_faults == result->control_runs && result->faults == 0;
    conclude(result, change);
    return STATUS_OK;
}

/* Wrong bytes of a valid transfer that come and go with the copy path alone are the runtime's; any
 * other mistake would have a finding of its own. */
static struct verdict_flip flip_of(const struct change *change, enum hypothesis hypothesis)
{
    bool is_path = change->apply == unpin || change->apply == wait_around_copies;
    bool is_bytes = hypothesis == HYPOTHESIS_SILENT_CORRUPTION ||
                    hypothesis == HYPOTHESIS_RUNTIME_DEFECT;
    if (is_path && is_bytes)
        return (struct verdict_flip){ HYPOTHESIS_RUNTIME_DEFECT, VERDICT_PROOF_CULPRIT };
    return (struct verdict_flip){ hypothesis, change->proof };
}

enum status intervene(const struct campaign_options *options, const struct child_setup *setup,
                      const struct job *base, enum hypothesis hypothesis,
                      struct interventions *interventions, struct error *err)
{
    struct child_setup quiet = *setup;
    quiet.keep = false;
    struct series series = { options, &quiet, 0, 0, "" };
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        struct job job = *base;
        series.total += changes[i].apply(&job) ? 2 * repeats_of(options) : 0;
    }
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        struct report_intervention *result = &interventions->made[interventions->count];
        struct job job = *base;
        if (!changes[i].apply(&job))
            continue;
        TRY(try_change(&series, base, &changes[i], result, err));
        interventions->count++;
        if (result->flips && hypothesis != HYPOTHESIS_COUNT)
            interventions->flips[interventions->flip_count++] = flip_of(&changes[i], hypothesis);
    }
    return STATUS_OK;
}

enum status ablate_d2h(const struct campaign_options *options, const struct child_setup *setup,
                       const struct job *base, struct interventions *interventions,
                       struct error *err)
{
    struct child_setup quiet = *setup;
    quiet.keep = false;
    struct series series = { options, &quiet, 0, (uint64_t)DEVICE_D2H_COUNT * repeats_of(options),
                             "" };
    for (int mode = 0; mode < DEVICE_D2H_COUNT; mode++) {
        struct report_ablation *result = &interventions->ablations[interventions->ablation_count];
        struct job job = short_job(base);
        job.d2h_mode = (enum device_d2h_mode)mode;
        *result = (struct report_ablation){ .mode = device_d2h_mode_name(job.d2h_mode) };
        series.what = result->mode;
        for (uint32_t i = 0; i < repeats_of(options); i++) {
            bool fault;
            TRY(run_once(&series, job, &fault, err));
            result->runs++;
            result->faults += fault;
        }
        interventions->ablation_count++;
    }
    return STATUS_OK;
}
