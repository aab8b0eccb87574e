/* peers_start.c - one cold start of one engine; see peers_engine.h. */
#include "peers_engine.h"

#include "base/clock.h"
#include "model/model.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define CONTEXT 512u /* room for the longest prompt either takes at once */

static enum status open_one(const char *name, const char *folder, const char *model,
                            struct peers_engine *ret, struct error *err)
{
    uint32_t vocab_size;
    struct gguf_file *file;
    struct model_report report;
    if (strcmp(name, "greta") == 0)
        return peers_open_greta(model, CONTEXT, PEERS_THREAD_LIMIT, ret, &vocab_size, err);
    TRY(gguf_open(model, &file, err)); /* both are given the same tokens */
    model_check(file, NULL, &report);
    gguf_close(file);
    return peers_open_llama(folder, model, CONTEXT, report.config.vocab_size, ret, err);
}

/* Of all threads, since the program began: other processes disturb it less than the time. */
static double processor_ms(const struct rusage *usage)
{
    return 1e3 * (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
           (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e3;
}

enum status peers_start(const char *name, const char *folder, const char *model, uint32_t prompt,
                        struct error *err)
{
    struct peers_engine engine;
    struct rusage usage;
    uint64_t start_ns = clock_ns();
    TRY(open_one(name, folder, model, &engine, err));
    uint64_t opened_ns = clock_ns();
    enum status status = engine.run(engine.self, PEERS_THREAD_LIMIT, prompt, prompt, err);
    uint64_t end_ns = clock_ns();
    getrusage(RUSAGE_SELF, &usage);
    if (!status)
        printf("{\"engine\": \"%s\", \"prompt_tokens\": %u, \"open_ms\": %.3f, "
               "\"first_token_ms\": %.3f, \"processor_ms\": %.3f, \"peak_resident_bytes\": %llu}\n",
               engine.name, prompt, (double)(opened_ns - start_ns) / 1e6,
               (double)(end_ns - start_ns) / 1e6, processor_ms(&usage),
               1024ull * (unsigned long long)usage.ru_maxrss);
    engine.close(engine.self);
    return status;
}
