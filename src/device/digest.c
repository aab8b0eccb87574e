/* digest.c - the digest of a transfer's bytes on the host; abi/abi.h says what it is. */
#include "device/device_impl.h"

#include <string.h>

/* Whole words from the start of dense bytes; the first of them is number `index`. */
static uint64_t sum_words(const uint8_t *bytes, uint64_t count, uint64_t index)
{
    uint64_t sum = 0, word;
    for (uint64_t i = 0; i < count; i++) {
        memcpy(&word, bytes + i * sizeof(word), sizeof(word));
        sum += device_digest_word(word, index + i);
    }
    return sum;
}

uint64_t device_digest(const void *bytes, uint64_t row_bytes, uint64_t row_count,
                       uint64_t stride_bytes)
{
    if (row_bytes == stride_bytes) {
        row_bytes *= row_count;
        row_count = row_bytes ? 1 : 0;
    }
    uint64_t sum = 0, index = 0, carried = 0;
    uint8_t carry[8] = { 0 }; /* a word that is divided between rows */
    uint64_t word;
    for (uint64_t row = 0; row < row_count; row++) {
        const uint8_t *at = (const uint8_t *)bytes + row * stride_bytes;
        uint64_t left = row_bytes;
        while (carried && left) {
            carry[carried++] = *at++;
            left--;
            if (carried == sizeof(carry)) {
                memcpy(&word, carry, sizeof(word));
                sum += device_digest_word(word, index++);
                carried = 0;
            }
        }
        sum += sum_words(at, left / sizeof(word), index);
        index += left / sizeof(word);
        at += left / sizeof(word) * sizeof(word);
        left %= sizeof(word);
        if (left)
            memcpy(carry, at, (size_t)left);
        carried += left;
    }
    if (carried) {
        memset(carry + carried, 0, sizeof(carry) - (size_t)carried);
        memcpy(&word, carry, sizeof(word));
        sum += device_digest_word(word, index);
    }
    return sum;
}
