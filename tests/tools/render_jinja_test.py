"""greta render against Debian's python3-jinja2, set up as Hugging Face transformers does, on random templates: the
same bytes, or both fail. Exit status 77 where jinja2 is not installed. render_jinja_test.py GRETA [COUNT] [SEED]"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

try:
    import jinja2
    import jinja2.ext
    import jinja2.sandbox
except ImportError:
    print("skipped: python3-jinja2 is not installed")
    sys.exit(77)

GRETA = sys.argv[1]
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 200
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 1

VARIABLES = {
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": " Hi <b> & \"you\"\n"},
                 {"role": "assistant", "content": None, "tool_calls": [{"name": "f", "arguments": {"a": 1, "b": [1.5]}}]},
                 {"role": "tool", "content": "h\u00e9llo \u65e5\u672c \U0001f600"}],
    "tools": None, "n": 7, "x": -2.5, "t": True, "s": "one two  three", "e": "", "l": [3, 1, 2, 1],
    "d": {"items": 1, "b": "q", "a": {"c": [1, {"z": None}]}}, "w": ["b", "A", "\u00dfa", "a-B"],
}
NAMES = list(VARIABLES) + ["missing", "i", "v", "m"]
TEXTS = ["", "a", " b ", "\n", "x-y", "\u00e9\u65e5", "it's", "<&>", "A b", "%s|%d"]
FILTERS = ["trim", "upper", "lower", "title", "capitalize", "length", "list", "first", "last", "string", "join('-')",
           "join", "default('D')", "default('D', true)", "tojson", "tojson(indent=2)", "replace('a', 'XY')", "sort",
           "unique|list", "reverse|list", "int", "float", "abs", "round(1)", "sum", "min", "max", "items|list",
           "dictsort", "map('string')|list", "map(attribute='role')|list", "selectattr('role')|list|length",
           "selectattr('role', 'equalto', 'user')|list", "select('string')|list", "reject('none')|list",
           "batch(2)|list", "slice(2)|list", "indent(2)", "indent(2, true, true)", "e", "safe", "wordcount",
           "center(9)", "truncate(5, true, '.', 0)", "groupby('role')", "striptags", "wordwrap(5)"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence",
         "iterable", "odd", "even", "true", "false", "in [1, 'a']", "divisibleby 2", "eq 1", "gt 1", "callable",
         "lower", "upper"]
METHODS = ["strip()", "upper()", "title()", "split()", "split(' ')", "split('a', 1)", "startswith('a')", "endswith('b')",
           "replace('a', 'b')", "items()|list", "keys()|list", "get('a')", "get('q', 1)", "lstrip('a ')", "rstrip()",
           "find('b')", "count('a')", "isdigit()", "splitlines()", "partition('-')", "capitalize()", "index(1)"]


class Generator:
    def __init__(self, seed, environment):
        self.random, self.environment = random.Random(seed), environment

    def pick(self, options):
        return self.random.choice(options)

    def atom(self):
        kind = self.random.randrange(10)
        if kind < 5:
            return self.pick(NAMES)
        if kind == 5:
            return repr(self.pick(TEXTS)).replace("\\u", "\\u")
        if kind == 6:
            return str(self.pick([0, 1, 2, 3, 10, 0.5, 1e20, 1e-7, 3.0]))
        if kind == 7:
            return self.pick(["true", "false", "none", "[]", "{}", "()", "[1, 'a', none]", "{'a': 1, 2: [3]}", "(1,)"])
        return self.pick(["messages[0]", "messages[1].content", "d.a.c", "d['items']", "l[-1]", "s[1:4]", "s[::-1]",
                          "w[1:]", "messages[-1]['content']", "loop.index", "loop.last", "d.b", "range(4)", "d.zz"])

    def expression(self, depth):
        if depth <= 0:
            return self.atom()
        kind = self.random.randrange(14)
        inner = self.expression(depth - 1)
        if kind < 3:
            return f"{inner} {self.pick(['+', '-', '*', '~', '~', '~', '//', '%', '/'])} {self.expression(depth - 1)}"
        if kind < 6:
            return f"({inner})|{self.pick(FILTERS)}"
        if kind == 6:
            return f"({inner}) is {self.pick(['', 'not '])}{self.pick(TESTS)}"
        if kind == 7:
            return f"({inner}).{self.pick(METHODS)}"
        if kind == 8:
            return f"{inner} {self.pick(['and', 'or'])} {self.expression(depth - 1)}"
        if kind == 9:
            return f"(not {inner})"
        if kind == 10:
            return f"({inner} {self.pick(['==', '!=', '<', '>=', 'in', 'not in'])} {self.expression(depth - 1)})"
        if kind == 11:
            return f"({inner} if {self.expression(depth - 1)} else {self.expression(depth - 1)})"
        if kind == 12:
            return f"[{inner}, {self.atom()}]"
        # Jinja computes slices of constants beforehand, by other rules.
        return self.pick([f"({inner})[{self.pick(['0', '-1', repr('a'), repr('content')])}]",
                          f"{self.pick(NAMES)}[{self.pick(['1:', ':2', '::-1', '-2:', '::2', ':-1'])}]"])

    def good(self):
        """An expression; mostly one that works, so that more than the first of a template runs."""
        one = self.expression(3)
        for _ in range(self.random.randrange(12)):
            if jinja_result(self.environment, "{{ " + one + " }}")[0] is not None:
                break
            one = self.expression(3)
        return one

    def open(self, what):
        return "{%" + self.pick(["", "", "-", "+"]) + " " + what + " " + self.pick(["", "", "-", "+"]) + "%}"

    def text(self):
        return self.pick(["", "a", "\n", "  ", "\n  ", " b\n", "\n\n", "{ x }", "\t", "\u3000"])

    def block(self, depth):
        return "".join(self.text() + self.statement(depth) for _ in range(self.random.randrange(1, 4))) + self.text()

    def statement(self, depth):
        kind = self.random.randrange(12) if depth > 0 else 0
        one = self.good()
        if kind < 5:
            return "{{" + self.pick(["", "-"]) + " " + one + " " + self.pick(["", "-"]) + "}}"
        if kind == 5:
            return self.open("if " + one) + self.block(depth - 1) + self.open("else") + self.block(depth - 1) + \
                self.open("endif")
        if kind == 6:
            items = self.pick(["l", "messages", "w", "s", "range(3)", "d.items()", "missing", "d"])
            rest = self.pick(["", " if v", " if loop is undefined"])
            jump = self.pick(["", "", "{% if loop.index > 1 %}{% break %}{% endif %}",
                              "{% if loop.first %}{% continue %}{% endif %}"])
            return self.open(f"for v in {items}{rest}") + jump + self.block(depth - 1) + self.open("else") + "E" + \
                self.open("endfor")
        if kind == 7:
            return self.open(f"set i = {one}")
        if kind == 8:
            return self.open("set i") + self.block(depth - 1) + self.open("endset") + "{{ i }}"
        if kind == 9:
            return self.open("macro m(v, i='d')") + self.block(depth - 1) + self.open("endmacro") + \
                self.pick(["{{ m(1) }}", "{{ m(l, i=2) }}", "{{ m() }}"])
        if kind == 10:
            return self.open("with v = " + one) + self.block(depth - 1) + self.open("endwith")
        return self.open("filter " + self.pick(["upper", "trim", "replace('a', '-')"])) + self.block(depth - 1) + \
            self.open("endfilter")


def jinja_result(environment, source):
    """The text, or None where it fails or prints what has an address in Python."""
    try:
        text = environment.from_string(source).render(**json.loads(json.dumps(VARIABLES)))
    except Exception:  # any failure is one
        return None, False
    return text, " at 0x" in text or "<function" in text or "<bound" in text or "<built-in" in text or "<class" in text


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def main():
    warnings.simplefilter("ignore")
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols])
    environment.filters["tojson"] = tojson
    generator, wrong, both, failed = Generator(SEED, environment), [], 0, 0
    with tempfile.TemporaryDirectory() as name:
        template, variables = pathlib.Path(name, "template"), pathlib.Path(name, "variables")
        variables.write_text(json.dumps(VARIABLES), encoding="utf-8")
        for _ in range(COUNT):
            source = generator.block(2)
            expected, unclear = jinja_result(environment, source)
            template.write_text(source, encoding="utf-8", newline="")
            done = subprocess.run([GRETA, "render", "--chat-template", template, "--variables", variables],
                                  capture_output=True, check=False)
            if unclear or b"64 bits" in done.stderr:
                continue
            both += expected is not None
            failed += expected is None
            found = done.stdout.decode() if done.returncode == 0 else None
            if found != expected:
                wrong.append(f"{source!r}\n  jinja2: {expected!r}\n  greta:  {found!r} {done.stderr.decode()[:200]}")
    print(f"{both} templates rendered, {failed} failed in both, {len(wrong)} differ")
    print("\n".join(wrong[:5]))
    return 1 if wrong or both < COUNT // 4 else 0


sys.exit(main())
