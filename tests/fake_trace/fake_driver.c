/* fake_driver.c - the emulated driver but for its memory; see fake_trace.h. Every call takes effect
 * at once: tests look at the order that the recording reports, not at what this driver does. */
#define _GNU_SOURCE /* PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP */
#include "fake_driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

struct fake_event {
    int asked; /* how often it was asked whether it has passed */
};

/* As CUPTI has it. */
struct callback_data {
    int32_t site;
    const char *function_name;
    const void *parameters;
    void *return_value;
    const char *symbol_name;
    void *context;
    uint32_t context_uid;
    uint64_t *correlation_data;
    uint32_t correlation_id;
};

/* Programs call from several threads. A host function calls the driver within a call. */
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

void fake_lock(void)
{
    pthread_mutex_lock(&lock);
}

void fake_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static fake_callback reported;
static void *reported_context;
static uint32_t context_uid = 1;
static unsigned char enabled[1024];
int fake_lost;

EXPORT void fake_driver_subscribe(fake_callback callback, void *context)
{
    reported = callback;
    reported_context = context;
}

EXPORT void fake_driver_enable(uint32_t id, int on)
{
    if (id < sizeof(enabled))
        enabled[id] = (unsigned char)on;
}

void fake_tell(int site, uint32_t id, const char *name, const void *parameters, result *code,
               const char *symbol)
{
    static uint64_t correlation;
    struct callback_data data = { site,      name,        parameters,   code, symbol,
                                  &reported, context_uid, &correlation, 1 };
    if (reported && enabled[id])
        reported(reported_context, 1, id, &data);
}

void fake_new_context(void)
{
    context_uid++;
}

/* The primary one always has the same handle; others are current in the thread that made them. */
static _Thread_local void *current;

void *fake_context(void)
{
    return current ? current : (void *)&reported;
}

EXPORT result cuCtxGetCurrent(void **context)
{
    *context = fake_context();
    return OK;
}

EXPORT result cuCtxSetCurrent(void *context)
{
    current = context;
    return OK;
}

EXPORT result cuCtxCreate_v2(void **context, unsigned int flags, int device)
{
    (void)flags;
    (void)device;
    *context = current = malloc(1);
    return *context ? OK : INVALID_VALUE;
}

/* ---- Streams -------------------------------------------------------------------------------- */

static result make_stream(stream *made)
{
    *made = calloc(1, sizeof(**made));
    return *made ? OK : INVALID_VALUE;
}

EXPORT result cuStreamCreate(stream *made, unsigned int flags)
{
    struct {
        stream *made;
        unsigned int flags;
    } arguments = { made, flags };
    CALL(124, "cuStreamCreate", arguments, NULL, make_stream(made));
}

/* Kept: the real driver crashes when one is used that is gone, and so does this one. */
static result drop_stream(stream on)
{
    on->destroyed = 1;
    return OK;
}

EXPORT result cuStreamDestroy_v2(stream on)
{
    CALL(326, "cuStreamDestroy_v2", on, NULL, drop_stream(on));
}

static result use(stream on)
{
    if (on && on->destroyed)
        abort();
    return fake_late_run(on);
}

EXPORT result cuStreamSynchronize(stream on)
{
    CALL(126, "cuStreamSynchronize", on, NULL, use(on));
}

EXPORT result cuStreamSynchronize_ptsz(stream on)
{
    CALL(440, "cuStreamSynchronize_ptsz", on, NULL, use(on));
}

/* It has no arguments to show. */
EXPORT result cuCtxSynchronize(void)
{
    result code = OK;
    fake_tell(0, 17, "cuCtxSynchronize", NULL, &code, NULL);
    code = fake_lost ? ILLEGAL_ADDRESS : fake_late_run(NULL);
    fake_tell(1, 17, "cuCtxSynchronize", NULL, &code, NULL);
    return code;
}

/* Done when it is asked for the second time. */
static result passed(int *asked)
{
    return (*asked)++ ? fake_late_run(NULL) : NOT_READY;
}

