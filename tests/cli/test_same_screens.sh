#!/bin/sh
# One conversation by the same keys with the engine here, with `ebb serve` and, where it is there, with the llama-server of a package: sent,
# queued, tried again, edited, branched, cut, gone on with, moved to another engine in the middle, exported and opened again.  The
# screens are the same but for the lines with figures, which name the engine, and the cost of what is computed again, which only the
# engine here knows beforehand; so are the words of the export.
[ -s models/guide.gguf ] || { echo "no models/guide.gguf"; exit 77; }
command -v python3 >/dev/null || { echo "python3 is not there"; exit 77; }
ldconfig -p 2>/dev/null | grep -q libmicrohttpd.so.12 || [ -e /usr/lib/"$(uname -m)"-linux-gnu/libmicrohttpd.so.12 ] || { echo "libmicrohttpd is not there"; exit 77; }
. tests/support/tmux.sh
export EBB_MODELS=/nonexistent XDG_RUNTIME_DIR="$dir/run"
unset http_proxy HTTP_PROXY ALL_PROXY all_proxy
mkdir "$dir/run"
pids= root=
trap 'tm kill-server 2>/dev/null; for p in $pids; do kill $p 2>/dev/null; done; [ "$root" ] && rm -rf "$root$dir"; rm -rf "$dir"' EXIT
model=${SAME_MODEL:-$dir/other.gguf}              # under another name the guide is a model like any other
[ "${SAME_MODEL:-}" ] || cp models/guide.gguf "$model" || exit 1

# An answer has ended, and nothing waits: so says the chat itself.
state() { "$EBB" stat --json 2>/dev/null | python3 -c 'import json, sys
p = [p for p in json.load(sys.stdin)["running"] if p["session"] != "ebb serve"]
print(p[0]["state"] if p else "none")'; }
messages() { "$EBB" sessions list --json | sed -n 's/.*"messages":\([0-9]*\).*/\1/p' | head -n 1; }
is_idle() { [ "$(messages)" -ge "$1" ] && [ "$(state)" = idle ]; }     # in this order: idle before it began is no end
settle() { wait_until "is_idle $1"; }
# What is on the screen but figures: no panel, no lines of receipts, no line of the status
words() { screen | grep -vE ' tok([ ·]|$)|tok/s|ctx |layers |^─*$|stopped ·|s \+ [0-9]|answers|computed again|^ {60}' | sed 's/ *$//' | grep -v '^$'; }
# What was told before a key is on the screen with it
drawn() { tm send-keys -l '~~'; wait_for '~~'; tm send-keys BSpace BSpace; wait_gone '~~'; }
keep() {                                          # NAME: once the same words stand there in two looks
    drawn
    wait_until 'now=$(words); sleep 0.2; [ "$now" = "$(words)" ]'
    echo "$now" > "$to/$1"
}
send() { tm send-keys -l "$1"; tm send-keys Enter; }

# begin NAME OPTIONS...: a chat whose state is in $dir/NAME, in a tmux of its own: the last one's may still be about to end
begin() {
    to=$dir/$1 socket=ebb-test-$$-$1; shift
    mkdir "$to"
    export XDG_STATE_HOME="$to/state" XDG_DATA_HOME="$to/state"
    tm new-session -d -x 110 -y 60 "PS1='shell> ' bash --norc --noprofile -i" || { echo "tmux does not start"; exit 77; }
    wait_for 'shell>'
    tm send-keys "clear; $EBB --no-kv-cache --greedy $*" Enter
    wait_for 'ctx '
}

# talk NAME OPTIONS...: the conversation, its screens in $dir/NAME
talk() {
    begin "$@" -n 24; shift
    send 'What is a token?'; settle 2; keep sent
    send 'What is a layer?'; send 'How do I leave?'; settle 6; keep queued
    send '/retry'; settle 7; keep retried
    send '/edit 3 What is ebb?'; settle 9; keep edited
    send '/go 3a'; keep gone
    send '/branch 1'; keep branched; tm send-keys C-u
    send '/go 4a'; send '/tree all'; keep tree
    send '/cut 3 words'; keep cut
    tm send-keys Enter; settle 10; keep continued
    send "/engine ${other:-here}"; wait_for_re 'answers'
    send 'What is KV?'; settle 12; keep moved
    send "/export $to/all.json"; wait_until '[ -s "$to/all.json" ]'
    tm send-keys C-d; wait_for 'ebb -c continues'
    tm send-keys "clear; $EBB -c $* --no-kv-cache --greedy -n 24" Enter
    wait_for 'ctx '; keep again
    tm send-keys C-d; wait_for 'ebb -c continues'
    tm kill-server
}
# same NAME: the screens of that conversation are those of the engine here, and its export has the same messages
same() {
    for f in "$dir"/here/*; do
        f=${f##*/}
        case $f in state|all.json) continue ;; esac
        diff "$dir/here/$f" "$dir/$1/$f" || fail "$1: another screen, $f"
    done
    python3 - "$dir/here/all.json" "$dir/$1/all.json" <<'P' || fail "$1: the exports differ"
import json, sys
here, there = ([[m["role"], m["content"]] for m in json.load(open(f))["messages"]] for f in sys.argv[1:])
assert here == there and len(here) > 3, (here, there)
P
}

