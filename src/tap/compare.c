/* compare.c - compares two folders of taps: what is equal, and which tensor is the first that is
 * not. */
#include "tap/tap.h"

#include "tensor/npy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const verdict_names[] = {
    [TAP_SAME] = "same",           [TAP_DIFFERS] = "differs",       [TAP_SHAPE] = "shape",
    [TAP_ONLY_LEFT] = "only left", [TAP_ONLY_RIGHT] = "only right",
};
_Static_assert(COUNT_OF(verdict_names) == TAP_VERDICT_COUNT, "every verdict has a name");

const char *tap_verdict_name(enum tap_verdict verdict)
{
    ASSERT((unsigned)verdict < TAP_VERDICT_COUNT);
    return verdict_names[verdict];
}

/* ---- Two arrays ----------------------------------------------------------------------------- */

/* Infinite if one of them is not a number, or if they are different infinities. */
static double distance(float a, float b)
{
    if (a == b || (isnan(a) && isnan(b)))
        return 0;
    double difference = fabs((double)a - (double)b);
    return isnan(difference) ? (double)INFINITY : difference;
}

static void compare_values(const struct npy *left, const struct npy *right, double tolerance,
                           struct tap_difference *difference)
{
    double squares = 0, power = 0;
    bool any = false;
    difference->count = left->count;
    for (uint64_t i = 0; i < left->count; i++) {
        double apart = distance(left->values[i], right->values[i]);
        if (isfinite(left->values[i]))
            power += (double)left->values[i] * (double)left->values[i];
        if (apart == 0)
            continue;
        squares += apart * apart;
        if (!any || apart > difference->largest) {
            difference->largest = apart;
            difference->at = i;
            difference->left = left->values[i];
            difference->right = right->values[i];
        }
        any = true;
    }
    difference->error = !any ? 0 : power > 0 ? squares / power : (double)INFINITY;
    difference->verdict = difference->error <= tolerance ? TAP_SAME : TAP_DIFFERS;
}

static enum status open_entry(const struct tap_index *index, const struct tap_entry *entry,
                              struct npy *npy, struct error *err)
{
    char path[4096];
    *npy = (struct npy){ 0 };
    int length = snprintf(path, sizeof(path), "%s/%s", index->folder, entry->file);
    if (length < 0 || (size_t)length >= sizeof(path))
        return error_set(err, STATUS_LIMIT, "%s: expected a shorter name of a folder",
                         index->folder);
    return npy_open(npy, path, err);
}

static enum status compare_pair(const struct tap_index *left, const struct tap_entry *left_entry,
                                const struct tap_index *right, const struct tap_entry *right_entry,
                                double tolerance, struct tap_difference *difference,
                                struct error *err)
{
    struct npy one, other = { 0 };
    enum status status = open_entry(left, left_entry, &one, err);
    if (!status)
        status = open_entry(right, right_entry, &other, err);
    if (!status && !shape_equal(&one.shape, &other.shape)) {
        difference->verdict = TAP_SHAPE;
        difference->count = one.count;
        difference->largest = difference->error = (double)INFINITY;
    } else if (!status) {
        compare_values(&one, &other, tolerance, difference);
    }
    npy_release(&one);
    npy_release(&other);
    return status;
}

/* ---- Two folders ---------------------------------------------------------------------------- */

static int by_place(const void *left, const void *right)
{
    const struct tap_place *a = &(*(const struct tap_entry *const *)left)->place;
    const struct tap_place *b = &(*(const struct tap_entry *const *)right)->place;
    const int32_t keys[][2] = { { a->step, b->step },
                                { a->layer, b->layer },
                                { a->sequence, b->sequence },
                                { a->head, b->head } };
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        if (keys[i][0] != keys[i][1])
            return keys[i][0] < keys[i][1] ? -1 : 1;
    return strcmp(a->tensor, b->tensor);
}

