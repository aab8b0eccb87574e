/* peers_plan.c - what is measured on a processor and on a GPU; see peers_compare.h. */
#include "peers_compare.h"

#include <string.h>
#include <sys/sysinfo.h>

#define HOST_DECODE 16u
#define HOST_PROMPT 512u /* also the most: what llama.cpp takes at once by default */
#define HOST_THREADS 2u
#define GPU_DECODE 64u
#define GPU_SHORT_PROMPT 512u
#define GPU_PROMPT 4096u
#define GPU_PROMPT_MOST 16384u
#define GPU_SEQUENCES 64u
#define GPU_SEQUENCES_MOST 256u
#define DECODE_MOST 65536u

#define WAY(way) (1u << (way))

static uint32_t or_else(uint32_t asked, uint32_t otherwise)
{
    return asked ? asked : otherwise;
}

static uint32_t larger(uint32_t left, uint32_t right)
{
    return left > right ? left : right;
}

/* As many as llama.cpp's own programs take for what they leave to the processor: half of its
 * threads, and never many. */
static uint32_t gpu_threads(void)
{
    int half = (get_nprocs() + 1) / 2;
    return half < 8 ? (uint32_t)half : 8;
}

static struct peers_plan plan_host(const struct peers_lengths *lengths)
{
    uint32_t decode = or_else(lengths->decode, HOST_DECODE);
    uint32_t prompt = or_else(lengths->prompt, HOST_PROMPT);
    struct peers_setting two = {
        .threads = HOST_THREADS,
        .sequences = 1,
        .context = larger(decode, prompt),
        .batch = prompt,
        .ways = WAY(PEERS_PLAIN),
    };
    struct peers_setting one = two;
    one.threads = 1;
    return (struct peers_plan){
        .settings = { two, one },
        .setting_count = 2,
        .tests = { { "decode", 0, WAY(PEERS_PLAIN), decode, .at_once = 1, .placed = true },
                   { "decode", 1, WAY(PEERS_PLAIN), decode, .at_once = 1 },
                   { "prefill", 0, WAY(PEERS_PLAIN), prompt, .at_once = prompt, .once = true } },
        .test_count = 3,
        .turns = { 2, 0, 1, 0, 0, 1, 0, 0, 1, 0 },
        .turn_count = 10,
        .probes = true,
    };
}

static struct peers_plan plan_gpu(const struct peers_lengths *lengths)
{
    uint32_t decode = or_else(lengths->decode, GPU_DECODE);
    uint32_t prompt = or_else(lengths->prompt, GPU_PROMPT);
    uint32_t sequences = or_else(lengths->sequences, GPU_SEQUENCES);
    uint32_t short_prompt = prompt < GPU_SHORT_PROMPT ? prompt : GPU_SHORT_PROMPT;
    struct peers_plan plan = {
        .settings = { { .sequences = 1, .context = larger(decode, prompt), .batch = prompt },
                      { .sequences = sequences, .context = decode, .batch = sequences } },
        .setting_count = 2,
        .tests = { { "decode", .setting = 0, .tokens = decode, .at_once = 1 },
                   { "decode", .setting = 1, .tokens = decode, .at_once = 1 },
                   { "prefill", .setting = 0, .tokens = short_prompt, .at_once = short_prompt },
                   { "prefill", .setting = 0, .tokens = prompt, .at_once = prompt } },
        .test_count = short_prompt < prompt ? 4 : 3,
        .turns = { 0, 1, 2, 3 },
    };
    plan.turn_count = plan.test_count;
    for (size_t i = 0; i < plan.setting_count; i++) {
        plan.settings[i].threads = gpu_threads();
        plan.settings[i].chooses = true;
    }
    for (size_t i = 0; i < plan.test_count; i++) {
        struct peers_test *test = &plan.tests[i];
        test->ways = WAY(PEERS_PLAIN);
        if (!lengths->plain)
            test->ways |= WAY(test->at_once > 1 ? PEERS_WIDE : PEERS_CHOOSING);
        plan.settings[test->setting].ways |= test->ways;
    }
    return plan;
}

enum status peers_plan_make(const char *device, const struct peers_lengths *lengths,
                            struct peers_plan *ret_plan, struct error *err)
{
    bool host = strcmp(device, "host") == 0;
    uint32_t prompt_most = host ? HOST_PROMPT : GPU_PROMPT_MOST;
    if (lengths->prompt > prompt_most)
        return error_set(err, STATUS_USAGE, "--prompt: expected at most %u on %s, found %u",
                         prompt_most, device, lengths->prompt);
    if (lengths->decode > DECODE_MOST)
        return error_set(err, STATUS_USAGE, "--decode: expected at most %u, found %u", DECODE_MOST,
                         lengths->decode);
    if (lengths->sequences &&
        (host || lengths->sequences == 1 || lengths->sequences > GPU_SEQUENCES_MOST))
        return error_set(err, STATUS_USAGE, "--sequences: expected a GPU and 2 to %u, found %s, %u",
                         GPU_SEQUENCES_MOST, device, lengths->sequences);
    *ret_plan = host ? plan_host(lengths) : plan_gpu(lengths);
    return STATUS_OK;
}

struct peers_setting peers_setting_alone(const char *device, uint32_t context)
{
    return (struct peers_setting){
        .threads = strcmp(device, "host") == 0 ? HOST_THREADS : gpu_threads(),
        .sequences = 1,
        .context = context,
        .batch = context,
        .ways = WAY(PEERS_PLAIN),
    };
}
