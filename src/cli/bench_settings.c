/* bench_settings.c - see bench_settings.h. */
#include "cli/bench_settings.h"

#include "cli/audit_options.h"
#include "cli/bench_report.h"
#include "cli/model_options.h"

const struct bench_settings bench_defaults = { .device = "auto",
                                               .form = "md",
                                               .prompts = "512",
                                               .generates = "128",
                                               .depths = "0",
                                               .repeats = 5,
                                               .sequences = 1 };

#define AT(field) offsetof(struct bench_settings, field)

const struct cli_option bench_options[BENCH_OPTION_COUNT] = {
    { "--model|-m", "FILE", CLI_TEXT, AT(model),
      "model to measure (GGUF; default: the one that comes with greta)", NULL, true },
    { "--n-prompt|-p", "N,...", CLI_TEXT, AT(prompts),
      "tokens of the prompt tests (default: 512; 0: none)", NULL, false },
    { "--n-gen|-n", "N,...", CLI_TEXT, AT(generates),
      "tokens of the generation tests (default: 128; 0: none)", NULL, false },
    { "--pg|-pg", "P,G", CLI_TEXT_LIST, AT(pairs), "a prompt of P tokens, then G generated", NULL,
      false },
    { "--n-depth|-d", "N,...", CLI_TEXT, AT(depths),
      "tokens of context before each test (default: 0)", NULL, false },
    { "--repetitions|-r", "N", CLI_U32, AT(repeats), "times each test is run (default: 5)", NULL,
      false },
    { "--no-warmup", NULL, CLI_FLAG, AT(no_warmup), "measure from the first run on", NULL, false },
    { "--threads|-t", "N", CLI_U32, AT(threads), "threads (default: all processors)", NULL, false },
    { "--batch-size|-b", "N", CLI_U32, AT(batch), "prompt tokens at a time (default: 2048)", NULL,
      false },
    { "--ubatch-size|-ub", "N", CLI_U32, AT(micro_batch),
      "the same; the smaller of the two is used (default: 512, on a GPU 2048)", NULL, false },
    { "--parallel|-npl", "N", CLI_U32, AT(sequences),
      "sequences decoded at once, each after its own prompt; the speed is their total (default: 1)",
      NULL, false },
    CLI_CACHE_TYPE_OPTIONS,
    { "--device|-dev", "NAME", CLI_TEXT, AT(device), "host, cuda:N, hip:N or auto (the default)",
      NULL, false },
    { "--list-devices", NULL, CLI_FLAG, AT(list_devices),
      "list the devices and exit (greta devices)", NULL, false },
    { "--n-gpu-layers|-ngl", "N", CLI_TEXT, AT(gpu_layers),
      "0: run on the host; otherwise the device gets all layers, never a part", NULL, false },
    { "--flash-attn|-fa", "MODE", CLI_TEXT, AT(flash),
      "ignored, for compatibility: attention never holds a whole matrix", "on off auto 0 1",
      false },
    { "--output|-o", "FORM", CLI_TEXT, AT(form), "form of the results (default: md)", BENCH_FORMS,
      false },
    { "--audit", "LEVEL", CLI_TEXT, AT(audit), CLI_AUDIT_HELP, CLI_AUDIT_LEVELS, false },
    { "--flight", "FILE", CLI_TEXT, AT(flight), CLI_FLIGHT_HELP, NULL, true },
    { "--inject", "FAULT", CLI_TEXT, AT(inject),
      "plant a fault, to see what --audit reports (see greta infer --inject)", NULL,
      CLI_COMPLETES_FAULT },
    { "--audit-cost", NULL, CLI_FLAG, AT(audit_cost),
      "measure what --audit adds to generation: off, log and guard in turn, -r rounds of -n tokens",
      NULL, false },
    { "--json", NULL, CLI_FLAG, AT(json), "the same as -o json: an array, the keys of llama-bench",
      NULL, false },
};
