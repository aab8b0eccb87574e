/* device_gpu_log_test.c - faults of GPUs in the kernel's log: what is read of lines as drivers
 * write them, of damaged ones, and of a log that is read while it grows. */
#include "test.h"

#include "device/gpu/gpu_log.h"

#include "temp_folder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void feed(struct gpu_log *log, const char *line)
{
    gpu_log_feed(log, line, strlen(line));
}

/* ---- Lines ---------------------------------------------------------------------------------- */

#define XID_HEAD "4,463,230054863,c;NVRM: Xid (PCI:0000:00:06): 31, "
static const struct {
    const char *line;
    bool known;
    uint64_t address;
    int64_t process_id;
    enum gpu_log_access access;
    const char *engine;
    bool is_copy;
} lines[] = {
    { XID_HEAD
      "pid=23420, name=a, channel 0x0000000a, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC7 "
      "GPCCLIENT_T1_15 faulted @ 0x7fad_e69ec000. Fault is of type FAULT_PDE "
      "ACCESS_TYPE_VIRT_READ",
      true, UINT64_C(0x7fade69ec000), 23420, GPU_LOG_READ, "GRAPHICS", false },
    { XID_HEAD "pid=7, name=a, MMU Fault: ENGINE GRAPHICS GPC1 faulted @ 0x3_20400000. Fault is of "
               "type FAULT_PDE ACCESS_TYPE_VIRT_WRITE",
      true, UINT64_C(0x320400000), 7, GPU_LOG_WRITE, "GRAPHICS", false },
    { XID_HEAD "pid='<unknown>', name=<unknown>, Ch 00000008, intr 10000000. MMU Fault: ENGINE CE2 "
               "HUBCLIENT_CE0 faulted @ 0x0_00010000. Fault is of type FAULT_PTE "
               "ACCESS_TYPE_VIRT_ATOMIC",
      true, 0x10000, -1, GPU_LOG_WRITE, "CE2", true },
    /* Less than all. */
    { XID_HEAD "MMU Fault: faulted @ 0xdeadbeef000", true, UINT64_C(0xdeadbeef000), -1,
      GPU_LOG_UNKNOWN, "", false },
    /* Other errors, other drivers, and damage. */
    { "NVRM: Xid (PCI:0000:00:06): 13, pid=7, ENGINE GRAPHICS faulted @ 0x1_00000000", false, 0, 0,
      0, "", false },
    { XID_HEAD "pid=7, MMU Fault: ENGINE GRAPHICS", false, 0, 0, 0, "", false },
    { XID_HEAD "faulted @ 0x", false, 0, 0, 0, "", false },
    { XID_HEAD "faulted @ 0x1_", false, 0, 0, 0, "", false },
    { XID_HEAD "faulted @ 0x1_123456789", false, 0, 0, 0, "", false },
    { XID_HEAD "faulted @ 0x1ffffffff_00000000", false, 0, 0, 0, "", false },
    { XID_HEAD "faulted @ 0xfffffffffffffffffff", false, 0, 0, 0, "", false },
    { XID_HEAD "pid=99999999999999999999, faulted @ 0x1_0", true, UINT64_C(0x100000000), -1,
      GPU_LOG_UNKNOWN, "", false },
    { "NVRM: Xid (", false, 0, 0, 0, "", false },
    { "amdgpu", false, 0, 0, 0, "", false },
    { "", false, 0, 0, 0, "", false },
};

static void test_lines(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        struct gpu_log log = { 0 };
        feed(&log, lines[i].line);
        if (log.fault.known != lines[i].known)
            fail_msg("%s: found %d", lines[i].line, log.fault.known);
        assert_int_equal(log.fault_count, lines[i].known);
        if (!lines[i].known)
            continue;
        assert_true(log.fault.address == lines[i].address);
        assert_int_equal(log.fault.process_id, lines[i].process_id);
        assert_int_equal(log.fault.access, lines[i].access);
        assert_string_equal(log.fault.engine, lines[i].engine);
        assert_int_equal(log.fault.is_copy, lines[i].is_copy);
    }
}

/* Every cut of a good line, and every byte of it changed: no crash, and nothing that is not there.
 */
static void test_damage(void **state)
{
    (void)state;
    char line[400];
    size_t length = strlen(lines[0].line);
    for (size_t cut = 0; cut <= length; cut++) {
        struct gpu_log log = { 0 };
        gpu_log_feed(&log, lines[0].line, cut);
        assert_true(!log.fault.known || log.fault.address <= UINT64_C(0x7fade69ec000));
    }
    for (size_t at = 0; at < length; at++) {
        for (int byte = 0; byte < 256; byte += 5) {
            struct gpu_log log = { 0 };
            memcpy(line, lines[0].line, length);
            line[at] = (char)byte;
            gpu_log_feed(&log, line, length);
        }
    }
}

