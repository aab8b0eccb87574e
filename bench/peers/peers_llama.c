/* peers_llama.c - llama.cpp's prebuilt libraries behind peers_engine.h, loaded when asked for.
 *
 * Only what is needed of its interface is declared here. Of its parameter structures just the first
 * members are named, which have stood there for years; the rest is kept as the library's own
 * defaults, in room that is larger than the structure has ever been (the platform's calling
 * convention passes such structures in memory, so that a longer copy is harmless). What was set is
 * asked back through the library's functions before anything is measured. */
#include "peers_engine.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Its interface -------------------------------------------------------------------------- */

struct opaque_params {
    uint64_t words[128];
};

struct context_params {
    uint32_t context, batch, micro_batch;
    uint32_t rest[253];
};

struct batch {
    int32_t token_count;
    int32_t *tokens;
    float *embeddings;
    int32_t *positions;
    int32_t *sequence_counts;
    int32_t **sequences;
    int8_t *wants_logits;
};

struct interface {
    void (*log_set)(void (*log)(int level, const char *text, void *data), void *data);
    void (*load_backends)(const char *folder);
    void (*backend_init)(void);
    struct opaque_params (*model_default_params)(void);
    void *(*model_load)(const char *path, struct opaque_params params);
    void (*model_free)(void *model);
    struct context_params (*context_default_params)(void);
    void *(*context_open)(void *model, struct context_params params);
    void (*context_free)(void *context);
    uint32_t (*context_length)(const void *context);
    uint32_t (*batch_length)(const void *context);
    uint32_t (*micro_batch_length)(const void *context);
    void (*set_threads)(void *context, int32_t threads, int32_t batch_threads);
    int32_t (*threads)(void *context);
    void (*attach_pool)(void *context, void *pool, void *batch_pool);
    void *(*memory)(const void *context);
    void (*memory_clear)(void *memory, bool data_too);
    struct batch (*batch_of)(int32_t *tokens, int32_t count);
    int32_t (*decode)(void *context, struct batch batch);
    void (*synchronize)(void *context);
    float *(*logits)(void *context, int32_t place);
    struct opaque_params (*pool_default_params)(int threads);
    void *(*pool_create)(struct opaque_params *params);
    void (*pool_free)(void *pool);
    void (*pool_pause)(void *pool);
    void (*pool_resume)(void *pool);
};

#define AT(member) offsetof(struct interface, member)

static const struct {
    size_t place;
    const char *name;
} symbols[] = {
    { AT(log_set), "llama_log_set" },
    { AT(load_backends), "ggml_backend_load_all_from_path" },
    { AT(backend_init), "llama_backend_init" },
    { AT(model_default_params), "llama_model_default_params" },
    { AT(model_load), "llama_model_load_from_file" },
    { AT(model_free), "llama_model_free" },
    { AT(context_default_params), "llama_context_default_params" },
    { AT(context_open), "llama_init_from_model" },
    { AT(context_free), "llama_free" },
    { AT(context_length), "llama_n_ctx" },
    { AT(batch_length), "llama_n_batch" },
    { AT(micro_batch_length), "llama_n_ubatch" },
    { AT(set_threads), "llama_set_n_threads" },
    { AT(threads), "llama_n_threads" },
    { AT(attach_pool), "llama_attach_threadpool" },
    { AT(memory), "llama_get_memory" },
    { AT(memory_clear), "llama_memory_clear" },
    { AT(batch_of), "llama_batch_get_one" },
    { AT(decode), "llama_decode" },
    { AT(synchronize), "llama_synchronize" },
    { AT(logits), "llama_get_logits_ith" },
    { AT(pool_default_params), "ggml_threadpool_params_default" },
};

/* Of the processor's own library, which is chosen when backends are loaded. */
static const struct {
    size_t place;
    const char *name;
} processor_symbols[] = {
    { AT(pool_create), "ggml_threadpool_new" },
    { AT(pool_free), "ggml_threadpool_free" },
    { AT(pool_pause), "ggml_threadpool_pause" },
    { AT(pool_resume), "ggml_threadpool_resume" },
};

