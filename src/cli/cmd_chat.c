/* cmd_chat.c - greta chat: a conversation in the terminal. Its options are those of greta infer. */
#include "cli/chat_run.h"

static enum cli_exit run_chat(const struct cli_invocation *invocation)
{
    const struct infer_settings *settings = invocation->settings;
    struct cli_invocation asked = *invocation;
    asked.quiet = invocation->quiet || settings->quiet;
    if (!settings->converse && !settings->once) /* --no-chat */
        return infer_main(&asked);
    return chat_main(&asked, settings);
}

const struct cli_command cli_chat = {
    .name = "chat",
    .operands = "[MESSAGE]",
    .operand_most = 1,
    .summary = "talk with a model",
    .description =
        "A conversation with a model that was trained on conversations, in the form that its chat "
        "template gives (greta render shows it). On a terminal lines can be edited and recalled if "
        "libedit is installed; a line that ends with \\ goes on in the next one, and \"\"\" begins "
        "and ends a text of several lines. In a pipe every line is a turn, and only answers are "
        "written to standard output.\n\n"
        "/help lists commands: /system TEXT, /clear, /regen, /set temp=0.5, /save FILE, /load "
        "FILE, "
        "/stats, /exit. Ctrl-C ends an answer and keeps what was written; Ctrl-D ends the "
        "conversation. What a model thinks before it answers is dimmed on a terminal and left out "
        "of a pipe.\n\n"
        "The turns before are not run again: the cache keeps them. --tools FILE gives the model a "
        "JSON array of tools in OpenAI's form; its calls are printed as JSON, and /tool gives "
        "their results. With --json-schema or --grammar every answer fits, and has no thoughts or "
        "calls. greta infer --chat gives one answer. Without a model there is nothing to talk "
        "with: the bundled one tells a "
        "story.\n\n"
        "Exit status 2 if the request makes no sense, 3 if model or template cannot be read, 1 if "
        "the template fails with --chat, 130 if it was interrupted while it waited.",
    .examples = "  greta chat -m model.gguf\n"
                "  greta chat -m model.gguf -sys \"Answer in one sentence.\" --temp 0\n"
                "  echo \"Why is the sky blue?\" | greta chat -m model.gguf\n"
                "  greta infer --chat -m model.gguf -p \"Why is the sky blue?\"\n",
    .options = infer_options,
    .option_count = INFER_OPTION_COUNT,
    .refusals = infer_refusals,
    .refusal_count = INFER_REFUSAL_COUNT,
    .settings_bytes = sizeof(struct infer_settings),
    .defaults = &chat_defaults,
    .run = run_chat,
};
