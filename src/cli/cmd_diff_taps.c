/* cmd_diff_taps.c - greta diff-taps: compares the taps of two runs and names the first tensor that
 * differs. */
#include "cli/cli.h"

#include "tap/tap.h"

#include <stddef.h>

struct settings {
    float tolerance;
    bool all, json;
};

static const struct settings defaults = { 0 };

static const struct cli_option options[] = {
    { "--tolerance|-t", "X", CLI_F32, offsetof(struct settings, tolerance),
      "normalised error up to which two tensors are the same (default: 0, equal values)", NULL,
      false },
    { "--all", NULL, CLI_FLAG, offsetof(struct settings, all),
      "list every tensor compared, not only those that differ", NULL, false },
    { "--json", NULL, CLI_FLAG, offsetof(struct settings, json), "JSON instead of text", NULL,
      false },
};

static void emit_difference(struct emit *emit, const char *key,
                            const struct tap_difference *difference)
{
    const struct tap_place *place = &difference->place;
    emit_object_begin(emit, key);
    emit_integer(emit, "step", place->step);
    emit_index(emit, "layer", place->layer);
    emit_text(emit, "tensor", place->tensor);
    emit_index(emit, "sequence", place->sequence);
    emit_index(emit, "head", place->head);
    emit_text(emit, "verdict", tap_verdict_name(difference->verdict));
    emit_count(emit, "values", difference->count);
    emit_real(emit, "max_abs", difference->largest);
    emit_real(emit, "nmse", difference->error);
    if (key && difference->verdict == TAP_DIFFERS) {
        emit_count(emit, "at", difference->at);
        emit_real(emit, "left", (double)difference->left);
        emit_real(emit, "right", (double)difference->right);
    }
    emit_object_end(emit);
}

static enum status print(const struct settings *settings, const struct tap_comparison *comparison,
                         struct error *err)
{
    struct emit *emit;
    TRY(emit_create(settings->json ? EMIT_JSON : EMIT_TEXT, &emit, err));
    emit_flag(emit, "same", comparison->different_count == 0);
    emit_count(emit, "compared", comparison->count);
    emit_count(emit, "different", comparison->different_count);
    if (comparison->different_count)
        emit_difference(emit, "first", &comparison->differences[comparison->first]);
    bool listed = settings->all || comparison->different_count > 0;
    if (listed || settings->json) {
        emit_list_begin(emit, settings->all ? "taps" : "differences");
        for (size_t i = 0; i < comparison->count; i++)
            if (settings->all || comparison->differences[i].verdict != TAP_SAME)
                emit_difference(emit, NULL, &comparison->differences[i]);
        emit_list_end(emit);
    }
    enum status status = emit_finish(emit, stdout, err);
    emit_destroy(emit);
    return status;
}

static enum status compare(const struct cli_invocation *invocation, bool *ret_same,
                           struct error *err)
{
    const struct settings *settings = invocation->settings;
    struct tap_index indexes[2] = { { 0 }, { 0 } };
    struct tap_comparison comparison = { 0 };
    if (!(settings->tolerance >= 0))
        return error_set(err, STATUS_USAGE, "--tolerance: expected 0 or more");
    enum status status = STATUS_OK;
    for (size_t i = 0; i < 2 && !status; i++) {
        status = tap_index_read(&indexes[i], invocation->operands[i], err);
        if (!status && indexes[i].truncated)
            cli_warn(invocation, "%s: not all taps of that run were written",
                     invocation->operands[i]);
        if (!status && indexes[i].count == 0)
            status = error_set(err, STATUS_BAD_FILE, "%s: expected some taps, found none",
                               invocation->operands[i]);
    }
    if (!status)
        status = tap_compare(&indexes[0], &indexes[1], (double)settings->tolerance, &comparison,
                             err);
    if (!status)
        status = print(settings, &comparison, err);
    *ret_same = comparison.different_count == 0;
    tap_comparison_release(&comparison);
    tap_index_release(&indexes[0]);
    tap_index_release(&indexes[1]);
    return status;
}

static enum cli_exit run_diff_taps(const struct cli_invocation *invocation)
{
    struct error err;
    bool same;
    if (compare(invocation, &same, &err))
        return cli_fail(invocation, &err);
    return same ? CLI_EXIT_OK : CLI_EXIT_FAILED;
}

const struct cli_command cli_diff_taps = {
    .name = "diff-taps",
    .operands = "A B",
    .operand_least = 2,
    .operand_most = 2,
    .summary = "find the first tensor in which two runs differ",
    .description =
        "Compares two folders written by greta infer --tap-out: tensors are matched by name, "
        "layer, step, sequence and head, and compared in the order A computed them. For each it "
        "gives the largest absolute difference and the normalised error (sum of squared "
        "differences over sum of squares of A); the first that differs is named, and all that "
        "differ "
        "are listed (--all: every one). Two NaN are the same; NaN against a number, another shape "
        "and a tensor that only one run has are differences.\n\n"
        "Exit status 0 if all are the same, 1 if not, 3 if a folder cannot be read.",
    .examples = "  greta infer -m m.gguf -p Hi -n 1 --tap hidden --tap-out one --device host\n"
                "  greta infer -m m.gguf -p Hi -n 1 --tap hidden --tap-out other --device cuda:0\n"
                "  greta diff-taps one other --tolerance 1e-5\n",
    .options = options,
    .option_count = COUNT_OF(options),
    .settings_bytes = sizeof(defaults),
    .defaults = &defaults,
    .run = run_diff_taps,
};
