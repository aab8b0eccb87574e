/* Bad accesses come back to whoever runs the code; a signal that a process sends ends it. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "test.h"

#include "base/fault.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void touch(void *context)
{
    *(volatile char *)context = 1;
}

static void send(void *context)
{
    raise(*(int *)context);
}

static void a_bad_access_comes_back(void **state)
{
    (void)state;
    struct fault_info info;
    void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(page != MAP_FAILED);
    fault_install();
    assert_false(fault_run(touch, page, &info));
    assert_true(info.address_known);
    assert_int_equal(info.address, (uintptr_t)page);
    munmap(page, 4096);
}

/* Neither a fault of the code that runs nor nothing at all. */
static void a_signal_that_is_sent_ends_the_process(void **state)
{
    (void)state;
    static const int signals[] = { SIGSEGV, SIGBUS };
    for (size_t i = 0; i < 2 * COUNT_OF(signals); i++) {
        int number = signals[i / 2], status;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct rlimit none = { 0, 0 };
            struct fault_info info;
            setrlimit(RLIMIT_CORE, &none);
            signal(SIGSEGV, SIG_DFL); /* of the test library, or a sanitizer */
            signal(SIGBUS, SIG_DFL);
            fault_install();
            if (i % 2)
                fault_run(send, &number, &info);
            else
                raise(number);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), number);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bad_access_comes_back),
        cmocka_unit_test(a_signal_that_is_sent_ends_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
