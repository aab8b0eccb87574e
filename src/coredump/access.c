/* access.c - what an open dump holds, and the names of its numbers. */
#include "coredump/coredump_impl.h"

/* ---- Names ---------------------------------------------------------------------------------- */

static const char *const exception_names[] = {
    "unknown",
    "lane-illegal-address",
    "lane-user-stack-overflow",
    "device-hardware-stack-overflow",
    "warp-illegal-instruction",
    "warp-out-of-range-address",
    "warp-misaligned-address",
    "warp-invalid-address-space",
    "warp-invalid-pc",
    "warp-hardware-stack-overflow",
    "device-illegal-address",
    "lane-misaligned-address",
    "warp-assert",
    "lane-syscall-error",
    "warp-illegal-address",
    "lane-nonmigratable-atomic",
    "lane-invalid-atomic",
    "cluster-out-of-range-address",
    "cluster-block-not-present",
    "warp-stack-canary",
    "tensor-memory-access",
    "tensor-memory-leak",
    "newer-driver",
};
_Static_assert(COUNT_OF(exception_names) == COREDUMP_EXCEPTION_COUNT, "every exception has a name");

static const char *const status_names[] = { "invalid",  "pending",    "active",
                                            "sleeping", "terminated", "undetermined" };
_Static_assert(COUNT_OF(status_names) == COREDUMP_GRID_STATUS_COUNT, "every status has a name");

static const char *const type_names[] = { "unknown", "system", "application" };
_Static_assert(COUNT_OF(type_names) == COREDUMP_KERNEL_TYPE_COUNT, "every type has a name");

static const char *const naming_names[] = { "no-image", "not-found", "by-address", "only-fit",
                                            "candidates" };
_Static_assert(COUNT_OF(naming_names) == COREDUMP_NAMING_COUNT, "every naming has a name");

static const char *const lines_names[] = { "found",     "no-function", "no-line-table", "not-here",
                                           "ambiguous", "damaged",     "limit" };
_Static_assert(COUNT_OF(lines_names) == COREDUMP_LINES_COUNT, "every result has a name");

const char *coredump_exception_name(uint32_t kind)
{
    return kind < COREDUMP_EXCEPTION_COUNT ? exception_names[kind] : "unknown";
}

const char *coredump_grid_status_name(uint32_t status)
{
    return status < COREDUMP_GRID_STATUS_COUNT ? status_names[status] : "unknown";
}

const char *coredump_kernel_type_name(uint32_t type)
{
    return type < COREDUMP_KERNEL_TYPE_COUNT ? type_names[type] : "unknown";
}

const char *coredump_naming_name(enum coredump_naming naming)
{
    ASSERT((unsigned)naming < COREDUMP_NAMING_COUNT);
    return naming_names[naming];
}

const char *coredump_lines_name(enum coredump_lines lines)
{
    ASSERT((unsigned)lines < COREDUMP_LINES_COUNT);
    return lines_names[lines];
}

bool coredump_name_is_known(const struct coredump_name *name)
{
    return name->naming == COREDUMP_NAME_BY_ADDRESS || name->naming == COREDUMP_NAME_ONLY_FIT;
}

/* ---- Parts ---------------------------------------------------------------------------------- */

const struct coredump_info *coredump_info(const struct coredump *dump)
{
    return &dump->info;
}

size_t coredump_device_count(const struct coredump *dump)
{
    return dump->device_count;
}

const struct coredump_device *coredump_device_at(const struct coredump *dump, size_t index)
{
    ASSERT(index < dump->device_count);
    return &dump->devices[index];
}

size_t coredump_context_count(const struct coredump *dump)
{
    return dump->context_count;
}

const struct coredump_context *coredump_context_at(const struct coredump *dump, size_t index)
{
    ASSERT(index < dump->context_count);
    return &dump->contexts[index];
}

size_t coredump_grid_count(const struct coredump *dump)
{
    return dump->grid_count;
}

const struct coredump_grid *coredump_grid_at(const struct coredump *dump, size_t index)
{
    ASSERT(index < dump->grid_count);
    return &dump->grids[index];
}

size_t coredump_exception_count(const struct coredump *dump, uint64_t *ret_total)
{
    *ret_total = dump->exception_total;
    return dump->exception_count;
}

const struct coredump_exception *coredump_exception_at(const struct coredump *dump, size_t index)
{
    ASSERT(index < dump->exception_count);
    return &dump->exceptions[index];
}

size_t coredump_place_count(const struct coredump *dump)
{
    return dump->place_count;
}

const struct coredump_place *coredump_place_at(const struct coredump *dump, size_t index)
{
    ASSERT(index < dump->place_count);
    return &dump->places[index];
}

size_t coredump_bad_image_count(const struct coredump *dump)
{
    return dump->bad_image_count;
}

const char *coredump_bad_image_reason(const struct coredump *dump)
{
    return dump->bad_image.text;
}
