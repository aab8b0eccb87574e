/* infer_report.c - the end of a run; see infer_report.h. */
#include "cli/infer_report.h"

#include "base/text.h"
#include "cli/colour.h"

#include <jansson.h>
#include <stdio.h>
#include <sys/resource.h>

static double milliseconds(uint64_t ns)
{
    return (double)ns / 1e6;
}

/* Tokens per second; 0 where nothing was measured. */
static double rate(uint64_t tokens, uint64_t ns)
{
    return ns ? (double)tokens * 1e9 / (double)ns : 0;
}

static uint64_t written_tokens(const struct infer_summary *summary)
{
    uint64_t count = 0;
    for (size_t i = 0; i < summary->count; i++)
        count += summary->results[i].token_count;
    return count;
}

/* The name of a prompt's reason. */
static const char *reason_name(const struct infer_result *result)
{
    return result->reason == SESSION_RUNNING ? "interrupted" : session_reason_name(result->reason);
}

/* Why all ended, or "several" where they differ; "error" of a run that failed. */
static const char *reason_of(const struct infer_summary *summary, enum infer_ending ending)
{
    if (ending == INFER_FAILED)
        return "error";
    for (size_t i = 1; i < summary->count; i++)
        if (summary->results[i].reason != summary->results[0].reason)
            return "several reasons";
    return reason_name(&summary->results[0]);
}

/* The most memory this process had at a time, pages of the mapped model that were read included. */
static uint64_t resident_peak_bytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}

/* ---- Endings -------------------------------------------------------------------------------- */

static const struct {
    const char *status;
    enum cli_exit code;
} endings[] = {
    [INFER_OK] = { "OK", CLI_EXIT_OK },
    [INFER_FAILED] = { "FAILED", CLI_EXIT_FAILED },
    [INFER_INTERRUPTED] = { "INTERRUPTED", CLI_EXIT_INTERRUPTED },
    [INFER_FINDINGS] = { "FINDINGS", CLI_EXIT_FAILED },
    [INFER_INCONCLUSIVE] = { "INCONCLUSIVE", CLI_EXIT_UNDECIDED },
};
_Static_assert(COUNT_OF(endings) == INFER_ENDING_COUNT, "every ending has its status");

enum infer_ending infer_ending_of(const struct infer_summary *summary, const struct error *err)
{
    if (err && err->status != STATUS_INTERRUPTED)
        return INFER_FAILED;
    bool interrupted = err != NULL;
    for (size_t i = 0; i < summary->count; i++)
        interrupted = interrupted || summary->results[i].reason == SESSION_RUNNING;
    if (interrupted)
        return INFER_INTERRUPTED;
    switch (cli_audit_answer(summary->audit)) {
    case CLI_AUDIT_FINDINGS:
        return INFER_FINDINGS;
    case CLI_AUDIT_UNKNOWN:
        return INFER_INCONCLUSIVE;
    default:
        return INFER_OK;
    }
}