struct llama {
    struct interface call;
    void *model, *context, *pools[PEERS_THREAD_LIMIT];
    int32_t *tokens;
    uint32_t vocab_size, micro_batch;
};

/* ---- Loading -------------------------------------------------------------------------------- */

#define PATH_BYTES 4096

/* The library whose name is base.so, or base.v1.2.3.so, in folder. */
static bool find_library(const char *folder, const char *base, char path[PATH_BYTES])
{
    size_t length = strlen(base);
    bool found = false;
    DIR *directory = opendir(folder);
    for (struct dirent *entry; directory && !found && (entry = readdir(directory));) {
        const char *name = entry->d_name;
        size_t name_length = strlen(name);
        found = name_length > 3 && strncmp(name, base, length) == 0 && name[length] == '.' &&
                strcmp(name + name_length - 3, ".so") == 0 &&
                snprintf(path, PATH_BYTES, "%s/%s", folder, name) < PATH_BYTES;
    }
    if (directory)
        closedir(directory);
    return found;
}

static enum status load(const char *folder, const char *base, void **ret_library, struct error *err)
{
    char path[PATH_BYTES];
    if (!find_library(folder, base, path))
        return error_set(err, STATUS_NOT_FOUND,
                         "%s: expected %s.so, found none (run bench/peers.sh)", folder, base);
    *ret_library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    return *ret_library ? STATUS_OK : error_set(err, STATUS_UNSUPPORTED, "%s", dlerror());
}

static enum status bind(void *library, const char *name, struct interface *call, size_t place,
                        struct error *err)
{
    void *found = dlsym(library, name);
    if (!found)
        return error_set(err, STATUS_UNSUPPORTED, "expected a library with %s, found none", name);
    memcpy((char *)call + place, &found, sizeof(found));
    return STATUS_OK;
}

static void keep_silent(int level, const char *text, void *data)
{
    (void)data;
    if (level == 4) /* errors */
        fputs(text, stderr);
}

/* The library for this processor is the one that was loaded: it alone can be had without loading.
 */
static void *find_processor_library(const char *folder)
{
    void *library = NULL;
    DIR *directory = opendir(folder);
    for (struct dirent *entry; directory && !library && (entry = readdir(directory));) {
        char path[PATH_BYTES];
        if (strncmp(entry->d_name, "libggml-cpu", 11) == 0 &&
            snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) < PATH_BYTES)
            library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    }
    if (directory)
        closedir(directory);
    return library;
}

static enum status load_interface(struct llama *llama, const char *folder, struct error *err)
{
    void *libraries[3];
    TRY(load(folder, "libggml-base", &libraries[0], err));
    TRY(load(folder, "libggml", &libraries[1], err));
    TRY(load(folder, "libllama", &libraries[2], err));
    for (size_t i = 0; i < COUNT_OF(symbols); i++)
        TRY(bind(libraries[strncmp(symbols[i].name, "llama", 5) == 0 ? 2
                           : strstr(symbols[i].name, "threadpool")   ? 0
                                                                     : 1],
                 symbols[i].name, &llama->call, symbols[i].place, err));
    llama->call.log_set(keep_silent, NULL);
    llama->call.load_backends(folder);
    llama->call.backend_init();
    void *processor = find_processor_library(folder);
    if (!processor)
        return error_set(err, STATUS_UNSUPPORTED, "%s: no library for this processor was loaded",
                         folder);
    for (size_t i = 0; i < COUNT_OF(processor_symbols); i++)
        TRY(bind(processor, processor_symbols[i].name, &llama->call, processor_symbols[i].place,
                 err));
    return STATUS_OK;
}

/* ---- Opening -------------------------------------------------------------------------------- */

