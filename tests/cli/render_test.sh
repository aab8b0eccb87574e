# render_test.sh - greta render: templates of files and models, and what it says when one fails.
source "$(dirname "$0")/lib.sh"

# expect_text TEXT: exactly this on standard output.
expect_text()
{
    [ "$(cat "$captured/out"; echo .)" = "$1." ] || fail "expected '$1'"
}

cat >variables.json <<'END'
{"messages": [{"role": "user", "content": "Hi \u00e9"}], "add_generation_prompt": true, "tools": null}
END
cat >tools.json <<'END'
{"messages": [{"role": "user", "content": "Hi"}], "tools": [{"name": "f"}]}
END
cat >answer.json <<'END'
{"messages": [{"role": "user", "content": "Count"}, {"role": "assistant", "content": "1, 2,  "}]}
END
printf '%s\n' '{% for m in messages %}<{{ m.role }}>{{ m.content }}</s>{% endfor %}' \
    '{% if add_generation_prompt %}<assistant>{% endif %}' >keep.jinja
printf '{%% for m in messages %%}[{{ m.content | trim }}]{%% endfor %%}' >trim.jinja

# ---- From a file -------------------------------------------------------------------------------
expect_exit 0 "$GRETA" render --chat-template keep.jinja --variables variables.json
expect_no_stderr
expect_text $'<user>Hi \xc3\xa9</s><assistant>'
expect_exit 0 "$GRETA" render --chat-template chatml --variables variables.json
expect_text $'<|im_start|>user\nHi \xc3\xa9<|im_end|>\n<|im_start|>assistant\n'
printf '{{ strftime_now("%%d %%b %%Y %%H:%%M:%%S, %%A") }}' >now.jinja
expect_exit 0 "$GRETA" render --chat-template now.jinja --variables variables.json \
    --now 2026-02-03T04:05:06
expect_text "03 Feb 2026 04:05:06, Tuesday"
expect_exit 0 "$GRETA" render --chat-template now.jinja --variables variables.json

# ---- To be continued ---------------------------------------------------------------------------
expect_exit 0 "$GRETA" render --chat-template keep.jinja --variables answer.json \
    --continue-final-message
expect_text '<user>Count</s><assistant>1, 2,  '
expect_exit 0 "$GRETA" render --chat-template trim.jinja --variables answer.json \
    --continue-final-message
expect_text '[Count][1, 2,'
printf 'constant' >constant.jinja
expect_exit 1 "$GRETA" render --chat-template constant.jinja --variables answer.json \
    --continue-final-message
expect_one_line_error "does not appear in the text"

# ---- From a model ------------------------------------------------------------------------------
expect_exit 0 "$GRETA" synth --out plain.gguf
python3 -B "$GRETA_SOURCE/tests/cli/add_metadata.py" plain.gguf chat.gguf \
    'tokenizer.chat_template={{ bos_token }}{{ messages[0].content }}{{ eos_token }}{{ unk_token }}' \
    'tokenizer.chat_template.tool_use=TOOLS {{ tools|tojson }}' \
    'tokenizer.chat_template.rag=RAG'
expect_exit 0 "$GRETA" render -m chat.gguf --variables variables.json
expect_text $'<s>Hi \xc3\xa9</s><unk>'
expect_exit 0 "$GRETA" render -m chat.gguf --variables tools.json
expect_text 'TOOLS [{"name": "f"}]'
expect_exit 0 "$GRETA" render -m chat.gguf --chat-template default --variables tools.json
expect_text '<s>Hi</s><unk>'
expect_exit 0 "$GRETA" render -m chat.gguf --chat-template rag --variables tools.json
expect_text 'RAG'
expect_exit 0 "$GRETA" render -m chat.gguf --chat-template trim.jinja --variables tools.json
expect_text '[Hi]'
expect_exit 3 "$GRETA" render -m chat.gguf --chat-template other --variables tools.json
expect_one_line_error "the model has no chat template 'other'; it has: tool_use, rag"
expect_exit 3 "$GRETA" render -m plain.gguf --variables tools.json
expect_one_line_error "the model has no chat template"

# ---- What fails --------------------------------------------------------------------------------
printf 'a\n  {{ messages[0].nope.deeper }}' >undefined.jinja
expect_exit 1 "$GRETA" render --chat-template undefined.jinja --variables variables.json
expect_no_stdout
expect_one_line_error "template: line 2, column 22: 'dict object' has no attribute 'nope'"
printf '{{ raise_exception("Roles must alternate: " ~ messages[0].role ~ "\\nalways") }}' >raise.jinja
expect_exit 1 "$GRETA" render --chat-template raise.jinja --variables variables.json
expect_stderr "greta render: Roles must alternate: user"
expect_stderr "always"
printf '{%% if %%}' >syntax.jinja
expect_exit 1 "$GRETA" render --chat-template syntax.jinja --variables variables.json
expect_one_line_error "template: line 1, column 7: Expected an expression"
printf '{%% macro f() %%}{{ f() }}{%% endmacro %%}{{ f() }}' >endless.jinja
expect_exit 1 "$GRETA" render --chat-template endless.jinja --variables variables.json
expect_one_line_error "more than 100 macros or loops within each other"

expect_exit 2 "$GRETA" render --chat-template keep.jinja
expect_one_line_error "expected --variables FILE"
expect_exit 2 "$GRETA" render --variables variables.json
expect_one_line_error "expected --model or --chat-template"
expect_exit 2 "$GRETA" render --chat-template keep.jinja --variables variables.json --now yesterday
expect_one_line_error "expected a time such as"
expect_exit 2 "$GRETA" render --chat-template keep.jinja --variables variables.json \
    --now 2026-02-30T00:00:00
expect_exit 3 "$GRETA" render --chat-template none.jinja --variables variables.json
expect_one_line_error "none.jinja"
expect_exit 3 "$GRETA" render --chat-template keep.jinja --variables none.json
expect_one_line_error "none.json"
echo '[1]' >list.json
expect_exit 3 "$GRETA" render --chat-template keep.jinja --variables list.json
expect_one_line_error "expected a JSON object"
echo '{"a": ' >cut.json
expect_exit 3 "$GRETA" render --chat-template keep.jinja --variables cut.json
expect_one_line_error "expected a JSON object"

finish
