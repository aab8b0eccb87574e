/* test.c - see test.h. */
#include "test.h"

#include <string.h>
#include <time.h>

void check_contains(const char *what, const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("%s: expected \"%s\" in \"%s\"", what, words, text);
}

uint64_t processor_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

double normalised_error(const float *found, const double *wanted, size_t count)
{
    double error = 0, power = 0;
    for (size_t i = 0; i < count; i++) {
        error += ((double)found[i] - wanted[i]) * ((double)found[i] - wanted[i]);
        power += wanted[i] * wanted[i];
    }
    return error / power;
}
