# chat_test.sh - greta chat and greta infer --chat: turns, commands, one answer, and what they refuse.
source "$(dirname "$0")/lib.sh"

# talk COMMAND...: with the lines of the file `lines` as input.
talk()
{
    "$@" <lines
}

expect_exit 0 "$GRETA" synth --out plain.gguf
python3 -B "$GRETA_SOURCE/tests/cli/add_metadata.py" plain.gguf chat.gguf \
    'tokenizer.chat_template={% for m in messages %}<s>{{ m.role }}: {{ m.content }}</s>{% endfor %}{% if add_generation_prompt %}<s>assistant: {% endif %}' \
    'tokenizer.chat_template.strict={% if messages[0].content == "bad" %}{{ raise_exception("no such words") }}{% endif %}{{ messages[0].content }}' \
    'tokenizer.chat_template.tool_use={{ tools[0].name }}'
chat=("$GRETA" chat -q -m chat.gguf -n 8 --seed 3)

# ---- Turns -------------------------------------------------------------------------------------
printf 'Hello\n/stats\nMore\n/regen\n/stats\n/save saved.json\n' >lines
expect_exit 0 talk "${chat[@]}" -sys "Be brief"
cp "$captured/out" first
expect_stderr "(saved 5 messages)"
grep -q "last answer: prompt [0-9]* tokens (0 kept" "$captured/err" || fail "expected a prompt that is run"
kept=$(grep "last answer" "$captured/err" | tail -1 | sed 's/.*(\([0-9]*\) kept.*/\1/')
run=$(grep "last answer" "$captured/err" | tail -1 | sed 's/.*prompt \([0-9]*\) tokens.*/\1/')
[ "$((kept + 1))" -eq "$run" ] || fail "expected a second answer to the same prompt without a prefill"
cp saved.json conversation.json
expect_exit 0 python3 -c '
import json
said = json.load(open("conversation.json"))
assert [m["role"] for m in said] == ["system", "user", "assistant", "user", "assistant"], said
assert said[0]["content"] == "Be brief" and said[3]["content"] == "More", said'

# The same lines and seed give the same answers, and a conversation can be loaded.
expect_exit 0 talk "${chat[@]}" -sys "Be brief"
expect_same_bytes first "$captured/out"
printf '/load conversation.json\n/regen\n/save again.json\n/clear\n/save cleared.json\n/system Other\n/save other.json\n' >lines
expect_exit 0 talk "${chat[@]}"
expect_stderr "(loaded 5 messages)"
[ "$(grep -c role again.json)" -eq 5 ] || fail "expected five messages"
[ "$(grep -c role cleared.json)" -eq 1 ] || fail "expected the system prompt alone"
grep -q Other other.json || fail "expected the new system prompt"

# A command that fails takes nothing back.
echo '[{"role": "user", "content": "asked before"}]' >asked.json
printf '/load asked.json\n/nope\n/save kept.json\n' >lines
expect_exit 0 talk "${chat[@]}"
grep -q "asked before" kept.json || fail "expected the message to be kept"

# Lines that go on, and text between fences.
printf 'one\\\ntwo\n"""three\nfour"""\n/save long.json\n' >lines
expect_exit 0 talk "${chat[@]}"
grep -q 'one\\ntwo' long.json || fail "expected two lines in one turn"
grep -q 'three\\nfour' long.json || fail "expected the text between the fences"

# ---- Commands ----------------------------------------------------------------------------------
printf '/help\n/set temp=0\n/set\n/set temp=warm\n/set heat=1\n/set top-p=7\n/nope\n/regen\n/load none.json\n/save\n/exit\nnot read\n' >lines
expect_exit 0 talk "${chat[@]}"
expect_no_stdout
for words in "/regen" "temp=0" "expected temp=NUMBER" "there is no setting 'heat'" "top-p" \
    "there is no command '/nope'" "there is no answer yet" "none.json" "expected a file name"; do
    expect_stderr "$words"
done

# A template that refuses a message does not end the conversation.
printf 'bad\ngood\n/save refused.json\n' >lines
expect_exit 0 talk "${chat[@]}" --chat-template strict
expect_stderr "no such words"
[ "$(grep -c role refused.json)" -eq 2 ] || fail "expected the second turn alone"

# ---- Tools -------------------------------------------------------------------------------------
cat >calls.json <<'END'
[{"role": "user", "content": "Add"},
 {"role": "assistant", "content": "", "tool_calls": [
  {"id": "one", "type": "function", "function": {"name": "add", "arguments": {"a": 1}}},
  {"id": "two", "type": "function", "function": {"name": "sub", "arguments": {}}}]}]
END
echo '[{"type": "function", "function": {"name": "add", "parameters": {}}}]' >offered.json
printf '/tool 0\n/load calls.json\n/tool 5\n/save between.json\n/tool 6\n/save after.json\n/tool 7\n' >lines
expect_exit 0 talk "${chat[@]}" --tools offered.json --chat-template default
expect_stderr "there is no call without a result"
expect_exit 0 python3 -c '
import json
between, after = json.load(open("between.json")), json.load(open("after.json"))
assert len(between) == 3 and len(after) == 5, (between, after)
assert after[2] == {"role": "tool", "content": "5", "tool_call_id": "one", "name": "add"}, after
assert after[3]["tool_call_id"] == "two" and after[4]["role"] == "assistant", after'

