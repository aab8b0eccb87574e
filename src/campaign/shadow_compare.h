/* shadow_compare.h - the same operand of two devices: how far apart, and where. */
#ifndef GRETA_CAMPAIGN_SHADOW_COMPARE_H
#define GRETA_CAMPAIGN_SHADOW_COMPARE_H

#include "campaign/shadow.h"

/* Sets row, column, both values and the error of the worst value; the rest of *place is left. Both
 * sides are dense rows of the view's shape and type. STATUS_UNSUPPORTED for a type that is no
 * number. */
MUST_CHECK enum status shadow_compare(const struct device_view *view, const uint8_t *device,
                                      const uint8_t *host, struct shadow_place *place,
                                      struct error *err);

#endif
