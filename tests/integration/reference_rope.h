/* reference_rope.h - rotary positions in float64, from the formulas alone. */
#ifndef GRETA_TESTS_REFERENCE_ROPE_H
#define GRETA_TESTS_REFERENCE_ROPE_H

#include "model/model.h"

/* Rotates a head by its position. factors divide the frequencies, or NULL; size multiplies what is
 * rotated, besides what the scaling does. */
void reference_rotate(const struct model_rope *rope, const double *factors, size_t position,
                      double size, double *head);

#endif
