#!/bin/sh
# Remote engines from the command line: names, keys and where they may go, every kind of address, and a conversation that moves.
command -v python3 >/dev/null || { echo "python3 is not there"; exit 77; }
dir=$(mktemp -d /tmp/ebb-engines-XXXXXX) || exit 1
pids=
trap 'for p in $pids; do kill $p 2>/dev/null; done; rm -rf "$dir"' EXIT
fail() { echo "$1"; exit 1; }
export XDG_CONFIG_HOME="$dir/config" XDG_STATE_HOME="$dir/state" XDG_CACHE_HOME="$dir/cache" XDG_DATA_HOME="$dir/data" LC_ALL=C.UTF-8
unset EBB_MODELS http_proxy HTTP_PROXY https_proxy ALL_PROXY all_proxy
engines="$XDG_CONFIG_HOME/ebb/engines"

# serve FOLDER [SOCKET]: a scripted engine
serve() {
    mkdir -p "$1"
    python3 tests/support/engine.py "$@" & pids="$pids $!"
    n=600
    until [ -s "$1/port" ]; do n=$((n - 1)); [ $n -gt 0 ] || fail "the scripted engine does not start"; sleep 0.1; done
}
# says WORDS COMMAND...: its output, of both kinds, has the words
says() {
    words=$1; shift
    "$@" > "$dir/out" 2>&1
    grep -qF -- "$words" "$dir/out" || { echo "no '$words' in what this says: $*"; cat "$dir/out"; exit 1; }
}
serve "$dir/a"
url=http://127.0.0.1:$(cat "$dir/a/port")
echo kind=vllm > "$dir/a/how"

# Names.
says "no engines yet" $EBB engines
says "there is no engine box" $EBB run -e box hi
$EBB engines add -q box "$url" -m tiny || fail "an engine cannot be added"
[ "$(stat -c %a "$engines")" = 600 ] || fail "others may read the file of engines"
says "there is already an engine box" $EBB engines add box "$url"
says "did you mean box" $EBB run -e bix hi
says "$url" $EBB engines list
$EBB engines list --json | python3 -c 'import json,sys; e = json.load(sys.stdin)["engines"]; assert e[0]["name"] == "box" and e[0]["model"] == "tiny"' || fail "list --json"
says "vLLM 0.11" $EBB engines test box
says "enable-prompt-tokens-details" $EBB engines test box
says "4096 tokens" $EBB engines test "$url"
echo kind=vllm forged > "$dir/a/how"
says "vLLM 0.11␊wire" $EBB engines test box
grep -q "^wire" "$dir/out" && { cat "$dir/out"; fail "a server adds lines to what is said of it"; }
grep -q "models        1" "$dir/out" || fail "a model is listed whose name has two lines"
echo kind=vllm hides > "$dir/a/how"
python3 - $EBB engines test box --json <<'P' || fail "what a server says reaches the terminal raw"
import os, sys
sys.path.insert(0, "tests/support")
from terminal import Terminal
t = Terminal(sys.argv[1:], os.environ)
t.until(rb"\}\r\n", 0)
sys.exit(t.end() != 0 or any(x in t.seen for x in (b"\xc2\x9b", b"\xe2\x80\xae", b"\x1b")))
P
echo kind=vllm > "$dir/a/how"
$EBB engines test box --json | python3 -c 'import json,sys; e = json.load(sys.stdin); assert e["context"] == 4096 and e["continues"] is True and e["models"] == ["tiny"]' || fail "test --json"
$EBB engines add -q gone "$url" || fail "a second engine"
says "removed gone" $EBB engines remove gone
says "there is no engine gone" $EBB engines remove gone
# What the configuration says of models and servers here is not written down for an engine elsewhere.
printf 'model = gem\nctx = 4096\nkey-file = %s/k\n' "$dir" >"$XDG_CONFIG_HOME/ebb/config"
$EBB engines add -q own "$url" || fail "an engine, with a configuration"
grep -q 'gem\|4096\|/k' "$engines" && { cat "$engines"; fail "the configuration is written into the file of engines"; }
$EBB engines remove -q own && rm "$XDG_CONFIG_HOME/ebb/config"
says "usage: ebb engines remove NAME" $EBB engines remove
says "vLLM 0.11" $EBB engines test box
says "has no model huge" $EBB run -e box -m huge hi
for bad in ftp://x http:// http://me:secret@x/ 'http://a b' unix:relative exec: ssh://-oProxyCommand=x http://x:99999 'http://x/?q'; do
    says "an address is" $EBB engines add bad "$bad"
    grep -q "secret" "$dir/out" && fail "the address is told with its password"
