#!/bin/sh
# A model whose weights are NaN: one line that names it and what to do, in the chat, by `ebb run` and by `ebb serve`.
set -u
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
dir=$(mktemp -d) || exit 1
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$dir"' EXIT
HOME=$dir; export HOME
unset EBB_MODELS XDG_STATE_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_CONFIG_HOME XDG_RUNTIME_DIR http_proxy HTTP_PROXY all_proxy ALL_PROXY
fail() { echo "$*"; cat "$dir/out" "$dir/err" 2>/dev/null; exit 1; }
python3 - models/guide.gguf "$dir/bad.gguf" <<'PY' || fail "no model"
import struct, sys
b = bytearray(open(sys.argv[1], "rb").read())
at = 8
def num(code):
    global at
    v = struct.unpack_from("<" + code, b, at)[0]
    at += struct.calcsize(code)
    return v
def text():
    global at
    n = num("Q")
    at += n
    return bytes(b[at - n:at])
SIZE = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
align = 32
def value(kind):
    global at
    if kind == 8:
        return text()
    if kind == 9:
        item, n = num("I"), num("Q")
        for _ in range(n):
            value(item)
        return None
    at += SIZE[kind]
    return int.from_bytes(b[at - SIZE[kind]:at], "little")
n_tensors, n_keys = num("Q"), num("Q")
for _ in range(n_keys):
    key, kind = text(), num("I")
    v = value(kind)
    align = v if key == b"general.alignment" else align
where = {}
for _ in range(n_tensors):
    name, n_dims = text(), num("I")
    at += 8 * n_dims
    kind, offset = num("I"), num("Q")
    where[name] = (kind, offset)
kind, offset = where[b"blk.1.attn_norm.weight"]
assert kind == 0
struct.pack_into("<f", b, (at + align - 1) // align * align + offset, float("nan"))
open(sys.argv[2], "wb").write(b)
PY
says='bad.gguf: its layer 1 computes no numbers (NaN or infinity): .* download or convert it again'

"$EBB" run -m "$dir/bad.gguf" hello >"$dir/out" 2>"$dir/err" && fail "run: no failure"
[ ! -s "$dir/out" ] && grep -q "$says" "$dir/err" || fail "run says something else"
printf 'hello\nagain\n' | timeout 600 "$EBB" --plain -m "$dir/bad.gguf" >"$dir/out" 2>"$dir/err"
[ "$(grep -c "^Error: .*$says" "$dir/out")" = 2 ] || fail "the chat says something else"
"$EBB" serve -m "$dir/bad.gguf" --socket "$dir/s" >"$dir/log" 2>&1 & server=$!
n=600; until [ -S "$dir/s" ]; do n=$((n - 1)); [ $n -gt 0 ] || fail "no server"; sleep 0.1; done
python3 - "$dir/s" >"$dir/out" <<'PY'
import socket, sys
s = socket.socket(socket.AF_UNIX)
s.connect(sys.argv[1])
body = b'{"messages": [{"role": "user", "content": "hello"}]}'
s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
          b"Content-Length: %d\r\n\r\n" % len(body) + body)
while chunk := s.recv(65536):
    sys.stdout.write(chunk.decode())
PY
grep -q '^HTTP/1.1 5' "$dir/out" && grep -q "error.*\"bad.gguf: its layer 1 computes no numbers" "$dir/out" || fail "the server says something else"
grep -q "$dir" "$dir/out" && fail "the server tells a path"
exit 0
