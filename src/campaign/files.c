/* files.c - see files.h. */
#include "campaign/files.h"

#include "base/mapfile.h"
#include "base/outfile.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* More than any summary of ours; a bound on what foreign bytes can make us hold. */
#define JSON_LIMIT_BYTES ((uint64_t)64 << 20)

enum status files_write(const char *path, const void *bytes, size_t count, struct error *err)
{
    struct outfile out;
    enum status status = outfile_open_private(&out, path, true, err);
    if (!status)
        status = outfile_write(&out, bytes, count, err);
    if (!status)
        status = outfile_commit(&out, err);
    outfile_release(&out);
    return status;
}

enum status files_write_json(const char *path, json_t *document, struct error *err)
{
    char *text = document ? json_dumps(document, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(document);
    if (!text)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory to write it", path);
    enum status status = files_write(path, text, strlen(text), err);
    free(text);
    return status;
}

enum status files_read_json(const char *path, json_t **ret_object, struct error *err)
{
    struct mapfile map;
    TRY(mapfile_open(&map, path, err));
    if (map.size > JSON_LIMIT_BYTES) {
        uint64_t size = map.size;
        mapfile_release(&map);
        return error_set(err, STATUS_LIMIT, "%s: expected at most 64 MiB of JSON, found %llu bytes",
                         path, (unsigned long long)size);
    }
    json_error_t where;
    json_t *document = json_loadb(map.data ? (const char *)map.data : "", (size_t)map.size,
                                  JSON_REJECT_DUPLICATES, &where);
    mapfile_release(&map);
    if (!document)
        return error_set(err, STATUS_BAD_FILE, "%s: expected JSON, found: %s (line %d)", path,
                         where.text, where.line);
    if (!json_is_object(document)) {
        json_decref(document);
        return error_set(err, STATUS_BAD_FILE, "%s: expected a JSON object", path);
    }
    *ret_object = document;
    return STATUS_OK;
}

enum status files_make_folder(const char *path, struct error *err)
{
    char part[FILES_PATH_BYTES];
    size_t length = strlen(path);
    if (length >= sizeof(part))
        return error_set(err, STATUS_LIMIT, "expected a path of fewer than %zu bytes",
                         sizeof(part));
    for (size_t i = 1; i <= length; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(part, path, i);
        part[i] = '\0';
        if (mkdir(part, OUTFILE_PRIVATE_FOLDER_MODE) != 0 && errno != EEXIST)
            return error_set_os(err, errno, "cannot make the folder %s", part);
    }
    struct stat info;
    if (stat(path, &info) != 0)
        return error_set_os(err, errno, "cannot make the folder %s", path);
    if (!S_ISDIR(info.st_mode))
        return error_set(err, STATUS_EXISTS, "%s: expected a folder, found a file", path);
    return STATUS_OK;
}

enum status files_sha256_of(const void *bytes, size_t count, char ret_hex[FILES_SHA256_TEXT_BYTES],
                            struct error *err)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned int length = 0;
    if (EVP_Digest(count ? bytes : "", count, digest, &length, EVP_sha256(), NULL) != 1 ||
        length * 2 + 1 != FILES_SHA256_TEXT_BYTES)
        return error_set(err, STATUS_NO_MEMORY, "cannot hash: libcrypto refused");
    for (unsigned int i = 0; i < length; i++)
        snprintf(ret_hex + 2 * (size_t)i, 3, "%02x", digest[i]);
    return STATUS_OK;
}

enum status files_sha256(const char *path, char ret_hex[FILES_SHA256_TEXT_BYTES], struct error *err)
{
    struct mapfile map;
    TRY(mapfile_open(&map, path, err));
    enum status status = files_sha256_of(map.data, (size_t)map.size, ret_hex, err);
    mapfile_release(&map);
    return status ? error_wrap(err, "%s", path) : STATUS_OK;
}

enum status files_join(char ret_path[FILES_PATH_BYTES], struct error *err, const char *folder,
                       const char *format, ...)
{
    int length = snprintf(ret_path, FILES_PATH_BYTES, "%s/", folder);
    if (length >= 0 && length < FILES_PATH_BYTES) {
        va_list arguments;
        va_start(arguments, format);
        int more = vsnprintf(ret_path + length, FILES_PATH_BYTES - (size_t)length, format,
                             arguments);
        va_end(arguments);
        length = more < 0 ? more : length + more;
    }
    if (length < 0 || length >= FILES_PATH_BYTES)
        return error_set(err, STATUS_LIMIT, "expected a path of fewer than %d bytes, found %s/...",
                         FILES_PATH_BYTES, folder);
    return STATUS_OK;
}
