#!/usr/bin/env python3
"""assemble.py SOURCE TARGET [--arch N] [--only REGEX] [--ptxas PROGRAM] [--isa X.Y] [--jobs N]

Gives a CUDA library machine code for one chip. A library may bring only PTX for it, and PTX of a newer
version than the installed driver takes ("unsupported toolchain"). In every module of SOURCE the PTX for
ARCH is marked as version X.Y, which ptxas refuses where an instruction is newer, and assembled; TARGET
has that in place of everything else. --only: modules without such a kernel keep PTX of that version,
which the driver compiles when they are first used. Needs ptxas (CUDA toolkit) and zstd.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

MAGIC, HEADER_BYTES = 0xBA55ED50, 16
PTX, ELF = 1, 2
COMPRESSED = 0x8000  # of an image's flags: zstd


class Image:
    """An entry of a module: its header as it stands, and what lies behind it."""

    def __init__(self, data, offset):
        self.kind, _, self.header_bytes, self.padded_bytes = struct.unpack_from("<HHIQ", data, offset)
        self.packed_bytes, = struct.unpack_from("<I", data, offset + 16)
        self.arch, = struct.unpack_from("<I", data, offset + 28)
        self.flags, _, self.plain_bytes = struct.unpack_from("<QQQ", data, offset + 40)
        self.header = bytes(data[offset:offset + self.header_bytes])
        self.body = bytes(data[offset + self.header_bytes:offset + self.header_bytes + self.padded_bytes])

    def bytes(self):
        return self.header_bytes + self.padded_bytes

    def text(self):
        if self.flags & COMPRESSED:
            return zstd("-d", self.body[:self.packed_bytes])[:self.plain_bytes].rstrip(b"\0")
        return self.body.rstrip(b"\0")


def zstd(option, data):
    return subprocess.run(["zstd", "-q", "-c", option], input=data, stdout=subprocess.PIPE, check=True).stdout


def section(path, name):
    """Where a section of an ELF file lies: offset, size."""
    for line in subprocess.check_output(["readelf", "-SW", path], text=True).splitlines():
        words = line.split("]")[-1].split()
        if words and words[0] == name:
            return int(words[3], 16), int(words[4], 16)
    sys.exit(f"{path}: expected a section {name}, found none")


def modules(data, begin, size):
    """Offset and size of the images of every module."""
    at = begin
    while at + HEADER_BYTES <= begin + size:
        magic, _, header, room = struct.unpack_from("<IHHQ", data, at)
        if magic != MAGIC:
            at += 8
            continue
        if at + header + room > begin + size:
            sys.exit(f"module at {at}: expected at most {begin + size - at - header} bytes, found {room}")
        yield at, header, room
        at += header + room


def images(data, begin, room):
    at = begin
    while at < begin + room:
        image = Image(data, at)
        yield image
        at += image.bytes()


def packed(header, plain, room):
    """An image: plain where it fits, compressed otherwise."""
    header = bytearray(header)
    body, packed_bytes, flags, plain_bytes = plain, 0, 0x11, 0
    if len(header) + len(plain) + 8 > room:
        body = zstd("-9", plain)
        packed_bytes, flags, plain_bytes = len(body), 0x11 | COMPRESSED, len(plain)
    body += bytes(-len(body) % 8)
    struct.pack_into("<QI", header, 8, len(body), packed_bytes)
    struct.pack_into("<QQQ", header, 40, flags, 0, plain_bytes)
    return bytes(header) + body


def assembled(text, options):
    with tempfile.TemporaryDirectory() as folder:
        source, target = pathlib.Path(folder) / "a.ptx", pathlib.Path(folder) / "a.cubin"
        source.write_bytes(text)
        done = subprocess.run([options.ptxas, f"-arch=sm_{options.arch}", str(source), "-o", str(target)],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr.strip()[:400])
        return target.read_bytes()


def make(data, begin, room, options):
    """The module's one image, or None where it has no PTX for the chip."""
    ptx = next((image for image in images(data, begin, room) if image.kind == PTX and image.arch == options.arch), None)
    if not ptx:
        return None
    text = re.sub(rb"(?m)^\.version [0-9.]+", b".version " + options.isa.encode(), ptx.text(), count=1)
    if not re.search(options.only.encode(), text):
        return packed(ptx.header, text + b"\0", room)
    header = struct.pack("<HHIQIIHHI", ELF, 0x101, 64, 0, 0, 0, 8, 1, options.arch) + bytes(32)
    return packed(header, assembled(text, options), room)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("--arch", type=int, default=90)
    parser.add_argument("--only", default="", help="assemble modules whose PTX matches; the others keep PTX")
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--isa", default="9.0", help="of the PTX: 9.0 is that of CUDA 13.0")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    data = bytearray(pathlib.Path(options.source).read_bytes())
    found = list(modules(data, *section(options.source, ".nv_fatbin")))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        made = list(pool.map(lambda m: make(data, m[0] + m[1], m[2], options), found))
    for (at, header, room), image in zip(found, made):
        if image is None:
            continue
        if len(image) > room:
            sys.exit(f"module at {at}: expected at most {room} bytes, found {len(image)}")
        struct.pack_into("<Q", data, at + 8, len(image))
        data[at + header:at + header + room] = image + bytes(room - len(image))
    pathlib.Path(options.target).write_bytes(data)
    kinds = [struct.unpack_from("<H", image)[0] for image in made if image]
    print(f"{options.target}: {len(found)} modules, {kinds.count(ELF)} assembled for sm_{options.arch}, {kinds.count(PTX)} with PTX {options.isa}")


main()
