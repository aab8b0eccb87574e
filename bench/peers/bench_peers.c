/* bench_peers.c - greta beside llama.cpp on the same files, in turn, in one process.
 *
 *     bench_peers --libraries FOLDER [--device host|cuda:N] [--seconds N] [--json] FILE...
 *     bench_peers [--libraries FOLDER] --first-token greta|llama.cpp [--device D] FILE
 *     bench_peers [--libraries FOLDER] --generate greta|llama.cpp [--device D] FILE
 *
 * What is compared is the median of the ratios of pairs: see peers_compare.h.
 *
 * --first-token is one cold start of one engine: the time from nothing to the logits of a prompt,
 * and the most memory the process had. bench/run starts both in turn. --generate is a program that
 * does nothing but decode with one engine: what tracing costs is measured on it. */
#include "peers_compare.h"

#include "base/mapfile.h"
#include "bench_peaks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct settings {
    const char *libraries, *device, *peer_device, *first_token, *generate;
    double seconds; /* for each file */
    struct peers_lengths lengths;
    uint32_t repeats;
    bool json;
};

/* ---- Files ---------------------------------------------------------------------------------- */

static void close_engines(struct peers_bench *bench)
{
    for (size_t i = 0; i < PEERS_ENGINE_COUNT; i++)
        if (bench->engines[i].self)
            bench->engines[i].close(bench->engines[i].self);
}

static enum status open_engines(struct peers_bench *bench, const struct settings *settings,
                                const char *path, struct error *err)
{
    struct peers_request request = { .model = path,
                                     .device = settings->device,
                                     .folder = settings->libraries,
                                     .settings = bench->plan.settings,
                                     .setting_count = bench->plan.setting_count };
    TRY(peers_open_greta(&request, &bench->engines[PEERS_GRETA], err));
    request.device = settings->peer_device ? settings->peer_device : settings->device;
    TRY(peers_open_llama(&request, &bench->engines[PEERS_LLAMA], err));
    uint32_t ours = bench->engines[PEERS_GRETA].vocab_size;
    uint32_t theirs = bench->engines[PEERS_LLAMA].vocab_size;
    if (ours != theirs)
        return error_set(err, STATUS_UNSUPPORTED, "%s: %u tokens for greta, %u for llama.cpp", path,
                         ours, theirs);
    return STATUS_OK;
}

static void emit_file(struct emit *emit, const struct peers_bench *bench,
                      const struct settings *settings, const char *path)
{
    const char *name = strrchr(path, '/');
    if (emit_is_json(emit))
        emit_object_begin(emit, NULL);
    emit_text(emit, "file", name ? name + 1 : path);
    emit_text(emit, "device", settings->device);
    if (settings->peer_device)
        emit_text(emit, "llama_cpp_device", settings->peer_device);
    peers_emit(emit, bench);
    if (emit_is_json(emit))
        emit_object_end(emit);
}

static enum status compare(struct peers_bench *bench, const struct settings *settings,
                           struct emit *emit, const char *path, struct error *err)
{
    struct mapfile map;
    TRY(mapfile_open(&map, path, err));
    bench->bytes = map.data;
    bench->byte_count = map.size;
    bench_read(map.data, map.size); /* into the page cache */
    enum status status = open_engines(bench, settings, path, err);
    if (!status)
        status = peers_measure(bench, err);
    if (!status)
        emit_file(emit, bench, settings, path);
    close_engines(bench);
    mapfile_release(&map);
    return status;
}

/* Text comes file by file, JSON in one piece. base: what all files share. */
static enum status compare_files(const struct peers_bench *base, const struct settings *settings,
                                 char **paths, int path_count, struct error *err)
{
    struct emit *emit = NULL;
    enum status status = STATUS_OK;
    if (settings->json) {
        TRY(emit_create(EMIT_JSON, &emit, err));
        emit_list_begin(emit, "files");
    }
    for (int i = 0; i < path_count && !status; i++) {
        struct peers_bench bench = *base;
        struct emit *text = NULL;
        fprintf(stderr, "bench_peers: %s, about %.0f s\n", paths[i], settings->seconds);
        if (!emit)
            status = emit_create(EMIT_TEXT, &text, err);
        if (!status)
            status = compare(&bench, settings, emit ? emit : text, paths[i], err);
        if (!status && text)
            status = emit_finish(text, stdout, err);
        emit_destroy(text);
        fflush(stdout);
    }
    if (emit && !status) {
        emit_list_end(emit);
        status = emit_finish(emit, stdout, err);
    }
    emit_destroy(emit);
    return status;
}

