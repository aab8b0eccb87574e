/* test.c - see test.h. */
#include "test.h"

#include <string.h>

void check_contains(const char *what, const char *text, const char *words)
{
    if (!strstr(text, words))
        fail_msg("%s: expected \"%s\" in \"%s\"", what, words, text);
}
