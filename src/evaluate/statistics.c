/* statistics.c - means with their errors, and percentiles. */
#include "evaluate/evaluate_impl.h"

#include <math.h>

void evaluate_moments_add(struct evaluate_moments *moments, double value)
{
    double distance = value - moments->mean;
    moments->count++;
    moments->mean += distance / (double)moments->count;
    moments->squares += distance * (value - moments->mean);
}

struct evaluate_mean evaluate_moments_mean(const struct evaluate_moments *moments)
{
    double count = (double)moments->count;
    return (struct evaluate_mean){
        moments->mean,
        moments->count > 1 ? sqrt(moments->squares / (count - 1) / count) : 0,
    };
}

double evaluate_percentile(const float *sorted, size_t count, double share)
{
    double at = share * (double)(count - 1);
    size_t below = (size_t)at;
    if (below + 1 >= count)
        return sorted[count - 1];
    return sorted[below] + (at - (double)below) * ((double)sorted[below + 1] - sorted[below]);
}
