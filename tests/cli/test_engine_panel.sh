#!/bin/sh
# The panel of a chat whose engine is `ebb serve`: the gauges of the machine over there, by a socket, by http and through ssh; those figures
# are the server's own.  Of another server there are no such gauges.
"$EBB" --help | grep -q 'ebb chat' || { echo "this build has no chat command"; exit 77; }
command -v python3 >/dev/null || { echo "python3 is not there"; exit 77; }
ldconfig -p 2>/dev/null | grep -q libmicrohttpd.so.12 || [ -e /usr/lib/"$(uname -m)"-linux-gnu/libmicrohttpd.so.12 ] || { echo "libmicrohttpd is not there"; exit 77; }
. tests/support/tmux.sh
pids=
serving() { "$EBB" stat --json | python3 -c 'import json, sys; print(*[p["pid"] for p in json.load(sys.stdin)["running"] if p["session"] == "ebb serve"])'; }
trap 'tm kill-server 2>/dev/null; for p in $pids $(serving); do kill $p 2>/dev/null; done; rm -rf "$dir"' EXIT
export XDG_RUNTIME_DIR="$dir/run"
unset http_proxy HTTP_PROXY ALL_PROXY all_proxy

# serve OPTIONS...: a server, and its address in $at
serve() {
    rm -f "$dir/log"
    "$EBB" serve -m guide "$@" 2>"$dir/log" & pids="$pids $!"
    wait_until 'grep -qs "answers, with" "$dir/log"'
    at=$(sed -n 's/^listening at //p' "$dir/log")
}
# gauges ENGINE WHERE: a chat with it, whose panel is about that machine; a question changes its figures
gauges() {
    tm send-keys "$EBB -e $1" Enter
    wait_for 'ebb serve'
    wait_for_re "clients +[1-9][0-9]*, 0 answering"
    wait_for_re "$2, at [0-9]{2}:[0-9]{2}:[0-9]{2}"
    wait_for_re 'memory \(RSS\) +[0-9.]+ [KMG]iB'
    wait_for_re '  budget +[0-9.]+ [KMG]iB'
    wait_for_re 'available +[0-9.]+ [KMG]iB'
    wait_for_re 'KV +0 B, [0-9.]+ MiB free'
    wait_for_re 'layers +4/4 in memory'
    wait_for 'full, '
    tm send-keys 'What is a token?' Enter
    wait_for_re 'cached \+ new'
    wait_for_re '  of all +[0-9.]+ tok/s'
    wait_for_re 'KV +[1-9][0-9.]* KiB, [0-9.]+ MiB free'
}
# leave: the chat ends, the next one begins with nothing in the KV cache over there
leave() {
    tm send-keys C-d
    wait_for 'shell>'
    tm send-keys clear Enter
    wait_gone 'layers'
}
tm new-session -d -x 140 -y 48 "PS1='shell> ' bash --norc --noprofile -i" || { echo "tmux does not start"; exit 77; }
wait_for 'shell>'

serve --socket "$dir/one.sock" --no-kv-cache
gauges "$at" 'this machine'
budget=$("$EBB" stat --json | python3 -c 'import json, sys
p = [p for p in json.load(sys.stdin)["running"] if p["session"] == "ebb serve"][0]
assert p["layer_states"] in ("####", "===="), p
print("%.1f" % (p["budget_bytes"] / 2**30))')
wait_for_re "  budget +$budget GiB"
leave
serve --port 0 --no-kv-cache
gauges "$at" '127.0.0.1'
leave

# The name of another machine, through what is called ssh here.
mkdir "$dir/bin"
cat >"$dir/bin/ssh" <<E
#!/bin/sh
while [ "\$1" != ebb ]; do shift; done
shift
exec "$EBB" "\$@" -m guide --socket "$dir/far.sock"
E
chmod +x "$dir/bin/ssh"
tm send-keys "PATH=$dir/bin:\$PATH" Enter
gauges 'ssh://me@far.example' 'far.example'
leave

# Any other server: what was measured here, and nothing of its machine.
mkdir "$dir/server"
python3 tests/support/engine.py "$dir/server" & pids="$pids $!"
wait_until '[ -s "$dir/server/port" ]'
echo 'kind=llama model=big-model' > "$dir/server/how"
tm send-keys "$EBB -e http://127.0.0.1:$(cat "$dir/server/port")" Enter
wait_for 'big-model answers'
tm send-keys 'blue sky' Enter
wait_for_re 'cached \+ new'
wait_for 'first word'
wait_for_re 'connected +since [0-9]{2}:[0-9]{2}'
for gauge in 'memory (RSS)' 'clients' 'available' 'layers' ', at '; do
    screen | grep -qF -- "$gauge" && fail "invented: $gauge"
done
exit 0