done
says "cannot be here" $EBB engines add here "$url"

# Answers, over TCP, a socket and a pipe.
[ "$($EBB run -e box blue)" = "You said blue in 1 messages." ] || fail "no answer over TCP"
serve "$dir/u" "$dir/u.sock"
[ "$($EBB run -e "unix:$dir/u.sock" green)" = "You said green in 1 messages." ] || fail "no answer over a UNIX socket"
cat > "$dir/bridge.py" <<'P'
import os, socket, sys, threading
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
def up():
    while True:
        data = os.read(0, 65536)
        if not data:
            return s.shutdown(socket.SHUT_WR)
        s.sendall(data)
threading.Thread(target=up, daemon=True).start()
while True:
    data = s.recv(65536)
    if not data:
        break
    os.write(1, data)
P
[ "$($EBB run -e "exec:python3 $dir/bridge.py $(cat "$dir/a/port")" red)" = "You said red in 1 messages." ] || fail "no answer over a pipe"
says "the command ended without an answer" $EBB run -e "exec:true" hi
says "out of order" $EBB run -e "exec:echo out of order >&2; exit 1" hi
mkdir "$dir/bin"                                 # what ebb starts for ssh://, and with what
printf '#!/bin/sh\necho "$@" > %s/ssh-words\nexec python3 %s/bridge.py %s\n' "$dir" "$dir" "$(cat "$dir/a/port")" > "$dir/bin/ssh"
chmod +x "$dir/bin/ssh"
[ "$(PATH=$dir/bin:$PATH $EBB run -e ssh://me@box:2222 white)" = "You said white in 1 messages." ] || fail "no answer behind ssh"
[ "$(cat "$dir/ssh-words")" = "-T -o BatchMode=yes -p 2222 me@box ebb serve --attach" ] || fail "ssh was called with: $(cat "$dir/ssh-words")"

# Keys: from a file, a variable, a command; never over http to elsewhere, and never seen.
key=sk-TOP-SECRET-0123456789
echo "kind=vllm key=$key" > "$dir/a/how"
says "wants a key" $EBB run -e box hi
printf '%s\n' "$key" > "$dir/key"; chmod 644 "$dir/key"
$EBB engines add -q file "$url" --key-file "$dir/key"
says "other users can read it" $EBB run -e file hi
chmod 600 "$dir/key"
$EBB engines add -q var "$url" --key-variable EBB_TEST_KEY
$EBB engines add -q cmd "$url" --key-command "cat $dir/key"
printf '\n[inside]\naddress = %s\nkey = %s\nheader = X-Extra: %s\n' "$url" "$key" "$key" >> "$engines"
for e in file cmd inside; do
    [ "$($EBB run --trace "$dir/trace" -s keys -e $e $e)" ] || fail "no answer with a key from: $e"
done
[ "$(EBB_TEST_KEY=$key $EBB run -e var x)" = "You said x in 1 messages." ] || fail "no answer with a key from a variable"
says "is not set" $EBB run -e var hi
grep -q "Bearer $key" "$dir/a/log" || fail "the key has not reached its server"
grep -q "\"extra\": \"$key\"" "$dir/a/log" || fail "the header has not reached its server"
chmod 644 "$engines"
says "holds secrets" $EBB engines list
chmod 666 "$engines"
says "every user may write to it" $EBB run -e cmd hi
chmod 600 "$engines"
for at in far ; do
    $EBB engines add -q $at http://192.0.2.1:8080 --key-file "$dir/key"
    says "over http" $EBB run -e $at hi
done
echo "kind=vllm key=other" > "$dir/a/how"
says "does not take its key" $EBB run --trace "$dir/trace" -e file hi
# A server that repeats them: refused, in mid-stream, cut off in the middle of one, in the address of a redirect.
long=$(printf '%0215d' 0)
for how in "status=401 words=wrong:_$key" "status=400 words=$key" "status=500 words=$long$key" "error words=$key" "error words=$long$key" "why=$key" "model=$key" "version=$key" "plain status=403 words=$key" "kind=ollama error words=$key"; do
    echo "kind=vllm $how" > "$dir/a/how"
    for e in file inside; do
        $EBB run -s keys --trace "$dir/trace" -e $e hi >> "$dir/told" 2>&1
        $EBB engines test $e >> "$dir/told" 2>&1
    done
