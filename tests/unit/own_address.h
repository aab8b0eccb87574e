/* own_address.h - where this program's functions are in its file. */
#ifndef GRETA_TESTS_OWN_ADDRESS_H
#define GRETA_TESTS_OWN_ADDRESS_H

#if !defined(_GNU_SOURCE)
#error "dl_iterate_phdr needs _GNU_SOURCE"
#endif

#include <link.h>
#include <stdint.h>

static inline int take_first(struct dl_phdr_info *info, size_t bytes, void *context)
{
    (void)bytes;
    *(uint64_t *)context = info->dlpi_addr;
    return 1;
}

/* The address of a function in this process less what its loader added. */
static inline uint64_t address_in_file(const void *function)
{
    uint64_t added = 0;
    dl_iterate_phdr(take_first, &added);
    return (uint64_t)(uintptr_t)function - added;
}

#endif
