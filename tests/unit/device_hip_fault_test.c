/* device_hip_fault_test.c - faults as the runtime below HIP reports them: with a library that plays
 * it (tests/fake_gpu/fake_hsa.c), whose folder is the argument; without it, that it is missing. */
#include "test.h"

#include "device/hip/hip_fault.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#ifdef GRETA_HAS_HSA_H
#include <hsa/hsa_ext_amd.h>
_Static_assert(offsetof(struct hsa_event, type) == offsetof(hsa_amd_event_t, event_type), "as is");
_Static_assert(offsetof(struct hsa_event, data) == offsetof(hsa_amd_event_t, memory_fault),
               "as is");
_Static_assert(offsetof(struct hsa_memory_fault, address) ==
                   offsetof(hsa_amd_gpu_memory_fault_info_t, virtual_address),
               "as in the vendor's header");
_Static_assert(offsetof(struct hsa_memory_fault, reasons) ==
                   offsetof(hsa_amd_gpu_memory_fault_info_t, fault_reason_mask),
               "as in the vendor's header");
_Static_assert(sizeof(((hsa_amd_event_t *)0)->event_type) == sizeof(int), "as is");
_Static_assert(HSA_AMD_GPU_MEMORY_FAULT_EVENT == 0 && HSA_STATUS_SUCCESS == 0, "as is");
_Static_assert(HSA_AMD_MEMORY_FAULT_READ_ONLY == 1 << 1 && HSA_AMD_MEMORY_FAULT_SRAMECC == 1 << 6,
               "the reasons are numbered so");
#endif

static const char *stub;

static void test_absent(void **state)
{
    (void)state;
    char words[256] = "";
    uint64_t address;
    if (stub || dlopen("libhsa-runtime64.so.1", RTLD_LAZY))
        skip(); /* the real one needs its hardware */
    assert_false(hip_fault_listen(words, sizeof(words)));
    check_contains("why", words, "libhsa-runtime64");
    assert_false(hip_fault_find(&address, words, sizeof(words)));
}

static void test_told(void **state)
{
    (void)state;
    char words[256] = "";
    uint64_t address = 0;
    if (!stub)
        skip();
    assert_true(hip_fault_listen(words, sizeof(words)));
    assert_true(hip_fault_listen(words, sizeof(words))); /* it takes one handler; once is enough */
    void *library = dlopen(stub, RTLD_LAZY | RTLD_NOLOAD);
    assert_non_null(library);
    int (*raise_fault)(int, uint64_t, uint32_t);
    *(void **)&raise_fault = dlsym(library, "fake_hsa_raise");
    assert_non_null(raise_fault);
    assert_false(hip_fault_find(&address, words, sizeof(words)));
    assert_int_equal(raise_fault(1, 0x5000, 1), 0); /* another kind of event */
    assert_false(hip_fault_find(&address, words, sizeof(words)));
    assert_int_equal(raise_fault(0, 0x7f0012345000, 1 << 1), 0); /* 0: the process lives on */
    assert_int_equal(raise_fault(0, 0x1000, 1), 0);
    assert_true(hip_fault_find(&address, words, sizeof(words)));
    assert_true(address == 0x7f0012345000); /* the first */
    assert_string_equal(words, "a write to memory to be read");
}

int main(int argument_count, char **arguments)
{
    stub = argument_count > 1 ? arguments[1] : NULL;
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_absent),
                                        cmocka_unit_test(test_told) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
