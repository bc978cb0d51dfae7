#!/usr/bin/python3
"""Seeds that say what they are for: make_seeds.py FOLDER [FUZZER...] writes FOLDER/FUZZER/made-NAME.

What clang's fuzzer finds by itself has names of its own and stays."""
import hashlib, json, os, struct, sys

out, only = sys.argv[1], sys.argv[2:]


def seed(fuzzer, name, *parts):
    if only and fuzzer not in only:
        return
    data = b"".join(p.encode() if isinstance(p, str) else bytes([p]) if isinstance(p, int) else p for p in parts)
    os.makedirs(f"{out}/{fuzzer}", exist_ok=True)
    open(f"{out}/{fuzzer}/made-{name}", "wb").write(data)


# -- GGUF ---------------------------------------------------------------------------------------------------------


def text(b):
    b = b.encode() if isinstance(b, str) else b
    return struct.pack("<Q", len(b)) + b


def kv(key, kind, value):
    return text(key) + struct.pack("<I", kind) + value


def tensor(name, kind, offset, *dims):
    return text(name) + struct.pack("<I", len(dims)) + struct.pack(f"<{len(dims)}Q", *dims) + struct.pack("<IQ", kind, offset)


def gguf(kvs, tensors=(), data=64, align=32, version=3):
    h = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(kvs)) + b"".join(kvs) + b"".join(tensors)
    return h + b"\0" * (-len(h) % align) + b"\0" * data


U8, I8, U16, I16, U32, I32, F32, BOOL, STR, ARR, U64, I64, F64 = range(13)
arch = kv("general.architecture", STR, text("llama"))
RAW = 4


def raw(name, data, how=RAW):
    seed("fuzz_gguf_file", name, how, struct.pack("<H", len(data)), data)


def zip_of(members, comment=b"", method=0, sizes=None):
    body, listing = b"MZ program\n", b""
    for i, (name, data) in enumerate(members):
        at, n = len(body), len(data) if sizes is None else sizes
        name = name.encode()
        body += struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 45, 0, method, 0, 0, 0, n, n, len(name), 0) + name + data
        listing += struct.pack("<4sHHHHHHIIIHHHHHII", b"PK\1\2", 45, 45, 0, method, 0, 0, 0, n, n, len(name), 0, 0, 0, 0, 0, at) + name
    return body + listing + struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, len(members), len(members), len(listing), len(body),
                                        len(comment)) + comment


raw("whole", gguf([arch, kv("n", I64, struct.pack("<q", -7)), kv("f", F64, struct.pack("<d", 3.0)), kv("g", F32, struct.pack("<f", 2.5)),
                   kv("b", BOOL, b"\1"), kv("u", U64, b"\xff" * 8), kv("i8", I8, b"\xff")], [tensor("t", 0, 0, 4, 4)]))
raw("align", gguf([arch, kv("general.alignment", U32, struct.pack("<I", 64))], [tensor("t", 0, 0, 16)], align=64))
raw("align-odd", gguf([arch, kv("general.alignment", U32, struct.pack("<I", 24))], [tensor("t", 0, 0, 16)]))
raw("align-array", gguf([arch, kv("general.alignment", ARR, struct.pack("<IQI", U32, 1, 32))]))
raw("arrays-of-arrays", gguf([arch, kv("a", ARR, struct.pack("<IQ", ARR, 1) + struct.pack("<IQ", U8, 1) + b"\1")]))
raw("key-twice", gguf([arch, kv("a", U8, b"\1"), kv("a", U8, b"\2")]))
raw("tensor-twice", gguf([arch], [tensor("t", 0, 0, 4), tensor("t", 0, 32, 4)]))
raw("offset-odd", gguf([arch], [tensor("t", 0, 3, 4)]))
raw("offset-far", gguf([arch], [tensor("t", 0, 1 << 62, 4)]))
raw("offset-wraps", gguf([arch], [tensor("t", 0, (1 << 64) - 32, 4)]))
raw("tensors-share", gguf([arch], [tensor(f"t{i}", 0, 0, 16) for i in range(8)], data=64))
raw("type-taken-out", gguf([arch], [tensor("t", 31, 0, 256)]))
raw("type-unknown", gguf([arch], [tensor("t", 133, 0, 256), tensor("u", 4, 0, 256)]))
raw("dims-0", gguf([arch], [tensor("t", 0, 0, 0)]))
raw("dims-wrap", gguf([arch], [tensor("t", 0, 0, 1 << 32, 1 << 32)]))
raw("dims-5", gguf([arch], [tensor("t", 0, 0, 1, 1, 1, 1, 1)]))
raw("row-no-block", gguf([arch], [tensor("t", 2, 0, 33)]))
raw("keys-many", b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 40))
raw("tensors-many", b"GGUF" + struct.pack("<IQQ", 3, 1 << 40, 0))
raw("version-1", gguf([arch], version=1))
raw("big-endian", gguf([arch], version=3 << 24))
raw("version-2", gguf([arch], version=2))
raw("no-data", gguf([arch], [tensor("t", 0, 0, 4)], data=0))
raw("empty", b"")
raw("begun-empty", b"", RAW | 1)
raw("begun", gguf([arch], [tensor("t", 0, 0, 4)], data=0), RAW | 1 | 16)
raw("lone-part", gguf([arch, kv("split.count", U16, b"\2\0"), kv("split.no", U16, b"\0\0")]))
raw("part-9", gguf([arch, kv("split.count", U16, b"\xff\xff"), kv("split.no", U16, b"\0\0"), kv("split.tensors.count", U64, b"\0" * 8)]))
raw("arch-twice-named", gguf([arch, kv("llama.block_count", U32, b"\1\0\0\0"), kv(".block_count", U32, b"\2\0\0\0")]))
for name in "clip", "adapter", "imatrix", "bert", "vocab", "gemma4-assistant":
    raw("kind-" + name, gguf([kv("general.architecture", STR, text(name)), kv("general.type", STR, text(name))]))
raw("kind-lora", gguf([kv("adapter.type", STR, text("lora"))]))
raw("kind-pooling", gguf([arch, kv("llama.pooling_type", U32, b"\1\0\0\0")]))
raw("kind-drafter", gguf([arch, kv("llama.block_count", U32, b"\1\0\0\0"), kv("llama.nextn_predict_layers", U32, b"\1\0\0\0")],
                         [tensor("t", 0, 0, 4)]))
model = gguf([arch], [tensor("t", 0, 0, 4)])
for how in range(8):                             # whole, its members by name, one that is not there
    for base in 32, 32 | 64, 32 | 128:
        seed("fuzz_gguf_file", f"zip-{base}-{how}", base | (2 if how & 1 else 0) | (16 if how & 2 else 0) | (8 if how & 4 else 0), b"\0\0")
for i, at in enumerate(range(8, 1700, 97)):      # one byte of it, here and there
    seed("fuzz_gguf_file", f"zip-byte-{i}", 32, b"\0\0", struct.pack("<H", at), b"\xff")
