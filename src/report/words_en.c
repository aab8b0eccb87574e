/* words_en.c - the words of a report, in English. */
#include "report/words.h"

const struct words words_en = {
    .words = {
        [WORD_YES] = "yes",
        [WORD_NO] = "no",
        [WORD_TITLE] = "Audit report {1}",
        [WORD_CONTENTS] = "Contents",
        [WORD_OUTCOME] = "Outcome",
        [WORD_SEVERITY] = "Severity",
        [WORD_DATE] = "Date",
        [WORD_COMMIT] = "Commit",
        [WORD_AUTHOR] = "Author",
        [WORD_MODEL] = "Model",
        [WORD_DEVICE] = "Device",
        [WORD_COMMAND] = "Command",
        [WORD_PLANTED_FAULT] = "PLANTED FAULT",
        [WORD_PLANTED_FIRED] = "it was planted on purpose, and fired",
        [WORD_PLANTED_NEVER] = "it was to be planted on purpose, and never fired",
        [WORD_PLANTED_UNKNOWN] =
            "it was to be planted on purpose; no run lived to say whether it fired",
        [WORD_SECTION_SUMMARY] = "Executive summary",
        [WORD_HEADLINE_CLEAN] =
            "Nothing found in {1} recorded {1|iteration|iterations}; a fault in more than {2} of "
            "runs would have been seen",
        [WORD_HEADLINE_CLEAN_EXACT] =
            "Nothing found; everything that can be tested was tested and refuted",
        [WORD_HEADLINE_PROVED] =
            "The planted fault is the cause: the runs fail with it and are sound without it",
        [WORD_HEADLINE_SEEN] = "seen: ",
        [WORD_HEADLINE_DEFECT] = "A run failed, and no finding says why",
        [WORD_HEADLINE_NOT_SEEN] =
            "Nothing seen in {1} recorded {1|iteration|iterations}; at least {3} are needed to call "
            "it clean",
        [WORD_HEADLINE_NOT_REPRODUCED] =
            "The expected fault did not occur in {1} {1|iteration|iterations}; one in more than "
            "{2} of runs would have been seen",
        [WORD_HEADLINE_INCONCLUSIVE] =
            "Not decided: {4} {4|hypothesis lacks|hypotheses lack} evidence",
        [WORD_HEADLINE_NEVER_FIRED] = "Not decided: the planted fault never fired",
        [WORD_HEADLINE_FIRED_UNSEEN] =
            "Not decided: the planted fault fired, and no detector saw it",
        [WORD_SUMMARY_CLEAN] =
            "{1} recorded {1|iteration|iterations}; a fault in more than {2} of runs would have been "
            "seen (95 % confidence). Every hypothesis that can be tested was looked at by a detector "
            "that passed its self-test; the others do not apply here.",
        [WORD_SUMMARY_ROOT_CAUSE] = "The root cause was found: {1}.",
        [WORD_SUMMARY_DEFECT_SEEN] =
            "Something is wrong. It was seen; what did it is not known yet. The next steps say "
            "what would find it.",
        [WORD_SUMMARY_NOT_SEEN] =
            "Nothing was seen in {1} recorded {1|iteration|iterations}. That rules out only faults "
            "in more than {2} of runs (95 % confidence).",
        [WORD_SUMMARY_NOT_SEEN_FEW] =
            "Nothing was seen in {1} recorded {1|iteration|iterations}. So few rule out nothing.",
        [WORD_SUMMARY_NOT_REPRODUCED] =
            "The expected fault did not occur in {1} {1|iteration|iterations}: that rules out "
            "only faults in more than {2} of iterations (95 % confidence), and is no proof that "
            "the fault is gone.",
        [WORD_SUMMARY_INCONCLUSIVE] =
            "The evidence does not decide: {1} {1|hypothesis stays|hypotheses stay} "
            "inconclusive. The table of hypotheses says what is missing for each.",
        [WORD_IN_DETAIL] = "In detail: {1}.",
        [WORD_EXPECTED_FAULT] = "Expected fault: `{1}`",
        [WORD_SUMMARY_COUNTS] =
            "{1} of {2} {2|iteration|iterations} run, in {3} {3|row|rows}; {4} "
            "{4|error|errors}, {5} {5|finding|findings}.",
        [WORD_PARTIAL] =
            "This audit did not end: what is here is valid, but not complete. `greta audit "
            "--resume` with the folder of {1} finishes it.",
        [WORD_SECTION_STAGE] = "Exact stage of the fault",
        [WORD_STAGE_NONE] = "No fault was located.",
        [WORD_STAGE] = "Attribute",
        [WORD_STAGE_CAUSE] = "Cause",
        [WORD_STAGE_CANDIDATE] = "One of the candidates",
        [WORD_STAGE_SYMPTOM] = "Seen at",
        [WORD_STAGE_OTHER] = "Other side",
        [WORD_STAGE_SEEN] = "Surfaced at",
        [WORD_STAGE_CALL] = "Call",
        [WORD_STAGE_LAYER] = "Layer",
        [WORD_STAGE_STEP] = "Step",
        [WORD_STAGE_TENSOR] = "Tensor",
        [WORD_STAGE_BYTES] = "Bytes at stake",
        [WORD_STAGE_BUFFER] = "Buffer (operand)",
        [WORD_STAGE_TRACK] = "Stream / host thread",
        [WORD_STAGE_GRAPH] = "Graph replay / node",
        [WORD_STAGE_ITERATION] = "Run",
        [WORD_STAGE_SITE] = "Call site",
        [WORD_STAGE_EVENT] = "Event",
        [WORD_MODE_NONE] = "touches",
        [WORD_MODE_READ] = "reads",
        [WORD_MODE_WRITE] = "writes",
        [WORD_MODE_UPDATE] = "updates",
        [WORD_NEAR] = "What lies at the address `{1}`:",
        [WORD_NEAR_LIVE] = "live buffer `{1}` at `{2}`, {3}, holds it",
        [WORD_NEAR_BEFORE] =
            "nearest live buffer before: `{1}` at `{2}`, {3}, {4} {4|byte|bytes} away",
        [WORD_NEAR_AFTER] =
            "nearest live buffer after: `{1}` at `{2}`, {3}, {4} {4|byte|bytes} away",
        [WORD_NEAR_FREED] = "freed buffer `{1}` at `{2}`, {3}, held it most recently",
        [WORD_NEAR_NOTHING] = "no buffer, alive or freed, within {1}",
        [WORD_CANDIDATES] = "{1} launches are possible:",
        [WORD_SECTION_FINDINGS] = "Findings",
        [WORD_SECTION_CALLERS] = "Who called",
        [WORD_CALLED_BY] = "`{1}` (event {2}) was called by",
        [WORD_NUMBER] = "No.",
        [WORD_CERTAINTY] = "Certainty",
        [WORD_FINDING] = "Finding",
        [WORD_TIMES] = "Times",
        [WORD_RELATION] = "Relation",
        [WORD_DIRECT] = "violation seen",
        [WORD_POSSIBLE] = "possible",
        [WORD_FOLLOWS_FROM] = "follows from {1}",
        [WORD_FIRST_VIOLATION] = "first violation",
        [WORD_FINDINGS_DROPPED] = "Findings counted and not kept: {1}.",
        [WORD_SECTION_VERDICTS] = "Hypotheses",
        [WORD_VERDICTS_READING] =
            "A verdict is never more certain than its evidence: exact detectors say how many of "
            "all declared accesses they checked; statistical ones say how rare a fault must be "
            "to have stayed unseen (3/n, 95 % confidence).",
        [WORD_RANK] = "Rank",
        [WORD_HYPOTHESIS] = "Hypothesis",
        [WORD_VERDICT] = "Verdict",
        [WORD_EVIDENCE] = "Evidence",
        [WORD_MISSING] = "What is missing",
        [WORD_NEEDS_LEVEL] = "Level needed",
        [WORD_SELF_TEST] = "Self-test",
        [WORD_SELF_TEST_ABSENT] = "not made",
        [WORD_SELF_TEST_PASSED] = "passed",
        [WORD_SELF_TEST_FAILED] = "failed",
        [WORD_EVIDENCE_EXACT] = "Checked {1} of {2} {3}, for declared accesses.",
        [WORD_EVIDENCE_STATISTICAL] = "Looked at {1} of {2} {3}.",
        [WORD_EVIDENCE_NO_BOUND] =
            "Looked at {1} of {2} {3}. Not seen in {5} {5|run|runs}; so few rule out nothing.",
        [WORD_EVIDENCE_BOUND] =
            "Looked at {1} of {2} {3}. Not seen in {5} {5|run|runs}; that rules out only faults in "
            "more than {4} of runs.",
        [WORD_EVIDENCE_BOUND_EACH] =
            "Looked at {1} of {2} {3}. Not seen; that rules out only faults in more than {4} of "
            "them.",
        [WORD_EVIDENCE_NONE] = "The path was not taken: 0 {3}.",
        [WORD_EVIDENCE_EXCLUDED] = "Not applicable: {1}.",
        [WORD_EXCLUDED_DEVICE_CLOSE] = "the device frees everything on close",
        [WORD_SECTION_DETECTORS] = "How each is detected",
        [WORD_SECTION_RECOMMENDATIONS] = "Recommendations",
        [WORD_ADVICE_CLEAN] = "Nothing to fix. Keep this audit to compare the next change with.",
        [WORD_ADVICE_NONE] =
            "No cause is confirmed, so no change to the code is recommended; the next steps "
            "say what would decide.",
        [WORD_SECTION_NEXT_STEPS] = "Next steps",
        [WORD_NEXT_CLEAN] =
            "Compare later audits with this one: `greta audit --baseline` with the folder of "
            "{1}.",
        [WORD_NEXT_ROOT_CAUSE] =
            "Fix it and rerun the same command with `--baseline` and the folder of {1}; then "
            "revert the fix and see it come back: only that proves the fix.",
        [WORD_NEXT_DEFECT_SEEN] =
            "Look at where it was seen, and at what ran before it. Repeat audit {1} at level "
            "`verify`; more iterations give the search for the culprit more to compare.",
        [WORD_NEXT_NOT_SEEN] =
            "{2} recorded {2|iteration|iterations}; at least {3} needed. Repeat audit {1} with a "
            "larger `--matrix`.",
        [WORD_NEXT_NARROW] =
            "Run the same command with `--narrow`: it waits after each of the launches, until "
            "one is left.",
        [WORD_NEXT_NOT_REPRODUCED] =
            "Run more iterations to rule out rarer faults, or find out what was different when "
            "the fault of {1} was first seen: model, prompt, device, driver, environment.",
        [WORD_NEXT_INCONCLUSIVE] =
            "Make the hypotheses below decidable, then repeat audit {1}.",
        [WORD_NEXT_RESUME] =
            "Finish this audit: `greta audit --resume` with the folder of {1}.",
        [WORD_STEP_NOTHING] = "Look at these again: {1}.",
        [WORD_STEP_DETECTOR] = "The detector was off. Repeat with it on: {1}.",
        [WORD_STEP_LEVEL] =
            "The runs were below the level needed. Repeat at the level in the table (`--audit "
            "guard` or `--audit verify`): {1}.",
        [WORD_STEP_SELF_TEST] =
            "There is no self-test of this binary on this device. Run `greta audit "
            "--self-test` first: {1}.",
        [WORD_STEP_SELF_TEST_PASS] =
            "The self-test did not find its planted fault here; fix the detector before you "
            "trust it: {1}.",
        [WORD_STEP_RECORDS] =
            "Records were lost or damaged. Repeat with a larger recording, fewer iterations "
            "per row, or more room on the disk: {1}.",
        [WORD_STEP_EXERCISE] =
            "The path was not taken. Use a workload that takes it (more streams, longer "
            "prompts, graphs, stress): {1}.",
        [WORD_STEP_EQUAL_RUNS] =
            "No two iterations were equal, so nothing could be compared. Repeat with two or more "
            "iterations in a row of mode `audit`: {1}.",
        [WORD_STEP_CERTAINTY] =
            "Several explanations are left. Rerun with one thing changed at a time: {1}.",
        [WORD_STEP_COMPARISON] =
            "Only a comparison decides. Run `greta audit --transfers` and `greta audit "
            "--ablate d2h`: {1}.",
        [WORD_STEP_END] =
            "A run did not end and nothing says why. Read its log, then repeat at level "
            "`guard`: {1}.",
        [WORD_SECTION_MATRIX] = "Test matrix",
        [WORD_MATRIX_NONE] = "No row was run.",
        [WORD_MATRIX_WORKLOADS] =
            "Iterations are runs of the model. After them each row runs rounds of a small "
            "workload with several streams, marks, graphs and staging slots, to look at what "
            "one stream cannot show; its errors are counted with those of the row. Runs are "
            "numbered over both.",
        [WORD_ROW] = "Row",
        [WORD_MODE] = "Mode",
        [WORD_LEVEL] = "Level",
        [WORD_ITERATIONS] = "Iterations",
        [WORD_ERRORS] = "Errors",
        [WORD_RESULT] = "Result",
        [WORD_MEDIAN_MS] = "Median latency, ms",
        [WORD_TOKENS_PER_SECOND] = "Tokens per second",
        [WORD_PEAK] = "Peak memory",
        [WORD_LAUNCHES] = "Launches",
        [WORD_COPIES_OUT] = "D2H copies",
        [WORD_TOTAL] = "Total",
        [WORD_ROW_PASSED] = "PASSED",
        [WORD_ROW_FAILED] = "FAILED",
        [WORD_ROW_CRASHED] = "CRASHED",
        [WORD_ROW_HUNG] = "HUNG",
        [WORD_ROW_FINDINGS] = "FINDINGS",
        [WORD_ROW_INTERRUPTED] = "INTERRUPTED",
        [WORD_ROW_INCONCLUSIVE] = "INCONCLUSIVE",
        [WORD_ROW_INCOMPLETE] = "INCOMPLETE",
        [WORD_ROW_ERROR] = "{1}: first error: `{2}`",
        [WORD_ROW_MISSING] = "{1}: evidence is missing: `{2}`",
        [WORD_ROW_PARAMETERS] = "{1}: stress parameters: `{2}`",
        [WORD_ROW_LOG] = "{1}: log: ",
        [WORD_ROW_FLIGHT] = "{1}: recording: ",
        [WORD_ROW_ANALYSIS] =
            "{1}: {2} {2|event|events} of {3} {3|run|runs} analysed; {4} lost, {5} dropped, {6} "
            "damaged.",
        [WORD_ROW_EXTRA] =
            " {1} of them {1|is an iteration|are iterations} of the model, {2} {2|is a round|are "
            "rounds} of the small workload.",
        [WORD_ROW_DEVICE_LOST] = " The device was lost.",
        [WORD_ROW_NOT_CLOSED] = " The process did not end in order.",
        [WORD_ROW_NO_ANALYSIS] = "{1}: no events were recorded or analysed.",
        [WORD_SECTION_INTERVENTIONS] = "Interventions",
        [WORD_INTERVENTIONS_READING] =
            "Reruns with one thing changed, in turn with runs without the change. An outcome "
            "flips when the fault is gone with the change and there without it.",
        [WORD_CHANGED] = "Changed",
        [WORD_WITH_CHANGE] = "Faults with it",
        [WORD_WITHOUT_CHANGE] = "Faults without it",
        [WORD_FLIPS] = "Flips",
        [WORD_PROVES] = "Proves",
        [WORD_DOES_NOT_PROVE] = "Does not prove",
        [WORD_SECTION_ABLATION] = "D2H modes (ablation)",
        [WORD_ABLATION_READING] =
            "A fix counts only if the fault comes back when the fix is reverted.",
        [WORD_D2H_MODE] = "D2H mode",
        [WORD_RUNS] = "Runs",
        [WORD_FAULTS] = "Faults",
        [WORD_FAULT_SEEN] = "FAULT",
        [WORD_NO_FAULT_SEEN] = "NO FAULT",
        [WORD_SECTION_TRANSFERS] = "Transfers",
        [WORD_TRANSFERS_READING] =
            "Every copy was hashed before and after, on the device and on the host.",
        [WORD_TRANSFERS_SUM] =
            "{1} copy {1|path|paths}: {2} {2|copy|copies}, {3}, {4} {4|mismatch|mismatches}.",
        [WORD_COPY_PATH] = "Copy path",
        [WORD_COPIES] = "Copies",
        [WORD_BYTES] = "Bytes",
        [WORD_MISMATCHES] = "Mismatches",
        [WORD_BOUND] = "Rules out more than",
        [WORD_GIGABYTES] = "GB/s",
        [WORD_NOTE] = "Note",
        [WORD_SECTION_SELF_TEST] = "Self-test",
        [WORD_SELF_TEST_KEY] = "The results of the self-test hold for `{1}`.",
        [WORD_SELF_TEST_NO_KEY] =
            "There are no results of a self-test for this binary on this device.",
        [WORD_SELF_TEST_TOTAL] = "{1} planted, {2} found, {3} with the right culprit.",
        [WORD_FAULT] = "Fault",
        [WORD_PLANTED_AS] = "Planted as",
        [WORD_PLANTED_AT] = "Planted at",
        [WORD_DETECTED] = "Detected",
        [WORD_FOUND_AS] = "Found as",
        [WORD_CULPRIT] = "Culprit named",
        [WORD_CULPRIT_OK] = "Right culprit",
        [WORD_SECTION_EVOLUTION] = "Evolution of the diagnosis",
        [WORD_EVOLUTION_NONE] = "This is the first audit in its folder.",
        [WORD_AUDIT] = "Audit",
        [WORD_DEFECT] = "Defect",
        [WORD_ROOT_CAUSE] = "Root cause",
        [WORD_SECTION_BASELINE] = "Comparison with the baseline",
        [WORD_BASELINE_READING] = "Compared with audit `{1}`.",
        [WORD_BASELINE_EQUAL] = "No finding is new, gone or changed.",
        [WORD_CHANGE] = "Change",
        [WORD_CHANGE_NEW] = "NEW",
        [WORD_CHANGE_GONE] = "GONE",
        [WORD_CHANGE_CHANGED] = "CHANGED",
        [WORD_CHANGE_SAME] = "SAME",
        [WORD_FIGURE] = "Figure",
        [WORD_BEFORE] = "Before",
        [WORD_NOW] = "Now",
        [WORD_SECTION_ARTIFACTS] = "Files of this audit",
        [WORD_FILE_MANIFEST] = "what was run, on what, with which hashes",
        [WORD_FILE_SUMMARY] = "verdicts and findings for scripts",
        [WORD_FILE_ENGLISH] = "this report in English",
        [WORD_FILE_SPANISH] = "this report in Spanish",
        [WORD_FILE_HTML] = "this report with figures",
        [WORD_FILE_TIMELINE] = "streams, copies and waits over time; opens in Perfetto",
        [WORD_FILE_SARIF] = "findings for code scanning",
        [WORD_FILE_JUNIT] = "rows, hypotheses and planted faults for a build server",
        [WORD_FILE_LOG] = "what the child process printed",
        [WORD_FILE_FLIGHT] = "recording of the device's events",
        [WORD_SECTION_EVIDENCE] = "What the evidence is bound to",
        [WORD_EVIDENCE_READING] =
            "The verdicts hold for exactly this binary, model, device and command.",
        [WORD_WHAT] = "What",
        [WORD_VALUE] = "Value",
        [WORD_VERSION] = "Version of greta",
        [WORD_BINARY_HASH] = "SHA-256 of the binary",
        [WORD_MODEL_FILE] = "Model file",
        [WORD_MODEL_HASH] = "SHA-256 of the model",
        [WORD_DEVICE_KIND] = "Kind of device",
        [WORD_DRIVER] = "Driver",
        [WORD_DEVICE_MEMORY] = "Memory of the device",
        [WORD_SEED] = "Seed",
        [WORD_LOCKED] = "Locked runner",
        [WORD_ENVIRONMENT] = "Environment:",
        [WORD_PLACE_LAYER] = "layer {1}",
        [WORD_PLACE_STEP] = "step {1}",
        [WORD_PLACE_TENSOR] = "tensor {1}",
        [WORD_PLACE_STREAM] = "stream {1}",
        [WORD_NO_RECORDING] = "There is no recording to draw a timeline from.",
        [WORD_FIGURE_CHAIN] = "From the cause to where the error was seen",
        [WORD_FIGURE_PLACE] = "Where it was",
        [WORD_CHAIN_CAUSE] = "cause",
        [WORD_CHAIN_CANDIDATE] = "one of several candidates",
        [WORD_CHAIN_OTHER] = "other side",
        [WORD_CHAIN_SEEN] = "seen here",
        [WORD_CHAIN_SURFACED] = "surfaced here",
        [WORD_CHAIN_LATER] = "{1} ms later, event {2}",
        [WORD_CHAIN_EARLIER] = "{1} ms earlier, event {2}",
        [WORD_CHAIN_FOLLOWING] = "{1} {1|finding follows|findings follow} from it.",
        [WORD_FIGURE_TIMELINE] =
            "Streams around the finding, in ms since the recording began; waits are cut where "
            "the work ends",
        [WORD_FIGURE_TIMELINE_WHOLE] =
            "Streams over the end of the recording, in ms since it began",
        [WORD_TIMELINE_HOST] = "host",
        [WORD_TIMELINE_CALLS] = "The bars are the calls: when the work itself ended was not recorded.",
        [WORD_LEGEND_LAUNCH] = "launch",
        [WORD_LEGEND_COPY] = "copy or fill",
        [WORD_LEGEND_WAIT] = "wait",
        [WORD_LEGEND_CAUSE] = "cause",
        [WORD_LEGEND_FAILED] = "failed or refused",
        [WORD_FIGURE_LATENCY] = "Latency of every iteration, in ms",
        [WORD_FIGURE_MEMORY] =
            "Buffers in the order of their addresses, as they were when the error was seen; the "
            "lengths of the bars are on a logarithmic scale",
        [WORD_MEMORY_MAP] = "Memory map",
        [WORD_MEMORY_FAULT] = "address of the fault",
        [WORD_MEMORY_LIVE] = "alive",
        [WORD_MEMORY_FREED] = "freed",
        [WORD_MEMORY_NAMED] = "named by the finding",
        [WORD_MEMORY_MORE] = "Buffers not drawn: {1}.",
        [WORD_SECTION_SEARCH] = "Search for the cause",
        [WORD_SEARCH_READING] = "Equal runs again, each in a process of its own, with operands of "
                                "ops hashed in stream order (or outputs scanned). The first op "
                                "whose inputs agree and whose output does not is the culprit.",
        [WORD_LOOKED_AT] = "Looked at",
        [WORD_COMPARED] = "Compared",
        [WORD_SEARCH_CULPRIT] = "culprit",
        [WORD_SEARCH_INTERVAL] = "interval",
        [WORD_SEARCH_SEEN] = "seen, no op shows it",
        [WORD_SEARCH_NOT_SEEN] = "not seen",
        [WORD_SEARCH_FOUND] = "The op that made it is known: see the root cause.",
        [WORD_SEARCH_NARROWED] = "What made it lies between the two ops named in the finding. "
                                 "That is an interval, not a culprit.",
        [WORD_SEARCH_ONLY_SEEN] = "The defect came again, and no op that was looked at shows it: "
                                  "see the finding for where it was seen.",
        [WORD_SEARCH_NOT_AGAIN] = "The defect did not come again in these runs: it is rare, or "
                                  "needs what a search changes. More iterations of the row may "
                                  "bring it back.",
        [WORD_SEARCH_VANISHED] = "It did not come while every op was looked at: looking changes "
                                 "the timing, and the difference depends on it. So less was "
                                 "looked at.",
        [WORD_SECTION_COMPARE] = "Ops against the host",
        [WORD_COMPARE_READING] = "Every op of one run once more on the host, with the device's "
                                 "own inputs, so that an error does not travel from one op to the "
                                 "next. The error is relative to the largest value of its row.",
        [WORD_OP] = "Op",
        [WORD_TYPE] = "Type",
        [WORD_ERROR_MAX] = "Largest error",
        [WORD_TOLERANCE] = "Tolerance",
        [WORD_OUTSIDE] = "Outside",
        [WORD_ERROR_WHERE] = "Where",
    },
    .outcomes = {
        [AUDIT_CLEAN] = "CLEAN",
        [AUDIT_ROOT_CAUSE] = "ROOT CAUSE FOUND",
        [AUDIT_DEFECT_SEEN] = "DEFECT SEEN",
        [AUDIT_NOT_SEEN] = "NOT SEEN",
        [AUDIT_NOT_REPRODUCED] = "NOT REPRODUCED",
        [AUDIT_INCONCLUSIVE] = "INCONCLUSIVE",
    },
    .verdicts = {
        [VERDICT_CONFIRMED] = "CONFIRMED",
        [VERDICT_REFUTED] = "REFUTED",
        [VERDICT_NOT_SEEN] = "NOT SEEN",
        [VERDICT_EXCLUDED] = "EXCLUDED",
        [VERDICT_INCONCLUSIVE] = "INCONCLUSIVE",
    },
    .severities = {
        [REPORT_SEVERITY_NONE] = "None",
        [REPORT_SEVERITY_MEDIUM] = "Medium",
        [REPORT_SEVERITY_HIGH] = "High",
        [REPORT_SEVERITY_CRITICAL] = "Critical",
    },
    .modes = {
        [REPORT_BARE] = "bare",
        [REPORT_AUDIT] = "audit",
        [REPORT_STRESS] = "stress",
    },
    .interventions = {
        { "serialised", "every call waits for the one before" },
        { "one-at-a-time", "a wait after each launch, to single out one of the candidates" },
        { "single-stream", "one stream only" },
        { "guards", "guard pages and poison" },
        { "pinned", "pinned staging" },
        { "pageable", "pageable staging" },
        { "sync-copies", "waits before and after each copy to the host" },
        { "chunking", "other chunks of the prompt" },
        { "injected-removed", "planted fault taken away" },
    },
};
