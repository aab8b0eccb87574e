/* digest.c - what a copy's source holds, in eight bytes: compared when the copy is queued and when
 * the program begins to wait for it.
 *
 * Every byte is read where that costs little: sources of at most WHOLE_BYTES, for at most
 * BYTES_AT_FIRST in all and BYTES_PER_SECOND of the time that has passed since. At 10 GB/s, what
 * one core reads, that is 0.4 ms for each look at a source, 26 ms in all and 0.8 % of the time.
 * Elsewhere (larger sources, memory that the host reads slowly, no time left) 32 samples of 512
 * bytes are read: what changes between them is not seen, and the copy says so (EVENT_SAMPLED). */
#define _GNU_SOURCE /* process_vm_readv */
#include "interpose/interpose_impl.h"

#include "base/clock.h"
#include "base/size.h"

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include <xxhash.h>

#define SAMPLE_COUNT 32u
#define SAMPLE_BYTES (PENDING_SAMPLE_BYTES / SAMPLE_COUNT)
#define WHOLE_BYTES (UINT64_C(4) << 20)
#define BYTES_AT_FIRST (UINT64_C(256) << 20)
#define BYTES_PER_SECOND UINT64_C(80000000)

bool digest_can_be_whole(struct interpose *interpose, const struct block *block, uint64_t bytes)
{
    if (bytes <= PENDING_SAMPLE_BYTES)
        return true; /* costs no more than samples */
    if (bytes > WHOLE_BYTES || block->slow)
        return false;
    uint64_t now = clock_ns();
    if (!interpose->started_ns)
        interpose->started_ns = now;
    uint64_t passed_us = (now - interpose->started_ns) / 1000;
    uint64_t allowed = BYTES_AT_FIRST + passed_us * (BYTES_PER_SECOND / 1000000);
    if (interpose->compared_bytes + 2 * bytes > allowed)
        return false;
    interpose->compared_bytes += 2 * bytes;
    return true;
}

/* The runtime's own memory exists until it is freed, which is seen; the system cannot read it for
 * us, because it is the driver's. Memory that the program registered may have been unmapped since,
 * and reading it must not kill the program. False: it cannot be read. */
static bool read_samples(struct interpose *interpose, const struct pending_copy *copy,
                         struct iovec *samples, size_t count, size_t whole_bytes)
{
    if (copy->registered) {
        struct iovec here = { interpose->samples, whole_bytes };
        return process_vm_readv(getpid(), &here, 1, samples, count, 0) == (ssize_t)whole_bytes;
    }
    uint8_t *here = interpose->samples;
    for (size_t i = 0; i < count; here += samples[i++].iov_len)
        memcpy(here, samples[i].iov_base, samples[i].iov_len);
    return true;
}

static uint64_t digest_samples(struct interpose *interpose, const struct pending_copy *copy)
{
    struct iovec samples[SAMPLE_COUNT];
    uint64_t step = (copy->bytes - SAMPLE_BYTES) / (SAMPLE_COUNT - 1);
    for (size_t i = 0; i < SAMPLE_COUNT; i++)
        samples[i] = (struct iovec){ (void *)(uintptr_t)(copy->address + i * step), SAMPLE_BYTES };
    if (!read_samples(interpose, copy, samples, SAMPLE_COUNT, PENDING_SAMPLE_BYTES))
        return 0;
    uint64_t sum = XXH3_64bits(interpose->samples, PENDING_SAMPLE_BYTES);
    return sum ? sum : 1;
}

/* Part by part: each digest is the seed of the next. */
static uint64_t digest_whole(struct interpose *interpose, const struct pending_copy *copy)
{
    uint64_t sum = 0;
    for (uint64_t at = 0, part; at < copy->bytes; at += part) {
        part = min_u64(copy->bytes - at, PENDING_SAMPLE_BYTES);
        void *there = (void *)(uintptr_t)(copy->address + at);
        struct iovec sample = { there, part };
        if (copy->registered && !read_samples(interpose, copy, &sample, 1, part))
            return 0;
        sum = XXH3_64bits_withSeed(copy->registered ? interpose->samples : there, part, sum);
    }
    return sum ? sum : 1;
}

uint64_t digest_of(struct interpose *interpose, const struct pending_copy *copy)
{
    return copy->whole ? digest_whole(interpose, copy) : digest_samples(interpose, copy);
}