raw("zip-empty-list", b"MZ" + struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 0, 0, 0, 0, 0) + b"")
raw("zip-list-outside", b"MZ" + struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 1, 1, 99999, 0, 0))
raw("zip-packed", zip_of([("m.gguf", model)], method=8))
raw("zip-cut", zip_of([("m.gguf", model)], sizes=99999))
raw("zip-two", zip_of([("a.gguf", model), ("b.gguf", model)]))
raw("zip-none", zip_of([("a.txt", b"x")]))
raw("zip-in-zip", zip_of([("m.gguf", zip_of([("m.gguf", model)]))]))
raw("zip-comment", zip_of([("m.gguf", model)], comment=b"PK\5\6" * 9))
raw("zip-locator-outside", b"MZ" + struct.pack("<4sIQI", b"PK\6\7", 0, 1 << 62, 1) + struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 1, 1, 0, 0, 0))
locator = b"MZ" + b"PK\6\6" + b"\0" * 52 + struct.pack("<4sIQI", b"PK\6\7", 0, 2, 1) + struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 1, 1, 0, 0, 0)
raw("zip-locator-empty", locator)
raw("zip-locator-large", locator.replace(b"PK\6\6" + b"\0" * 52, b"PK\6\6" + b"\0" * 36 + struct.pack("<QQ", 1 << 60, 1 << 60)))

# -- Tokenizers -----------------------------------------------------------------------------------------------------


def vocab(name, model, pre, flags, b2, b3, tokens, merges, words, label=0):
    enc = lambda l: b"".join((t if isinstance(t, bytes) else t.encode()) + b"\n" for t in l) + b"\n"
    seed("fuzz_vocab", name, model | pre << 2 | label << 5, flags, b2, b3, enc(tokens), enc(merges), words)


spm = ["<unk>", "<s>", "</s>"] + [f"<0x{i:02X}>" for i in range(256)] + ["\u2581", "a", "b", "c", "ab", "bc", "abc", "\u2581a", "\u2581ab", "x"]
text_ab = " abc abcab\u00e9 <s>\n\t</s> a\u2581b x  x <|im_end|> \U0001F600"
for i, (flags, b2, b3) in enumerate([(3, 1, 2), (15, 1, 2), (0x33, 3, 3), (2, 0, 5), (1, 2, 8), (0x1f, 5, 7), (0, 0, 0), (0x53, 9, 12)]):
    vocab(f"spm-{i}", 0, 0, flags, b2, b3, spm, [], text_ab)
    vocab(f"spm-phi-{i}", 0, 0, flags | 2, b2, b3, spm + ["<|end|>", "<|assistant|>", "<|user|>", "</s>"], [], text_ab + "<|end|>\n\n <|user|> ", 1)
    vocab(f"chars-{i}", 2, 0, flags, b2, b3, ["<unk>", "<bos>", "<eos>", "\u2581", "a", "b", "ab", "\u2581a", "<0x41>", "x"],
          ["a b", "\u2581 a", "q r"], text_ab + "\n\n\n")
    gpt = [chr(c) for c in range(33, 127)] + ["\u0120", "\u010a", "ab", "abc", "\u0120a", "<|im_end|>", "<|eot_id|>", "</s>", "<s>", "<unk>", "x" * 300]
    for pre in 0, 1, 2, 4, 5, 7:
        vocab(f"bpe-{pre}-{i}", 1, pre, flags, b2, b3, gpt, ["a b", "ab c", "\u0120 a", "nospace", " ", "a zz", "zz a"], text_ab + " 123 Don't 4567 \u4e2d")
vocab("no-merges", 1, 1, 0, 0, 0, ["a"], [], "a")
vocab("no-tokens", 0, 0, 0, 0, 0, [], [], "a")
vocab("kind-unknown", 3, 0, 0, 0, 0, ["a"], [], "a")
vocab("longest", 0, 0, 0, 0, 0, ["a" * 66000], [], "a")
vocab("pads", 0, 0, 3, 1, 1, ["a", "b", "[PAD1]"], [], "ab")
vocab("jina", 1, 1, 2, 1, 2, ["a", "b", "ab", "<mask>", "</s>"], ["a b"], "a <mask> b", 2)
vocab("only-bytes", 0, 0, 2, 1, 2, ["<0x61>", "<0xZZ>", "<0x6>"], [], "ab")

# -- Rendering ------------------------------------------------------------------------------------------------------

page = """# H1\n\nHeading\n===\n\nSecond\n---\n\n> quote\n> > in quote\n>\n> - list in quote\n\n1. one\n2. two\n   1) deep\n\n7) seven\n\n* a\n  * b\n\n    code\n
- [ ] open\n- [x] done\n-\n\n***\n\n---\n\n~~gone~~ **bold** *it* ***both*** `code` ``a ` b`` [link](http://x "title \u00e9") ![pic](p.png) <http://auto.link> www.x.org
hard\\\nbreak  \nbreak &amp; &lt; &#65; &#x1F600; &#0; &#xD800; &copy; &nosuch; &quot; \\* \\_ <b>html</b> <!-- c -->

<div>\nblock\n</div>\n\n<!-- comment\nover lines -->\n\n<script>\nx\n</script>\n\n<pre>\n a\n</pre>\n
[ref]\n\n[ref]: http://y "t"\n\n| a | b |\n|:--|--:|\n| 1 | 2 |\n| longer cell | `x` |\n\n|a|b|c|\n|:-:|---|---|\n|\u4e2d\u6587|y|\n
$math$ $$display$$ [[wiki]]\n\n```\nplain\n```\n\n````md\n```c\nint x;\n```\n````\n\n~~~ python title\n\"\"\"doc\nmore\"\"\"\nx = 'a' # c\n~~~\n
"""
code = """```c\n/* open\n comment */ int main(void) { return 'a' + "str\\"x" + 0x1F; } // end\n#include <x.h>\n/* never closed\n```\n
```html\n<!DOCTYPE html>\n<!-- c\n d --><div class="a" data-x='b c' @on:click=go>text</div>\n<br/>&amp;<\n```\n
```diff\n@@ -1 +1 @@\n--- a\n+++ b\n+new\n-old\n same\n```\n
```rust\nfn f<'a>(x: &'a str) -> char { 'x' }\nlet c = '\\n'; let s = r#"raw"#; /* n */\n```\n
```json\n{"key": "value", "n": [1, 2.5e3, true, null]}\n```\n
```python\ndef f():\n    '''doc\n    string'''\n    s = \"\"\"x\"\"\" # c\n    return f"{s}" + r'\\d'\n```\n
```sh\nfor i in *; do echo "$i" 'q' # c\ndone\n```\n
```go\ns := `raw\nstring`\n```\n
```lua\n--[[ long\n]] local x = [[ s ]] -- c\n```\n
```sql\nSELECT 'it''s' FROM t -- c\n```\n
```   yaml\nkey: value # c\n- a: "b"\n```\n
```{.java}\nclass A {}\n```\n
```javascript\nlet a = `t ${x}`; /re/g; // c\n```\n
```css\na { color: #fff; /* c */ }\n```\n
```\nunknown\n```"""
tables = "|" + "h" * 40 + "|b|c|\n|---|:-:|--:|\n" + "|1|2|3|\n" * 30 + "\n|a|\n|-|\n|" + "wide " * 30 + "|\n\n|" + "|".join("x" * 8 for _ in range(30)) + "|\n" + "|-" * 30 + "|\n|1|\n"
nested = "> " * 40 + "deep\n\n" + "".join("  " * i + "- x\n" for i in range(40)) + "\n" + "*" * 300 + "a" + "*" * 300 + "\n\n" + "[" * 200 + "](x)\n"
strange = "a\u202eb\u200bc\u00adx\U000E0041\u3164\x1b[31mred\x07\x00\x7f\u009b2J\r\nnext\ttab\u0301\u0301 \ufeff \u2028 \U0001F468\u200D\U0001F469\n"
for name, t in [("page", page), ("code", code), ("tables", tables), ("nested", nested), ("strange", strange), ("all", page + code + strange)]:
    for step, width, how in (0, 79, 1), (2, 20, 1), (30, 60, 3), (7, 89, 9), (1, 40, 15), (4, 1, 5), (9, 30, 0):
        seed("fuzz_view", f"{name}-{how}-{width}", step, width, how, t)
