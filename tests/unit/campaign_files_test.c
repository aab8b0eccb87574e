/* campaign_files_test.c - jobs and results as files, damaged ones included; locks; hashes. */
#include "test.h"

#include "campaign/child.h"
#include "campaign/files.h"
#include "campaign/lock.h"
#include "temp_folder.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_job_round_trip(void **state)
{
    (void)state;
    struct temp_folder folder;
    struct error err;
    temp_folder_init(&folder);
    struct temp_path path = temp_folder_path(&folder, "job.json");
    struct job job = { .label = "B",
                       .device = "host",
                       .model = "m.gguf",
                       .inject = "rope-position@layer=2",
                       .flight = "B.flight",
                       .results = "B.jsonl",
                       .log = "B.log",
                       .prompt = "Hello \"there\"\n",
                       .kv_type = "q8_0",
                       .level = AUDIT_VERIFY,
                       .d2h_mode = DEVICE_D2H_EVENT,
                       .work = JOB_INFER | JOB_STREAMS,
                       .iterations = 50,
                       .streams_interval = 5,
                       .copies = 9,
                       .seed = UINT64_MAX,
                       .hang_limit_ns = 1234567890123,
                       .auditor_pid = 77,
                       .stress = { true, { 1, 2 }, { 3, 4 }, { 5, 6 }, { 7, 8 }, { 9, 10 } },
                       .serialise = true,
                       .single_stream = true,
                       .pageable = true,
                       .no_guards = true,
                       .no_live = true,
                       .check_weights = true,
                       .kill_at_end = true,
                       .chunk = 11,
                       .token_limit = UINT32_MAX,
                       .context = 13,
                       .batch = 14,
                       .threads = 15,
                       .ignore_end = true,
                       .sampling = { 0.5f, 16, 0.25f, 0.125f, 2, 3, 4, 17, 18 } };
    struct job back;
    CHECK_OK(job_write(&job, path.text, &err), &err);
    CHECK_OK(job_read(path.text, &back, &err), &err);
    json_t *one = job_to_json(&job), *other = job_to_json(&back);
    assert_true(json_equal(one, other));
    assert_int_equal(back.seed, UINT64_MAX);
    assert_int_equal(back.stress.on, job.stress.on);
    /* The ranges have no padding; the flag before them has. */
    assert_memory_equal(&back.stress.streams, &job.stress.streams,
                        sizeof(job.stress) - offsetof(struct job_stress, streams));
    assert_memory_equal(&back.sampling, &job.sampling, sizeof(job.sampling));
    json_decref(one);
    json_decref(other);
    job_release(&back);
    temp_folder_release(&folder);
}

static void test_damaged_jobs(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "7",
        "{}",
        "{\"label\": 7}",
        "{\"label\": \"a\", \"label\": \"b\"}",
        "{\"label\":\"a\",\"device\":\"host\",\"results\":\"r\",\"level\":\"loud\",\"d2h_mode\":"
        "\"ticket\"}",
        "{\"label\":\"a\",\"device\":\"host\",\"results\":\"r\",\"level\":\"log\",\"d2h_mode\":"
        "\"none\"}",
    };
    struct temp_folder folder;
    struct error err;
    struct job job;
    temp_folder_init(&folder);
    struct temp_path path = temp_folder_path(&folder, "job.json");
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        temp_folder_write(&folder, "job.json", bad[i], strlen(bad[i]));
        CHECK_FAILS(job_read(path.text, &job, &err), STATUS_BAD_FILE, &err);
        check_contains(bad[i], err.text, "job.json");
    }
    temp_folder_release(&folder);
}

/* Lines of every kind, one of another program, and one the process died in. */
static void test_results(void **state)
{
    (void)state;
    static const char lines[] =
        "{\"kind\":\"start\",\"device_name\":\"A device\",\"device_memory\":5}\n"
        "{\"kind\":\"ready\"}\n"
        "not json\n"
        "{\"kind\":\"run\",\"work\":\"infer\",\"ms\":2.5,\"tokens\":3}\n"
        "{\"kind\":\"run\",\"work\":\"streams\",\"ms\":1,\"status\":\"lost\",\"error\":\"first\"}\n"
        "{\"kind\":\"run\",\"work\":\"infer\",\"ms\":4,\"status\":\"lost\",\"error\":\"second\","
        "\"tokens\":2,\"launches\":9}\n"
        "{\"kind\":\"run\",\"work\":\"infer\",\"status\":\"lost\",\"error\":\"second\"}\n"
        "{\"kind\":\"run\",\"work\":\"streams\",\"status\":\"lost\",\"error\":\"second\"}\n"
        "{\"kind\":\"missing\",\"text\":\"no room\"}\n"
        "{\"kind\":\"planted\",\"planted\":true,\"op\":\"rope\",\"layer\":2,\"step\":3}\n"
        "{\"kind\":\"end\",\"peak_bytes\":11}";
    struct temp_folder folder;
    struct child_outcome outcome = { 0 };
    struct error err;
    temp_folder_init(&folder);
    temp_folder_write(&folder, "r.jsonl", lines, sizeof(lines) - 1);
    struct temp_path path = temp_folder_path(&folder, "r.jsonl");
    CHECK_OK(child_read_results(path.text, &outcome, &err), &err);
    assert_true(outcome.started && outcome.ready);
    assert_false(outcome.ended); /* its line was cut */
    assert_int_equal(outcome.done, 3);
    assert_int_equal(outcome.errors, 3); /* in the first only its streams failed */
    assert_int_equal(outcome.streams_done, 2);
    assert_int_equal(outcome.latency_count, 3);
    assert_int_equal(outcome.tokens, 5);
    assert_string_equal(outcome.error, "first");
    assert_int_equal(json_array_size(outcome.errors_seen), 2);
    assert_string_equal(outcome.missing, "no room");
    assert_string_equal(outcome.device_name, "A device");
    assert_true(outcome.planted.planted);
    assert_int_equal(outcome.planted.scope.layer, 2);
    child_outcome_release(&outcome);
    CHECK_FAILS(child_read_results("/nonexistent", &outcome, &err), STATUS_NOT_FOUND, &err);
    temp_folder_release(&folder);
}

