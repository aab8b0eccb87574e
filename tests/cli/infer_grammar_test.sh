# infer_grammar_test.sh - greta infer with a grammar or a schema: the text fits, errors say where.
source "$(dirname "$0")/lib.sh"

expect_exit 0 "$GRETA" synth --shape tiny --type f32 --seed 3 --out tiny.gguf

# ---- A grammar ---------------------------------------------------------------------------------
expect_exit 0 "$GRETA" infer -m tiny.gguf -p Once --greedy --grammar 'root ::= "yes, " ("it is" | "they are")'
grep -qxE 'yes, (it is|they are)' <(cat "$captured/out"; echo) || fail "expected a text of the grammar"
expect_stderr "Ended: complete"
cp "$captured/out" "$captured/first"
printf 'root ::= "yes, " end\nend ::= "it is" | "they are"\n' >answer.gbnf
for variant in "--grammar answer.gbnf" "--grammar-file answer.gbnf" "--grammar answer.gbnf --ignore-eos -t 1"; do
    # shellcheck disable=SC2086 # options and their values
    expect_exit 0 "$GRETA" infer -m tiny.gguf -p Once --greedy $variant
    expect_same_bytes "$captured/out" "$captured/first"
done
expect_exit 0 "$GRETA" infer -m tiny.gguf -p Once --grammar answer.gbnf --json
grep -q '"reason": *"complete"' "$captured/out" || fail "expected the reason in JSON"
expect_exit 0 "$GRETA" infer -m tiny.gguf -p Once --grammar answer.gbnf -n 2
expect_stderr "Ended: length"

for option in --grammar --json-schema; do
    expect_exit 2 "$GRETA" infer -m tiny.gguf -p Once "$option" ''
    expect_one_line_error "$option: expected a file or a text, found nothing"
done

# ---- A schema ----------------------------------------------------------------------------------
cat >person.json <<'END'
{"type": "object", "required": ["name", "age", "tags"], "additionalProperties": false,
 "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 120},
                "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1, "maxItems": 3}}}
END
for seed in 1 2 3 4; do
    expect_exit 0 "$GRETA" infer -m tiny.gguf -p Once -n 400 --seed "$seed" --temp 1.2 --json-schema person.json
    expect_stderr "Ended: complete"
    python3 - "$captured/out" <<'END' || fail "expected JSON that is valid for the schema"
import json, sys
value = json.load(open(sys.argv[1]))
assert list(value) == ["name", "age", "tags"], value
assert len(value["name"]) <= 12 and 0 <= value["age"] <= 120 and set(value["tags"]) <= {"a", "b"}, value
END
done
expect_exit 0 "$GRETA" infer -m tiny.gguf -p Once -j '{"enum": ["left", "right"]}' -np 2
expect_exit 0 "$GRETA" infer -m tiny.gguf -p Once -j ' {"const": 7}'
[ "$(cat "$captured/out")" = 7 ] || fail "expected 7"

# ---- Errors ------------------------------------------------------------------------------------
expect_exit 2 "$GRETA" infer -m tiny.gguf -p Once --grammar 'root ::= "a" |
  ]'
expect_stderr "--grammar:2:3: expected text, a set, a rule or (, found ']'"
expect_exit 2 "$GRETA" infer -m tiny.gguf -p Once -j '{"type": "text"}'
expect_stderr "--json-schema: #: type: expected null, boolean"
expect_exit 3 "$GRETA" infer -m tiny.gguf -p Once -j '{"uniqueItems": true}'
expect_stderr "'uniqueItems' cannot be obeyed"
expect_exit 2 "$GRETA" infer -m tiny.gguf -p Once --grammar answer.gbnf -j '{}'
expect_stderr "expected it without --grammar"
expect_exit 3 "$GRETA" infer -m tiny.gguf -p Once --grammar missing.gbnf
expect_stderr "missing.gbnf: cannot open it"

finish