seed("fuzz_view", "bomb-table", 30, 79, 9, "|" + "x" * 800 + "|b|\n|---|---|\n" + "|a|\n" * 400)
seed("fuzz_view", "bomb-refs", 30, 79, 1, "[a]: " + "x" * 1500 + "\n\n" + "[a] " * 400)

# -- Imports --------------------------------------------------------------------------------------------------------


def chat(name, value, kind=0):
    seed("fuzz_import", name, kind, value if isinstance(value, (str, bytes)) else json.dumps(value))


node = lambda i, up, down, role="user", words="hi": {"id": i, "parent": up, "children": down, "message": {"author": {"role": role}, "content": {"parts": [words]}, "create_time": 1.5}}
chat("mapping", [{"title": "t", "mapping": {"a": {"children": ["b"]}, "b": node("b", "a", ["c", "d"]), "c": node("c", "b", [], "assistant"), "d": node("d", "b", ["e"], "assistant"), "e": node("e", "d", [])},
                  "current_node": "e", "update_time": 1e9}])
chat("mapping-ring", [{"mapping": {"a": node("a", "b", ["b"]), "b": node("b", "a", ["a"])}, "current_node": "a"}])
chat("mapping-self", [{"mapping": dict([(str(i), {}) for i in range(50)] + [("A", {"children": ["A"] * 50})])}])
chat("mapping-odd", [{"mapping": {"a": 1, "b": {"message": 2}, "c": {"message": {"author": 3}}, "d": {"children": {"x": 1}}, "e": {"parent": 5}}, "current_node": "zz"}, {"mapping": []}, {"mapping": {}}])
chat("mapping-deep", [{"mapping": {str(i): node(str(i), str(i - 1) if i else None, [str(i + 1)], "user" if i % 2 else "assistant") for i in range(200)}, "current_node": "199"}])
said = lambda i, up, role="user", words="hi", **more: {"id": i, "parent": up, "role": role, "content": words, **more}
chat("list-tree", [{"conv": {"name": "A tree", "currNode": "4", "lastModified": 1.7e12}, "messages": [
    said("0", None, "system", "", type="root"), said("1", "0", timestamp=1.7e12, extra=[{"name": "a.txt", "content": "one"}, {"content": "two"}, {"name": "none"}]),
    said("2", "1", "assistant", reasoning_content="hm"), said("3", "1", "assistant"), said("4", "3")]}])
chat("list-tree-numbers", {"messages": [said(7, 6), said(8, 7, "assistant", thinking="t"), said(9, 8), said(10, 11), said(11, 10, "assistant")]})
chat("list-tree-odd", {"messages": [said("a", None), {"id": "b", "parent": "a", "content": "no role"}]})
parts = lambda *p: [{"type": kind, **({"thinking" if kind == "thinking" else "text": words} if words else {})} for kind, words in p]
chat("claude-tree", [{"name": "C", "updated_at": "2024-05-01T10:00:00.123456+01:00", "current_leaf_message_uuid": "b", "chat_messages": [
    {"uuid": "a", "parent_message_uuid": "0", "sender": "human", "text": "hi", "created_at": "2024-05-01T10:00:00-0530", "attachments": [{"file_name": "f.md", "extracted_content": "body"}]},
    {"uuid": "b", "parent_message_uuid": "a", "sender": "assistant", "content": parts(("thinking", "let me"), ("thinking", " see"), ("tool_use", ""), ("thinking", "again"), ("text", "A"), ("tool_use", ""), ("text", "B"))},
    {"uuid": "c", "parent_message_uuid": "a", "sender": "assistant", "text": "", "content": parts(("thinking", "only"))}]}])