static enum status open_context(struct llama *llama, const char *model, uint32_t context,
                                struct error *err)
{
    const struct interface *call = &llama->call;
    llama->model = call->model_load(model, call->model_default_params());
    if (!llama->model)
        return error_set(err, STATUS_UNSUPPORTED, "%s: llama.cpp does not load it", model);
    struct context_params params = call->context_default_params();
    if (params.context != 512 || params.batch != 2048 || params.micro_batch != 512)
        return error_set(err, STATUS_UNSUPPORTED,
                         "llama.cpp: expected default lengths 512, 2048, 512, found %u, %u, %u: "
                         "another interface",
                         params.context, params.batch, params.micro_batch);
    params.context = context;
    llama->context = call->context_open(llama->model, params);
    if (!llama->context || call->context_length(llama->context) < context ||
        call->micro_batch_length(llama->context) != params.micro_batch)
        return error_set(err, STATUS_UNSUPPORTED, "llama.cpp: no context of %u tokens", context);
    llama->micro_batch = params.micro_batch;
    for (uint32_t threads = 1; threads <= PEERS_THREAD_LIMIT; threads++) {
        struct opaque_params pool = call->pool_default_params((int)threads);
        llama->pools[threads - 1] = call->pool_create(&pool);
        if (!llama->pools[threads - 1])
            return error_set(err, STATUS_NO_MEMORY, "llama.cpp: no pool of threads");
        call->pool_pause(llama->pools[threads - 1]);
    }
    llama->tokens = calloc(context, sizeof(*llama->tokens));
    return llama->tokens ? STATUS_OK : error_set(err, STATUS_NO_MEMORY, "no memory for tokens");
}

static void close_llama(void *self)
{
    struct llama *llama = self;
    if (llama->context)
        llama->call.context_free(llama->context);
    for (size_t i = 0; i < PEERS_THREAD_LIMIT; i++)
        if (llama->pools[i])
            llama->call.pool_free(llama->pools[i]);
    if (llama->model)
        llama->call.model_free(llama->model);
    free(llama->tokens);
    free(llama);
}

/* Its threads spin between graphs, so they are put to sleep when this is over. */
static enum status run_llama(void *self, uint32_t threads, uint32_t count, uint32_t at_once,
                             struct error *err)
{
    struct llama *llama = self;
    const struct interface *call = &llama->call;
    void *pool = llama->pools[threads - 1];
    enum status status = STATUS_OK;
    call->pool_resume(pool);
    call->attach_pool(llama->context, pool, pool);
    call->set_threads(llama->context, (int32_t)threads, (int32_t)threads);
    call->memory_clear(call->memory(llama->context), false);
    for (uint32_t first = 0; first < count && !status; first += at_once) {
        uint32_t batch = count - first < at_once ? count - first : at_once;
        for (uint32_t i = 0; i < batch; i++)
            llama->tokens[i] = peers_token(first + i, llama->vocab_size);
        if (call->decode(llama->context, call->batch_of(llama->tokens, (int32_t)batch)))
            status = error_set(err, STATUS_UNSUPPORTED, "llama.cpp: a batch of %u failed", batch);
        call->synchronize(llama->context);
    }
    if (call->threads(llama->context) != (int32_t)threads)
        status = error_set(err, STATUS_UNSUPPORTED, "llama.cpp: expected %u threads", threads);
    call->pool_pause(pool);
    return status;
}

static const float *llama_logits(void *self)
{
    struct llama *llama = self;
    return llama->call.logits(llama->context, -1);
}

enum status peers_open_llama(const char *folder, const char *model, uint32_t context,
                             uint32_t vocab_size, struct peers_engine *ret, struct error *err)
{
    struct llama *llama = calloc(1, sizeof(*llama));
    if (!llama)
        return error_set(err, STATUS_NO_MEMORY, "no memory for an engine");
    llama->vocab_size = vocab_size;
    enum status status = load_interface(llama, folder, err);
    if (!status)
        status = open_context(llama, model, context, err);
    if (status) {
        close_llama(llama);
        return status;
    }
    *ret = (struct peers_engine){ "llama.cpp", llama, run_llama, llama_logits, close_llama };
    return STATUS_OK;
}
