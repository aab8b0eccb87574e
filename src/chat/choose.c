/* choose.c - which template a conversation is rendered with. */
#include "chat/chat.h"

#include <stdio.h>
#include <string.h>

#define KEY "tokenizer.chat_template"

static bool find_key(const struct gguf_file *file, const char *key, struct text_view *ret)
{
    struct error unused;
    return gguf_find(file, key) && gguf_get_text(file, key, ret, &unused) == STATUS_OK;
}

/* "tool_use, rag": for a message. */
static void list_names(const struct gguf_file *file, struct text *names)
{
    size_t prefix = strlen(KEY ".");
    for (size_t i = 0; i < gguf_entry_count(file); i++) {
        struct text_view key = gguf_entry_at(file, i)->key;
        if (key.length <= prefix || memcmp(key.bytes, KEY ".", prefix) != 0)
            continue;
        text_add(names, names->length ? ", " : "");
        text_add_printable(names, (struct text_view){ key.bytes + prefix, key.length - prefix },
                           64);
    }
}

static enum status refuse_name(const struct gguf_file *file, const char *name, struct error *err)
{
    struct text names;
    char shown[64];
    text_init(&names);
    list_names(file, &names);
    text_printable(text_view_of(name), shown, sizeof(shown));
    (void)error_set(err, STATUS_NOT_FOUND, "the model has no chat template '%s'; it has: %s", shown,
                    names.length ? text_get(&names) : "none with a name");
    text_release(&names);
    return STATUS_NOT_FOUND;
}

enum status chat_template_find(const struct gguf_file *file, const char *name, bool with_tools,
                               struct text_view *ret, struct error *err)
{
    char key[sizeof(KEY) + 128];
    if (name && strcmp(name, "default") != 0) {
        int length = snprintf(key, sizeof(key), KEY ".%s", name);
        if (length < (int)sizeof(key) && find_key(file, key, ret))
            return STATUS_OK;
        return refuse_name(file, name, err);
    }
    if ((!name && with_tools && find_key(file, KEY ".tool_use", ret)) || find_key(file, KEY, ret))
        return STATUS_OK;
    return error_set(err, STATUS_NOT_FOUND,
                     "the model has no chat template (%s); name one with --chat-template, for "
                     "instance chatml",
                     KEY);
}

static const char chatml[] =
    "{%- for message in messages -%}\n"
    "{{ '<|im_start|>' ~ message.role ~ '\\n' ~ message.content ~ '<|im_end|>\\n' }}\n"
    "{%- endfor -%}\n"
    "{{ '<|im_start|>assistant\\n' if add_generation_prompt }}";

const char *chat_template_known(const char *name)
{
    return strcmp(name, "chatml") == 0 ? chatml : NULL;
}