static const char *const amd_lines[] = {
    "amdgpu 0000:03:00.0: amdgpu: [gfxhub0] no-retry page fault (src_id:0 ring:24 vmid:8 "
    "pasid:32770, for process greta pid 4711 thread greta pid 4711)",
    "amdgpu 0000:03:00.0: amdgpu:   in page starting at address 0x00007f1234560000 from IH client "
    "0x1b (UTCL2)",
    "amdgpu 0000:03:00.0: amdgpu: VM_L2_PROTECTION_FAULT_STATUS:0x00841051",
    "amdgpu 0000:03:00.0: amdgpu: \t Faulty UTCL2 client ID: TCP (0x8)",
    "amdgpu 0000:03:00.0: amdgpu: \t MORE_FAULTS: 0x1",
    "amdgpu 0000:03:00.0: amdgpu: \t RW: 0x1",
};

static void test_amdgpu(void **state)
{
    (void)state;
    struct gpu_log log = { 0 };
    for (size_t i = 0; i < COUNT_OF(amd_lines); i++)
        feed(&log, amd_lines[i]);
    assert_true(log.fault.known);
    assert_int_equal(log.fault_count, 1);
    assert_true(log.fault.address == UINT64_C(0x7f1234560000));
    assert_int_equal(log.fault.process_id, 4711);
    assert_string_equal(log.fault.engine, "TCP");
    assert_int_equal(log.fault.access, GPU_LOG_WRITE);
    assert_false(log.fault.is_copy);
    /* The next one; the process on a line of its own, as newer drivers write it; a copy engine. */
    feed(&log, "amdgpu 0000:03:00.0: amdgpu: [mmhub0] no-retry page fault (src_id:0 ring:40 vmid:1 "
               "pasid:5)");
    assert_false(log.fault.known);
    feed(&log, "amdgpu 0000:03:00.0: amdgpu:  Process greta pid 12 thread greta pid 12)");
    feed(&log, amd_lines[1]);
    feed(&log, "amdgpu 0000:03:00.0: amdgpu: \t Faulty UTCL2 client ID: SDMA0 (0x0)");
    feed(&log, "amdgpu 0000:03:00.0: amdgpu: \t RW: 0x0");
    assert_int_equal(log.fault_count, 2);
    assert_int_equal(log.fault.process_id, 12);
    assert_true(log.fault.is_copy);
    assert_int_equal(log.fault.access, GPU_LOG_READ);
}

/* ---- Reading -------------------------------------------------------------------------------- */

static void add_line(const char *path, const char *format, int process_id)
{
    FILE *file = fopen(path, "a");
    assert_non_null(file);
    fprintf(file, format, process_id);
    fputc('\n', file);
    fclose(file);
}

#define LOGGED                                                                                     \
    "6,1,2,-;NVRM: Xid (PCI:0): 31, pid=%d, name=a, MMU Fault: ENGINE GRAPHICS faulted @ 0x1_"

static void test_reader(void **state)
{
    (void)state;
    struct temp_folder folder;
    struct gpu_log_reader reader;
    struct gpu_log_fault fault;
    char words[160];
    temp_folder_init(&folder);
    struct temp_path path = temp_folder_path(&folder, "kmsg");
    add_line(path.text, LOGGED "00001000", getpid()); /* before we came */
    gpu_log_open(&reader, path.text);
    assert_false(gpu_log_find(&reader, &fault, words, sizeof(words)));
    assert_string_equal(words, "the kernel log has no fault");
    add_line(path.text, "6,1,2,-;usb 1-1: something else%d", 1);
    add_line(path.text, LOGGED "00002000", 1); /* another process */
    add_line(path.text, LOGGED "00003000", getpid());
    add_line(path.text, LOGGED "00004000", getpid());
    assert_true(gpu_log_find(&reader, &fault, words, sizeof(words)));
    assert_true(fault.address == UINT64_C(0x100003000)); /* the first of ours */
    gpu_log_close(&reader);
    gpu_log_close(&reader); /* twice is fine */
    temp_folder_release(&folder);
}

static void test_unreadable(void **state)
{
    (void)state;
    struct gpu_log_reader reader;
    struct gpu_log_fault fault;
    char words[160];
    gpu_log_open(&reader, "/nowhere/kmsg");
    assert_int_equal(reader.descriptor, -1);
    assert_false(gpu_log_find(&reader, &fault, words, sizeof(words)));
    check_contains("why", words, strerror(ENOENT));
    gpu_log_close(&reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),      cmocka_unit_test(test_damage),
        cmocka_unit_test(test_amdgpu),     cmocka_unit_test(test_reader),
        cmocka_unit_test(test_unreadable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
