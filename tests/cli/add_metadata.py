"""Copies a GGUF file with more texts in its metadata. add_metadata.py IN OUT KEY=TEXT..."""
import struct
import sys

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
STRING, ARRAY, ALIGNMENT = 8, 9, 32


def skip_string(data, at):
    return at + 8 + struct.unpack_from("<Q", data, at)[0]


def skip_value(data, at, kind):
    if kind == STRING:
        return skip_string(data, at)
    if kind != ARRAY:
        return at + SIZES[kind]
    inner, count = struct.unpack_from("<IQ", data, at)
    at += 12
    if inner != STRING:
        return at + SIZES[inner] * count
    for _ in range(count):
        at = skip_string(data, at)
    return at


def padded(data):
    return data + bytes(-len(data) % ALIGNMENT)


def main():
    with open(sys.argv[1], "rb") as source:
        data = source.read()
    magic, version, tensors, entries = struct.unpack_from("<4sIQQ", data)
    at = 24
    for _ in range(entries):
        at = skip_string(data, at)
        kind = struct.unpack_from("<I", data, at)[0]
        at = skip_value(data, at + 4, kind)
    directory = at
    for _ in range(tensors):
        at = skip_string(data, at)
        at += 4 + 8 * struct.unpack_from("<I", data, at)[0] + 12
    added = b""
    for pair in sys.argv[3:]:
        key, text = (part.encode() for part in pair.split("=", 1))
        added += struct.pack("<Q", len(key)) + key + struct.pack("<IQ", STRING, len(text)) + text
    head = struct.pack("<4sIQQ", magic, version, tensors, entries + len(sys.argv) - 3)
    with open(sys.argv[2], "wb") as out:
        out.write(padded(head + data[24:directory] + added + data[directory:at]))
        out.write(data[len(padded(data[:at])):])


main()
