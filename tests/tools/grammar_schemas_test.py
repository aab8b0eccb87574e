"""What is written under a JSON schema, judged by python3-jsonschema: grammar_schemas_test.py PROGRAM.

PROGRAM (grammar_schema_test --texts) writes texts for random schemas. Each has to be JSON and valid.
Texts may be cut off, and schemas may be refused, but only some of them."""
import json
import random
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    print("skipped: python3-jsonschema is not installed")
    sys.exit(77)

WORDS = ["a", "b", "name", "ab", "abc", "é", "x\"y", "back\\slash", "tab\t", ""]
PATTERNS = ["^[a-z]{2,5}$", "^a+$", "b", "^(ab|c)*d?$", "^\\d{3}-\\d{4}$", "^[^\"a]{1,3}$", "\\w\\s",
            "^.{0,4}$", "^[A-Z][a-z]+( [A-Z][a-z]+)?$", "^\\S+@\\S+$", "a|^b", "^[\\x20-\\x7e]{3}$"]


def number(rng):
    return rng.choice([0, 1, -1, 7, 120, -350, 99999, 0.5, -2.25, 1e-3, 12.75, 1000.001])


def schema(rng, depth, defs):
    """A random schema; less and less nested."""
    kinds = ["string", "integer", "number", "enum", "const", "types", "any", "pattern"]
    if depth > 0:
        kinds += ["object"] * 5 + ["array"] * 3 + ["anyOf", "oneOf", "allOf", "free"] + ["ref"] * (2 if defs else 0)
    kind = rng.choice(kinds)
    inner = lambda: schema(rng, depth - 1, defs)
    if kind == "string":
        low = rng.randint(0, 6)
        return {"type": "string", **rng.choice([{}, {"minLength": low}, {"maxLength": low + 3},
                                                {"minLength": low, "maxLength": low + rng.randint(0, 9)}])}
    if kind == "pattern":
        return {"type": "string", "pattern": rng.choice(PATTERNS)}
    if kind in ("integer", "number"):
        found = {"type": kind}
        low, high = sorted([number(rng), number(rng)])
        if kind == "integer":
            high += 1  # some integer is between
        if rng.random() < 0.6:
            found[rng.choice(["minimum", "exclusiveMinimum"])] = low
        if rng.random() < 0.6:
            found[rng.choice(["maximum", "exclusiveMaximum"])] = high + rng.choice([0, 1, 20])
        return found
    if kind == "enum":
        return {"enum": [rng.choice(WORDS + [1, 2.5, None, True, {"a": [1]}, [[], {}]]) for _ in range(rng.randint(1, 4))]}
    if kind == "const":
        return {"const": rng.choice(WORDS + [0, -1.5, False, {"k": {"l": "m"}}])}
    if kind == "types":
        return {"type": rng.sample(["null", "boolean", "integer", "string"], rng.randint(1, 3))}
    if kind == "any":
        return rng.choice([{}, True])
    if kind == "array":
        found = {"type": "array", "items": inner()}
        if rng.random() < 0.3:  # draft 7 writes prefixes like this
            found = {"type": "array", "items": [inner() for _ in range(rng.randint(1, 3))],
                     "additionalItems": rng.choice([False, True, {"type": "null"}])}
        if rng.random() < 0.4:
            found["minItems"] = rng.randint(0, 2)
        if rng.random() < 0.4:
            found["maxItems"] = rng.randint(2, 4)
        return found
    if kind == "object":
        names = rng.sample(WORDS, rng.randint(1, 5))
        found = {"type": "object", "properties": {n: inner() for n in names}}
        found["required"] = [n for n in names if rng.random() < 0.5]
        if rng.random() < 0.5:
            found["additionalProperties"] = rng.choice([False, True, {"type": "integer"}])
        return found
    if kind == "free":
        return {"type": "object", "additionalProperties": inner()}
    if kind == "ref":
        return {"$ref": "#/definitions/" + rng.choice(defs)}
    if kind == "allOf":
        names = rng.sample(WORDS, 2)
        return {"type": "object", "allOf": [{"properties": {names[0]: inner()}, "required": [names[0]]},
                                            {"properties": {names[1]: inner(), names[0]: {}}}]}
    if kind == "oneOf":
        return {"oneOf": rng.choice([[{"type": "null"}, inner()], [inner(), inner()],
                                     [{"type": "object", "properties": {"kind": {"const": k}, "v": inner()},
                                       "required": ["kind"]} for k in ("p", "q")]])}
    return {"anyOf": [inner() for _ in range(rng.randint(1, 3))]}


def main():
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 400
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 1)
    schemas = []
    for _ in range(count):
        defs = ["node", "leaf"] if rng.random() < 0.4 else []
        whole = schema(rng, 3, defs)
        if isinstance(whole, dict) and defs:
            # $ref stands alone in draft 7: siblings are not looked at there.
            whole = {"allOf": [whole], "definitions": {
                "leaf": schema(rng, 0, []),
                "node": {"type": "object", "properties": {"next": {"$ref": "#/definitions/node"}, "v": schema(rng, 1, [])},
                         "additionalProperties": False}}}
        schemas.append(whole)
    lines = "".join(json.dumps(x, ensure_ascii=False) + "\n" for x in schemas)
    done = subprocess.run([sys.argv[1], "--texts"], input=lines.encode(), stdout=subprocess.PIPE, check=True)
    answers = done.stdout.decode().split("end\n")[:-1]
    assert len(answers) == len(schemas), "expected %d answers, found %d" % (len(schemas), len(answers))
    refused, texts, wrong = {}, 0, 0
    for one, answer in zip(schemas, answers):
        if answer.startswith("refused"):
            refused.setdefault(answer[8:].split(": ", 2)[-1][:60], []).append(one)
            continue
        for text in answer.split():
            texts += 1
            try:
                value = json.loads(bytes.fromhex(text))
                jsonschema.validate(value, one, cls=jsonschema.Draft7Validator)
            except (ValueError, jsonschema.ValidationError, RecursionError) as problem:
                wrong += 1
                print("%s\n  for %s\n  %s" % (bytes.fromhex(text), json.dumps(one, ensure_ascii=False),
                                             str(problem).split("\n")[0]))
    for why, which in sorted(refused.items()):
        print("refused %4d: %s" % (len(which), why))
    print("%d schemas, %d texts, %d wrong" % (count, texts, wrong))
    few = texts < 3 * count or sum(map(len, refused.values())) > count / 4
    if few:
        print("expected more texts and fewer refusals")
    return 1 if wrong or few else 0


sys.exit(main())