done
grep -F 'sk-TOP' "$dir/told" && fail "a server's words tell the key"
grep -qF '(400)' "$dir/told" && grep -qF 'the server reports: *****' "$dir/told" || fail "the server's words are not told: $(cat "$dir/told")"
$EBB engines list > "$dir/list"; $EBB engines list --json >> "$dir/list"; $EBB engines test cmd >> "$dir/list" 2>&1
$EBB sessions export keys "$dir/keys.json"; $EBB sessions export keys "$dir/keys.md"
grep -rl -- 'sk-TOP' "$dir/state" "$dir/cache" "$dir/data" "$dir/trace" "$dir/keys.json" "$dir/keys.md" "$dir/out" "$dir/list" 2>/dev/null && fail "a key was written there"
grep -q "GET /v1/models of file: 401" "$dir/trace" || fail "the trace does not know of the request"

# A key file of this folder is found from any.
ebb=$(realpath "$EBB")
(cd "$dir" && "$ebb" engines add -q near "$url" --key-file here.key --ca-file '~/here.ca') || fail "not added"
grep -q "$dir/here.key" "$engines" && grep -q ' ~/here.ca' "$engines" || fail "its key is one of a folder: $(cat "$engines")"
$EBB engines remove near >/dev/null

# A redirect takes no key along.
serve "$dir/b"
echo "kind=vllm redirect" > "$dir/a/how"
says "redirects" $EBB run -e file hi
[ ! -s "$dir/b/log" ] || fail "somebody else was asked"

# One conversation: there, here, there again.
echo "kind=llama" > "$dir/a/how"
$EBB run -s move -e box one > /dev/null || fail "no first answer"
$EBB run -s move -m guide --greedy -n 4 "What is ebb?" > "$dir/local" || fail "no answer of the engine here"
[ "$($EBB run -s move -e box three)" = "You said three in 5 messages." ] || fail "the conversation did not go along"
$EBB sessions export move "$dir/move.json"
python3 - "$dir/move.json" <<'P' || fail "the export does not say who answered"
import json, sys
m = json.load(open(sys.argv[1]))["messages"]
assert [x["role"] for x in m] == ["user", "assistant"] * 3, m
assert [x.get("engine") for x in m if x["role"] == "assistant"] == ["box", None, "box"], m
assert m[1]["content"] == "You said one in 1 messages.", m
P
[ "$($EBB run -s move -m guide --greedy -n 4 "What is ebb?")" ] || fail "no second answer of the engine here"
$EBB run --json -e box "hi" | python3 -c 'import json,sys; r = json.load(sys.stdin); assert r["generated_tokens"] == 7 and r["reused_tokens"] == 2 and r["computed_tokens"] == 2 and r["engine"] == "box" and r["about"] is False, r' || fail "figures"
# What broke off: the part is in the JSON, too, and nobody is told of a key that he does not have.
echo "kind=vllm say=half_an_answer nofinish nodone" > "$dir/a/how"
$EBB run --json -e box "hi" >"$dir/part" 2>"$dir/out" && fail "what broke off is a success"
python3 -c 'import json,sys; r = json.load(sys.stdin); assert r["text"] == "half an answer" and r["finish"] == "error", r' <"$dir/part" || fail "the part is lost"
grep -q "Enter" "$dir/out" && { cat "$dir/out"; fail "ebb run has no Enter"; }
echo "kind=vllm status=500" > "$dir/a/how"
$EBB run --json -e box "hi" >"$dir/part" 2>"$dir/out"
[ ! -s "$dir/part" ] || { cat "$dir/part"; fail "there is JSON where nothing came"; }

# No connection without an engine: and libcurl is not even there.
if command -v strace >/dev/null && strace -o "$dir/strace" true 2>/dev/null; then
    strace -f -o "$dir/strace" -e trace=connect,openat $EBB run -m guide -n 2 hi > /dev/null
    grep -E 'AF_INET|libcurl' "$dir/strace" && fail "a chat without a remote engine opens a connection"
fi
exit 0
