#!/bin/sh
# Two terminals, one model: the chat that has it hands it over to a server for both, which outlives either of them.
. tests/support/tmux.sh
command -v python3 >/dev/null || { echo "python3 is not there"; exit 77; }
ldconfig -p 2>/dev/null | grep -q libmicrohttpd.so.12 || [ -e /usr/lib/"$(uname -m)"-linux-gnu/libmicrohttpd.so.12 ] || { echo "libmicrohttpd is not there"; exit 77; }
export XDG_RUNTIME_DIR="$dir/run" SHELL=/bin/sh
mkdir "$dir/run"
servers() { $EBB stat --json | python3 -c 'import json, sys; print(*[p["pid"] for p in json.load(sys.stdin)["running"] if p["session"] == "ebb serve"])'; }
busy=
trap 'tm kill-server 2>/dev/null; [ "$busy" ] && kill $busy 2>/dev/null; for p in $(servers); do kill $p; done; rm -rf "$dir"' EXIT
# The guide, as large as a model that is worth it: what is behind its weights is a hole.
cp models/guide.gguf "$dir/big.gguf" && truncate -s 300M "$dir/big.gguf" || exit 1
cp models/guide.gguf "$dir/small.gguf"
answers() { $EBB stat --json | python3 -c 'import json, sys; print(sum(p.get("answers", 0) for p in json.load(sys.stdin)["running"]))'; }
engines() { $EBB stat --json | python3 -c 'import json, sys; print(sum(p["layers"] > 0 for p in json.load(sys.stdin)["running"]))'; }
offers() { $EBB stat --json | python3 -c 'import json, sys; print(sum("shares" in p for p in json.load(sys.stdin)["running"]))'; }
is_heard() { python3 -c 'import glob, socket, sys; [socket.socket(socket.AF_UNIX).connect(p) for p in glob.glob(sys.argv[1])] or sys.exit(1)' "$dir/run/ebb/shared-*.sock" 2>/dev/null; }
run() { $EBB run -v --greedy -n 30 "$@" </dev/null >"$dir/out" 2>"$dir/err" || fail "run $*: $(cat "$dir/err")"; }
chat() { name=$1; shift; tm new-session -d -s "$name" -x 100 -y 30 "$EBB --greedy -n 30 $* 2>$dir/$name.err"; }
look() { eval "screen() { tm capture-pane -p -t $1 2>/dev/null; }"; }

run -m "$dir/big.gguf" "What is a token?"
want=$(cat "$dir/out")
grep -q "has this model" "$dir/err" && fail "shared with nobody: $(cat "$dir/err")"

# A server that ends with its last session may still be ending when the next one asks for it.
tm new-session -d -s stays "exec sleep 100000"

# What is not handed over: a small model, one that stays here, one of an own kind, a private chat.
i=0
for o in "-m $dir/small.gguf" "-m $dir/big.gguf -e here" "-m $dir/big.gguf --ctx 512" "-m $dir/big.gguf --raw" "-m $dir/big.gguf --draft-tokens 2" "-m $dir/big.gguf --private"; do
    i=$((i + 1)); chat "n$i" "$o"; look "n$i"
    wait_until '[ "$(engines)" = 1 ]'
    [ "$(offers)" = 0 ] || fail "a chat offers its model: $o"
    tm kill-session -t "n$i"; wait_until '[ "$(engines)" = 0 ]'
done

