#!/bin/sh
# ebb run and ebb serve with a form: JSON of a schema, a text of a grammar; what is no form is one line before anything is loaded.
set -u
dir=$(mktemp -d) || exit 1
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$dir"' EXIT
HOME=$dir; export HOME
unset EBB_MODELS XDG_STATE_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_CONFIG_HOME XDG_RUNTIME_DIR
fail() { echo "$*"; exit 1; }
status() { want=$1; shift; "$@" >"$dir/out" 2>"$dir/err" </dev/null; got=$?; [ $got -eq "$want" ] || fail "exit $got, not $want: $* $(cat "$dir/err")"; }

cat >"$dir/book.json" <<'JSON'
{"type": "object", "additionalProperties": false, "required": ["title", "year", "tags"],
 "properties": {"title": {"type": "string", "maxLength": 30}, "year": {"type": "integer", "minimum": 1900, "maximum": 2026},
                "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3}}}
JSON
cat >"$dir/check.py" <<'PY'
import json, sys
o = json.loads(sys.stdin.read())
assert list(o) == ["title", "year", "tags"] and len(o["title"]) <= 30 and 1900 <= o["year"] <= 2026, o
assert len(o["tags"]) <= 3 and all(t in "ab" for t in o["tags"]), o
PY
printf 'root ::= ("yes" | "no") "!"\n' >"$dir/yes.gbnf"

# From a file or in words; at any temperature; with draft tokens and without the same.
for how in "--greedy" "--temp 3 --seed 4 --top-k 0 --top-p 1 --min-p 0" "--temp 1 --seed 9"; do
    status 0 "$EBB" run --json-schema "$dir/book.json" $how "A book"
    python3 "$dir/check.py" <"$dir/out" || fail "not of the schema: $how: $(cat "$dir/out")"
    cp "$dir/out" "$dir/first"
    status 0 "$EBB" run --json-schema "$(cat "$dir/book.json")" --no-draft $how "A book"
    cmp -s "$dir/out" "$dir/first" || fail "$how: another text without draft tokens"
done
status 0 "$EBB" run --grammar "$dir/yes.gbnf" "Is it?"
grep -qx 'yes!\|no!' "$dir/out" || fail "not of the grammar: $(cat "$dir/out")"
status 0 "$EBB" run --grammar "$dir/yes.gbnf" --json "Is it?"
python3 -c 'import json, sys; o = json.load(open(sys.argv[1])); assert o["text"] in ("yes!", "no!") and o["finish"] == "stop", o' "$dir/out" || exit 1

# Kept with its form, an answer is sampled again.
status 0 "$EBB" run -s kept --json-schema "$dir/book.json" --temp 1 "A book"
status 0 "$EBB" sessions replay kept
grep -qi 'differ' "$dir/out" && fail "sampled again it differs: $(cat "$dir/out")"
grep -q 'same\|again' "$dir/out" || fail "not sampled again: $(cat "$dir/out")"

# What is no form.
status 1 "$EBB" run --json-schema '{"not": {}}' x
[ "$(wc -l <"$dir/err")" = 1 ] && grep -q 'not is not supported' "$dir/err" || fail "$(cat "$dir/err")"
status 1 "$EBB" run --json-schema '{"type": "object", "properties": {"a": {"type": "txt"}}}' x
grep -q '#/properties/a' "$dir/err" || fail "no place: $(cat "$dir/err")"
printf 'root ::= a\n\na = "x"\n' >"$dir/bad.gbnf"
status 1 "$EBB" run --grammar "$dir/bad.gbnf" x
grep -q 'bad.gbnf: the grammar, line 3, column 3' "$dir/err" || fail "no place: $(cat "$dir/err")"
status 2 "$EBB" run --grammar "$dir/yes.gbnf" --json-schema '{}' x
status 1 "$EBB" run --grammar "$dir/none.gbnf" x
grep -q none.gbnf "$dir/err" || fail "$(cat "$dir/err")"

# For other programs.
"$EBB" serve -m models/guide.gguf --socket "$dir/s" >"$dir/serve" 2>&1 &
server=$!
python3 - "$dir/s" "$dir/book.json" <<'PY' || { cat "$dir/serve"; exit 1; }
import json, os, socket, sys, time
schema = json.load(open(sys.argv[2]))
def ask(path, body):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    data = json.dumps(body).encode()
    s.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
              % (path.encode(), len(data), data))
    got = b""
    while True:
        part = s.recv(65536)
        if not part:
            break
        got += part
    head, _, rest = got.partition(b"\r\n\r\n")
    if b"chunked" in head.lower():
        text = b""
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            text += rest[:int(size, 16)]
            rest = rest[int(size, 16) + 2:]
        rest = text
    return int(head.split()[1]), json.loads(rest)
question = {"messages": [{"role": "user", "content": "A book"}], "max_tokens": 400}
deadline = time.time() + 300
while True:
    try:
        status, o = ask("/v1/chat/completions", dict(question, max_tokens=1))
        if status == 200:
            break
    except (OSError, IndexError, ValueError):
        pass
    if time.time() > deadline:
        sys.exit("no server")
    time.sleep(0.1)
def content(**more):
    status, o = ask("/v1/chat/completions", dict(question, **more))
    if status != 200:
        sys.exit("%d %r" % (status, o))
    return o["choices"][0]["message"]["content"]
book = json.loads(content(response_format={"type": "json_schema", "json_schema": {"name": "book", "schema": schema}}))
assert list(book) == ["title", "year", "tags"], book
assert content(grammar='root ::= "ok"') == "ok"
def go_on(begun):                                 # an answer so far, which is of the form, too
    return ask("/v1/chat/completions", {"messages": question["messages"] + [{"role": "assistant", "content": begun}],
                                        "max_tokens": 400, "json_schema": schema})
begun = '{"title": "A'
status, o = go_on(begun)
assert status == 200, o
book = json.loads(begun + o["choices"][0]["message"]["content"])
assert list(book) == ["title", "year", "tags"], book
assert go_on("Once")[0] == 400
status, o = ask("/completion", {"prompt": "x", "n_predict": 400, "json_schema": {"enum": ["one", "two"]}})
assert json.loads(o["content"]) in ("one", "two"), o
assert content(response_format={"type": "text"}) != ""
for bad, word in (({"response_format": {"type": "yaml"}}, "response_format"), ({"grammar": "root = 1"}, "line 1, column 6"),
                  ({"json_schema": {"not": {}}}, "not is not supported"), ({"grammar": 'root ::= "a"', "json_schema": {}}, "only one of them")):
    status, o = ask("/v1/chat/completions", dict(question, **bad))
    assert status in (400, 501) and word in json.dumps(o), (status, o)
PY

# This process and the server give the same text.
status 0 "$EBB" run -m models/guide.gguf -e here --json-schema "$dir/book.json" --greedy "A book"
cp "$dir/out" "$dir/first"
status 0 "$EBB" run -e "unix:$dir/s" --json-schema "$dir/book.json" --greedy "A book"
cmp -s "$dir/out" "$dir/first" || fail "the server wrote: $(cat "$dir/out")"