enum cli_exit infer_exit_of(enum infer_ending ending, const struct error *err)
{
    bool usage = ending == INFER_FAILED && err->status == STATUS_USAGE;
    return usage ? CLI_EXIT_USAGE : endings[ending].code;
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static json_t *list_sequences(const struct infer_summary *summary)
{
    json_t *list = json_array();
    for (size_t i = 0; list && i < summary->count; i++)
        json_array_append_new(list,
                              json_pack("{s:I, s:s, s:I, s:I}", "sequence", (json_int_t)i, "reason",
                                        reason_name(&summary->results[i]), "generated_tokens",
                                        (json_int_t)summary->results[i].token_count, "seed",
                                        (json_int_t)summary->seed + (json_int_t)i));
    return list;
}

static void print_json(const struct infer_summary *summary, enum infer_ending ending,
                       const struct error *err)
{
    const struct session_timing *timing = &summary->timing;
    json_t *line = json_pack(
        "{s:s, s:s?, s:s, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:{s:I, s:I, s:I, "
        "s:I, s:I}}",
        "status", endings[ending].status, "error", ending == INFER_FAILED ? err->text : NULL,
        "reason", reason_of(summary, ending), "seed", (json_int_t)summary->seed, "prompt_tokens",
        (json_int_t)timing->prompt_tokens, "generated_tokens", (json_int_t)written_tokens(summary),
        "load_ms", milliseconds(summary->load_ns), "prompt_ms", milliseconds(timing->prompt_ns),
        "prompt_per_second", rate(timing->prompt_tokens, timing->prompt_ns), "decode_ms",
        milliseconds(timing->decode_ns), "decode_per_second",
        rate(timing->decode_tokens, timing->decode_ns), "first_token_ms",
        milliseconds(timing->first_token_ns), "total_ms", milliseconds(summary->total_ns), "memory",
        "weights", (json_int_t)summary->budget.weight_bytes, "kv_cache",
        (json_int_t)summary->budget.kv_bytes, "scratch", (json_int_t)summary->budget.scratch_bytes,
        "peak", (json_int_t)summary->peak_bytes, "resident_peak",
        (json_int_t)resident_peak_bytes());
    if (line && summary->count > 1)
        json_object_set_new(line, "sequences", list_sequences(summary));
    json_t *audit = cli_audit_json(summary->audit);
    if (line && audit)
        json_object_set(line, "audit", audit);
    json_decref(audit);
    if (line)
        json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    fputc('\n', stdout);
    fflush(stdout);
    json_decref(line);
}

/* ---- Text ----------------------------------------------------------------------------------- */

static void print_timings(const struct infer_summary *summary)
{
    const struct session_timing *timing = &summary->timing;
    double prompt_ms = milliseconds(timing->prompt_ns), decode_ms = milliseconds(timing->decode_ns);
    uint64_t prompt = timing->prompt_tokens, decode = timing->decode_tokens;
    fprintf(stderr, "\nload time        = %10.2f ms\n", milliseconds(summary->load_ns));
    fprintf(stderr,
            "prompt eval time = %10.2f ms / %5llu tokens (%8.2f ms per token, %8.2f tokens per "
            "second)\n",
            prompt_ms, (unsigned long long)prompt, prompt ? prompt_ms / (double)prompt : 0,
            rate(prompt, timing->prompt_ns));
    fprintf(stderr,
            "eval time        = %10.2f ms / %5llu runs   (%8.2f ms per token, %8.2f tokens per "
            "second)\n",
            decode_ms, (unsigned long long)decode, decode ? decode_ms / (double)decode : 0,
            rate(decode, timing->decode_ns));
    fprintf(stderr, "total time       = %10.2f ms\n\n", milliseconds(summary->total_ns));
}

static void print_memory(const struct infer_summary *summary)
{
    char weights[TEXT_BYTES_CAPACITY], kv[TEXT_BYTES_CAPACITY], scratch[TEXT_BYTES_CAPACITY];
    char resident[TEXT_BYTES_CAPACITY];
    fprintf(stderr, "Memory: weights %s, kv cache %s, scratch %s; process peak %s\n",
            text_bytes(summary->budget.weight_bytes, weights),
            text_bytes(summary->budget.kv_bytes, kv),
            text_bytes(summary->budget.scratch_bytes, scratch),
            text_bytes(resident_peak_bytes(), resident));
}

/* STATUS, and why it is not OK. */
static void print_status(const struct infer_summary *summary, enum infer_ending ending,
                         const struct error *err)
{
    size_t count = cli_audit_finding_count(summary->audit);
    char line[32], shown[CLI_SHOWN_BYTES];
    snprintf(line, sizeof(line), "STATUS=%s\n", endings[ending].status);
    cli_put_coloured(stderr, summary->invocation->colour_err, line);
    if (ending == INFER_FAILED)
        fprintf(stderr, "Generation error: %s\n",
                text_printable(text_view_of(err->text), shown, sizeof(shown)));
    else if (ending == INFER_FINDINGS)
        fprintf(stderr, "Audit findings: the text was written, and the audit has %zu finding%s\n",
                count, count == 1 ? "" : "s");
    else if (ending == INFER_INCONCLUSIVE)
        fprintf(stderr, "Audit: the text was written, but %s\n",
                cli_audit_unknown_reason(summary->audit));
}

void infer_print_summary(const struct infer_summary *summary, const struct error *err)
{
    enum infer_ending ending = infer_ending_of(summary, err);
    if (summary->json)
        print_json(summary, ending, err);
    if (summary->invocation->quiet) {
        if (ending == INFER_OK)
            return;
        print_status(summary, ending, err);
        cli_audit_print(summary->audit);
        return;
    }
    print_timings(summary);
    print_status(summary, ending, err);
    fprintf(stderr, "Generated tokens: %llu\nTotal time: %.3f ms\nTime to first token: %.3f ms\n",
            (unsigned long long)written_tokens(summary), milliseconds(summary->total_ns),
            milliseconds(summary->timing.first_token_ns));
    fprintf(stderr, "Seed: %llu\nEnded: %s\n", (unsigned long long)summary->seed,
            reason_of(summary, ending));
    for (size_t i = 0; ending != INFER_FAILED && summary->count > 1 && i < summary->count; i++)
        fprintf(stderr, "  prompt %zu: %u tokens, %s\n", i + 1, summary->results[i].token_count,
                reason_name(&summary->results[i]));
    print_memory(summary);
    cli_audit_print(summary->audit);
}
