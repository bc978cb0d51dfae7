"""A model file that has a shape and no weights: metadata and tensors as named, the data a hole of the right size."""
import math
import struct

BLOCKS = {"F32": (0, 1, 4), "F16": (1, 1, 2), "Q4_0": (2, 32, 18), "Q8_0": (8, 32, 34), "Q4_K": (12, 256, 144),
          "Q6_K": (14, 256, 210), "MXFP4": (39, 32, 17), "I8": (24, 1, 1)}


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def value(v):
    if isinstance(v, str):
        return struct.pack("<I", 8) + text(v)
    if isinstance(v, list):                       # of INT32
        return struct.pack("<IIQ", 9, 5, len(v)) + b"".join(struct.pack("<i", x) for x in v)
    if isinstance(v, dict):                       # so many empty strings
        return struct.pack("<IIQ", 9, 8, v["array_len"]) + bytes(8 * v["array_len"])
    if isinstance(v, float):
        return struct.pack("<If", 6, v)
    return struct.pack("<II", 4, v)


def storable(tensors):
    """Rows that no file can have (no multiple of their type's block) become bytes: as many, and with the same second
    dimension; what does not divide stands in a tensor beside."""
    out = {}
    for name, (dims, kind) in tensors.items():
        _, length, n_bytes = BLOCKS[kind]
        if dims[0] % length == 0:
            out[name] = (dims, kind)
            continue
        total = n_bytes * math.prod(dims) // length
        rest = total % math.prod(dims[1:])
        out[name] = ([total // math.prod(dims[1:])] + dims[1:], "I8")
        if rest:
            out[name.rsplit(".", 1)[0] + ".rest"] = ([rest], "I8")
    return out


def write(path, metadata, tensors):
    """tensors: name -> (dimensions, type)"""
    tensors = storable(tensors)
    head = struct.pack("<IIQQ", 0x46554747, 3, len(tensors), len(metadata))
    head += b"".join(text(k) + value(v) for k, v in metadata.items())
    offset = 0
    for name, (dims, kind) in tensors.items():
        number, length, n_bytes = BLOCKS[kind]
        head += text(name) + struct.pack("<I", len(dims)) + b"".join(struct.pack("<Q", d) for d in dims)
        head += struct.pack("<IQ", number, offset)
        offset += (math.prod(dims) * n_bytes // length + 31) // 32 * 32
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % 32))
        f.truncate(f.tell() + offset)
