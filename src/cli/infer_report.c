/* infer_report.c - see infer_report.h. */
#include "cli/infer_report.h"

#include <jansson.h>
#include <stdio.h>

static double milliseconds(uint64_t ns)
{
    return (double)ns / 1e6;
}

/* Tokens per second; 0 where nothing was measured. */
static double rate(uint64_t tokens, uint64_t ns)
{
    return ns ? (double)tokens * 1e9 / (double)ns : 0;
}

static void print_line(json_t *line)
{
    if (line)
        json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    fputc('\n', stdout);
    json_decref(line);
}

void infer_print_token(const struct generate_event *event)
{
    print_line(json_pack("{s:i, s:i, s:s#, s:f}", "step", (int)event->step, "id", (int)event->id,
                         "text", event->text.bytes, (int)event->text.length, "ms",
                         milliseconds(event->wait_ns)));
}

static void print_json(const struct infer_summary *summary, const struct error *err)
{
    const struct generate_timing *timing = &summary->timing;
    print_line(json_pack(
        "{s:s, s:s?, s:s, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:{s:I, s:I, s:I, "
        "s:I}}",
        "status", err ? "FAILED" : "OK", "error", err ? err->text : NULL, "reason",
        generate_reason_name(summary->result.reason), "seed", (json_int_t)summary->seed,
        "prompt_tokens", (json_int_t)timing->prompt_tokens, "generated_tokens",
        (json_int_t)summary->result.token_count, "load_ms", milliseconds(summary->load_ns),
        "prompt_ms", milliseconds(timing->prompt_ns), "prompt_per_second",
        rate(timing->prompt_tokens, timing->prompt_ns), "decode_ms",
        milliseconds(timing->decode_ns), "decode_per_second",
        rate(timing->decode_tokens, timing->decode_ns), "first_token_ms",
        milliseconds(timing->first_token_ns), "total_ms", milliseconds(summary->total_ns), "memory",
        "weights", (json_int_t)summary->plan->weight_bytes, "kv_cache",
        (json_int_t)summary->plan->kv_bytes, "scratch", (json_int_t)summary->plan->scratch_bytes,
        "peak", (json_int_t)summary->peak_bytes));
}

void infer_print_summary(const struct infer_summary *summary, const struct error *err)
{
    const struct generate_timing *timing = &summary->timing;
    char weights[TEXT_BYTES_CAPACITY], kv[TEXT_BYTES_CAPACITY], scratch[TEXT_BYTES_CAPACITY];
    if (summary->json)
        print_json(summary, err);
    else
        fputc('\n', stdout);
    fflush(stdout);
    fprintf(stderr, "\nload time        = %10.2f ms\n", milliseconds(summary->load_ns));
    fprintf(stderr, "prompt eval time = %10.2f ms / %5llu tokens (%8.2f tokens per second)\n",
            milliseconds(timing->prompt_ns), (unsigned long long)timing->prompt_tokens,
            rate(timing->prompt_tokens, timing->prompt_ns));
    fprintf(stderr, "eval time        = %10.2f ms / %5llu runs   (%8.2f tokens per second)\n",
            milliseconds(timing->decode_ns), (unsigned long long)timing->decode_tokens,
            rate(timing->decode_tokens, timing->decode_ns));
    fprintf(stderr, "total time       = %10.2f ms\n\n", milliseconds(summary->total_ns));
    if (err)
        fprintf(stderr, "STATUS=FAILED\nGeneration error: %s\n", err->text);
    else
        fprintf(stderr, "STATUS=OK\n");
    fprintf(stderr, "Generated tokens: %u\nTotal time: %.3f ms\nTime to first token: %.3f ms\n",
            summary->result.token_count, milliseconds(summary->total_ns),
            milliseconds(timing->first_token_ns));
    fprintf(stderr, "Seed: %llu\nEnded: %s\n", (unsigned long long)summary->seed,
            err ? "error" : generate_reason_name(summary->result.reason));
    fprintf(stderr, "Memory: weights %s, kv cache %s, scratch %s\n",
            text_bytes(summary->plan->weight_bytes, weights),
            text_bytes(summary->plan->kv_bytes, kv),
            text_bytes(summary->plan->scratch_bytes, scratch));
}
