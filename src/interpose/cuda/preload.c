/* preload.c - the driver's own functions, and the ways by which programs find them.
 *
 * A program that is linked with libcuda, or loads a library that is, finds the wrappers first. One
 * that opens it by hand, as the CUDA runtime does, asks dlsym for cuGetProcAddress, and that for
 * everything else: both hand out the wrapper of a function that was found. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include "interpose/cuda/preload.h"
#include "interpose/next_dlsym.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */
#define FLAG_PER_THREAD 2u

static const struct {
    const char *entry; /* the driver's symbol */
    const char *name;  /* what cuGetProcAddress calls it */
    int version;       /* of CUDA, from which on it does */
    bool per_thread;   /* and only if default streams are those of threads */
    cuda_function wrapper;
} functions[] = {
#define CUDA_ROW(entry, name, version, suffix, ...)                                                \
    { #entry, #name, version, sizeof(#suffix) > 1, (cuda_function)entry },
#define CUDA_BY_HAND(entry, name, version, ...)                                                    \
    { #entry, #name, version, false, (cuda_function)entry },
#include "interpose/cuda/signatures.def"
#undef CUDA_BY_HAND
#undef CUDA_ROW
};
_Static_assert(sizeof(functions) / sizeof(functions[0]) == CUDA_INDEX_COUNT, "one for each row");

/* ---- The driver's own ----------------------------------------------------------------------- */

/* What the program found, or would have; and what libcuda has. */
static _Atomic(cuda_function) next[CUDA_INDEX_COUNT], own[CUDA_INDEX_COUNT];

/* The driver, if the program has loaded it. It stays loaded: its addresses are remembered. */
static void *driver(void)
{
    static _Atomic(void *) opened;
    void *library = atomic_load_explicit(&opened, memory_order_acquire);
    if (!library) {
        library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
        atomic_store_explicit(&opened, library, memory_order_release);
    }
    return library;
}

static cuda_function find(void *library, const char *name)
{
    interpose_dlsym look_up = interpose_next_dlsym();
    cuda_function function = NULL;
    if (look_up && library)
        *(void **)&function = look_up(library, name);
    return function;
}

cuda_function cuda_real(enum cuda_index index, bool nested)
{
    _Atomic(cuda_function) *known = nested ? &own[index] : &next[index];
    cuda_function function = atomic_load_explicit(known, memory_order_acquire);
    if (function)
        return function;
    const char *name = functions[index].entry;
    /* RTLD_NEXT does not reach a driver that was opened for one library alone. */
    function = nested ? find(driver(), name) : find(RTLD_NEXT, name);
    if (!function)
        function = nested ? NULL : find(driver(), name);
    (void)dlerror(); /* what failed here is nothing the program asked for */
    atomic_store_explicit(known, function, memory_order_release);
    return function;
}

/* The wrapper of a function that was found for the program. */
static void *hand_out(size_t index, void *found)
{
    cuda_function function, none = NULL, wrapper = functions[index].wrapper;
    *(void **)&function = found;
    if (function != wrapper)
        atomic_compare_exchange_strong(&next[index], &none, function);
    (void)driver();
    return *(void **)&wrapper;
}

/* ---- dlsym ---------------------------------------------------------------------------------- */

/* CUDA_INDEX_COUNT: it is not wrapped. */
static size_t index_of(const char *entry)
{
    size_t index = entry[0] == 'c' && entry[1] == 'u' ? 0 : CUDA_INDEX_COUNT;
    while (index < CUDA_INDEX_COUNT && strcmp(functions[index].entry, entry) != 0)
        index++;
    return index;
}

EXPORT void *traced_dlsym(void *restrict library, const char *restrict name);
INTERPOSE_EXPORT_DLSYM(traced_dlsym);

void *traced_dlsym(void *restrict library, const char *restrict name)
{
    interpose_dlsym look_up = interpose_next_dlsym();
    if (!look_up)
        return NULL;
    /* The last thing done, so that the C library sees the program as its caller: where it looks
     * depends on that. */
    size_t index = library != RTLD_NEXT ? index_of(name) : CUDA_INDEX_COUNT;
    if (index == CUDA_INDEX_COUNT)
        return look_up(library, name);
    void *found = look_up(library, name);
    cuda_function wrapper = functions[index].wrapper, other = NULL;
    /* Ours, because all libraries were searched: is there one without it? */
    if (found == *(void **)&wrapper) {
        other = find(driver(), name);
        found = other ? *(void **)&other : look_up(RTLD_NEXT, name);
    }
    return found ? hand_out(index, found) : NULL;
}

/* ---- cuGetProcAddress ----------------------------------------------------------------------- */

typedef CUresult (*get_function)(const char *, void **, int, cuuint64_t);
typedef CUresult (*get_function_v2)(const char *, void **, int, cuuint64_t,
                                    CUdriverProcAddressQueryResult *);

/* The function that the program asked, one of the two. */
struct asked {
    get_function get;
    get_function_v2 get_v2;
};

/* What it hands out; NULL: nothing. */
static void *ask(const struct asked *asked, const char *name, int version, cuuint64_t flags)
{
    void *found = NULL;
    CUresult code = asked->get_v2 ? asked->get_v2(name, &found, version, flags, NULL)
                                  : asked->get(name, &found, version, flags);
    return code == 0 ? found : NULL;
}

/* From CUDA 12 on cuda.h has another name for it. */
static bool is_called(size_t index, const char *name)
{
    return strcmp(functions[index].name, name) == 0 ||
           (index == CUDA_INDEX_cuGraphInstantiateWithFlags &&
            strcmp(name, "cuGraphInstantiate") == 0);
}

/* The entry point that was found for a name. Which one a version stands for depends on the driver
 * as well, and a later driver may have entry points that have no wrapper: so it is the one that is
 * also handed out for the very version it is known by. CUDA_INDEX_COUNT: none of them. */
static size_t index_found(const struct asked *asked, const char *name, int version,
                          cuuint64_t flags, const void *found)
{
    size_t best = CUDA_INDEX_COUNT;
    for (size_t i = 0; i < CUDA_INDEX_COUNT; i++) {
        bool per_thread = functions[i].per_thread;
        if (functions[i].version > version || (per_thread && !(flags & FLAG_PER_THREAD)) ||
            !is_called(i, name))
            continue;
        bool better = best == CUDA_INDEX_COUNT || per_thread > functions[best].per_thread ||
                      (per_thread == functions[best].per_thread &&
                       functions[i].version > functions[best].version);
        if (better && ask(asked, functions[i].name, functions[i].version,
                          per_thread ? FLAG_PER_THREAD : 0) == found)
            best = i;
    }
    return best;
}

static void wrap(const struct asked *asked, const char *name, void **function, int version,
                 cuuint64_t flags)
{
    if (!name || !function || !*function)
        return;
    size_t index = index_found(asked, name, version, flags, *function);
    if (index < CUDA_INDEX_COUNT)
        *function = hand_out(index, *function);
}

CUresult cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags)
{
    bool outermost = cuda_depth_enter();
    struct asked asked = { .get = (get_function)cuda_real(CUDA_INDEX_cuGetProcAddress,
                                                          !outermost) };
    CUresult code = asked.get ? asked.get(name, function, version, flags) : CUDA_NOT_FOUND;
    if (code == 0 && outermost)
        wrap(&asked, name, function, version, flags);
    cuda_depth_leave();
    return code;
}

CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *result)
{
    bool outermost = cuda_depth_enter();
    struct asked asked = { .get_v2 = (get_function_v2)cuda_real(CUDA_INDEX_cuGetProcAddress_v2,
                                                                !outermost) };
    CUresult code = asked.get_v2 ? asked.get_v2(name, function, version, flags, result)
                                 : CUDA_NOT_FOUND;
    if (code == 0 && outermost)
        wrap(&asked, name, function, version, flags);
    cuda_depth_leave();
    return code;
}
