#!/usr/bin/python3
"""A llamafile: a program, then a zip archive of stored members.

    llamafile.py OUT MEMBER=FILE...        options before OUT:
      --align N     member data begins at a multiple of N (llamafile: 65536); 1: anywhere
      --zip64       sizes, offsets and the end record as an archive above 4 GiB has them
      --relative    offsets count from where the archive begins, as where a program was put before it
      --deflate     members are compressed"""
import struct, sys, zlib

args, align, zip64, relative, deflate = sys.argv[1:], 1, False, False, False
while args[0].startswith("--"):
    a = args.pop(0)
    if a == "--align":
        align = int(args.pop(0))
    zip64 |= a == "--zip64"
    relative |= a == "--relative"
    deflate |= a == "--deflate"
program = b"MZqFpD='\n" + b"\0" * 4096 + b"program\n"
out, listing, n = bytearray(program), b"", 0
for member in args[1:]:
    name, path = member.split("=", 1)
    data = open(path, "rb").read()
    crc, size, name = zlib.crc32(data), len(data), name.encode()
    if deflate:
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        data = packer.compress(data) + packer.flush()
    at, method = len(out) - (len(program) if relative else 0), 8 if deflate else 0
    pad = -(len(out) + 30 + len(name) + 4) % align if align > 1 else 0
    local_extra = struct.pack("<HH", 0xFECA, pad) + b"\0" * pad              # a length that the list does not have
    sizes = (0xFFFFFFFF, 0xFFFFFFFF) if zip64 else (len(data), size)
    out += struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 45, 0, method, 0, 0, crc, *sizes, len(name), len(local_extra)) + name + local_extra
    out += data
    extra = struct.pack("<HH", 0x5455, 5) + b"\0" * 5 + (struct.pack("<HHQQQ", 1, 24, size, len(data), at) if zip64 else b"")
    listing += struct.pack("<4sHHHHHHIIIHHHHHII", b"PK\1\2", 45, 45, 0, method, 0, 0, crc, *sizes, len(name), len(extra), 3, 0, 0, 0,
                           0xFFFFFFFF if zip64 else at) + name + extra + b"etc"
    n += 1
list_at = len(out) - (len(program) if relative else 0)
out += listing
if zip64:
    end = len(out)
    out += struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, n, n, len(listing), list_at)
    out += struct.pack("<4sIQI", b"PK\6\7", 0, end, 1)
    out += struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
else:
    out += struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, n, n, len(listing), list_at, 7) + b"PK\5\6..."[:7]
open(args[0], "wb").write(out)
