/* infer_output.c - tokens on standard output; see infer_report.h. */
#include "cli/infer_report.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

enum status infer_output_open(struct infer_output *output, bool json, size_t count,
                              struct error *err)
{
    *output = (struct infer_output){ .json = json, .count = count };
    output->held = calloc(count, sizeof(*output->held));
    output->ended = calloc(count, sizeof(*output->ended));
    if (!output->held || !output->ended) {
        infer_output_release(output);
        return error_set(err, STATUS_NO_MEMORY, "no memory for text");
    }
    for (size_t i = 0; i < count; i++)
        text_init(&output->held[i]);
    return STATUS_OK;
}

void infer_output_release(struct infer_output *output)
{
    for (size_t i = 0; output->held && i < output->count; i++)
        text_release(&output->held[i]);
    free(output->held);
    free(output->ended);
    *output = (struct infer_output){ 0 };
}

static void print_json(const struct infer_output *output, const struct session_event *event)
{
    json_t *line = json_pack("{s:i, s:i, s:s#, s:f}", "step", (int)event->token.step, "id",
                             (int)event->token.id, "text", event->token.text.bytes,
                             (int)event->token.text.length, "ms",
                             (double)event->token.wait_ns / 1e6);
    if (line && output->count > 1)
        json_object_set_new(line, "sequence", json_integer((json_int_t)event->request));
    if (line)
        json_dumpf(line, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    fputc('\n', stdout);
    json_decref(line);
}

/* Everything the prompt at its turn has, and a line in front of the first of it. */
static void show(struct infer_output *output)
{
    struct text *text = &output->held[output->turn];
    if (!output->headed && output->count > 1 && !output->quiet) {
        fflush(stdout);
        fprintf(stderr, "%s== prompt %zu of %zu\n", output->turn ? "\n" : "", output->turn + 1,
                output->count);
    }
    output->headed = true;
    fwrite(text_get(text), 1, text->length, stdout);
    text_clear(text);
}

static void show_turns(struct infer_output *output)
{
    while (output->turn < output->count) {
        show(output);
        if (!output->ended[output->turn])
            return;
        fputc('\n', stdout);
        output->turn++;
        output->headed = false;
        if (output->turn < output->count && !output->held[output->turn].length &&
            !output->ended[output->turn])
            return; /* announced with its first text */
    }
}

void infer_output_event(struct infer_output *output, const struct session_event *event)
{
    bool is_token = event->kind == SESSION_TOKEN;
    if (output->json && is_token) {
        print_json(output, event);
    } else if (!output->json && (is_token || event->end.token_count)) {
        if (is_token)
            text_add_bytes(&output->held[event->request], event->token.text.bytes,
                           event->token.text.length);
        output->ended[event->request] = !is_token;
        if (event->request == output->turn)
            show_turns(output);
    }
    fflush(stdout);
}

enum status infer_output_finish(struct infer_output *output, struct error *err)
{
    bool failed = false;
    for (size_t i = 0; i < output->count; i++)
        failed = failed || output->held[i].failed;
    for (; !output->json && output->turn < output->count; output->turn++) {
        /* A prompt that was never begun is not announced. */
        if (output->held[output->turn].length || output->headed || output->count == 1) {
            show(output);
            fputc('\n', stdout);
        }
        output->headed = false;
    }
    fflush(stdout);
    return failed ? error_set(err, STATUS_NO_MEMORY, "no memory for text") : STATUS_OK;
}
