/* coredump_texts.h - parts of sentences about a core dump: names, places, numbers as text. */
#ifndef GRETA_REPORT_COREDUMP_TEXTS_H
#define GRETA_REPORT_COREDUMP_TEXTS_H

#include "coredump/coredump.h"
#include "report/words.h"

/* All of these add to text; what comes from the dump is made printable. */

/* A mangled name for people. `brief`: without its parameters. */
void coredump_add_function(struct text *text, struct text_view mangled, bool brief);
/* The name of a kernel or function as far as it is known: also "one of 3 kernels (a, b, ...)". */
void coredump_add_name(struct text *text, const struct coredump_name *name, bool brief,
                       enum report_language language);
/* The first candidates, separated by commas. */
void coredump_add_candidates(struct text *text, const struct coredump_name *name);
/* "warp illegal address". */
const char *coredump_exception_words(uint32_t kind, enum report_language language);
const char *coredump_status_words(uint32_t status, enum report_language language);
/* "/src/kernels.cu:34" */
void coredump_add_line(struct text *text, const struct coredump_frame *frame);
/* "(8,0,0)" */
void coredump_add_index(struct text *text, struct coredump_dim3 index);
/* "16 x 1 x 1" */
void coredump_add_shape(struct text *text, struct coredump_dim3 shape);
/* Bytes of an argument: as a number if there are 1, 2, 4 or 8 of them. Long ones are cut. */
void coredump_add_value(struct text *text, const uint8_t *bytes, uint64_t count, uint64_t most);
/* The place of an exception, or NULL. */
const struct coredump_place *coredump_place_of(const struct coredump *dump,
                                               const struct coredump_exception *exception);
/* The name of the kernel that an exception is of. */
struct coredump_name coredump_kernel_of(const struct coredump *dump,
                                        const struct coredump_exception *exception);

/* coredump_first_line.c */
/* "block (8,0,0), thread (100,0,0) and 1 more thread of its warp" */
void coredump_add_threads(const struct coredump_exception *exception, enum report_language language,
                          struct text *text);
/* " at kernels.cu:34"; of a lane's pc, which may be past the instruction: ", stopped at ..." */
void coredump_add_where(const struct coredump *dump, const struct coredump_exception *exception,
                        enum report_language language, struct text *text);
void coredump_add_first_line(const struct coredump *dump, enum report_language language,
                             struct text *text);

/* coredump_gaps.c: a line for each thing that the dump does not decide. */
void coredump_add_gaps(const struct coredump *dump, enum report_language language,
                       struct text *text);

#endif
