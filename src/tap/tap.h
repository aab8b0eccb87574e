/* tap.h - values taken out of a running model, as a folder of .npy arrays with an index.json that
 * names them in the order they were computed; and the comparison of two such folders.
 *
 * The index: {"format": "greta-taps", "version": 1, "truncated": bool, "taps": [{"file", "tensor",
 * "layer", "step", "sequence", "head", "shape", "dtype", "source_dtype", "stats": {"min", "max",
 * "mean", "nan", "inf"}}]}. layer, sequence and head are -1 if there is none; shape is NumPy's, the
 * slowest dimension first; dtype is "f4"; source_dtype is the type on the device. min, max and mean
 * are those of the finite values, null if there are none. */
#ifndef GRETA_TAP_TAP_H
#define GRETA_TAP_TAP_H

#include "base/status.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tap_stats {
    float least, most;       /* of the finite values; 0 if there are none */
    double mean;             /* of the finite values */
    uint64_t count;          /* of all values */
    uint64_t nan_count;      /* NaN */
    uint64_t infinite_count; /* infinities of either sign */
    uint64_t first_bad;      /* index of the first that is not finite; count if all are */
};

struct tap_stats tap_stats_of(const float *values, uint64_t count);

#define TAP_TENSOR_BYTES 32

/* Which values these are: two records are about the same tensor if these fields are equal. */
struct tap_place {
    char tensor[TAP_TENSOR_BYTES]; /* "ffn_down" */
    int32_t layer;                 /* -1: of the whole model */
    int32_t step;                  /* batch of the run, from 0 */
    int32_t sequence;              /* -1: rows of the whole batch */
    int32_t head;                  /* -1: all */
};

struct tap_record {
    struct tap_place place;
    struct shape shape;
    enum dtype source_dtype;
    struct tap_stats stats;
};

/* "layer 3, step 0, ffn_down": returns text, which has TAP_PLACE_TEXT_BYTES bytes. */
#define TAP_PLACE_TEXT_BYTES 128
const char *tap_place_text(const struct tap_place *place, char *text);

/* STATUS_OK if all values are finite; else STATUS_BAD_FILE with place, numbers, and where the first
 * is. */
MUST_CHECK enum status tap_check_finite(const struct tap_record *record, struct error *err);

/* ---- Writing -------------------------------------------------------------------------------- */

/* After this much no more values are written, and the index says so. */
#define TAP_FILE_LIMIT 20000u
#define TAP_BYTES_LIMIT ((uint64_t)8 << 30)

struct tap_writer;

/* Makes the folder; one that exists must be empty. */
MUST_CHECK enum status tap_writer_create(const char *folder, struct tap_writer **ret_writer,
                                         struct error *err);
MUST_CHECK enum status tap_writer_add(struct tap_writer *writer, const struct tap_record *record,
                                      const float *values, struct error *err);
/* Writes the index. A run that failed has an index of what there was until then. */
MUST_CHECK enum status tap_writer_finish(struct tap_writer *writer, struct error *err);
bool tap_writer_is_truncated(const struct tap_writer *writer);
size_t tap_writer_count(const struct tap_writer *writer); /* files written */
void tap_writer_destroy(struct tap_writer *writer);       /* NULL is fine */

/* ---- Reading -------------------------------------------------------------------------------- */

struct tap_entry {
    struct tap_place place;
    char file[192]; /* a plain name in the folder */
};

struct tap_index {
    char *folder;
    struct tap_entry *entries; /* in the order they were computed */
    size_t count;
    bool truncated;
};

/* Accepts damaged and hostile files: STATUS_BAD_FILE says what was expected. */
MUST_CHECK enum status tap_index_read(struct tap_index *index, const char *folder,
                                      struct error *err);
void tap_index_release(struct tap_index *index);

/* ---- Comparing ------------------------------------------------------------------------------ */

enum tap_verdict {
    TAP_SAME,      /* within the tolerance */
    TAP_DIFFERS,   /* values */
    TAP_SHAPE,     /* shapes */
    TAP_ONLY_LEFT, /* not in the other folder */
    TAP_ONLY_RIGHT,
    TAP_VERDICT_COUNT
};

const char *tap_verdict_name(enum tap_verdict verdict); /* "same", "differs", ... */

struct tap_difference {
    struct tap_place place;
    enum tap_verdict verdict;
    uint64_t count;    /* of values */
    double largest;    /* absolute difference; NaN against a number counts as infinite */
    uint64_t at;       /* index of the largest */
    double error;      /* normalised: sum of squared differences over sum of squares of the left */
    float left, right; /* the values there */
};

struct tap_comparison {
    struct tap_difference *differences; /* in the left folder's order, then what only right has */
    size_t count;
    size_t different_count;
    size_t first; /* index of the first of other values or shape; else of the first that is not
                     TAP_SAME; else count */
};

/* Two values are the same if their normalised error is at most the tolerance; two NaN are the same.
 */
MUST_CHECK enum status tap_compare(const struct tap_index *left, const struct tap_index *right,
                                   double tolerance, struct tap_comparison *ret, struct error *err);
void tap_comparison_release(struct tap_comparison *comparison);

#endif
