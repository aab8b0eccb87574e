/* flight_pack.c - flight files that are kept: compressed, and read back as they were.
 *
 * Not part of the libraries that go into foreign programs: those need nothing but the C library. */
#include "event/flight_layout.h"

#include "base/compress.h"
#include "base/mapfile.h"

#include <stdlib.h>
#include <string.h>

/* A default recording has 35 MiB. A larger one than this is not expanded into memory. */
#define EXPANDED_LIMIT_BYTES ((uint64_t)1 << 30)
#define CHUNK_RECORDS 512u

/* ---- Reading -------------------------------------------------------------------------------- */

enum status flight_open(const char *path, struct flight_reader **ret_reader, struct error *err)
{
    struct mapfile map;
    uint8_t *bytes;
    uint64_t count;
    TRY(mapfile_open(&map, path, err));
    if (!compress_is_frame(map.data, map.size))
        return flight_open_mapped(&map, path, ret_reader, err);
    mapfile_watch(&map);
    enum status status = compress_expand(map.data, map.size, EXPANDED_LIMIT_BYTES, path, &bytes,
                                         &count, err);
    if (!status)
        status = mapfile_check(&map, path, err);
    else
        bytes = NULL;
    mapfile_release(&map);
    if (status) {
        free(bytes);
        return status;
    }
    return flight_open_owned(bytes, count, path, ret_reader, err);
}

/* ---- Writing -------------------------------------------------------------------------------- */

struct packing {
    struct mapfile map;
    const uint8_t *data; /* the map, or what it was converted to */
    uint64_t size;
    uint8_t *converted; /* owned; NULL for a file of this version */
    struct flight_header header;
    struct flight_layout layout;
    uint64_t first_kept; /* id; 0: all are kept */
    struct compress compress;
};

/* The first event to keep. Only of a recording that ended in order, with nothing missing, of which
 * everything that is left out was analysed: the checkpoint then says what it showed. */
static uint64_t first_to_keep(const struct flight_info *info, uint64_t keep_events)
{
    if (!keep_events || !info->closed || info->lost_count || info->damaged_count ||
        info->last_id < keep_events)
        return 0;
    uint64_t first = info->last_id - keep_events + 1;
    return first > info->first_id && first <= info->analysed_id + 1 ? first : 0;
}

static enum status write_header(struct packing *packing, struct error *err)
{
    uint8_t page[FLIGHT_HEADER_BYTES];
    memcpy(page, packing->data, sizeof(page));
    if (packing->first_kept)
        memcpy(page + FLIGHT_COUNTERS_OFFSET + offsetof(struct flight_counters, first_kept_id),
               &packing->first_kept, sizeof(packing->first_kept));
    return compress_write(&packing->compress, page, sizeof(page), err);
}

static enum status write_ring(struct packing *packing, struct error *err)
{
    struct flight_record *chunk = malloc(CHUNK_RECORDS * sizeof(*chunk));
    const uint8_t *ring = packing->data + packing->layout.ring_offset;
    uint64_t left = packing->header.record_count;
    enum status status = chunk ? STATUS_OK
                               : error_set(err, STATUS_NO_MEMORY, "no memory to pack a recording");
    while (!status && left) {
        size_t count = left < CHUNK_RECORDS ? (size_t)left : CHUNK_RECORDS;
        memcpy(chunk, ring, count * sizeof(*chunk));
        for (size_t i = 0; i < count; i++)
            if (chunk[i].event.id < packing->first_kept)
                chunk[i] = (struct flight_record){ 0 };
        status = compress_write(&packing->compress, chunk, count * sizeof(*chunk), err);
        ring += count * sizeof(*chunk);
        left -= count;
    }
    free(chunk);
    return status;
}

static enum status write_all(struct packing *packing, struct error *err)
{
    const struct flight_layout *layout = &packing->layout;
    uint64_t ring_end = layout->ring_offset +
                        (uint64_t)packing->header.record_count * sizeof(struct flight_record);
    TRY(write_header(packing, err));
    TRY(compress_write(&packing->compress, packing->data + FLIGHT_HEADER_BYTES,
                       (size_t)(layout->ring_offset - FLIGHT_HEADER_BYTES), err));
    TRY(write_ring(packing, err));
    TRY(compress_write(&packing->compress, packing->data + ring_end,
                       (size_t)(layout->file_bytes - ring_end), err));
    return compress_end(&packing->compress, err);
}

static enum status write_packed(struct packing *packing, const char *path, const char *packed_path,
                                struct error *err)
{
    struct outfile out;
    TRY(outfile_open_private(&out, packed_path, true, err));
    enum status status = compress_begin(&packing->compress, &out, packing->layout.file_bytes, err);
    if (!status)
        status = write_all(packing, err);
    if (!status)
        status = mapfile_check(&packing->map, path, err);
    if (!status)
        status = outfile_commit(&out, err);
    compress_release(&packing->compress);
    outfile_release(&out);
    return status;
}

enum status flight_pack(const char *path, const char *packed_path, uint64_t keep_events,
                        struct error *err)
{
    struct packing packing = { 0 };
    struct flight_reader *reader;
    TRY(mapfile_open(&packing.map, path, err));
    mapfile_watch(&packing.map);
    packing.data = packing.map.data;
    packing.size = packing.map.size;
    enum status status = STATUS_OK;
    if (flight_is_old(packing.data, packing.size))
        status = flight_convert_old(packing.data, packing.size, path, &packing.converted,
                                    &packing.size, err);
    if (packing.converted)
        packing.data = packing.converted;
    if (!status)
        status = flight_open_memory(packing.data, packing.size, path, &reader, err);
    if (!status) {
        packing.first_kept = first_to_keep(flight_info(reader), keep_events);
        flight_reader_close(reader);
        status = flight_check_header(packing.data, packing.size, path, &packing.header,
                                     &packing.layout, err);
    }
    if (!status && packing.layout.file_bytes > EXPANDED_LIMIT_BYTES)
        status = error_set(err, STATUS_LIMIT, "%s: too large to be read back compressed", path);
    if (!status)
        status = write_packed(&packing, path, packed_path, err);
    free(packing.converted);
    mapfile_release(&packing.map);
    return status;
}
