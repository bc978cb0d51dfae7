#!/bin/sh
# A model that is fetched while the chat goes on, from a hub on the loopback: the bar, the stop, the end, leaving, a terminal that goes.
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
. tests/support/tmux.sh
hub=$dir/hub repo=owner/Tiny-1B-GGUF server=
trap 'tm kill-server 2>/dev/null; [ "$server" ] && kill $server 2>/dev/null; rm -rf "$dir"' EXIT
unset EBB_MODELS HF_TOKEN HF_HOME HF_TOKEN_PATH http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY
mkdir -p "$hub/files/$repo" "$hub/files/owner/None"
guide=$PWD/models/guide.gguf
cp "$guide" "$hub/files/$repo/Tiny-1B-Q8_0.gguf"
cp "$guide" "$hub/files/$repo/Tiny-1B-Q4_K_M.gguf"
python3 tests/support/hub.py "$hub" & server=$!
wait_until '[ -s "$hub/port" ]'
HF_ENDPOINT=http://127.0.0.1:$(cat "$hub/port") XDG_DATA_HOME=$dir/data
export HF_ENDPOINT XDG_DATA_HOME
there=$dir/data/ebb/models part=$there/Tiny-1B-Q8_0.gguf.part
how() { echo "$*" >"$hub/how"; : >"$hub/log"; }
size() { stat -c %s "$1" 2>/dev/null || echo 0; }
pulls() { pgrep -f -- "pull --json-lines --ram [0-9]* $repo" >/dev/null; }

# The bar in the status line; a question is answered meanwhile; a second fetch is refused; Ctrl-C on an empty line ends it.
how hold=1000000
tm new-session -d -x 100 -y 30 "PS1='shell> ' bash --norc --noprofile -i" || { echo "tmux does not start"; exit 77; }
wait_for 'shell>'
tm send-keys "$EBB -m guide -n 8 --greedy" Enter
wait_for 'Ask something'
tm send-keys "/pull $repo:Q8_0" Enter
wait_for "fetching $repo:Q8_0"
wait_for_re 'fetching .*4\.40 MiB +2[0-9]%'
wait_for '4 of 4 layers in memory'
tm send-keys 'How do I leave?' Enter
wait_for_re '8 tok'
tm send-keys "/pull $repo:Q4_K_M" Enter
wait_for 'is being fetched; /pull stop stops it'
tm send-keys '/pull' Enter
wait_for_re 'Tiny-1B-Q8_0.gguf 2[0-9] %'
tm send-keys C-c
wait_for_re "stopped at 2[0-9] %; /pull $repo:Q8_0 continues"
wait_until '! pulls'
[ "$(size "$part")" -ge 1000000 ] || fail "no part is kept"
tm send-keys '/pull stop' Enter
wait_for 'nothing is being fetched'

# What cannot be is one line: an unknown repository, one without models, an address, an option.
tm send-keys '/pull owner/Nothing' Enter
wait_for_re 'owner/Like-It-GGUF'
tm send-keys '/pull owner/None' Enter
wait_for 'has no GGUF files'
tm send-keys '/pull http://127.0.0.1:1/x.gguf' Enter
wait_for 'fetches only from the hub'
tm send-keys '/pull -y/x' Enter
wait_for 'a model is named OWNER/NAME'

# It goes on where it stopped; leaving is asked about once, and keeps the part.
how hold=2000000
tm send-keys '/new' Enter
tm send-keys "/pull $repo:Q8_0" Enter
wait_until '[ "$(size "$part")" -ge 1900000 ]'
grep -q 'bytes=1[0-9]*- ' "$hub/log" || fail "it did not go on: $(cat "$hub/log")"
tm send-keys C-d
wait_for 'the same again leaves and stops it'
tm send-keys C-d
wait_until '[ "$(screen | grep -c "shell>")" -ge 2 ]'
wait_until '! pulls'
[ "$(size "$part")" -ge 1900000 ] || fail "the part is gone"

# The terminal goes away in the middle: nothing is left running, the part is.
how hold=3000000
tm send-keys "clear; exec $EBB -m guide --linger 0" Enter
wait_for 'Ask something'
tm send-keys "/pull $repo:Q8_0" Enter
wait_until '[ "$(size "$part")" -ge 2900000 ]'
tm kill-server
wait_until '! pulls'
[ "$(size "$part")" -ge 2900000 ] || fail "the part is gone"

# To its end, with lines alone: said once, and the model can be talked to.
how
printf '/pull %s:Q8_0\n' $repo | timeout 600 "$EBB" --plain -m guide >"$dir/out" 2>&1 || fail "plain: $(cat "$dir/out")"
grep -q '^Note: Tiny-1B-Q8_0.gguf is here: 4.40 MiB in .*, SHA-256 matches the server.s; /model Tiny-1B-Q8_0.gguf loads it' "$dir/out" ||
    fail "plain says: $(cat "$dir/out")"
cmp -s "$guide" "$there/Tiny-1B-Q8_0.gguf" || fail "it is not the file"
printf '/model Tiny-1B-Q8_0.gguf\nhello\n' | timeout 600 "$EBB" --plain -m guide -n 3 --greedy >"$dir/out" 2>&1
grep -q '^Model: Hello' "$dir/out" || fail "the new model says: $(cat "$dir/out")"
printf '/pull %s:Q8_0\n' $repo | timeout 600 "$EBB" --plain -m guide --private >"$dir/out" 2>&1
grep -q 'Error: this chat writes nothing to disk' "$dir/out" || fail "private: $(cat "$dir/out")"

# The lines that the chat reads, as any program may.
rm "$there/Tiny-1B-Q8_0.gguf"
"$EBB" pull --json-lines $repo:Q8_0 >"$dir/out" 2>"$dir/err" || fail "--json-lines: $(cat "$dir/err")"
python3 - "$dir/out" "$(size models/guide.gguf)" <<'PY' || fail "--json-lines: $(cat "$dir/out")"
import json, sys
events = [json.loads(line) for line in open(sys.argv[1])]
assert {e["event"] for e in events} == {"notice", "progress", "done"}, events
assert events[-1]["event"] == "done" and events[-1]["bytes"] == int(sys.argv[2]) and events[-1]["verified"], events[-1]
PY
"$EBB" pull --json-lines owner/None >"$dir/out" 2>/dev/null && fail "no error"
grep -q '^{"event":"error","text":"owner/None: has no GGUF files' "$dir/out" || fail "the error: $(cat "$dir/out")"
exit 0