# One that is: another ebb has the answer of a server, and the chat goes on with that server.
chat a "-m $dir/big.gguf"; look a
wait_until '[ "$(offers)" = 1 ]'
file=$($EBB stat --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["running"][0]["shares"])')
tm send-keys -t a "What is ebb?" Enter
wait_for "tok ·"
run -m "$dir/big.gguf" "What is a token?"
grep -q "another ebb (process [0-9]*) has this model" "$dir/err" || fail "nothing is told: $(cat "$dir/err")"
[ "$(cat "$dir/out")" = "$want" ] || fail "another answer: $(cat "$dir/out")"
wait_for "another ebb wants this model too"
wait_for "is in memory once"
[ "$(servers | wc -w)" = 1 ] && [ "$(engines)" = 1 ] && [ "$(answers)" = 1 ] || fail "$(servers) $(engines) $(answers)"
one=$(servers)
tm send-keys -t a "What is a layer?" Enter
wait_until '[ "$(answers)" = 2 ]'
wait_for_re "^  *Esc|tok ·"

# A second chat finds it, and it outlives the first.
chat b "-m $dir/big.gguf"; look b
wait_for "ebb serve (process $one) has this model"
wait_for "is in memory once"
tm kill-session -t a
tm send-keys -t b "What is a token?" Enter
wait_until '[ "$(answers)" = 3 ]'
[ "$(servers)" = "$one" ] && [ "$(engines)" = 1 ] || fail "not the same server: $one, $(servers)"

# It is killed: the next question starts another.
kill -9 "$one"
wait_until '[ -z "$(servers)" ]'
tm send-keys -t b "What is ebb?" Enter
wait_until '[ "$(answers)" = 1 ]'
[ "$(servers)" != "$one" ] && [ "$(engines)" = 1 ] || fail "$one, $(servers)"

# /engine here takes it back for this one alone, and it is not asked for again.
tm send-keys -t b "/engine here" Enter
wait_until '[ "$(engines)" = 2 ]'
[ "$(offers)" = 0 ] || fail "what was taken back is offered"
tm kill-session -t b
for p in $(servers); do kill "$p"; done
wait_until '[ "$(engines)" = 0 ]'

# One that has it answers for long: what is waited for is said, and the way out of it; when that answer has ended, the server is there.
cat >"$dir/busy.py" <<'P'
import json, os, signal, socket, sys
signal.signal(signal.SIGUSR2, signal.SIG_IGN)
s = socket.socket(socket.AF_UNIX)
s.bind(f"{sys.argv[1]}/begun")                   # `ebb stat` removes what has its name and hears nobody
s.listen()
os.rename(f"{sys.argv[1]}/begun", f"{sys.argv[1]}/{os.getpid()}.sock")
while True:
    c = s.accept()[0]
    c.sendall(json.dumps({"pid": os.getpid(), "session": None, "shares": sys.argv[2], "state": "decode", "layers": 0}).encode())
    c.close()
P
python3 "$dir/busy.py" "$dir/run/ebb" "$file" & busy=$!
wait_until '[ "$(offers)" = 1 ]'
for who in d e; do
    chat $who "-m $dir/big.gguf"; look $who
    wait_for "another ebb (process $busy) has this model and is answering"
    tm send-keys -t $who "What is ebb?" Enter
    wait_for "waits: What is ebb?"
    [ "$(engines)" = 0 ] || fail "it does not wait"
    if [ $who = d ]; then
        screen | tr -d '\n' | grep -q "/engine here" || fail "no way out is named"
        tm send-keys -t d "/engine here" Enter
        wait_until '! is_heard'                  # nor does the server wait any more that was to have it
    else
        kill $busy
        wait_for "is in memory once"
    fi
    wait_for "cut at the length limit"
    [ "$(engines)" = 1 ] || fail "$who: $(engines)"
    tm kill-session -t $who; [ $who = e ] || wait_until '[ "$(engines)" = 0 ]'
done
one=$(servers)
kill "$one"
wait_until '! kill -0 "$one" 2>/dev/null'

