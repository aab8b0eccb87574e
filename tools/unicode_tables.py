#!/usr/bin/env python3
"""unicode_tables.py - writes src/template/unicode_*.def: what Python's str knows of characters.

usage: tools/unicode_tables.py classes|cases     (prints the table)

The table is that of the Unicode version of the Python that runs this: Debian 12 has 14.0."""
import sys
import unicodedata

LIMIT = 0x110000
SURROGATES = range(0xD800, 0xE000)


def properties(code):
    """The bits of enum unicode_property (src/template/unicode.h)."""
    char = chr(code)
    if code in SURROGATES:
        return 0
    cased = char.lower() != char or char.upper() != char or char.title() != char or char.isupper() or char.islower()
    # Between two letters, a character that case ignores leaves the final sigma alone.
    ignorable = len(("A" + "\u03a3" + char + "A").lower()) and ("A\u03a3" + char).lower()[1] == "\u03c2" and \
        ("A\u03a3" + char + "A").lower()[1] == "\u03c3"
    bits = (char.isprintable(), char.isalpha(), ("a" + char).isidentifier(), cased, ignorable, char.isdigit())
    return sum(1 << index for index, bit in enumerate(bits) if bit)


def runs():
    found, last = [], None
    for code in range(LIMIT):
        mask = properties(code)
        if mask != last:
            found.append(mask << 24 | code)
            last = mask
    return found


def cases(convert):
    """(first, last, step, delta) of characters that map to one character, and the others."""
    ranges, special = [], []
    for code in range(LIMIT):
        if code in SURROGATES:
            continue
        mapped = convert(chr(code))
        if mapped == chr(code):
            continue
        if len(mapped) > 1:
            special.append((code, mapped))
            continue
        delta = ord(mapped) - code
        if ranges and ranges[-1][3] == delta:
            first, last, step, _ = ranges[-1]
            gap = code - last
            if gap <= 2 and (step == gap or first == last):
                ranges[-1] = (first, code, gap, delta)
                continue
        ranges.append((code, code, 1, delta))
    return ranges, special


def entry(pair):
    return "{ 0x%X, { %s } }" % (pair[0], ", ".join(f"0x{ord(char):X}" for char in pair[1]))


def wrapped(name, items):
    line = f"{name}("
    for item in items:
        if len(line) + len(item) + 2 > 98:
            yield line
            line = "    "
        line += item + ", "
    yield line[:-2] + ")"


def print_classes():
    print("\n/* Properties << 24 | first character that has them. */")
    print("\n".join(wrapped("RUNS", [f"0x{run:X}" for run in runs()])))


def print_cases():
    for name, convert in (("UPPER", str.upper), ("LOWER", str.lower)):
        ranges, many = cases(convert)
        print("\n/* First, last, step, what to add. */")
        print("\n".join(wrapped(name, [f"{{ 0x{a:X}, 0x{b:X}, {s}, {d} }}" for a, b, s, d in ranges])))
        print("\n".join(wrapped(name + "_MANY", map(entry, many))))
    print("\n/* Where the title case is not the upper case. */")
    print("\n".join(wrapped("TITLE", [entry((code, chr(code).title())) for code in range(LIMIT)
                                       if code not in SURROGATES and chr(code).title() != chr(code).upper()])))


def main():
    what = {"classes": print_classes, "cases": print_cases}
    if len(sys.argv) != 2 or sys.argv[1] not in what:
        sys.exit(__doc__)
    print(f"/* unicode_{sys.argv[1]}.def - Unicode {unicodedata.unidata_version}, as Python's str has it. "
          "Generated: tools/unicode_tables.py. */")
    what[sys.argv[1]]()


main()