chat("windows-md", "# T\r\n\r\n## user\r\n\r\nhi\r\nyou\r\n\r\n\\## user\r\n\r\n## assistant\r\n\r\nho\rho\r\n", 1)
chat("windows-text", "user:\r\nx\r\n\r\nassistant:\r\ny\r\n", 2)
chat("tool", {"messages": [{"role": "tool", "content": "x"}, {"role": "system", "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "data:x"}}]}, {"role": "user", "content": None}]})
chat("no-text", {"messages": [{"role": "user", "content": 5}]})
chat("files-before-it", {"messages": [{"role": "user", "content": "a.txt:\n````\n```\n````\n\nb.txt:\n```\nnever closed\n\nwords"}, {"role": "user", "content": "a:\nno fence"}]})
chat("bad-second-line", '[{"messages": []},\n {"messages" x}]')
chat("no-comma", '[{"messages": [{"role": "user", "content": "q"}]} {"messages": []}]')
chat("ollama", {"messages": [{"role": "user", "content": "q"}], "message": {"role": "assistant", "content": "a", "thinking": "t"}})
chat("claude", [{"uuid": "u", "name": "t", "created_at": "2025-01-02T03:04:05.6Z", "chat_messages": [{"sender": "human", "text": "q", "content": [{"type": "text", "text": "q"}]}, {"sender": "assistant", "text": "a"}, {"sender": 3}]}, {"chat_messages": 4}])
chat("bare", [{"role": "user", "content": "q"}, {"role": "assistant", "content": "```\ncode\n```\nmore"}])
chat("title-code", {"messages": [{"role": "user", "content": "```c\nint x;\n```\n\n\nWhat does this do?"}, {"role": "assistant", "content": "x"}]})
chat("title-open-code", {"messages": [{"role": "user", "content": "``\n````\nopen\n```\n\n\n# Head\n> q"}]})
chat("title-rule", {"messages": [{"role": "user", "content": "\n\n   \n---\n" + "word " * 60}]})
chat("deep-json", "[" * 3000)
chat("none", {"messages": []})
for kind in 1, 2:
    chat(f"text-{kind}", "# Title\n\n## User\n\nhi\n\n## Assistant\n\nho\n\n    ## User\n\nUser:\nx\n\nAssistant:\ny\n", kind)

# -- Answers of servers ----------------------------------------------------------------------------------------------

NEXT, PIECE = b"\x1e", b"\x1f"


def reply(status, headers=(), body=b"", code=None):
    head = f"HTTP/1.1 {status}" + (f" {code}" if code is not None else "") + "\r\n" + "".join(h + "\r\n" for h in headers) + "\r\n"
    return head.encode() + (body.encode() if isinstance(body, str) else body)


TEXT, LIST, FILE, SOURCE = 0, 1, 2, 3
HERE, BEGUN, SUM, SIZE, HUB, PLAIN = 4, 8, 16, 32, 64, 128


def hub(name, how, *replies):
    seed("fuzz_hub", name, how, NEXT.join(replies))


hub("text", TEXT, reply(200, ["Content-Length: 5", 'ETag: "x"', "Last-Modified: Mon"], "hello"))
hub("text-pieces", TEXT | BEGUN | SUM, reply(206, ["Content-Range: bytes 7-9/10"], b"abc" + PIECE + b"def"))
hub("text-too-long", TEXT, reply(200, [], "x" * 5000))
hub("redirect-away", TEXT, reply(302, ["Location: https://else.example/b", 'X-Linked-Etag: "' + "a" * 64 + '"', "X-Linked-Size: 12"]), reply(200, ["X-Linked-Size: 9"], "x"))
hub("redirect-plain", TEXT, reply(302, ["Location: http://hub.example/b"]), reply(200, [], "x"))
hub("redirect-plain-plain", TEXT | PLAIN, reply(302, ["Location: http://hub.example/b"]), reply(200, [], "x"))
hub("redirect-port", TEXT, reply(302, ["Location: https://hub.example:444/b"]), reply(401))
hub("redirect-user", TEXT, reply(302, ["Location: https://hub.example@else.example/b"]), reply(401))
hub("redirect-upper", TEXT, reply(302, ["Location: HTTPS://HUB.EXAMPLE:443/b"]), reply(200, [], "x"))
hub("redirect-relative", TEXT, reply(307, ["location: ../c?d#e"]), reply(200, [], "x"))
hub("redirect-file", TEXT, reply(302, ["Location: file:///etc/passwd"]), reply(200, [], "x"))
hub("redirect-ring", TEXT, *[reply(302, ["Location: /a"]) for _ in range(12)])
hub("redirect-long", TEXT, reply(302, ["Location: /" + "a" * 8300]))
hub("headers-odd", TEXT | HUB, reply(403, ["X-Error-Message: a\x01b\x7f", "X-Error-Code: GatedRepo", "Retry-After: 99999999999999999999", "Content-Length: -5", "Content-Range: bytes x", "Content-Range: bytes 5", "ETag: " + "e" * 300, "no colon", ": empty"]))
hub("headers-100", TEXT, reply(100, ["X: y"]) + reply(200, ["Content-Length: 1"], "x"))
hub("header-nul", TEXT, b"HTTP/1.1 200\r\nETag: \"a\0b\"\r\nRetry-After: 7\r\n\r\nx")
for code in 1, 6, 7, 9, 18, 23, 28, 35, 52, 55, 56, 60, 77, 92, 16, 8:
    hub(f"code-{code}", TEXT, reply(200, [], "x", code))
for status in 401, 403, 404, 408, 410, 416, 429, 500, 503, 999, 0:
    hub(f"status-{status}", TEXT | HUB, reply(status, ["Retry-After: 120", "X-Error-Message: no"]))
    hub(f"status-{status}-url", TEXT, reply(status))
    hub(f"file-{status}", FILE | HUB | BEGUN, reply(status, ["Content-Range: bytes */10", "Retry-After: 1"]), reply(200, ["Content-Length: 10"], "0123456789"))
    hub(f"list-{status}", LIST, reply(status, ["X-Error-Code: " + ("GatedRepo" if status == 403 else "RepoNotFound")]),
        reply(200, [], json.dumps([{"id": "a/like"}, {"id": "../x"}, {"id": 5}, {"id": "b/two"}])))


def listing(*files):
    return json.dumps([{"type": "file", "path": p, "size": n, **({"lfs": {"oid": o, "size": n}} if o else {})} for p, n, o in files])


good = listing(("m-Q4_K_M.gguf", 10, "a" * 64), ("m-Q8_0.gguf", 20, None), ("dir/m-q6_k-00001-of-00002.gguf", 9, None), ("dir/m-q6_k-00002-of-00002.gguf", 9, None),
               ("m-30B-A3B-IQ2_XXS.gguf", 30, None), ("m-UD-Q4_K_XL.gguf", 31, None), ("m-BF16.gguf", 40, None), ("half-00002-of-00003.gguf", 5, None), ("mmproj-m.gguf", 3, None), ("m-7b.f16.gguf", 3, None), ("plain.gguf", 2, None))
hub("list", LIST, reply(200, [], good))
hub("list-pages", LIST, reply(200, ['Link: <https://hub.example/api/next?c=1>; rel="next"'], good), reply(200, [], listing(("z-Q2_K.gguf", 5, None))))
hub("list-page-away", LIST, reply(200, ['Link: <https://else.example/api>; rel="next"'], good), reply(200, [], "[]"))
hub("list-endless", LIST, *[reply(200, ['Link: </api/models/a/b/tree/main>; rel="next"', 'Link: <https://hub.example/x>; rel="next"'], "[]") for _ in range(25)])
hub("list-hostile", LIST, reply(200, [], listing(("../../x.gguf", 1, None), ("/x.gguf", 1, None), (".hidden.gguf", 1, None), ("a/../b.gguf", 1, None), ("\u202ex.gguf", 1, None), ("x\n.gguf", 1, None), ("a/" + "n" * 300 + ".gguf", 1, None), (".gguf", 1, None), ("-rf.gguf", 1, None))))
hub("list-odd", LIST, reply(200, [], json.dumps([1, {}, {"type": "file"}, {"type": "file", "path": "x.gguf"}, {"type": "file", "path": "x.gguf", "size": -1}, {"type": "file", "path": "x.gguf", "size": 9e99}, {"type": "directory", "path": "d"}, {"type": "file", "path": "y.gguf", "size": 1, "lfs": {"oid": "A" * 64, "size": -2}}])))
hub("list-none", LIST, reply(200, [], "[]"))
hub("list-no-list", LIST, reply(200, [], '{"a":1}'))
hub("list-html", LIST, reply(200, ["Content-Type: text/html"], "<html>"))
MODEL = b"\x1d"                                 # stands for a small model
for flags, label in (0, "one"), (BEGUN, "two"), (SUM, "listed"):
    head = reply(200, ['ETag: "one"'])
    hub(f"fetch-{label}", LIST | PLAIN | flags, *([reply(200, [], good)] if flags == SUM else []), head + MODEL, head + MODEL, head + MODEL, head + MODEL)
    hub(f"fetch-{label}-damaged", LIST | PLAIN | flags, *([reply(200, [], good)] if flags == SUM else []), head + b"GGUF" + b"\xff" * 40)
    hub(f"fetch-{label}-refused", LIST | PLAIN | flags, *([reply(200, [], good)] if flags == SUM else []), reply(404))
hub("list-page", LIST, reply(200, ['Link: <' + "https://hub.example/" + "x" * 8300 + '>; rel="next"', 'Link: <x'], good))

body = b"0123456789"
digest = hashlib.sha256(body).hexdigest()
for flags, label in [(0, "url"), (HUB, "hub"), (HUB | SUM, "sum"), (HUB | SIZE | SUM, "all"), (SIZE, "size"), (HUB | PLAIN, "header"), (PLAIN, "judged"), (BEGUN, "begun"), (BEGUN | SUM, "begun-sum"), (BEGUN | SIZE, "begun-size"), (BEGUN | HUB | SUM | SIZE, "begun-all")]:
    how = FILE | flags
    hub(f"file-{label}", how, reply(200, ["Content-Length: 10", 'ETag: "one"'], body))
    hub(f"file-{label}-pieces", how, reply(200, ["Content-Length: 10", "Last-Modified: Tue"], PIECE.join([b"0", b"1234", b"56789"])))
    hub(f"file-{label}-rest", how, reply(206, ["Content-Length: 0", "Content-Range: bytes 10-9/10", 'ETag: "one"'], b""))
    hub(f"file-{label}-other", how, reply(206, ["Content-Range: bytes 10-19/20", 'ETag: "two"'], body), reply(200, ["Content-Length: 10", 'ETag: "two"'], body))
    hub(f"file-{label}-breaks", how, reply(200, ["Content-Length: 10", 'ETag: "one"'], b"0123", 18), reply(206, ["Content-Range: bytes 4-9/10", 'ETag: "one"'], b"456789"))
    hub(f"file-{label}-breaks-on", how, *[reply(200, ["Content-Length: 30"], b"0" * i, 56) for i in range(1, 14)])
    hub(f"file-{label}-changes", how, *[reply(206, ["Content-Range: bytes 4-9/10", f'ETag: "{i}"'], b"456789", 18) for i in range(6)])
    hub(f"file-{label}-more", how, reply(200, ["Content-Length: 5"], body))
    hub(f"file-{label}-less", how, reply(200, ["Content-Length: 10"], b"012"), reply(200, ["Content-Length: 10"], body))
    hub(f"file-{label}-middle", how, reply(206, ["Content-Range: bytes 5-9/10"], b"56789"))
    hub(f"file-{label}-damaged", how, reply(200, ["Content-Length: 10", f'X-Linked-Etag: "{digest}"'], b"damaged!!!"))
    hub(f"file-{label}-linked", how, reply(302, ["Location: https://cdn.example/x", f'X-Linked-Etag: "{digest}"', "X-Linked-Size: 10"]), reply(200, ["Content-Length: 10"], body))
    hub(f"file-{label}-bad", how, reply(200, ["Content-Length: 30"], b"BAD" + b"0" * 27))
    hub(f"file-{label}-long", how, reply(200, ["Content-Length: 30"], b"0" * 24 + PIECE + b"1" * 6))
    hub(f"file-{label}-huge", how, reply(200, ["Content-Length: 18446744073709551614"], body))
    hub(f"file-{label}-no-length", how, reply(200, [], body))
    hub(f"file-{label}-nothing", how)
    hub(f"file-{label}-416", how, reply(416, ["Content-Range: bytes */10"]), reply(200, ["Content-Length: 10"], body))
    hub(f"file-{label}-416-less", how, reply(416, ["Content-Range: bytes */5"]), reply(200, ["Content-Length: 5"], b"01234"))
for flags, label in [(0, "here"), (BEGUN, "noted"), (BEGUN | HUB, "noted-hub"), (SUM, "sum-here"), (BEGUN | SUM, "sum-noted"), (SUM | PLAIN, "sum-differs"), (SIZE | SUM | HUB, "all-here")]:
    how = FILE | HERE | flags
    hub(f"{label}-same", how, reply(200, ["Content-Length: 10", 'ETag: "one"'], body))
    hub(f"{label}-other", how, reply(200, ["Content-Length: 10", 'ETag: "two"'], b"GGUF" + b"x" * 6))
    hub(f"{label}-no-model", how, reply(200, ["Content-Length: 10", 'ETag: "two"'], b"<html>1234"))
    hub(f"{label}-short", how, reply(200, ["Content-Length: 2", 'ETag: "two"'], b"GG"), reply(200, ["Content-Length: 10", 'ETag: "two"'], b"GG" + PIECE + b"UF123456"))
    hub(f"{label}-more", how, reply(200, ["Content-Length: 11", 'ETag: "one"'], body))
    hub(f"{label}-linked", how, reply(302, ["Location: https://cdn.example/x", f'X-Linked-Etag: "{digest}"', "X-Linked-Size: 10"]), reply(200, ["Content-Length: 10"], b"GGUF123456"))
    hub(f"{label}-huge", how, reply(200, ["Content-Length: 18446744073709551614", "X-Linked-Size: x"], body))
    for status in 403, 404, 503:
        hub(f"{label}-{status}", how, reply(status), reply(status), reply(200, ["Content-Length: 10", 'ETag: "one"'], body))
    hub(f"{label}-breaks", how, reply(200, ["Content-Length: 10", 'ETag: "one"'], b"0123", 18), reply(200, ["Content-Length: 10", 'ETag: "one"'], body))
    hub(f"{label}-nothing", how)
for i, word in enumerate(["a/b", "a/b:Q4_K_M", "a/b:dir/m.gguf@v2", "hf.co/a/b", "https://huggingface.co/a/b/blob/main/m-Q8_0.gguf", "https://huggingface.co/a/b/resolve/v1%2F/x/m.gguf?download=true",
                          "https://x.org/m.gguf", "http://x.org/dir/", "https://x.org/" + "a" * 9000, "huggingface.co/a", "a", "", "a/b/c", "../b", "a/..", "a/b@", "a/b:", "https://", "ftp://x/m.gguf", "a\x01/b", "https://huggingface.co/a/b/tree/main/sub", "https://x.org/%2e%2e%2fm.gguf", "https://x.org/m%20a.gguf#frag", "https://user:pw@x.org/m.gguf", "a/b:x y'z", "file:///m.gguf", "https://huggingface.co/datasets/a/b", "a/" + "b" * 250, "a/b:" + "c" * 400, "https://hf.co/a/b:Q4@r"]):
    hub(f"source-{i}", SOURCE, word.encode())


def server(name, how, *replies):
    seed("fuzz_server", name, how, NEXT.join(replies))


def models(owner, *ids, **more):
    return json.dumps({"object": "list", "data": [{"id": i, "owned_by": owner, **more} for i in ids]})


for owner, second in [("llamacpp", {"default_generation_settings": {"n_ctx": 2048}, "build_info": "b1\x1b[31m"}), ("vllm", {"version": "0.1"}), ("sglang", {}), ("ebb", {"build_info": "x"}), ("library", {"version": "9"}),
                      ("organization_owner", {"data": [{"id": "m", "loaded_context_length": 7}]}), ("openai", {}), ("nobody", {})]:
    for how in 0, 6, 12, 18:
        server(f"{owner}-{how}", how, reply(200, ["Content-Type: application/json; charset=x", "Server: it/1"], models(owner, "m", "n:latest", max_model_len=99)), reply(200, [], json.dumps(second)),
               reply(200, [], json.dumps({"models": [{"name": "m", "context_length": 5}]})))
for how in range(24):
    server(f"kind-{how}", how, reply(200, [], models("x", "dir/m.gguf", "q", meta={"n_ctx": 3})), reply(200, [], '{"version":"1"}'), reply(404))
for server_name in "ebb/0.1", "llama.cpp":
    server("named-" + server_name[:3], 6, reply(200, ["Server: " + server_name], models("", "dir/My-m-7B.gguf")), reply(200, [], "{}"))
for status in 200, 301, 400, 401, 403, 404, 429, 500, 503, 0:
    for i, b in enumerate(['{"error":{"message":"no \u001b such sk-0123456789","n_ctx":5,"type":"exceed_context_size_error"}}', '{"error":"words sk-012345"}', "<html>", "", '{"detail":[{"msg":"x"}]}', '{"message":"m"}']):
        server(f"status-{status}-{i}", 1, reply(status, ["Content-Type: text/html" if i == 2 else "Content-Type: x/y", "Location: http://e/sk-0123456789", "Retry-After: 3"], b))
for code in 1, 3, 6, 7, 18, 23, 27, 28, 35, 52, 56, 60, 77:
    server(f"code-{code}", 0, reply(200, [], "", code))
    server(f"code-{code}-early", 0, f"HTTP/1.1 0 {code}".encode())
for code in 0, 7, 52, 56:
    server(f"command-{code}", 240, reply(200, [], models("x", "m"), code), reply(200, [], "{}", code))
    server(f"socket-{code}", 24, reply(200, [], models("x", "m"), code))
server("headers-many", 0, reply(200, ["X: " + "y" * 8000] * 33, "{}"))
server("headers-odd", 0, b"HTTP/1.1 200\r\nServer: " + b"s" * 100 + b"\r\nContent-Type:\r\nLocation: \x01\x7f\r\nno\r\n\r\n{}")
server("models-many", 0, reply(200, [], models("x", *[f"m{i}" for i in range(260)])))
server("models-odd", 6, reply(200, [], json.dumps({"data": [1, {}, {"id": 5}, {"id": ""}, {"id": "n" * 300}, {"id": "\u202e\u001b"}]})))
server("models-none", 6, reply(200, [], '{"data":[]}'), reply(200, [], "{}"))
server("no-list", 0, reply(200, [], '{"data":{}}'))
server("deep", 0, reply(200, [], "[" * 4000))

# -- Streams --------------------------------------------------------------------------------------------------------


def sse(name, *events, how=0, raw_bytes=None):
    data = raw_bytes if raw_bytes is not None else "".join(f"data: {e if isinstance(e, str) else json.dumps(e)}\n\n" for e in events).encode()
    seed("fuzz_answer", name, how, data)


delta = lambda **d: {"choices": [{"index": 0, "delta": d}]}
sse("usual", delta(role="assistant"), delta(content="Hel"), delta(content="lo"), {"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 3}}}, "[DONE]")
sse("timings", delta(content="x"), {"choices": [{"delta": {}, "finish_reason": "length"}], "timings": {"cache_n": 4, "prompt_n": 3, "prompt_ms": 12.5, "predicted_n": 2, "predicted_ms": 8.0}})
sse("timings-huge", {"choices": [], "timings": {"cache_n": 4294967295, "prompt_n": 4294967295, "predicted_n": 1, "prompt_ms": -1, "predicted_ms": "x"}})
sse("timings-part", {"choices": [], "timings": {"cache_n": 1}})
sse("thoughts", delta(reasoning_content="hm"), delta(reasoning="m"), delta(content="a<think>b</think>"), delta(reasoning_content="again"), delta(content="\u0000x\u0000"))
sse("thoughts-nested", *[delta(reasoning_content="t") if i % 2 else delta(content="<think>") for i in range(60)])
sse("refusal", delta(refusal=None), delta(refusal="I "), delta(refusal="won't"), delta(content="but"), delta(refusal="no"), delta(refusal=5))
sse("object-error", {"object": "error", "message": "no"}, {"object": "chat", "x": 1}, {"object": 5})
sse("error", {"error": {"message": "bad", "code": 400}})
sse("error-text", {"error": "bad"})
sse("kept", {"choices": [], "ebb": {"number": 7, "next": 3, "reused_disk": 2}}, {"ebb": {"answer": 7, "piece": 1}, "choices": []}, {"choices": [], "ebb": {"number": -1, "next": -1}})
sse("progress", {"choices": [], "prompt_progress": {"total": 10, "cache": 2, "processed": 5, "time_ms": 1}}, {"choices": [], "prompt_progress": {"total": 1, "cache": 2, "processed": 5}})
sse("endings", *[{"choices": [{"delta": {}, "finish_reason": r}]} for r in ("tool_calls", "content_filter", "x" * 90, None, 5)])
sse("not-json", "{")
sse("odd", "null", "[]", "5", {"choices": 5}, {"choices": [5]}, {"choices": [{"delta": 5}]}, {"choices": [{"delta": {"content": 5}}]})
sse("no-event", raw_bytes=b": comment\nevent: x\nid: 1\ndata\ndata:\ndata:a\ndata: b\r\n\r\rdata: [DONE]\n\n")
sse("mark", raw_bytes=b"\xef\xbb\xbfdata: [DONE]\n\n")
sse("mark-half", raw_bytes=b"\xef\xbbdata: [DONE]\n\n")
sse("event-long", raw_bytes=b"data: " + b"x" * 5000 + b"\n\n")
sse("event-long-lines", raw_bytes=b"data: " + b"x" * 3000 + b"\ndata: " + b"y" * 3000 + b"\n\n")
sse("line-long", raw_bytes=b"x" * 6000, how=1)
for how in 0, 14:
    lines = [{"message": {"role": "assistant", "content": "a", "thinking": "t"}, "done": False}, {"message": {"content": "b"}}, {"done": True, "done_reason": "stop", "prompt_eval_count": 3, "eval_count": 4, "prompt_eval_duration": 5, "eval_duration": 6}]
    seed("fuzz_answer", f"lines-{how}", 1 | how, " " + "\n".join(json.dumps(l) for l in lines) + "\n")
    seed("fuzz_answer", f"lines-odd-{how}", 1 | how, '\n{"error":"x"}\n{"message":5}\n{"done":true,"done_reason":"load"}\n{"message":{"content":5}}')
for i, e in enumerate(['{"error":{"message":"x","n_ctx":7,"type":"exceed_context_size_error"}}', '{"error":{"message":"maximum context length is 4096 tokens"}}', '{"detail":"d"}', '{"message":"m"}', '{"error":{"code":5}}', "[1]"]):
    seed("fuzz_answer", f"error-body-{i}", e)

# -- Files of the user's own -----------------------------------------------------------------------------------------


def state(name, which, data):
    seed("fuzz_state", name, which, data)


HISTORY, DRAFT, THEME, ENGINES, SIDECAR, SPEEDS, EXPERTS, KEY = range(8)
state("history", HISTORY, "one\ntwo\\nlines\\\\\nlong " + "x" * 300 + "\n\n\\\nend without newline")
state("history-nul", HISTORY, b"a\0b\nok\n\xff\xfe\n")
state("history-many", HISTORY, "a\nb\n" * 2200)
state("history-empty", HISTORY, "")
state("history-long", HISTORY, "x" * 140000 + "\nafter\n")
state("draft", DRAFT, "s\nwhat I meant\nto say")
state("draft-zeros", DRAFT, b"s\nhalf\0\0\0\0")
state("draft-other", DRAFT, "t\nof another")
state("draft-only-zeros", DRAFT, b"s\n\0\0\0")
faces = [l.split("=")[0].strip() for l in open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../themes/dark.theme")) if "=" in l and not l.startswith("#")]
state("theme", THEME, "# c\n\n" + "".join(f"{f} = {c}\n" for f, c in zip(faces, ["red", "bright-blue black bold", "#ff8800 #000000 dim italic underline reverse", "255 16", "default default # c", "7"] * 9)))
for i, line in enumerate(["nosuch = red", "no equals", f"{faces[0]} = 256", f"{faces[0]} = #12345", f"{faces[0]} = bold red", f"{faces[0]} = red green blue", "x" * 300, "a\0b", f"{faces[0]}=-1", f"{faces[0]} = #gggggg"]):
    state(f"theme-bad-{i}", THEME, line)
engines = "# engines\n[one]\naddress = http://127.0.0.1:1\nkey = secret\nmodel = m\nkind = ollama\ncontext = 4096\nsilence = 30\nheader = X-A: b\n\n[two]\naddress = unix:/x\nkey-variable = NOSUCH\ninsecure = on\nca-file = ~/c.pem\n[three]\naddress = ssh://u@h\nkey-file = /nonexistent\n[four]\naddress = exec:cat\nkey-command = true\n"
state("engines", ENGINES, engines)
for i, line in enumerate(["address = x", "[a\n", "[]\n", "[here]\naddress = unix:/x\n", "[a]\n", "[a]\naddress = unix:/x\n[a]\naddress = unix:/y\n", "[a]\nnosuch = 5\n", "[a]\naddress = unix:/x\ncontext = -5\n", "[a]\naddress = unix:/x\ncontext = 99999999999\n", "[a]\naddress = unix:/x\nkind = zz\n", "[a]\naddress = unix:/x\nheader = nocolon\n", "[a]\naddress = unix:/x\n" + "header = A: b\n" * 20, "[a]\naddress = unix:/x\ninsecure = perhaps\n", "[" + "n" * 60 + "]\n", "[a b]\n", "a\0b\n", "[a]\naddress = \"quoted\"\n", "[a]\naddress = http://x\nkey = " + "k" * 9000 + "\n", "[a]\naddress\n", "[a]\naddress = unix:/x\nkey = a\nkey-file = b\n"]):
    state(f"engines-bad-{i}", ENGINES, line)
state("engines-zeros", ENGINES, b"\0\0\0\5")    # what was added behind them was not found again
state("sidecar", SIDECAR, json.dumps({"command": "ebb pull a/b", "bytes": 10, "sha256": "a" * 64, "etag": '"x"', "modified": "Mon"}))
state("sidecar-odd", SIDECAR, json.dumps({"command": "c" * 2000, "bytes": -1, "sha256": 5, "etag": "e" * 300}))
state("sidecar-damaged", SIDECAR, '{"command": "x"')
state("sidecar-negative", SIDECAR, json.dumps({"command": "c", "bytes": -5}))
state("speeds", SPEEDS, "weights q4_K\t3e10\t0\t1790000000\t1790000000\t3\t0.01\t0\t0\t0\t0\ndisk uring\t3.2e9\t2e6\t1790000000\t1790000000\t1\t1\t2e9\t1\t1790000000\t2\n")
state("speeds-odd", SPEEDS, "\n".join(f"x{i}\t{v}\t1\t1\t1\t1\t{c}\t0\t0\t0\t0" for i, (v, c) in enumerate([("nan", 0), ("inf", 0), (-1, 0), (1, "inf"), (1, "nan"), (1e300, 0), (5e-324, 0)])))
state("speeds-many", SPEEDS, "\n".join(f"n{i}\t1\t1\t1\t1\t1\t0\t0\t0\t0\t0" for i in range(80)))
state("speeds-times", SPEEDS, f"a\t1\t1\t{2**63 - 1}\t{2**63}\t{2**32}\t0\t0\t0\t{2**63 - 1}\t{2**32 - 1}\nb\t1\t1\t{2**63 - 1}\t0\t1\t0\t0\t0\t0\t0")
for name, kind, n_ops, n_mem in ("file", 2, 0, 0), ("passphrase", 1, 3, 256 << 20), ("costs", 1, 2**63, 2**40), ("kind", 3, 0, 0):
    state(f"key-of-{name}", KEY, struct.pack("<8sIIQQ", b"EBB-KEY\n", 1, kind, n_ops, n_mem) + bytes(range(88)))
state("key-newer", KEY, struct.pack("<8sI", b"EBB-KEY\n", 2) + bytes(108))
state("key-short", KEY, b"EBB-KEY\n")


def experts(uses, n=None, v=(0.5, 0.25, 1.5)):
    return b"ebb experts 1\n" + struct.pack("<Q3d", len(uses) if n is None else n, *v) + struct.pack(f"<{len(uses)}f", *uses)


state("experts", EXPERTS, experts([5, 1, 0, 0.25] * 8))
state("experts-none", EXPERTS, experts([0] * 8, v=(0, 0, 0)))
state("experts-count", EXPERTS, experts([1] * 8, n=2**62))
state("experts-odd", EXPERTS, experts([1, float("nan"), 2]))
state("experts-infinite", EXPERTS, experts([1, 2], v=(float("inf"), 0, 0)))

# -- JSON schemas ----------------------------------------------------------------------------------------------------

doubling = {f"a{i}": {"allOf": [{"$ref": f"#/$defs/a{i + 1}"}] * 2} for i in range(24)} | {"a24": {"type": "integer"}}
seed("fuzz_schema", "doubling", json.dumps({"$ref": "#/$defs/a0", "$defs": doubling}))
seed("fuzz_schema", "alternatives", json.dumps({"allOf": [{"anyOf": [{"const": i} for i in range(40)]}] * 6}))
seed("fuzz_schema", "repeated", json.dumps({"type": "string", "pattern": "^((a{9}|[^b-y]{2,3}){9}){9}$"}))
seed("fuzz_schema", "parts", json.dumps({"oneOf": [{"properties": {"k": {"enum": [i, i + 1]}}, "required": ["k"]} for i in (0, 2, 4)]}))

# -- A foreign schema -------------------------------------------------------------------------------------------------


def foreign(name, sql):
    seed("fuzz_foreign", name, sql)


foreign("none", "")
foreign("newer", "PRAGMA user_version = 9999")
for v in range(0, 12):
    foreign(f"older-{v}", f"PRAGMA user_version = {v}")
foreign("emptied", "DELETE FROM messages; DELETE FROM sessions")
for t in "messages", "sessions", "search":
    foreign(f"no-{t}", f"DROP TABLE {t}")
    foreign(f"view-{t}", f"CREATE TABLE was AS SELECT * FROM {t}; DROP TABLE {t}; CREATE VIEW {t} AS SELECT * FROM was")
    foreign(f"endless-{t}", f"DROP TABLE {t}; CREATE VIEW {t} AS WITH RECURSIVE r(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM r) SELECT * FROM r")
foreign("trigger-all", "CREATE TRIGGER a AFTER INSERT ON messages BEGIN DELETE FROM sessions; END; CREATE TRIGGER b BEFORE UPDATE ON sessions BEGIN SELECT RAISE(ABORT, 'no\n!'); END")
foreign("trigger-ring", "PRAGMA recursive_triggers = ON; CREATE TRIGGER a AFTER INSERT ON messages BEGIN INSERT INTO messages SELECT * FROM messages WHERE id = 1; UPDATE messages SET text = text || 'x'; END")
foreign("trigger-ignore", "CREATE TRIGGER a BEFORE INSERT ON messages BEGIN SELECT RAISE(IGNORE); END")
foreign("ring", "UPDATE messages SET parent = id; UPDATE messages SET parent = (SELECT max(id) FROM messages) WHERE id = 1")
foreign("orphans", "PRAGMA foreign_keys = OFF; UPDATE messages SET parent = 999; UPDATE messages SET session = 77 WHERE id = 1")
foreign("types", "UPDATE messages SET role = 'x'; UPDATE messages SET text = 5; UPDATE sessions SET leaf = 'zz', title = x'00ff00'")
foreign("roles", "UPDATE messages SET role = 99, finish = -5")
foreign("blobs", "UPDATE messages SET text = x'610062ff'; UPDATE messages SET ids = x'01020304050607'")
foreign("tokens", "UPDATE messages SET ids = randomblob(4096), n_ids = 99; UPDATE messages SET ids_model = 'text', draws = '[[1,2],[3', left_out = '[[[', about = 77, engine = 'e'")
foreign("large", "UPDATE messages SET text = hex(zeroblob(400000)); UPDATE sessions SET title = hex(zeroblob(9000)), name = hex(zeroblob(900))")
foreign("negative", "UPDATE messages SET id = -id; UPDATE sessions SET id = -1, pinned_ms = -99999999999, updated_ms = 9e99")
foreign("settings", "UPDATE sessions SET settings = '[[['; UPDATE sessions SET settings = '{\"a\":' || hex(zeroblob(9999))")
foreign("left-out", '''UPDATE messages SET left_out = '{"first":1,"last":2,"n":3}', role = 3 WHERE id = 2; UPDATE messages SET draws = '[{"n":1,"seed":5}]' ''')
record = {"from": 0, "n": 2, "sampler": 2, "seed": 5, "temp": 0.7, "top_k": 40, "kv": "f16", "ctx": 4096, "moved": True, "before": "0f" * 16,
          "drawn": "f0" * 16, "grammar": "root ::= x"}
for name, value in (("records", [record, record | {"grammar": None}]), ("records-odd", [5, [], record | {"before": "0f"}, record | {"drawn": "zz" * 16}, record | {
        "n": -1, "seed": 2**63 - 1, "temp": 1e308, "kv": "k" * 99, "grammar": "g" * 9000}])):
    foreign(name, f"UPDATE messages SET draws = '{json.dumps(value)}'")
cut = {"how": "slide", "first": 2, "turns": 1, "tokens": 9, "kept": [0, 1, 1, -1, 5, "x"], "shift": 3, "salt": "0f" * 16}
for name, value in (("cut", cut), ("cut-forget", cut | {"how": "forget", "first": 2**31, "kept": list(range(999))}),
                    ("cut-odd", cut | {"salt": "zz" * 16, "kept": {}, "tokens": -5}), ("cut-no-salt", {"how": "compact", "first": 1, "salt": 5})):
    foreign(name, f"UPDATE messages SET role = 3, left_out = '{json.dumps(value)}' WHERE id = 2")
foreign("values-many", "UPDATE messages SET draws = '[' || replace(hex(zeroblob(330000)), '00', '{},') || '{}]', left_out = draws")
foreign("snippets", "UPDATE messages SET text = CAST(x'ff' || replace(hex(zeroblob(60)), '0', ' lives in a loft') || ' \u00d6wls' || x'00c3' || ' owls ' || replace(hex(zeroblob(60)), '0', '\u65e5\u672c') || x'e28080' AS TEXT)")
foreign("long-words", "UPDATE messages SET text = 'owls ' || replace(hex(zeroblob(40)), '0', 'abcdefghijklmnopqrstuvwxyz') || ' abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl'")
foreign("null", "UPDATE sessions SET title = NULL, name = NULL, model = NULL")
foreign("many", "WITH RECURSIVE r(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM r WHERE i < 2000) INSERT INTO messages(id, session, parent, role, text, finish, pinned, ids, n_ids, ids_model, created_ms, n_prompt, n_reused, n_reused_disk, n_computed, n_generated, prefill_s, decode_s) SELECT i, 1, CASE i WHEN 100 THEN 2 ELSE i - 1 END, i % 4, 'deep', i % 6, 0, x'', 0, x'', i, 0, 0, 0, 0, 0, 0, 0 FROM r; UPDATE sessions SET leaf = 2000")
foreign("column-more", "ALTER TABLE messages ADD COLUMN extra TEXT; ALTER TABLE sessions ADD COLUMN extra TEXT DEFAULT 'x'")
foreign("column-less", "ALTER TABLE sessions RENAME COLUMN title TO heading")
foreign("schema-broken", "UPDATE sqlite_schema SET sql = 'CREATE TABLE messages(' WHERE name = 'messages'")
foreign("schema-other", "UPDATE sqlite_schema SET sql = 'CREATE TABLE messages(a, b)' WHERE name = 'messages'")
foreign("index-lies", "DROP TABLE IF EXISTS search_data; UPDATE search_data SET block = zeroblob(9)")
foreign("fts-damaged", "UPDATE search_data SET block = randomblob(200)")
foreign("utf16", "PRAGMA encoding = 'UTF-16'; DROP TABLE sessions; DROP TABLE messages; VACUUM")
foreign("same-title", "INSERT INTO sessions(title, model, pinned_ms, created_ms, updated_ms) SELECT title, 'm', 0, 0, 0 FROM sessions")
foreign("wal-off", "PRAGMA journal_mode = DELETE; PRAGMA locking_mode = EXCLUSIVE")
foreign("page-size", "PRAGMA journal_mode = DELETE; PRAGMA page_size = 65536; VACUUM")

# -- Clients of the server -------------------------------------------------------------------------------------------

CHAT, COMPLETIONS, COMPLETION, TOKENIZE, DETOKENIZE, APPLY = range(6)
PATHS = 13


def request(name, which, body=b""):
    seed("fuzz_request", name, which, json.dumps(body) if isinstance(body, (dict, list)) else body)


hi = [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "the"}]}]
request("chat", CHAT, {"messages": hi, "max_tokens": 3})
request("chat-stream", CHAT, {"messages": hi, "max_tokens": 3, "stream": True, "stream_options": {"include_usage": True}})
request("chat-sampling", CHAT, {"messages": hi, "max_completion_tokens": 2, "temperature": 1e308, "top_p": 0.5, "top_k": -1, "min_p": 2,
                                "repeat_penalty": -1, "seed": 18446744073709551615, "stop": ["a", "\u0000", ""], "n": 1})
request("chat-schema", CHAT, {"messages": hi, "max_tokens": 4, "response_format": {"type": "json_schema", "json_schema": {
    "schema": {"type": "object", "properties": {"a": {"enum": ["x", 1]}}, "required": ["a"]}}}})
request("chat-grammar", CHAT, {"messages": hi, "max_tokens": 4, "grammar": 'root ::= "a" root | ""'})
request("chat-goes-on", CHAT, {"messages": hi + [{"role": "assistant", "content": "t"}], "add_generation_prompt": False,
                               "continue_final_message": True, "max_tokens": 2})
request("chat-tools", CHAT, {"messages": hi, "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}], "tool_choice": "auto"})
request("chat-survives", CHAT, {"messages": hi, "max_tokens": 2, "ebb": {"survives": True, "figures": True}})
request("completions", COMPLETIONS, {"prompt": "the", "max_tokens": 3, "logprobs": 2, "echo": True})
request("completions-ids", COMPLETIONS, {"prompt": [1, 262, 263, -1], "max_tokens": 2, "stream": True})
request("completion", COMPLETION, {"prompt": ["the", 5, " t"], "n_predict": 3, "cache_prompt": True, "ignore_eos": True,
                                   "return_tokens": True, "logit_bias": [[1, False], ["t", -3]], "json_schema": {"type": "boolean"}})
request("completion-nothing", COMPLETION, {"prompt": "", "n_predict": 0})
request("tokenize", TOKENIZE, {"content": "the <|im_end|>", "add_special": True, "parse_special": True, "with_pieces": True})
request("detokenize", DETOKENIZE, {"tokens": [256, 200, 262, 1e9]})
request("apply", APPLY, {"messages": hi})
for which in range(6, PATHS):
    request(f"get-{which}", which)
for i, raw_request in enumerate((b"GET /health HTTP/1.0\r\n\r\nGET /props HTTP/1.1\r\n\r\n",
                                 b"POST /tokenize HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"con\r\n9\r\ntent\":\"\"}\r\n0\r\n\r\n",
                                 b"POST /tokenize HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
                                 b"GET /ebb/v1/answers/99999999999999999999?from=%00 HTTP/1.1\r\nAuthorization: Bearer x\r\n\r\n",
                                 b"PUT /%2e%2e/ HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")):
    request(f"raw-{i}", PATHS, raw_request)