# Stopped in the middle: what is compared is not the screen, since each engine is stopped at another word.  The guide writes a context of
# 2048 tokens in less than a second, before anybody could stop it; so the engine here gets a longer one, and a server a slow line.
printf 'root ::= [a-z ]+ "#"\n' > "$dir/endless.gbnf"
# How many characters of the last message are saved
saved() {
    rm -f "$to/now.json"
    $EBB sessions export 1 "$to/now.json" >/dev/null 2>&1
    python3 -c 'import json, sys; print(len(json.load(open(sys.argv[1]))["messages"][-1]["content"]))' "$to/now.json" 2>/dev/null || echo 0
}
is_writing() { [ "$(state)" = decode ] && [ "$(saved)" -gt "$1" ]; }
# halt NAME OPTIONS...: an answer that is stopped, continued, and stopped by the other key, and a question behind it; in $dir/NAME-halt.
# A llama-server would begin the grammar anew (begins_anew=1): it is not asked to go on.
halt() {
    name=$1-halt; shift
    begin "$name" "$@"
    tm send-keys -l "/grammar $dir/endless.gbnf"           # Enter takes the file from the menu, if that is open by then, or sends
    wait_until 'tm send-keys Enter; screen | grep -q "are of the grammar"'
    send 'What is a token?'; wait_until 'is_writing 100'; tm send-keys Escape; settle 2
    send "/export $to/stopped.json"; wait_until '[ -s "$to/stopped.json" ]'
    n=$(saved); tm send-keys Enter
    if [ "${begins_anew:-}" ]; then wait_for_re "would begin the answer.s form anew"
    else wait_until 'is_writing $n'; tm send-keys C-c; settle 2
    fi
    send '/grammar off'; wait_for 'answers have no form'
    send '/set predict 24'; wait_for 'predict = 24'
    send 'What is KV?'; settle 4
    send "/export $to/all.json"; wait_until '[ -s "$to/all.json" ]'
    tm send-keys C-d; wait_for 'ebb -c continues'
    tm kill-server
}
# halted NAME [N]: its stopped text and that of the engine here begin alike to the end of the shorter one, or for N characters; what
# came then is behind it
halted() {
    python3 - "$dir/here-halt" "$dir/$1-halt" "${2:-1000000}" ${begins_anew:-} <<'P' || fail "$1: a stopped answer is another"
import json, sys
texts = []
for folder in sys.argv[1:3]:
    first, then = (json.load(open(f"{folder}/{name}.json"))["messages"] for name in ("stopped", "all"))
    told = [(m["role"], m.get("finish"), m["content"][:200], len(m["content"])) for m in first + then]
    assert [m["role"] for m in then] == ["user", "assistant"] * 2, told
    assert first[1]["finish"] == then[1]["finish"] == "cancelled", told
    goes_on = not (folder == sys.argv[2] and sys.argv[4:])
    assert then[1]["content"].startswith(first[1]["content"]), told
    assert (len(then[1]["content"]) > len(first[1]["content"])) == goes_on, told
    # the guide is asked alone here, and behind those words at a server, where it may find no end
    assert then[3]["finish"] in ("stop", "length") and then[3]["content"], told
    texts.append(first[1]["content"])
short, long = sorted(texts, key=len)
assert len(short) > 100 and long.startswith(short[:int(sys.argv[3])]), (short, long[:len(short)])
P
}
# slow NAME SERVER: an engine, that server behind a slow line
slow() {
    python3 tests/support/slow_line.py "$dir/$1.sock" "$2" & pids="$pids $!"
    wait_until '[ -S "$dir/'"$1"'.sock" ]'
    $EBB engines add -q "$1" "unix:$dir/$1.sock" || fail "no engine"
}
$EBB serve -m "$model" --socket "$dir/one.sock" --no-kv-cache 2>"$dir/log" & pids=$!
wait_until 'grep -qs "answers, with" "$dir/log"'
$EBB engines add -q box "unix:$dir/one.sock" || fail "no engine"
other=box talk here -m "$model" -e here
other=here talk there -e box
same there
halt here -m "$model" -e here --ctx 65536
slow far "$dir/one.sock"
halt there -e far
halted there

# The llama-server of a package: $LLAMA_SERVER, in the path, or below $PEER.
server=${LLAMA_SERVER:-$(command -v llama-server)}
peer=${PEER:-$(getent passwd "$(id -u)" | cut -d: -f6)/.cache/ebb-peer}
if [ -z "$server" ] && [ -x "$peer/usr/bin/llama-server" ] && [ "$(id -u)" = 0 ]; then
    server=llama-server root=$peer
    mkdir -p "$root$dir" && cp "$model" "$root$dir/other.gguf" || exit 1
fi
[ "$server" ] || { echo "the same with llama-server was skipped: it is not there"; exit 0; }
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
at=$model; [ "$root" ] && at=$dir/other.gguf
${root:+chroot "$root"} "$server" -m "$at" --host 127.0.0.1 --port "$port" -t 1 -c 2048 > "$dir/log" 2>&1 & pids="$pids $!"
$EBB engines add -q llama "http://127.0.0.1:$port"
wait_until '$EBB engines test llama >/dev/null 2>&1'
other=here talk llama -e llama
same llama
slow far-llama "$port"
begins_anew=1
halt llama -e far-llama
halted llama 40                                   # its sums round in another order: where two words are as likely, long texts part
exit 0