/* Held by one, refused to another, free when the holder is gone, however it went. */
static void test_lock(void **state)
{
    (void)state;
    struct temp_folder folder;
    struct identity identity = { .device = { .kind = "host", .name = "A device" } };
    struct identity another = { .device = { .kind = "host", .name = "Another" } };
    struct device_lock lock, second;
    struct error err;
    int ready[2];
    temp_folder_init(&folder);
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        alarm(60); /* must not outlive a test that fails */
        char byte = device_lock_take(&lock, folder.path, &identity, &err) ? 'n' : 'y';
        _exit(write(ready[1], &byte, 1) == 1 && pause() ? 0 : 1);
    }
    char byte = 0;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    CHECK_FAILS(device_lock_take(&lock, folder.path, &identity, &err), STATUS_BUSY, &err);
    char holder[32];
    snprintf(holder, sizeof(holder), "process %ld", (long)child);
    check_contains("lock", err.text, holder);
    CHECK_OK(device_lock_take(&second, folder.path, &another, &err), &err);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    CHECK_OK(device_lock_take(&lock, folder.path, &identity, &err), &err);
    device_lock_release(&lock);
    device_lock_release(&second);
    device_lock_release(&second);
    close(ready[0]);
    close(ready[1]);
    temp_folder_release(&folder);
}

static void test_environment(void **state)
{
    (void)state;
    static const char *const before[] = { "HOME=/x", "AMD_SERIALIZE_KERNEL=0", "HIP_LAUNCH=1",
                                          NULL };
    const char **joined = lock_environment_join(before);
    size_t count = 0, serialised = 0;
    assert_non_null(joined);
    for (; joined[count]; count++) {
        assert_string_not_equal(joined[count], "AMD_SERIALIZE_KERNEL=0");
        serialised += strcmp(joined[count], "AMD_SERIALIZE_KERNEL=3") == 0;
    }
    assert_int_equal(serialised, 1);
    assert_int_equal(count, 2 + 5);
    free(joined);
}

static void test_hashes(void **state)
{
    (void)state;
    char hex[FILES_SHA256_TEXT_BYTES];
    struct error err;
    struct temp_folder folder;
    temp_folder_init(&folder);
    CHECK_OK(files_sha256_of("abc", 3, hex, &err), &err);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    temp_folder_write(&folder, "empty", "", 0);
    struct temp_path path = temp_folder_path(&folder, "empty");
    CHECK_OK(files_sha256(path.text, hex, &err), &err);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    struct temp_path inside = temp_folder_path(&folder, "empty/x");
    CHECK_FAILS(files_make_folder(path.text, &err), STATUS_EXISTS, &err);
    assert_true(files_make_folder(inside.text, &err) != STATUS_OK);
    temp_folder_release(&folder);
}

/* Whatever the umask: evidence holds prompts and command lines. */
static void test_permissions(void **state)
{
    (void)state;
    struct temp_folder folder;
    struct error err;
    struct stat info;
    temp_folder_init(&folder);
    mode_t old = umask(0);
    struct temp_path made = temp_folder_path(&folder, "a/b");
    CHECK_OK(files_make_folder(made.text, &err), &err);
    assert_int_equal(stat(made.text, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0700);
    assert_int_equal(stat(temp_folder_path(&folder, "a").text, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0700);
    struct temp_path file = temp_folder_path(&folder, "a/b/c");
    CHECK_OK(files_write(file.text, "x", 1, &err), &err);
    assert_int_equal(stat(file.text, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    umask(old);
    unlink(file.text);
    rmdir(made.text);
    rmdir(temp_folder_path(&folder, "a").text);
    temp_folder_release(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_job_round_trip), cmocka_unit_test(test_damaged_jobs),
        cmocka_unit_test(test_results),        cmocka_unit_test(test_lock),
        cmocka_unit_test(test_environment),    cmocka_unit_test(test_hashes),
        cmocka_unit_test(test_permissions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
