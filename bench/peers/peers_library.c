/* peers_library.c - finding, loading and binding; see peers_library.h. */
#include "peers_library.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define AT(member) offsetof(struct interface, member)

enum { BASE, BACKENDS, LLAMA, PROCESSOR, LIBRARY_COUNT };

static const struct {
    size_t place;
    int library;
    const char *name;
} symbols[] = {
    { AT(log_set), LLAMA, "llama_log_set" },
    { AT(load_backends), BACKENDS, "ggml_backend_load_all_from_path" },
    { AT(device_by_name), BACKENDS, "ggml_backend_dev_by_name" },
    { AT(backend_init), LLAMA, "llama_backend_init" },
    { AT(model_default_params), LLAMA, "llama_model_default_params" },
    { AT(model_load), LLAMA, "llama_model_load_from_file" },
    { AT(model_free), LLAMA, "llama_model_free" },
    { AT(vocabulary), LLAMA, "llama_model_get_vocab" },
    { AT(vocabulary_size), LLAMA, "llama_vocab_n_tokens" },
    { AT(context_default_params), LLAMA, "llama_context_default_params" },
    { AT(context_open), LLAMA, "llama_init_from_model" },
    { AT(context_free), LLAMA, "llama_free" },
    { AT(context_length), LLAMA, "llama_n_ctx_seq" },
    { AT(batch_length), LLAMA, "llama_n_batch" },
    { AT(micro_batch_length), LLAMA, "llama_n_ubatch" },
    { AT(sequence_limit), LLAMA, "llama_n_seq_max" },
    { AT(set_threads), LLAMA, "llama_set_n_threads" },
    { AT(threads), LLAMA, "llama_n_threads" },
    { AT(attach_pool), LLAMA, "llama_attach_threadpool" },
    { AT(memory), LLAMA, "llama_get_memory" },
    { AT(memory_clear), LLAMA, "llama_memory_clear" },
    { AT(decode), LLAMA, "llama_decode" },
    { AT(synchronize), LLAMA, "llama_synchronize" },
    { AT(logits), LLAMA, "llama_get_logits_ith" },
    { AT(chain_default_params), LLAMA, "llama_sampler_chain_default_params" },
    { AT(chain_create), LLAMA, "llama_sampler_chain_init" },
    { AT(chain_take), LLAMA, "llama_sampler_chain_add" },
    { AT(greedy_create), LLAMA, "llama_sampler_init_greedy" },
    { AT(sampler_free), LLAMA, "llama_sampler_free" },
    { AT(set_sampler), LLAMA, "llama_set_sampler" },
    { AT(sampled), LLAMA, "llama_get_sampled_token_ith" },
    { AT(pool_default_params), BASE, "ggml_threadpool_params_default" },
    { AT(pool_create), PROCESSOR, "ggml_threadpool_new" },
    { AT(pool_free), PROCESSOR, "ggml_threadpool_free" },
    { AT(pool_pause), PROCESSOR, "ggml_threadpool_pause" },
    { AT(pool_resume), PROCESSOR, "ggml_threadpool_resume" },
};

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

/* Binds what the given library has. */
static enum status bind(void *library, int index, struct interface *call, struct error *err)
{
    for (size_t i = 0; i < COUNT_OF(symbols); i++) {
        if (symbols[i].library != index)
            continue;
        void *found = dlsym(library, symbols[i].name);
        if (!found)
            return error_set(err, STATUS_UNSUPPORTED, "expected a library with %s, found none",
                             symbols[i].name);
        memcpy((char *)call + symbols[i].place, &found, sizeof(found));
    }
    return STATUS_OK;
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

enum status library_load(const char *folder, void (*log)(int level, const char *text, void *data),
                         void *data, struct interface *ret_call, struct error *err)
{
    static const char *const names[] = {
        [BASE] = "libggml-base", [BACKENDS] = "libggml", [LLAMA] = "libllama"
    };
    struct interface call = { 0 };
    for (int i = 0; i < PROCESSOR; i++) {
        void *library;
        TRY(load(folder, names[i], &library, err));
        TRY(bind(library, i, &call, err));
    }
    call.log_set(log, data);
    call.load_backends(folder);
    call.backend_init();
    void *processor = find_processor_library(folder); /* chosen when backends were loaded */
    enum status status = processor
                             ? bind(processor, PROCESSOR, &call, err)
                             : error_set(err, STATUS_UNSUPPORTED,
                                         "%s: no library for this processor was loaded", folder);
    if (status)
        call.log_set(log, NULL); /* the library stays, data may not */
    else
        *ret_call = call;
    return status;
}

enum status library_device(const struct interface *call, const char *folder, const char *name,
                           void **ret_device, struct error *err)
{
    char path[PATH_BYTES], theirs[32];
    if (strcmp(name, "host") == 0) {
        *ret_device = NULL;
        return STATUS_OK;
    }
    if (strncmp(name, "cuda:", 5) != 0)
        return error_set(err, STATUS_USAGE, "llama.cpp: expected host or cuda:N, found %s", name);
    snprintf(theirs, sizeof(theirs), "CUDA%s", name + 5);
    void *device = call->device_by_name(theirs);
    if (device) {
        *ret_device = device;
        return STATUS_OK;
    }
    if (!find_library(folder, "libggml-cuda", path))
        return error_set(err, STATUS_NOT_FOUND,
                         "%s: expected libggml-cuda.so, found none (run bench/peers.sh --cuda)",
                         folder);
    if (!dlopen(path, RTLD_NOW | RTLD_LOCAL))
        return error_set(err, STATUS_NOT_FOUND, "llama.cpp: no %s: %s", theirs, dlerror());
    return error_set(err, STATUS_NOT_FOUND, "llama.cpp: its CUDA library finds no %s", theirs);
}
