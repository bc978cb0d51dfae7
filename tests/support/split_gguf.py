#!/usr/bin/python3
"""Cut a GGUF file into parts as llama.cpp's gguf-split does: split_gguf.py FILE N PREFIX"""
import struct, sys

data = open(sys.argv[1], "rb").read()
n_parts, prefix = int(sys.argv[2]), sys.argv[3]
ALIGN = 32
SIZES = [1, 1, 2, 2, 4, 4, 4, 1, None, None, 8, 8, 8]
pos = 4


def take(form):
    global pos
    v = struct.unpack_from("<" + form, data, pos)
    pos += struct.calcsize("<" + form)
    return v if len(v) > 1 else v[0]


def skip_value(kind):
    global pos
    if kind == 8:
        n = take("Q")
        pos += n
    elif kind == 9:
        inner, n = take("IQ")
        for _ in range(n if inner == 8 else 0):
            skip_value(8)
        pos += n * SIZES[inner] if inner != 8 else 0
    else:
        pos += SIZES[kind]


def string(s):
    return struct.pack("<Q", len(s)) + s


version, n_tensors, n_kv = take("IQQ")
kv_begin = pos
for _ in range(n_kv):
    skip_value(8)
    skip_value(take("I"))
kvs = data[kv_begin:pos]
tensors = []
for _ in range(n_tensors):
    n = take("Q")
    name = data[pos:pos + n]
    pos += n
    dims = [take("Q") for _ in range(take("I"))]
    kind, at = take("IQ")
    tensors.append([name, dims, kind, at])
start = (pos + ALIGN - 1) // ALIGN * ALIGN
ends = sorted([t[3] for t in tensors] + [len(data) - start])
for t in tensors:
    t.append(ends[ends.index(t[3]) + 1])

for i in range(n_parts):
    mine = tensors[i * n_tensors // n_parts:(i + 1) * n_tensors // n_parts]
    split = b"".join(string(k) + struct.pack(f, kind, v) for k, f, kind, v in [
        (b"split.no", "<IH", 2, i), (b"split.count", "<IH", 2, n_parts), (b"split.tensors.count", "<Ii", 5, n_tensors)])
    head = b"GGUF" + struct.pack("<IQQ", version, len(mine), 3 + (n_kv if i == 0 else 0)) + (kvs if i == 0 else b"") + split
    body = b""
    for name, dims, kind, at, end in mine:
        head += string(name) + struct.pack("<I%dQIQ" % len(dims), len(dims), *dims, kind, len(body))
        body += data[start + at:start + end]
        body += b"\0" * (-len(body) % ALIGN)
    head += b"\0" * (-len(head) % ALIGN)
    open("%s-%05d-of-%05d.gguf" % (prefix, i + 1, n_parts), "wb").write(head + body)