# ---- One answer --------------------------------------------------------------------------------
expect_exit 0 "$GRETA" infer -q --chat -m chat.gguf -p Hello -n 8 --seed 3
[ -s "$captured/out" ] || fail "expected an answer"
cp "$captured/out" once
expect_exit 0 "$GRETA" chat -q --chat -m chat.gguf -n 8 --seed 3 Hello
expect_same_bytes once "$captured/out"
printf 'Hello\n' >lines
expect_exit 0 talk "$GRETA" infer -q -cnv -m chat.gguf -n 8 --seed 3
expect_same_bytes once "$captured/out"
# The seed that was chosen, and why an answer ended, are said unless it is quiet.
expect_no_stderr
expect_exit 0 "$GRETA" infer --chat -m chat.gguf -p Hello -n 2 --temp 1
expect_stderr "Ended: length"
seed=$(sed -n 's/^Seed: //p' "$captured/err")
cp "$captured/out" chosen
expect_exit 0 "$GRETA" infer --chat -m chat.gguf -p Hello -n 2 --temp 1 --seed "$seed"
expect_same_bytes chosen "$captured/out"
expect_stderr "Seed: $seed"
expect_exit 0 talk "$GRETA" chat -m chat.gguf -n 2 --seed 3
expect_stderr "cut off: it has as many tokens as --max-tokens allows"
expect_exit 0 talk "$GRETA" chat -m chat.gguf -c 64 -n -1 --seed 3 --grammar 'root ::= "a"{2000}'
expect_stderr "cut off: the context is full"
expect_exit 0 talk "$GRETA" chat -m chat.gguf --grammar 'root ::= "yes"'
expect_no_stderr
expect_exit 1 "$GRETA" infer --chat -m chat.gguf --chat-template strict -p bad
expect_one_line_error "no such words"
expect_exit 0 "$GRETA" infer -q --chat -m plain.gguf --chat-template chatml -p Hello -n 4

# ---- Constrained answers -----------------------------------------------------------------------
printf 'One\nTwo\n/save fits.json\n' >lines
printf 'yes\nyes\n' >expected
expect_exit 0 talk "${chat[@]}" --grammar 'root ::= "yes"'
expect_same_bytes expected "$captured/out"
expect_exit 0 "$GRETA" infer -q --chat -m chat.gguf -p Hello --json-schema '{"const": 7}'
[ "$(cat "$captured/out")" = 7 ] || fail "expected 7"
# What fits is the answer as it is, also if it looks like a thought or a call.
expect_exit 0 talk "${chat[@]}" -n 100 --grammar 'root ::= "<think>no</think>yes"'
[ "$(grep -c '^<think>no</think>yes$' "$captured/out")" -eq 2 ] || fail "expected whole answers"
expect_exit 0 talk "${chat[@]}" -n 100 --grammar 'root ::= "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>"'
! grep -q call0 "$captured/out" || fail "expected no call"
grep -q '"content": "<tool_call>' fits.json || fail "expected the answer as it was written"
# A template that thinks unless it is asked not to is asked.
python3 -B "$GRETA_SOURCE/tests/cli/add_metadata.py" plain.gguf thinks.gguf \
    'tokenizer.chat_template={% if enable_thinking is not defined or enable_thinking %}{{ raise_exception("it thinks") }}{% endif %}{{ messages[0].content }}'
expect_exit 1 "$GRETA" infer -q --chat -m thinks.gguf -p Hello
expect_exit 0 "$GRETA" infer -q --chat -m thinks.gguf -p Hello --grammar 'root ::= "yes"'
for other in "--tools offered.json" "--reasoning on" "--reasoning low"; do
    # shellcheck disable=SC2086 # an option and its value
    expect_exit 2 "$GRETA" chat -m chat.gguf --json-schema '{"const": 7}' $other
    expect_one_line_error "--json-schema: expected it without ${other%% *}"
done

# ---- What is refused ---------------------------------------------------------------------------
expect_exit 3 "$GRETA" chat -m plain.gguf
expect_one_line_error "the model has no chat template"
expect_exit 3 "$GRETA" chat -m none.gguf
expect_exit 2 "$GRETA" chat -m chat.gguf --audit log
expect_one_line_error "--audit is not for conversations"
expect_exit 2 "$GRETA" infer --chat -m chat.gguf -p Hello --json
expect_one_line_error "use greta infer without --chat and -cnv"
expect_exit 2 "$GRETA" chat -m chat.gguf --reasoning perhaps
expect_exit 2 "$GRETA" infer --chat -m chat.gguf
expect_exit 3 "$GRETA" chat -m chat.gguf --tools none.json
echo '{}' >tools.json
expect_exit 3 "$GRETA" chat -m chat.gguf --tools tools.json
expect_one_line_error "expected a JSON array of tools"
printf 'a %.0s' $(seq 600) >lines
expect_exit 0 talk "${chat[@]}"
expect_one_line_error "/clear forgets it"

printf 'a\0b\nc\n/save whole.json\n' >lines
expect_exit 0 talk "${chat[@]}"
expect_stderr "message: expected text without NUL bytes, found one after 1 bytes"
[ "$(grep -c role whole.json)" -eq 2 ] || fail "expected the second turn alone"
expect_exit 2 "$GRETA" infer --chat -m chat.gguf -f lines
expect_one_line_error "expected text without NUL bytes"

# ---- Without a model ---------------------------------------------------------------------------
expect_exit 0 "$GRETA" chat -q -n 5 --seed 1
expect_stdout "Once upon a time"
expect_stderr "The model that comes with greta only tells stories"

finish
