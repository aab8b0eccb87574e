/* inspect_hash.c - see inspect_hash.h. Without --json the output is the manifest itself, in the
 * form other GGUF tools use. */
#include "cli/inspect_hash.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SHA256_WORDS_BYTES (2 * GGUF_SHA256_BYTES + 1)

static const char *sha256_words(const struct gguf_hash *hash, char *buffer)
{
    for (size_t i = 0; i < GGUF_SHA256_BYTES; i++)
        snprintf(buffer + 2 * i, 3, "%02x", hash->sha256[i]);
    return buffer;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static enum status print_manifest(const struct gguf_file *file, const struct gguf_hash *hashes,
                                  struct error *err)
{
    for (size_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *tensor = gguf_tensor_at(file, i);
        char name[4 * GGUF_TENSOR_NAME_LIMIT_BYTES + 8], words[SHA256_WORDS_BYTES];
        text_printable(tensor->name, name, sizeof(name));
        printf("xxh64     %016" PRIx64 "  %s:%s\n", hashes[i].xxh64, base_name(gguf_path(file)),
               name);
        printf("sha256    %s  %s:%s\n", sha256_words(&hashes[i], words), base_name(gguf_path(file)),
               name);
    }
    if (fflush(stdout) != 0 || ferror(stdout))
        return error_set(err, STATUS_IO, "cannot write the manifest to standard output");
    return STATUS_OK;
}

static const char *const match_names[] = {
    [GGUF_MATCH_SAME] = "same",
    [GGUF_MATCH_DIFFERENT] = "different",
    [GGUF_MATCH_UNLISTED] = "not in the manifest",
};

static void emit_tensor(struct emit *emit, const struct gguf_tensor *tensor,
                        const struct gguf_hash *hash, const char *match)
{
    char words[SHA256_WORDS_BYTES];
    emit_object_begin(emit, NULL);
    emit_view(emit, "name", tensor->name);
    if (match)
        emit_text(emit, "result", match);
    emit_textf(emit, "xxh64", "%016" PRIx64, hash->xxh64);
    emit_text(emit, "sha256", sha256_words(hash, words));
    emit_object_end(emit);
}

/* Text lists everything but "same"; JSON lists all. A tensor of the manifest that is missing in the
 * file counts as a difference. True if there is none. */
static bool emit_comparison(struct emit *emit, const struct gguf_file *file,
                            const struct gguf_hash *hashes, const struct gguf_manifest *manifest)
{
    size_t counts[COUNT_OF(match_names)] = { 0 };
    for (size_t i = 0; i < gguf_tensor_count(file); i++)
        counts[gguf_manifest_compare(manifest, gguf_tensor_at(file, i)->name, &hashes[i])]++;
    size_t found = counts[GGUF_MATCH_SAME] + counts[GGUF_MATCH_DIFFERENT];
    size_t missing = gguf_manifest_count(manifest) - found;
    bool good = found == gguf_tensor_count(file) && missing == 0 &&
                counts[GGUF_MATCH_DIFFERENT] == 0 && found > 0;
    emit_text(emit, "verdict", good ? "same" : "different");
    emit_count(emit, "same", counts[GGUF_MATCH_SAME]);
    emit_count(emit, "different", counts[GGUF_MATCH_DIFFERENT]);
    emit_count(emit, "not_in_the_manifest", counts[GGUF_MATCH_UNLISTED]);
    emit_count(emit, "only_in_the_manifest", missing);
    bool some = emit_is_json(emit) ||
                counts[GGUF_MATCH_DIFFERENT] + counts[GGUF_MATCH_UNLISTED] > 0;
    if (!some)
        return good;
    emit_list_begin(emit, "tensors");
    for (size_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *tensor = gguf_tensor_at(file, i);
        enum gguf_match match = gguf_manifest_compare(manifest, tensor->name, &hashes[i]);
        if (match != GGUF_MATCH_SAME || emit_is_json(emit))
            emit_tensor(emit, tensor, &hashes[i], match_names[match]);
    }
    emit_list_end(emit);
    return good;
}

static enum status report(const struct gguf_file *file, const struct gguf_hash *hashes,
                          const struct gguf_manifest *manifest, bool json, bool *ret_differs,
                          struct error *err)
{
    *ret_differs = false;
    if (!manifest && !json)
        return print_manifest(file, hashes, err);
    struct emit *emit;
    TRY(emit_create(json ? EMIT_JSON : EMIT_TEXT, &emit, err));
    emit_text(emit, "file", gguf_path(file));
    if (manifest) {
        *ret_differs = !emit_comparison(emit, file, hashes, manifest);
    } else {
        emit_list_begin(emit, "tensors");
        for (size_t i = 0; i < gguf_tensor_count(file); i++)
            emit_tensor(emit, gguf_tensor_at(file, i), &hashes[i], NULL);
        emit_list_end(emit);
    }
    enum status status = emit_finish(emit, stdout, err);
    emit_destroy(emit);
    return status;
}

enum status inspect_hash(const struct cli_invocation *invocation, const struct gguf_file *file,
                         const char *manifest_path, bool json, bool *ret_differs, struct error *err)
{
    struct gguf_manifest *manifest = NULL;
    struct gguf_hash *hashes = calloc(gguf_tensor_count(file) + 1, sizeof(*hashes));
    enum status status = STATUS_OK;
    if (!hashes) {
        status = error_set(err, STATUS_NO_MEMORY, "no memory for hashes");
        goto done;
    }
    if (manifest_path)
        status = gguf_manifest_open(manifest_path, &manifest, err);
    if (status)
        goto done;
    struct cli_progress progress;
    cli_progress_begin(&progress, invocation, "hashing", "bytes");
    status = gguf_hash_tensors(file, &progress.progress, hashes, err);
    cli_progress_end(&progress);
    if (status)
        goto done;
    status = report(file, hashes, manifest, json, ret_differs, err);
done:
    gguf_manifest_close(manifest);
    free(hashes);
    return status;
}
