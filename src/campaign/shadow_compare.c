/* shadow_compare.c - see shadow_compare.h. An error is relative to the largest value of its row on
 * the host; of a row that is all but zero, to a thousandth of the largest of all. */
#include "campaign/shadow_compare.h"

#include "tensor/quant.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_ROW 1e-3
#define TINY 1e-30

static void decode(enum dtype dtype, const uint8_t *bytes, size_t count, float *values)
{
    if (dtype == DTYPE_I32)
        for (size_t i = 0; i < count; i++) {
            int32_t value;
            memcpy(&value, bytes + i * sizeof(value), sizeof(value));
            values[i] = (float)value;
        }
    else
        quant_decode_row(dtype, bytes, count, values);
}

static double largest(const float *values, size_t count)
{
    double most = 0;
    for (size_t i = 0; i < count; i++)
        if (isfinite(values[i]) && fabs((double)values[i]) > most)
            most = fabs((double)values[i]);
    return most;
}

double shadow_number(double value)
{
    return isnan(value)                 ? SHADOW_NOT_FINITE
           : value > SHADOW_NOT_FINITE  ? SHADOW_NOT_FINITE
           : value < -SHADOW_NOT_FINITE ? -SHADOW_NOT_FINITE
                                        : value;
}

static double error_of(float device, float host, double scale)
{
    if (isfinite(device) && isfinite(host))
        return fabs((double)device - (double)host) / scale;
    bool same = (isnan(device) && isnan(host)) || device == host;
    return same ? 0 : SHADOW_NOT_FINITE;
}

static void compare_row(const float *device, const float *host, size_t count, double scale,
                        uint64_t row, struct shadow_place *place)
{
    for (size_t i = 0; i < count; i++) {
        double error = error_of(device[i], host[i], scale);
        if (error <= place->error)
            continue;
        place->error = error;
        place->row = row;
        place->column = i;
        place->device = (double)device[i];
        place->host = (double)host[i];
    }
}

enum status shadow_compare(const struct device_view *view, const uint8_t *device,
                           const uint8_t *host, struct shadow_place *place, struct error *err)
{
    uint64_t rows, row_bytes;
    size_t count = (size_t)view->shape.dims[0];
    if ((view->dtype != DTYPE_I32 && !quant_can_decode(view->dtype)) ||
        !shape_row_count(&view->shape, &rows) || !dtype_row_bytes(view->dtype, count, &row_bytes))
        return error_set(err, STATUS_UNSUPPORTED, "%s: expected a type with values to compare",
                         dtype_name(view->dtype));
    float *values = malloc(2 * count * sizeof(*values));
    if (!values)
        return error_set(err, STATUS_NO_MEMORY, "no memory to compare a row");
    double whole = 0;
    place->error = 0;
    for (uint64_t row = 0; row < rows; row++) {
        decode(view->dtype, host + row * row_bytes, count, values);
        double most = largest(values, count);
        whole = most > whole ? most : whole;
    }
    for (uint64_t row = 0; row < rows; row++) {
        if (memcmp(device + row * row_bytes, host + row * row_bytes, (size_t)row_bytes) == 0)
            continue;
        decode(view->dtype, device + row * row_bytes, count, values);
        decode(view->dtype, host + row * row_bytes, count, values + count);
        double scale = largest(values + count, count);
        scale = scale > SMALL_ROW * whole ? scale : SMALL_ROW * whole;
        compare_row(values, values + count, count, scale > TINY ? scale : TINY, row, place);
    }
    free(values);
    return STATUS_OK;
}