/* Sorts the entries of an index by place. STATUS_BAD_FILE if two have the same place. */
static enum status sort_entries(const struct tap_index *index, const struct tap_entry ***ret_sorted,
                                struct error *err)
{
    const struct tap_entry **sorted = calloc(index->count ? index->count : 1, sizeof(*sorted));
    if (!sorted)
        return error_set(err, STATUS_NO_MEMORY, "no memory to compare taps");
    for (size_t i = 0; i < index->count; i++)
        sorted[i] = &index->entries[i];
    qsort(sorted, index->count, sizeof(*sorted), by_place);
    for (size_t i = 1; i < index->count; i++) {
        if (by_place(&sorted[i - 1], &sorted[i]) == 0) {
            char place[TAP_PLACE_TEXT_BYTES];
            tap_place_text(&sorted[i]->place, place);
            free(sorted);
            return error_set(err, STATUS_BAD_FILE,
                             "%s/index.json: expected each tap once, found %s twice", index->folder,
                             place);
        }
    }
    *ret_sorted = sorted;
    return STATUS_OK;
}

static const struct tap_entry *find(const struct tap_entry *const *sorted, size_t count,
                                    const struct tap_entry *entry)
{
    const struct tap_entry *const *found = bsearch(&entry, sorted, count, sizeof(*sorted),
                                                   by_place);
    return found ? *found : NULL;
}

/* Different values or shapes come before tensors that one run did not tap. */
static void find_first(struct tap_comparison *comparison)
{
    bool values = false;
    comparison->first = comparison->count;
    for (size_t i = comparison->count; i-- > 0;) {
        enum tap_verdict verdict = comparison->differences[i].verdict;
        bool comparable = verdict == TAP_DIFFERS || verdict == TAP_SHAPE;
        comparison->different_count += verdict != TAP_SAME;
        if (comparable || (verdict != TAP_SAME && !values))
            comparison->first = i;
        values = values || comparable;
    }
}

static enum status compare_all(const struct tap_index *left, const struct tap_index *right,
                               const struct tap_entry *const *left_sorted,
                               const struct tap_entry *const *right_sorted, double tolerance,
                               struct tap_comparison *comparison, struct error *err)
{
    for (size_t i = 0; i < left->count; i++) {
        struct tap_difference *difference = &comparison->differences[comparison->count++];
        const struct tap_entry *entry = &left->entries[i];
        const struct tap_entry *other = find(right_sorted, right->count, entry);
        *difference = (struct tap_difference){ .place = entry->place, .verdict = TAP_ONLY_LEFT };
        if (other)
            TRY(compare_pair(left, entry, right, other, tolerance, difference, err));
    }
    for (size_t i = 0; i < right->count; i++) {
        const struct tap_entry *entry = &right->entries[i];
        if (!find(left_sorted, left->count, entry))
            comparison->differences[comparison->count++] =
                (struct tap_difference){ .place = entry->place, .verdict = TAP_ONLY_RIGHT };
    }
    find_first(comparison);
    return STATUS_OK;
}

enum status tap_compare(const struct tap_index *left, const struct tap_index *right,
                        double tolerance, struct tap_comparison *ret, struct error *err)
{
    const struct tap_entry **left_sorted = NULL, **right_sorted = NULL;
    *ret = (struct tap_comparison){ 0 };
    ret->differences = calloc(left->count + right->count + 1, sizeof(*ret->differences));
    enum status status = ret->differences
                             ? sort_entries(left, &left_sorted, err)
                             : error_set(err, STATUS_NO_MEMORY, "no memory to compare taps");
    if (!status)
        status = sort_entries(right, &right_sorted, err);
    if (!status)
        status = compare_all(left, right, left_sorted, right_sorted, tolerance, ret, err);
    free(left_sorted);
    free(right_sorted);
    if (status)
        tap_comparison_release(ret);
    return status;
}

void tap_comparison_release(struct tap_comparison *comparison)
{
    free(comparison->differences);
    *comparison = (struct tap_comparison){ 0 };
}
