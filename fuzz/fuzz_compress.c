/* fuzz_compress.c - any bytes as a compressed recording: expanded within a limit, then read. */
#include "base/compress.h"
#include "event/flight_layout.h"

#include <stdlib.h>

#define LIMIT_BYTES ((uint64_t)4 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct error err;
    struct flight_reader *reader;
    struct event event;
    uint8_t *bytes;
    uint64_t count;
    if (compress_expand(data, size, LIMIT_BYTES, "fuzz", &bytes, &count, &err)) {
        if (!err.text[0])
            abort(); /* an error has words */
        return 0;
    }
    if (count > LIMIT_BYTES)
        abort();
    if (flight_open_owned(bytes, count, "fuzz", &reader, &err))
        return 0;
    for (uint64_t id = 0; flight_next(reader, &id, &event);)
        if (event.kind >= EVENT_KIND_COUNT)
            abort();
    flight_reader_close(reader);
    return 0;
}
