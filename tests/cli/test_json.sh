#!/bin/sh
# --json of every command that has it: one object (of sessions: one array or object), on one line, and nothing else.
set -eu
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
HOME=$dir; export HOME
unset EBB_MODELS XDG_STATE_HOME XDG_CACHE_HOME XDG_DATA_HOME XDG_CONFIG_HOME
fail() { echo "$*"; exit 1; }

one() {
    "$EBB" "$@" --json </dev/null >"$dir/out" 2>"$dir/err" || fail "exit $?: ebb $*: $(cat "$dir/err")"
    [ "$(wc -l <"$dir/out")" -eq 1 ] || fail "ebb $* --json: $(wc -l <"$dir/out") lines"
    python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$dir/out" || fail "ebb $*: no JSON: $(cat "$dir/out")"
}
"$EBB" run -s first -n 5 -p 'What is a token?' </dev/null >/dev/null 2>&1 || fail "no session"
one run -n 5 -p 'What is a token?'
one plan
one plan -m models/guide.gguf
one bench -m models/guide.gguf -p 8 -n 2 -r 1
one models
one doctor
one sessions list
one sessions search token
"$EBB" stat --json >"$dir/out" 2>/dev/null || true          # 1: nothing runs
python3 -c 'import json, sys; json.load(open(sys.argv[1]))["running"]' "$dir/out" || fail "stat: $(cat "$dir/out")"
