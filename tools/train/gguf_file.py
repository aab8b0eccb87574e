"""gguf_file.py - writes a GGUF file (version 3): metadata in the order given, F32 tensors."""
import struct

ALIGNMENT = 32
TYPE_IDS = {"u32": 4, "i32": 5, "f32": 6, "bool": 7, "str": 8}
FORMATS = {"u32": "<I", "i32": "<i", "f32": "<f", "bool": "<?"}


def _text(value):
    data = value if isinstance(value, bytes) else value.encode("utf-8")
    return struct.pack("<Q", len(data)) + data


def _scalar(kind, value):
    return _text(value) if kind == "str" else struct.pack(FORMATS[kind], value)


def _pair(key, kind, value):
    """kind is "u32", ..., or "[u32]" for an array of them."""
    if not kind.startswith("["):
        return _text(key) + struct.pack("<I", TYPE_IDS[kind]) + _scalar(kind, value)
    element = kind[1:-1]
    head = struct.pack("<IIQ", 9, TYPE_IDS[element], len(value))
    return _text(key) + head + b"".join(_scalar(element, item) for item in value)


def _padding(size):
    return bytes(-size % ALIGNMENT)


def write(path, metadata, tensors):
    """metadata: (key, kind, value) each. tensors: (name, shape, data) each; shape has the slowest
    dimension first, as PyTorch prints it; data are little-endian float32 bytes."""
    directory, offset = [], 0
    for name, shape, data in tensors:
        count = 1
        for size in shape:
            count *= size
        assert len(data) == 4 * count, (name, shape, len(data))
        dims = struct.pack(f"<{len(shape)}Q", *reversed(shape))
        directory.append(_text(name) + struct.pack("<I", len(shape)) + dims +
                         struct.pack("<IQ", 0, offset))
        offset += len(data) + len(_padding(len(data)))
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    head += b"".join(_pair(*entry) for entry in metadata) + b"".join(directory)
    with open(path, "wb") as out:
        out.write(head + _padding(len(head)))
        for _, _, data in tensors:
            out.write(data)
            out.write(_padding(len(data)))
