"""bench/peers/assemble.py on a library made here, with a ptxas that only marks what it was given.
assemble_test.py SOURCE"""
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv[1]).resolve()
PTX, ELF = 1, 2
# Refuses what is newer than 9.0, as that of CUDA 13.0 does. MORE: a command that makes the code longer.
PTXAS = """#!/bin/sh
grep -q '^.version 9.0' "$2" || { echo "unsupported version" >&2; exit 1; }
{ printf 'code of %s: ' "$1"; cat "$2"; MORE; } > "$4"
"""


def image(kind, arch, body):
    body += bytes(-len(body) % 8)
    return struct.pack("<HHIQIIHHI", kind, 0x101, 64, len(body), 0, 0, 8, 1, arch) + struct.pack("<QQQQ", 0, 0x11, 0, 0) + body


def module(*images):
    body = b"".join(images)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def ptx(name, version="9.1"):
    return f".version {version}\n.target sm_90\n.visible .entry {name}()\n".encode() + b"\0"


MODULES = [module(image(PTX, 80, ptx("wanted", "7.0")), image(ELF, 86, bytes(512)), image(PTX, 90, ptx("wanted"))),
           module(image(PTX, 90, ptx("other")), image(ELF, 86, bytes(64))),
           module(image(PTX, 75, ptx("wanted")))]


def images_of(data, at):
    size, = struct.unpack_from("<Q", data, at + 8)
    kind, _, header, padded = struct.unpack_from("<HHIQ", data, at + 16)
    packed, = struct.unpack_from("<I", data, at + 32)
    arch, = struct.unpack_from("<I", data, at + 44)
    body = data[at + 16 + header:at + 16 + header + padded]
    return size == header + padded, kind, arch, packed, body


class Assemble(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = pathlib.Path(kept.name)
        (self.folder / "fat").write_bytes(b"".join(MODULES))
        self.library = self.folder / "lib.o"
        subprocess.run(["as", "-o", str(self.library), "-"], check=True, text=True,
                       input=f'.section .nv_fatbin,"a"\n.balign 8\n.incbin "{self.folder}/fat"\n.data\n.quad 7\n')
        self.before = self.library.read_bytes()
        self.places = [self.before.index(part) for part in MODULES]

    def run_tool(self, *words, more="true"):
        program = self.folder / "ptxas"
        program.write_text(PTXAS.replace("MORE", more))
        program.chmod(0o755)
        return subprocess.run([sys.executable, "-B", str(SOURCE / "bench/peers/assemble.py"), str(self.library), str(self.folder / "out"),
                               "--ptxas", str(program), *words], capture_output=True, text=True, check=False)

    def test_each_module(self):
        done = self.run_tool("--only", "entry wanted")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("3 modules, 1 assembled for sm_90, 1 with PTX 9.0", done.stdout)
        after = (self.folder / "out").read_bytes()
        self.assertEqual(len(after), len(self.before))
        whole, kind, arch, packed, body = images_of(after, self.places[0])
        self.assertEqual((whole, kind, arch, packed), (True, ELF, 90, 0))
        self.assertEqual(body.rstrip(b"\0"), b"code of -arch=sm_90: " + ptx("wanted", "9.0").rstrip(b"\0"))
        whole, kind, arch, _, body = images_of(after, self.places[1])
        self.assertEqual((whole, kind, arch), (True, PTX, 90))
        self.assertEqual(body.rstrip(b"\0"), ptx("other", "9.0").rstrip(b"\0"))
        self.assertEqual(after[self.places[2]:], self.before[self.places[2]:])  # nothing for the chip: as it was
        self.assertEqual(after[:self.places[0]], self.before[:self.places[0]])

    def test_what_is_newer_is_refused(self):
        done = self.run_tool("--isa", "9.1")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("unsupported version", done.stderr)
        self.assertFalse((self.folder / "out").exists())

    @unittest.skipUnless(shutil.which("zstd"), "no zstd")
    def test_what_does_not_fit_is_compressed(self):
        done = self.run_tool("--only", "entry wanted", more="head -c 4000 /dev/zero")
        self.assertEqual(done.returncode, 0, done.stderr)
        _, kind, _, packed, body = images_of((self.folder / "out").read_bytes(), self.places[0])
        plain = subprocess.run(["zstd", "-dqc"], input=body[:packed], capture_output=True, check=True).stdout
        self.assertEqual((kind, len(plain)), (ELF, len(b"code of -arch=sm_90: " + ptx("wanted", "9.0")) - 1 + 4000))
        done = self.run_tool("--only", "entry wanted", more="head -c 4000 /dev/urandom")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("expected at most", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