static enum status compare_all(const struct settings *settings, char **paths, int path_count,
                               struct error *err)
{
    struct peers_bench base = { .seconds = settings->seconds };
    size_t room = 1;
    TRY(peers_plan_make(settings->device, &settings->lengths, &base.plan, err));
    for (size_t i = 0; i < base.plan.setting_count; i++)
        room = base.plan.settings[i].batch > room ? base.plan.settings[i].batch : room;
    base.tokens = calloc(room, sizeof(*base.tokens));
    base.pairs = calloc(PEERS_PAIR_LIMIT, sizeof(*base.pairs));
    enum status status = base.tokens && base.pairs
                             ? compare_files(&base, settings, paths, path_count, err)
                             : error_set(err, STATUS_NO_MEMORY, "no memory for measurements");
    free(base.pairs);
    free(base.tokens);
    return status;
}

/* ---- The command line ----------------------------------------------------------------------- */

static enum status run_alone(const struct settings *settings, const char *path, struct error *err)
{
    bool first = settings->first_token != NULL;
    struct peers_alone alone = {
        .name = first ? settings->first_token : settings->generate,
        .folder = settings->libraries,
        .model = path,
        .device = settings->device,
        .prompt = settings->lengths.prompt ? settings->lengths.prompt
                  : first                  ? 512
                                           : 32,
        .tokens = settings->lengths.decode ? settings->lengths.decode : 128,
        .repeats = settings->repeats,
    };
    return first ? peers_start(&alone, err) : peers_generate(&alone, err);
}

/* A whole number of 1 to 65536. */
static bool read_count(const char *text, uint32_t *ret)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    *ret = (uint32_t)value;
    return end != text && !*end && value >= 1 && value <= 65536;
}

static bool read_option(struct settings *settings, const char *name, const char *value)
{
    static const struct {
        const char *name;
        size_t place;
    } texts[] = { { "--libraries", offsetof(struct settings, libraries) },
                  { "--device", offsetof(struct settings, device) },
                  { "--peer-device", offsetof(struct settings, peer_device) },
                  { "--first-token", offsetof(struct settings, first_token) },
                  { "--generate", offsetof(struct settings, generate) } },
      counts[] = { { "--decode", offsetof(struct settings, lengths.decode) },
                   { "--prompt", offsetof(struct settings, lengths.prompt) },
                   { "--sequences", offsetof(struct settings, lengths.sequences) },
                   { "--repeats", offsetof(struct settings, repeats) } };
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        if (strcmp(name, texts[i].name) == 0) {
            *(const char **)((char *)settings + texts[i].place) = value;
            return *value;
        }
    for (size_t i = 0; i < COUNT_OF(counts); i++)
        if (strcmp(name, counts[i].name) == 0)
            return read_count(value, (uint32_t *)((char *)settings + counts[i].place));
    if (strcmp(name, "--seconds") == 0) {
        settings->seconds = strtod(value, NULL);
        return settings->seconds > 0;
    }
    return false;
}

/* The place of the first file; count where the arguments are not understood. */
static int read_arguments(int count, char **arguments, struct settings *settings)
{
    int i = 1;
    for (; i < count && strncmp(arguments[i], "--", 2) == 0; i++) {
        bool json = strcmp(arguments[i], "--json") == 0;
        bool plain = strcmp(arguments[i], "--plain") == 0;
        settings->json |= json;
        settings->lengths.plain |= plain;
        if (json || plain)
            continue;
        if (i + 1 >= count || !read_option(settings, arguments[i], arguments[i + 1]))
            return count;
        i++;
    }
    const char *alone = settings->first_token ? settings->first_token : settings->generate;
    if ((alone && !peers_is_engine(alone)) || (settings->first_token && settings->generate))
        return count;
    bool needs_libraries = !alone || strcmp(alone, "llama.cpp") == 0;
    return needs_libraries && !settings->libraries ? count : i;
}

int main(int count, char **arguments)
{
    struct settings settings = { .device = "host", .seconds = 60, .repeats = 3 };
    struct error err;
    int first = read_arguments(count, arguments, &settings);
    if (first >= count) {
        fprintf(
            stderr,
            "usage: bench_peers --libraries FOLDER [--device host|cuda:N] [--peer-device D]\n"
            "                   [--seconds N] [--decode N] [--prompt N] [--sequences N] "
            "[--plain] [--json] FILE...\n"
            "       bench_peers [--libraries FOLDER] --first-token greta|llama.cpp [--device D] "
            "[--prompt N] FILE\n"
            "       bench_peers [--libraries FOLDER] --generate greta|llama.cpp [--device D] "
            "[--prompt N]\n"
            "                   [--decode N] [--repeats N] FILE\n");
        return 2;
    }
    bool alone = settings.first_token || settings.generate;
    enum status status = alone ? run_alone(&settings, arguments[first], &err)
                               : compare_all(&settings, arguments + first, count - first, &err);
    if (status)
        fprintf(stderr, "bench_peers: %s\n", err.text);
    return status == STATUS_USAGE ? 2 : status ? 3 : 0;
}