EXPORT result cuStreamQuery(stream on)
{
    CALL(125, "cuStreamQuery", on, NULL, passed(&on->asked));
}

EXPORT result cuEventQuery(event mark)
{
    CALL(120, "cuEventQuery", mark, NULL, passed(&mark->asked));
}

static result run(void (*host)(void *), void *data)
{
    host(data);
    return OK;
}

EXPORT result cuLaunchHostFunc(stream on, void (*host)(void *), void *data)
{
    struct {
        stream on;
        void (*host)(void *);
        void *data;
    } arguments = { on, host, data };
    CALL(527, "cuLaunchHostFunc", arguments, NULL, run(host, data));
}

EXPORT result cuEventCreate(event *made, unsigned int flags)
{
    (void)flags;
    *made = calloc(1, sizeof(**made));
    return *made ? OK : INVALID_VALUE;
}

EXPORT result cuEventRecord(event mark, stream on)
{
    struct {
        event mark;
        stream on;
    } arguments = { mark, on };
    CALL(119, "cuEventRecord", arguments, NULL, OK);
}

EXPORT result cuStreamWaitEvent(stream on, event mark, unsigned int flags)
{
    struct {
        stream on;
        event mark;
        unsigned int flags;
    } arguments = { on, mark, flags };
    CALL(295, "cuStreamWaitEvent", arguments, NULL, OK);
}

/* ---- Graphs --------------------------------------------------------------------------------- */

static result capture(stream on, int begins)
{
    on->capturing = begins;
    return OK;
}

EXPORT result cuStreamBeginCapture_v2(stream on, int mode)
{
    struct {
        stream on;
        int mode;
    } arguments = { on, mode };
    CALL(539, "cuStreamBeginCapture_v2", arguments, NULL, capture(on, 1));
}

static result end_capture(stream on, graph *made)
{
    *made = calloc(1, sizeof(**made));
    **made = on->captured;
    on->captured = (struct fake_graph){ NULL, 0 };
    return capture(on, 0);
}

EXPORT result cuStreamEndCapture(stream on, graph *made)
{
    struct {
        stream on;
        graph *made;
    } arguments = { on, made };
    CALL(497, "cuStreamEndCapture", arguments, NULL, end_capture(on, made));
}

static result make_graph(graph *made, graph from)
{
    *made = calloc(1, sizeof(**made));
    if (!*made || !from->count)
        return *made ? OK : INVALID_VALUE;
    (*made)->nodes = malloc(from->count * sizeof(*from->nodes));
    for (size_t i = 0; i < from->count; i++) {
        (*made)->nodes[i] = from->nodes[i];
        (*made)->nodes[i].number = fake_next_grid();
    }
    (*made)->count = from->count;
    return OK;
}

static result run_graph(graph executable)
{
    for (size_t i = 0; i < executable->count; i++)
        fake_run(&executable->nodes[i]);
    return OK;
}

EXPORT result cuGraphInstantiateWithFlags(graph *made, graph from, unsigned long long flags)
{
    struct {
        graph *made;
        graph from;
        unsigned long long flags;
    } arguments = { made, from, flags };
    CALL(643, "cuGraphInstantiateWithFlags", arguments, NULL, make_graph(made, from));
}

EXPORT result cuGraphLaunch(graph executable, stream on)
{
    struct {
        graph executable;
        stream on;
    } arguments = { executable, on };
    CALL(514, "cuGraphLaunch", arguments, NULL, run_graph(executable));
}

/* ---- Injection ------------------------------------------------------------------------------ */

/* As the real driver: the first call loads what the environment names, and calls it. */
EXPORT result cuInit(unsigned int flags)
{
    const char *path = getenv("CUDA_INJECTION64_PATH");
    (void)flags;
    void *library = path ? dlopen(path, RTLD_NOW) : NULL;
    int (*initialize)(void) = NULL;
    if (library)
        *(void **)&initialize = dlsym(library, "InitializeInjection");
    if (initialize)
        initialize();
    return OK;
}
