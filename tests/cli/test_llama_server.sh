#!/bin/sh
# The real llama-server of a package, where there is one ($LLAMA_SERVER, in the path, or below $PEER): the guide's own file, answered there and here.
server=${LLAMA_SERVER:-$(command -v llama-server)}
peer=${PEER:-$(getent passwd "$(id -u)" | cut -d: -f6)/.cache/ebb-peer}
root=
if [ -z "$server" ] && [ -x "$peer/usr/bin/llama-server" ] && [ "$(id -u)" = 0 ]; then
    server=llama-server root=$peer
fi
[ "$server" ] || { echo "llama-server is not there"; exit 77; }
command -v python3 >/dev/null || { echo "python3 is not there"; exit 77; }
dir=$(mktemp -d /tmp/ebb-llama-XXXXXX) || exit 1
pid=
trap '[ "$pid" ] && kill $pid 2>/dev/null; [ "$root" ] && rm -rf "$root$dir"; rm -rf "$dir"' EXIT
fail() { echo "$1"; exit 1; }
export XDG_CONFIG_HOME="$dir/config" XDG_STATE_HOME="$dir/state" XDG_CACHE_HOME="$dir/cache" XDG_DATA_HOME="$dir/data" LC_ALL=C.UTF-8
unset EBB_MODELS http_proxy HTTP_PROXY ALL_PROXY all_proxy
mkdir -p "$root$dir" && cp models/guide.gguf "$root$dir/guide.gguf" || fail "no copy of the guide"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
# One thread: it shares the machine with other tests.
${root:+chroot "$root"} "$server" -m "$dir/guide.gguf" --host 127.0.0.1 --port "$port" -t 1 -c 2048 > "$dir/log" 2>&1 &
pid=$!
$EBB engines add -q box "http://127.0.0.1:$port"
n=600
until $EBB engines test box > "$dir/test" 2>&1; do
    n=$((n - 1)); [ $n -gt 0 ] || { cat "$dir/log" "$dir/test"; fail "llama-server does not start"; }
    kill -0 $pid 2>/dev/null || { cat "$dir/log"; fail "llama-server has ended"; }
    sleep 0.2
done
grep -q "llama-server" "$dir/test" && grep -q "context       2048 tokens" "$dir/test" || fail "$(cat "$dir/test")"

# The same model, the same words: greedy there and here.
ask() { $EBB run --greedy -n 40 "$@"; }
ask -e box "What is ebb?" > "$dir/there" || fail "no answer there"
ask -m guide --no-kv-cache "What is ebb?" > "$dir/here" || fail "no answer here"
[ -s "$dir/there" ] || fail "an empty answer"
cmp -s "$dir/there" "$dir/here" || { cat "$dir/there" "$dir/here"; fail "the answers differ"; }

# Its own figures, and what it had already.
ask -e box --json "What is ebb?" > "$dir/one"; ask -e box --json "What is ebb?" > "$dir/two"
python3 - "$dir/one" "$dir/two" <<'P' || fail "figures"
import json, sys
one, two = (json.load(open(f)) for f in sys.argv[1:])
for r in one, two:
    assert not r["about"] and r["cached_known"] and r["engine"] == "box" and r["ctx"] == 2048, r
    assert r["prompt_tokens"] == r["reused_tokens"] + r["computed_tokens"] > 0 and r["generated_tokens"] > 0, r
assert two["reused_tokens"] > 0, two
P

# A conversation that moves, and an answer that goes on where it was cut.
$EBB run -s s --greedy -n 6 -e box "What is ebb?" > "$dir/part" || fail "no part"
$EBB run -s s --greedy -n 6 -m guide "And what is a layer?" > /dev/null || fail "no answer here"
$EBB run -s s --greedy -n 6 -e box "How do I leave?" > /dev/null || fail "no answer there"
$EBB sessions export s "$dir/s.json"
python3 - "$dir/s.json" <<'P' || fail "the conversation did not move"
import json, sys
m = [x for x in json.load(open(sys.argv[1]))["messages"] if x["role"] == "assistant"]
assert [x.get("engine") for x in m] == ["box", None, "box"] and all(x["content"] for x in m), m
P
printf '/continue\n' | $EBB chat --plain -s cut -e box -n 4 --greedy > /dev/null 2>&1
printf 'What is ebb?\n/continue\n/continue\n' | $EBB chat --plain -s cut -e box -n 5 --greedy > "$dir/plain" 2>&1 || { cat "$dir/plain"; fail "plain"; }
$EBB sessions export cut "$dir/cut.json"
python3 - "$dir/cut.json" "$dir/here" <<'P' || fail "a cut answer does not go on"
import json, sys
m = json.load(open(sys.argv[1]))["messages"]
want = open(sys.argv[2]).read()
assert len(m) == 2 and want.startswith(m[1]["content"].rstrip()) and len(m[1]["content"]) > 30, (m, want)
P

# What does not fit is said in its words, and kept.
words=$(python3 -c 'print("word " * 4000)')
printf '%s\n' "$words" | $EBB chat --plain --overflow stop -e box > "$dir/full" 2>&1
grep -q "2048" "$dir/full" || { cut -c1-300 "$dir/full"; fail "a full context is not said"; }
exit 0