# One that has nothing to do and keeps it all the same is not waited for.
sed -i 's/"decode"/"idle"/' "$dir/busy.py"
python3 "$dir/busy.py" "$dir/run/ebb" "$file" & busy=$!
wait_until '[ "$(offers)" = 1 ]'
timeout 60 $EBB run --greedy -n 30 -m "$dir/big.gguf" "What is a token?" </dev/null >"$dir/out" 2>"$dir/err" || fail "it is waited for: $(cat "$dir/err")"
[ "$(cat "$dir/out")" = "$want" ] && [ "$(servers | wc -w)" = 1 ] || fail "no answer of a server: $(cat "$dir/out" "$dir/err")"
kill $busy
for p in $(servers); do kill "$p"; done
wait_until '[ "$(engines)" = 0 ]'

# Two begin at the same instant: one has it, or the other, and then a server for both.
tm new-session -d -s f -x 100 -y 30 "$EBB -m $dir/big.gguf" \; new-session -d -s g -x 100 -y 30 "$EBB -m $dir/big.gguf"; look g
wait_until '[ "$(servers | wc -w)" = 1 ] && [ "$(engines)" = 1 ] && [ "$(offers)" = 0 ]'
tm kill-session -t f; tm kill-session -t g
for p in $(servers); do kill "$p"; done
wait_until '[ "$(engines)" = 0 ]'

# No model is named, and none was before: the second takes what the first has chosen, and so does a third, of the server.
unnamed() { tm new-session -d -s "$1" -x 100 -y 30 "XDG_STATE_HOME=$dir/new XDG_DATA_HOME=$dir/new EBB_MODELS=$dir/big.gguf $EBB --greedy -n 30"; look "$1"; }
unnamed h
wait_until '[ "$(offers)" = 1 ] && [ "$(engines)" = 1 ]'
unnamed i
wait_for "has this model"
wait_for "is in memory once"
[ "$(servers | wc -w)" = 1 ] && [ "$(engines)" = 1 ] || fail "unnamed: $(servers), $(engines)"
tm kill-session -t h
unnamed j
wait_for "is in memory once"
tm send-keys -t j "What is ebb?" Enter
wait_for "cut at the length limit"
[ "$(servers | wc -w)" = 1 ] && [ "$(engines)" = 1 ] || fail "a third, unnamed: $(servers), $(engines)"
tm kill-session -t i; tm kill-session -t j
for p in $(servers); do kill "$p"; done
wait_until '[ "$(engines)" = 0 ]'

# Sessions are encrypted: the server, which is started without their key, leaves no K and V on the disk.
if $EBB sessions encrypt --unlock "$dir/key" >/dev/null 2>&1; then
    chat k "-m $dir/big.gguf --unlock $dir/key"; look k
    wait_until '[ "$(offers)" = 1 ]'
    run -m "$dir/big.gguf" --unlock "$dir/key" "What is a token?"
    [ "$(cat "$dir/out")" = "$want" ] || fail "another answer, encrypted: $(cat "$dir/out")"
    wait_for "is in memory once"
    [ "$(servers | wc -w)" = 1 ] && [ "$(answers)" = 1 ] || fail "encrypted: $(servers), $(answers)"
    for p in $(servers); do kill "$p"; done
    wait_until '[ "$(engines)" = 0 ]'
    ls "$XDG_CACHE_HOME"/ebb/kv/*.block 2>/dev/null && fail "a server without the key keeps K and V"
    tm kill-session -t k; wait_until '[ "$(offers)" = 0 ]'
    $EBB sessions decrypt --unlock "$dir/key" >/dev/null || fail "decrypt"
fi

# The server cannot be had: the model is opened here.
chat c "-m $dir/big.gguf"; look c
wait_until '[ "$(offers)" = 1 ]'
at=$(ls "$dir"/run/ebb/shared-*.sock.lock); at=${at%.lock}
rm -f "$at"; mkdir "$at"
run -m "$dir/big.gguf" "What is a token?"
[ "$(cat "$dir/out")" = "$want" ] || fail "no answer without a server: $(cat "$dir/out")"
grep -q "opened here" "$dir/err" || fail "it is not said: $(cat "$dir/err")"
[ "$(offers)" = 1 ] || fail "the chat has lost its model"
