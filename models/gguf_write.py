"""Write a GGUF v3 file: a header, metadata, the tensor index, then the tensors at multiples of 32 bytes."""
import struct

import numpy as np

U32, I32, F32, BOOL, STR, ARR = 4, 5, 6, 7, 8, 9
PACK = {U32: "<I", I32: "<i", F32: "<f", BOOL: "<?"}
GGML_F32, GGML_Q8_0 = 0, 8
ALIGN = 32


def string(s):
    raw = s.encode()
    return struct.pack("<Q", len(raw)) + raw


def value(kind, v):
    if kind == STR:
        return string(v)
    if kind == ARR:
        inner, items = v
        return struct.pack("<IQ", inner, len(items)) + b"".join(value(inner, x) for x in items)
    return struct.pack(PACK[kind], v)


def q8_0(x):
    """Blocks of 32 weights: a float16 scale, then 32 signed bytes."""
    b = np.asarray(x, np.float32).reshape(-1, 32)
    scale = np.abs(b).max(axis=1, keepdims=True) / 127
    q = np.rint(np.divide(b, scale, out=np.zeros_like(b), where=scale > 0)).astype(np.int8)
    return np.concatenate([scale.astype(np.float16).view(np.int8), q], axis=1).tobytes()


def q8_0_round_trip(x):
    """x as a reader of the file will see it."""
    raw = np.frombuffer(q8_0(x), np.int8).reshape(-1, 34)
    scale = raw[:, :2].copy().view(np.float16).astype(np.float32)
    return (raw[:, 2:].astype(np.float32) * scale).reshape(np.shape(x))


def write(path, metadata, tensors, quantize=True):
    """metadata: (key, kind, value) triples; tensors: (name, array) pairs, rows last.

    Matrices whose rows are a multiple of 32 become Q8_0 if `quantize`; all else stays F32.
    """
    index, data, at = b"", [], 0
    for name, x in tensors:
        matrix = quantize and x.ndim > 1 and x.shape[-1] % 32 == 0
        raw = q8_0(x) if matrix else np.asarray(x, "<f4").tobytes()
        dims = x.shape[::-1]
        index += string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims,
                                            GGML_Q8_0 if matrix else GGML_F32, at)
        raw += b"\0" * (-len(raw) % ALIGN)
        data.append(raw)
        at += len(raw)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(data), len(metadata))
    for key, kind, v in metadata:
        head += string(key) + struct.pack("<I", kind) + value(kind, v)
    head += index
    head += b"\0" * (-len(head) % ALIGN)
    with open(path, "wb") as f:
        f.write(head)
        f.writelines(data)
