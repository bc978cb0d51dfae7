"""Read back a GGUF v3 file that gguf_write.py made: its metadata and its tensors as float32."""
import struct

import numpy as np

from gguf_write import ALIGN, ARR, GGML_F32, GGML_Q8_0, PACK, STR


class Reader:
    def __init__(self, raw):
        self.raw, self.at = raw, 0

    def unpack(self, fmt):
        v, = struct.unpack_from(fmt, self.raw, self.at)
        self.at += struct.calcsize(fmt)
        return v

    def string(self):
        n = self.unpack("<Q")
        self.at += n
        return bytes(self.raw[self.at - n:self.at]).decode()

    def value(self, kind):
        if kind == STR:
            return self.string()
        if kind == ARR:
            inner, n = self.unpack("<I"), self.unpack("<Q")
            return [self.value(inner) for _ in range(n)]
        return self.unpack(PACK[kind])

    def tensor_info(self):
        name, n_dims = self.string(), self.unpack("<I")
        dims = [self.unpack("<Q") for _ in range(n_dims)]
        return name, dims[::-1], self.unpack("<I"), self.unpack("<Q")

    def weights(self, shape, kind, at):
        n = int(np.prod(shape))
        if kind == GGML_F32:
            return np.frombuffer(self.raw, "<f4", n, at).reshape(shape).copy()
        if kind != GGML_Q8_0:
            raise ValueError(f"tensor type {kind} is not supported: gguf_write.py writes only F32 and Q8_0")
        blocks = np.frombuffer(self.raw, np.int8, n // 32 * 34, at).reshape(-1, 34)
        scale = blocks[:, :2].copy().view(np.float16).astype(np.float32)
        return (blocks[:, 2:].astype(np.float32) * scale).reshape(shape)


def read(path):
    """The metadata as {key: value}, and {tensor name: array}, whose shape is in numpy's order, rows before columns."""
    with open(path, "rb") as f:
        r = Reader(f.read())
    if r.unpack("4s") != b"GGUF" or r.unpack("<I") != 3:
        raise ValueError(f"{path}: not a GGUF v3 file")
    n_tensors, n_keys = r.unpack("<Q"), r.unpack("<Q")
    metadata = {}
    for _ in range(n_keys):
        key = r.string()
        metadata[key] = r.value(r.unpack("<I"))
    infos = [r.tensor_info() for _ in range(n_tensors)]
    data = r.at + -r.at % ALIGN
    return metadata, {name: r.weights(shape, kind, data + at) for name, shape, kind, at in infos}
